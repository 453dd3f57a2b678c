"""The paper's eight transfer tasks, and columns of its printed tables that many exhibits share."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def mean_of_printed(table: pd.DataFrame) -> pd.Series:
    """Return the means of the eight printed transfer accuracies, which the paper itself does not print."""
    return table[[f"{task}_percent" for task in TASKS]].astype(float).mean(axis=1)


def printed_tasks(group: str) -> dict[Column, PrintedColumn]:
    """Return the columns of the transfer tasks and of their mean, for `table_of_printed`."""
    columns: dict[Column, PrintedColumn] = {
        Column(f"{task}_percent", label, group): f"{task}_percent" for task, label in TASKS.items()
    }
    return {**columns, Column("mean_percent", "Mean‡", group): mean_of_printed}
