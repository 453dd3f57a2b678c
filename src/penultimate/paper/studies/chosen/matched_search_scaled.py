r"""The hyperparameters that a search chose for study matched_search_scaled: import NINE, or paste it.

    penultimate tune all --study matched_search_scaled

Chosen by top-1 on the holdout of glyphs_tuning alone (the mean over seeds, after 44 epochs), by no test set
and no transfer task: 8 to 10 cells an objective, each trained with seeds 100, 101, 102.
Every cell: penultimate show tableA1 --study tune-matched_search_scaled
- diverged: squared_error(kappa=9, scale=1.28, target=60), seed 100 (the loss was no longer a number by step
  400, epoch 5)
- diverged: squared_error(kappa=9, scale=1.28, target=60), seed 101 (the loss was no longer a number by step
  500, epoch 6)
- diverged: squared_error(kappa=9, scale=1.28, target=120), seed 101 (the loss was no longer a number by
  step 700, epoch 8)
- diverged: squared_error(kappa=9, scale=1.28, target=120), seed 102 (the loss was no longer a number by
  step 700, epoch 8)
"""

NINE = (
    "cosine_softmax(scale=1, temperature=0.05)",  # 77.24 ± 0.05 % on the holdout, of 8 cells
    "squared_error(kappa=9, scale=1.28, target=3.75)",  # 74.06 ± 0.21 % on the holdout, of 10 cells
)

RECIPE_CHANGES = {
    "cosine_softmax(scale=1, temperature=0.05)": {"learning_rate": 0.6},
}
"""What the choices change in the recipe, by objective: for `study.blocks.runs_by_recipe`."""
