"""What the claims speak of, in words and as quantities that a study measures."""

from __future__ import annotations

from typing import Literal, TypeAlias

from penultimate.report.quantity import SWEEP, Quantity, percent

Aspect: TypeAlias = Literal[
    "accuracy",
    "train",
    "matched",
    "ece",
    "kinship",
    "separation",
    "separation_before",
    "fall",
    "linear",
    "knn",
    "shared",
    "relearned",
    "gap",
    "temperature",
]
Among: TypeAlias = Literal["objectives", "temperatures"]
"""What a claim ranks: the objectives that are compared, or the temperatures of the sweep."""

MEASURED_BY = "glyphs"
"""The study of this package that measures everything the claims ask for."""
NAMES: dict[Aspect, str] = {
    "accuracy": "accuracy on the classes trained on",
    "train": "accuracy on the training images",
    "matched": "accuracy in the course of training",
    "ece": "calibration",
    "kinship": "agreement of predictions, over several seeds",
    "separation": "class separation",
    "separation_before": "class separation in the layers",
    "fall": "class separation in the course of training",
    "linear": "linear transfer",
    "knn": "kNN transfer",
    "shared": "linear transfer to classes of pretraining and to others",
    "relearned": "relearned heads",
    "gap": "relearned heads",
    "temperature": "cosine softmax at several temperatures",
}
QUANTITIES: dict[Aspect, Quantity] = {
    "accuracy": percent("top1"),
    "train": percent("top1", split="train"),
    "matched": percent("top1", over="epochs"),
    "ece": Quantity("ece"),
    "kinship": percent("agreement_same_when_both_wrong"),
    "separation": Quantity("class_separation", "train"),
    "separation_before": Quantity("class_separation", over="layers"),
    "fall": Quantity("class_separation", "train", over="epochs"),
    "linear": percent("linear_{accuracy}", target="targets"),
    "knn": percent("knn_{accuracy}", target="targets"),
    "relearned": percent("relearn_top1", setting="shots"),
}
"""The rows that hold an aspect, or that it is computed from; those of all others follow from these."""
RATIOS: tuple[Aspect, ...] = ("separation", "separation_before", "fall", "shared")
"""Aspects between 0 and 1; all others are in per cent."""
SHARED = ("newfaces", "pets")
"""The tasks whose classes are those of pretraining."""
OF_THE_SWEEP: tuple[Aspect, ...] = ("accuracy", "separation", "linear")
"""What claims about temperatures read of the sweep."""


def read_by_claims() -> tuple[Quantity, ...]:
    """Every quantity that a verdict depends on."""
    return (
        *QUANTITIES.values(),
        percent("top1", split="train", over="epochs"),
        *(QUANTITIES[aspect].of_arm(SWEEP) for aspect in OF_THE_SWEEP),
    )
