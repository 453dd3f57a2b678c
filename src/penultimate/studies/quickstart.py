"""Nine objectives, one seed, on the embedded world: the paper's question on a laptop.

    penultimate run quickstart

The hyperparameters were chosen on the holdout of the pretraining set (`penultimate show tableA1`); nothing
was chosen by a transfer result. With one seed it shows a direction, not a certainty.
"""

from penultimate.studies.chosen import NINE
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")

SECONDS = {
    "accuracy": 0.13,
    "agreement": 0.3,
    "calibration": 0.09,
    "class_separation": 0.12,
    "collapse": 0.22,
    "corrupted": 2.0,
    "data": 0.88,
    "distances": 0.94,
    "dynamics": 2.7,
    "extract": 0.46,
    "hard": 17.0,
    "hardness": 0.18,
    "knn": 0.09,
    "layers": 1.05,
    "linear": 0.49,
    "robustness": 2.0,
    "sheet": 0.37,
    "similarity": 11.0,
    "sparsity": 0.03,
    "spectra": 0.25,
    "train": 64.7,
}
"""CPU seconds of a step of each kind, measured."""

STUDY = Study(
    name="quickstart",
    title="Nine objectives, one seed, on the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    objectives=NINE,
    source="glyphs",
    targets=TARGETS,
    recipe=Recipe(evaluate_every=2, snapshot_every=3),
    instruments=tuple(INSTRUMENTS),
    tuned_by="rehearsal",
    expected_seconds=SECONDS,
)
