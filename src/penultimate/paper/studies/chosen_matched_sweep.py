r"""The hyperparameters that a tuning chose for study matched_sweep_search: import NINE, or paste it.

    penultimate tune all --study matched_sweep_search

Chosen by top-1 on the holdout of glyphs_tuning alone (the mean over seeds, after
44 epochs), by no test set and no transfer task. The budget was
at most 7 cells an objective, each trained with seeds 100, 101, 102. Every cell is in tuning.json.
- Cosine softmax: no finer grid of recipe.learning_rate was tried
"""

NINE = (
    "cosine_softmax(scale=0.05, temperature=0.05)",  # 77.41 ± 0.24 % after 5 of 7 cells
)

RECIPE_CHANGES = {
    "cosine_softmax(scale=0.05, temperature=0.05)": {"learning_rate": 2.4},
}
"""What the choices change in the recipe, by objective: for `study.blocks.runs_by_recipe`."""
