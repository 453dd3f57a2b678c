"""The printed numbers of Kornblith et al. (2021): their transfer data sets, and numbers for findings."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penultimate.report.base import Cell
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.cells import MEAN_PER_CLASS
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.shapes.table import Printed, PrintedRow
from penultimate.report.text import fixed

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
PAPER_PER_CLASS = ("pets", "flowers")


def mean_of_printed(row: Mapping[str, str]) -> float:
    """Return the mean of a row's eight printed transfer accuracies, which the paper itself does not print."""
    return math.fsum(float(row[f"{name}_percent"]) for name in PAPER_TARGETS) / len(PAPER_TARGETS)


def printed_correlations() -> dict[str, float]:
    """Return Spearman's rho between the printed R² and linear transfer on each data set of the paper.

    >>> round(printed_correlations()["pets"], 2)
    -0.62
    """
    from penultimate.statistics.correlation import spearman

    rows = printed_rows("neurips_table1_linear")
    separation = {
        row["objective"]: float(row["class_separation_r2"])
        for row in printed_rows("neurips_table3_class_separation")
    }
    of_rows = [separation[row["objective"]] for row in rows]
    return {
        task: spearman(of_rows, [float(row[f"{task}_percent"]) for row in rows], exact=False).rho
        for task in PAPER_TARGETS
    }


def printed_transfer(group: str) -> tuple[Printed, ...]:
    """Return the columns of the paper's transfer data sets and of their mean, which it does not print."""
    columns = [
        Printed(f"{name}_percent", title + MEAN_PER_CLASS * (name in PAPER_PER_CLASS), group, "%")
        for name, title in PAPER_TARGETS.items()
    ]
    return (*columns, Printed("mean_percent", "Mean‡", group, "%", read=_printed_mean))


def _printed_mean(row: PrintedRow) -> Cell:
    value = mean_of_printed(row)
    return Cell(fixed(value, 1), value, detail="the mean of the printed values")


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
