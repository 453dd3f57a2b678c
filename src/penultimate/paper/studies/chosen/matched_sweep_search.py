r"""The hyperparameters that a search chose for study matched_sweep_search: import NINE, or paste it.

    penultimate tune all --study matched_sweep_search

Chosen by top-1 on the holdout of glyphs_tuning alone (the mean over seeds, after 44 epochs), by no test set
and no transfer task: 5 cells an objective, each trained with seeds 100, 101, 102.
Every cell: penultimate show tableA1 --study tune-matched_sweep_search
"""

NINE = (
    "cosine_softmax(scale=0.05, temperature=0.05)",  # 77.41 ± 0.24 % on the holdout, of 5 cells
)

RECIPE_CHANGES = {
    "cosine_softmax(scale=0.05, temperature=0.05)": {"learning_rate": 2.4},
}
"""What the choices change in the recipe, by objective: for `study.blocks.runs_by_recipe`."""
