"""The printed numbers of Kornblith et al. (2021): their transfer data sets, and numbers for findings."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.asked import Asked

PAPER_TARGETS = {
    "food": "Food",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "birdsnap": "Birdsnap",
    "sun397": "SUN397",
    "cars": "Cars",
    "pets": "Pets",
    "flowers": "Flowers",
}
"""The paper's transfer data sets, in its order."""


def mean_of_printed(row: Mapping[str, str]) -> float:
    """Return the mean of a row's eight printed transfer accuracies, which the paper itself does not print."""
    return math.fsum(float(row[f"{name}_percent"]) for name in PAPER_TARGETS) / len(PAPER_TARGETS)


LINEAR_TABLE = "neurips_table1_linear"
TEST = Asked("test accuracy", Quantity("top1"), (LINEAR_TABLE, "imagenet_top1_percent"))
LINEAR = Asked(
    "mean linear transfer", Quantity("linear_{accuracy}", target=TARGETS), (LINEAR_TABLE, mean_of_printed)
)
SEPARATION = Asked(
    "class separation R²",
    Quantity("class_separation", "train"),
    ("neurips_table3_class_separation", "class_separation_r2"),
)
