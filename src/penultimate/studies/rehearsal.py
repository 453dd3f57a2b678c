"""Where the quickstart's hyperparameters are chosen: the nine objectives, two seeds, ten epochs.

    penultimate tune all --study rehearsal

Three quarters of an hour on two CPU cores. Expect 65 to 72 % on the holdout. A short schedule, as the
quickstart's is. Nothing is measured on a test set or a transfer task; what was tried and chosen comes with
the package (`penultimate show tableA1 --reference --study tune-rehearsal`).
"""

from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

START = (
    "softmax",
    "label_smoothing(alpha=0.1)",
    "sigmoid",
    "final_layer_l2(lambda_final=3e-4)",
    "dropout(keep=0.9)",
    "logit_penalty(beta=3e-3)",
    "logit_norm(temperature=0.08)",
    "cosine_softmax(temperature=0.06, scale=0.5)",
    "squared_error(kappa=9, target=10, scale=1)",
)

STUDY = Study(
    name="rehearsal",
    title="The search for hyperparameters, on the embedded image world",
    question="Which hyperparameters of each objective do best on held-out pretraining images?",
    source="glyphs",
    targets=(),
    networks=(Runs(START, Recipe(epochs=10, evaluate_every=2), seeds=(0, 1)),),
    search=Search(
        grids={
            "alpha": (0.05, 0.1, 0.2),
            "lambda_final": (1e-4, 3e-4, 9e-4),
            "keep": (0.8, 0.9, 0.95),
            "beta": (1e-3, 3e-3, 9e-3),
            "logit_norm.temperature": (0.05, 0.08, 0.12),
            "cosine_softmax.temperature": (0.06,),
            "cosine_softmax.scale": (0.25, 0.5, 1),
            "kappa": (9,),
            "target": (10,),
            "squared_error.scale": (0.5, 1, 2),
        },
        budget=4,
    ),
)
