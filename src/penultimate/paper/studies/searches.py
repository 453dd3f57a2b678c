"""The searches for hyperparameters in the regime of the embedded world, and what they chose.

    penultimate tune all --study matched_search

The regime is laid down in `docs/world.md`. The grids hold the paper's values, translated where they scale:
the final layer's decay is ten times the weight decay, beta scales with 1000 / K, and 1 / tau, the largest
logit, with log K. Of the cells that the seeds cannot tell from the best, the middle one is chosen. Nothing is
measured on a test set or a transfer task, and no other study uses these seeds.
"""

from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.training.regime import matched

RECIPE = matched(Recipe(epochs=44, batch_size=128, learning_rate=1.2, evaluate_every=44))
SEEDS = (100, 101, 102)


def _search(name: str, title: str, question: str, start: tuple[str, ...], search: Search) -> Study:
    return Study(
        name=name,
        title=title,
        question=question,
        source="glyphs_tuning",
        targets=(),
        networks=(Runs(start, RECIPE, seeds=SEEDS),),
        search=search,
        expected_seconds={"train": 176.0},
    )


MATCHED_SEARCH = _search(
    "matched_search",
    "The search for hyperparameters in the matched regime, on the embedded image world",
    "Which hyperparameters of each objective do best on held-out pretraining images?",
    (
        "softmax",
        "label_smoothing(alpha=0.1)",
        "sigmoid",
        "final_layer_l2(lambda_final=5e-3)",
        "dropout(keep=0.85)",
        "logit_penalty(beta=4.7e-3)",
        "logit_norm(temperature=0.057)",
    ),
    Search(
        {
            "alpha": (0.025, 0.05, 0.1, 0.2, 0.4),
            "lambda_final": (1.28e-4, 3.2e-4, 8e-4, 2e-3, 5e-3, 1.25e-2, 3.1e-2),
            "keep": (0.4, 0.7, 0.85, 0.925, 0.9625, 0.9813, 0.99067),
            "beta": (3e-4, 6e-4, 1.2e-3, 2.4e-3, 4.7e-3, 9.4e-3, 1.9e-2),
            "temperature": (0.028, 0.04, 0.057, 0.08, 0.113),
        }
    ),
)
MATCHED_SEARCH_SCALED = _search(
    "matched_search_scaled",
    "The search for hyperparameters of scaled losses in the matched regime",
    "Which strengths and learning rates do best on held-out pretraining images?",
    ("cosine_softmax(temperature=0.07, scale=1)", "squared_error(kappa=9, target=30, scale=1.28)"),
    Search(
        {
            "temperature": (0.035, 0.05, 0.07, 0.1, 0.14),
            "cosine_softmax.scale": (1,),
            "kappa": (9,),
            "target": (1.88, 3.75, 7.5, 15, 30, 60, 120),
            "squared_error.scale": (1.28,),
            "recipe.learning_rate": (0.3, 0.6, 1.2, 2.4),
        },
        product=True,
    ),
)
"""The scale of a loss acts as a learning rate, so these two have learning rates of their own."""
MATCHED_SWEEP_SEARCH = _search(
    "matched_sweep_search",
    "The search for the learning rate of the temperature sweep in the matched regime",
    "Which learning rate suits cosine softmax when its loss is scaled by the temperature?",
    ("cosine_softmax(temperature=0.05, scale=0.05)",),
    Search({"temperature": (0.05,), "scale": (0.05,), "recipe.learning_rate": (1.2, 2.4, 4.8, 9.6, 19.2)}),
)
"""A loss that is scaled by its temperature, as in the paper's table 4, learns slowly."""

CHOSEN = (
    "softmax",
    "label_smoothing(alpha=0.2)",
    "sigmoid",
    "final_layer_l2(lambda_final=0.000128)",
    "dropout(keep=0.9813)",
    "logit_penalty(beta=0.0006)",
    "logit_norm(temperature=0.057)",
    "cosine_softmax(scale=1, temperature=0.05)",
    "squared_error(kappa=9, scale=1.28, target=3.75)",
)
"""The objectives that the first two searches chose (`penultimate show tableA1 --reference`)."""
CHANGES = {"cosine_softmax(scale=1, temperature=0.05)": {"learning_rate": 0.6}}
"""What their recipes differ in from the searches' own."""
SWEEP_LEARNING_RATE = 2.4
"""The learning rate that the last search chose."""
