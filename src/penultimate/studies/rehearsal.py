"""Where the quickstart's hyperparameters are chosen: the nine objectives, two seeds, ten epochs.

    penultimate tune all --study rehearsal --budget 4

A short schedule, as the quickstart's is. Nothing is measured on a test set or a transfer task; what was tried
and chosen comes with the package (`penultimate show tableA1 --reference --study tune-rehearsal`).
"""

from penultimate.studies.quickstart import TARGETS
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
    objectives=START,
    source="glyphs",
    targets=TARGETS,
    recipe=Recipe(epochs=10, evaluate_every=2),
    seeds=(0, 1),
)
