r"""The hyperparameters that a tuning chose for study glyphs_search: import NINE, or paste it.

    penultimate tune all --study glyphs_search --budget 3 --grid alpha=0.05,0.1,0.2 --grid \
      lambda_final=3e-5,1e-4,3e-4 --grid keep=0.9,0.95,0.975 --grid beta=1e-3,2e-3,4e-3 --grid \
      logit_norm.temperature=0.03,0.045,0.07 --grid cosine_softmax.temperature=0.06 --grid \
      cosine_softmax.scale=0.5,1,2 --grid kappa=9 --grid target=10 --grid squared_error.scale=0.25,0.5,1

Chosen by top-1 on the holdout of glyphs alone (the mean over seeds, after
28 epochs), by no test set and no transfer task. The budget was
at most 3 cells an objective, each trained with seeds 0, 1. Every cell is in tuning.json.
- Softmax: one cell, so there was nothing to choose
- Label smoothing: no finer grid of alpha was tried
- Sigmoid: one cell, so there was nothing to choose
- More final layer L²: no finer grid of lambda_final was tried
- Dropout: keep = 0.9 is the smallest value that was tried, so a better one may lie beyond; the budget held
  no further expansion
- Dropout: no finer grid of keep was tried
- Logit penalty: beta = 0.001 is the smallest value that was tried, so a better one may lie beyond; the
  budget held no further expansion
- Logit penalty: no finer grid of beta was tried
- Logit normalization: no finer grid of temperature was tried
- Cosine softmax: scale = 0.5 is the smallest value that was tried, so a better one may lie beyond; the
  budget held no further expansion
- Cosine softmax: no finer grid of scale was tried
- Squared error: scale = 1 is the largest value that was tried, so a better one may lie beyond; the budget
  held no further expansion
- Squared error: no finer grid of scale was tried
"""

NINE = (
    "softmax",  # 80.50 ± 0.60 % after 1 of 3 cells
    "label_smoothing(alpha=0.1)",  # 81.27 ± 0.49 % after 3 of 3 cells
    "sigmoid",  # 81.29 ± 0.21 % after 1 of 3 cells
    "final_layer_l2(lambda_final=0.0001)",  # 81.24 ± 0.36 % after 3 of 3 cells
    "dropout(keep=0.9)",  # 80.37 ± 0.35 % after 3 of 3 cells
    "logit_penalty(beta=0.001)",  # 81.28 ± 0.15 % after 3 of 3 cells
    "logit_norm(temperature=0.045)",  # 80.91 ± 0.54 % after 3 of 3 cells
    "cosine_softmax(scale=0.5, temperature=0.06)",  # 80.66 ± 0.02 % after 3 of 3 cells
    "squared_error(kappa=9, scale=1, target=10)",  # 78.97 ± 0.46 % after 3 of 3 cells
)
