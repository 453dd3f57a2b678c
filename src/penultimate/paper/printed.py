"""The paper's transfer tasks, and the columns, axes and figures that many exhibits share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penultimate.results.figure import Axis, Figure, Panel
from penultimate.results.means import PER_CLASS, PrintedColumn
from penultimate.results.table import Column

if TYPE_CHECKING:
    import pandas as pd

TASKS = {
    "food": "Food",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "birdsnap": "Birdsnap",
    "sun397": "SUN397",
    "cars": "Cars",
    "pets": f"Pets{PER_CLASS}",
    "flowers": f"Flowers{PER_CLASS}",
}
"""The paper's transfer data sets, in its order."""
MEAN_NOTE = "‡ Not printed: the mean of the eight printed values. The paper's bold is not recorded."
R2 = Axis("Class separation R² on the training images", 3)
LINEAR = Axis("Mean linear transfer accuracy, %", unit="%")


def mean_of_printed(table: pd.DataFrame) -> pd.Series:
    """Return the means of the eight printed transfer accuracies, which the paper itself does not print."""
    return table[[f"{task}_percent" for task in TASKS]].astype(float).mean(axis=1)


def printed_columns(heads: Mapping[str, str], group: str = "") -> dict[Column, PrintedColumn]:
    """Return printed columns, {name in the file: heading}, for `table_of_printed`."""
    return {Column(key, label, group): key for key, label in heads.items()}


def printed_tasks(group: str) -> dict[Column, PrintedColumn]:
    """Return the columns of the transfer tasks and of their mean, for `table_of_printed`."""
    of_tasks = printed_columns({f"{task}_percent": label for task, label in TASKS.items()}, group)
    return {**of_tasks, Column("mean_percent", "Mean‡", group): mean_of_printed}


def figure(name: str, title: str, *panels: Panel | None, legend: bool = False) -> Figure | None:
    """Return a figure of those panels that there are; None without any."""
    drawn = tuple(filter(None, panels))
    return Figure(name, title, drawn, legend) if drawn else None
