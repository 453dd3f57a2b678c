"""Nine objectives, one seed, on the embedded world: the paper's question on a laptop.

    penultimate run quickstart

The hyperparameters were chosen on the holdout of the pretraining set, about three values each; nothing was
chosen by a transfer result. With one seed it shows a direction, not a certainty.
"""

from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")

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
    name="quickstart",
    title="Nine objectives, one seed, on the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    objectives=START,
    source="glyphs",
    targets=TARGETS,
    recipe=Recipe(evaluate_every=2, snapshot_every=3),
    instruments=tuple(INSTRUMENTS),
    expected_seconds={
        "accuracy": 0.08,
        "agreement": 0.24,
        "calibration": 0.1,
        "class_separation": 0.09,
        "collapse": 0.12,
        "data": 0.47,
        "distances": 0.82,
        "extract": 0.39,
        "hardness": 0.16,
        "knn": 0.08,
        "layers": 1.1,
        "linear": 0.44,
        "sheet": 0.35,
        "similarity": 10.0,
        "sparsity": 0.03,
        "spectra": 0.13,
        "train": 67.84,
    },
)
