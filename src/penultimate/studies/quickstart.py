"""Nine objectives, one seed, on the embedded world: the paper's question on a laptop.

    penultimate run quickstart

Six to ten minutes on two CPU cores. Expect softmax at about 90 % on its training images and 74 % on the
test images, R^2 near .30, and a mean linear transfer near 81 %. The hyperparameters were chosen on the
holdout of the pretraining set (`penultimate show tableA1`), nothing by a transfer result. With one seed it
shows a direction, not a certainty.
"""

from penultimate.studies.chosen_quickstart import NINE
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")

MEASURE = (
    "accuracy",
    "class_separation",
    "collapse",
    "hardness",
    "spectra",
    "distances",
    "calibration",
    "agreement",
    "layers",
    "similarity",
    "dynamics",
    "robustness",
    "linear",
    "knn",
)
"""Everything that exhibits of one seed can show."""

STUDY = Study(
    name="quickstart",
    title="Nine objectives, one seed, on the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    source="glyphs",
    targets=TARGETS,
    networks=(Runs(NINE, Recipe(evaluate_every=2, snapshot_every=3)),),
    measure=MEASURE,
    tuned_by="rehearsal",
    expected_seconds={"train": 65.0},
)
