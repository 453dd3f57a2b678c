"""The statistics of exhibits (best of a column, rank correlations), and the paper's printed tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from penultimate import registry
from penultimate.report.measurements import ByRun
from penultimate.report.text import counted, fixed
from penultimate.statistics.summary import MeanWithError, summarise

if TYPE_CHECKING:
    from penultimate.measures.declaration import Direction
    from penultimate.statistics.correlation import Correlation

__all__ = [
    "Reader",
    "average",
    "best_of",
    "error_of",
    "printed_rows",
    "rank_correlation",
    "read_printed",
    "summarise",
    "without_two",
]


def error_of(summary: MeanWithError) -> float | None:
    """Return the standard error of a mean, or None for one run."""
    return None if summary.is_single else summary.standard_error


def average(values: Sequence[float]) -> float:
    """Return the mean of numbers; it is NaN if any of them is.

    >>> average([1.0, 2.0])
    1.5
    """
    return math.fsum(values) / len(values)


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return Spearman's correlation of pairs; None for fewer than three, or if all x or all y are equal.

    >>> rank_correlation([1, 2], [1, 2]) is None
    True
    """
    from penultimate.statistics.correlation import spearman

    if len(x) < 3:
        return None
    correlation = spearman(x, y)
    return None if math.isnan(correlation.rho) else correlation


def without_two(x: Sequence[float], y: Sequence[float], labels: Sequence[str] = ()) -> str:
    """Return a phrase for the range of a rank correlation without any two points, which `labels` name.

    >>> without_two([1, 2, 3, 4, 5, 6], [3, 1, 4, 2, 9, 8], "abcdef")
    '; with any two left out 0.00 to 0.80 (0.00 without e and f)'
    """
    from penultimate.statistics.correlation import leave_two_out

    left = leave_two_out(x, y)
    if left is None:
        return ""
    if left.low == left.high:
        return f"; {fixed(left.low, 2)} with any two left out"
    span = f"; with any two left out {fixed(left.low, 2)} to {fixed(left.high, 2)}"
    if not labels:
        return span
    names = " and ".join(labels[index] for index in left.pair)
    names += f", or {counted(left.ties - 1, 'other pair')}" if left.ties > 1 else ""
    return f"{span} ({fixed(left.rho, 2)} without {names})"


def best_of(runs: ByRun, best: Direction = "high") -> tuple[frozenset[str], frozenset[str]]:
    """Return the objectives that no other beats beyond chance, and those that another does beat.

    Both are those of `statistics.bold`. An objective that cannot be tested is in neither.
    """
    from penultimate.statistics.comparison import bold

    found = bold(runs, higher_is_better=best == "high")
    tested = {name for name, of in found.p_values.items() if of}
    return found.entries, frozenset(tested - found.entries)


Reader: TypeAlias = Callable[[Mapping[str, str]], float]
"""A function that makes a number of a printed row if none of its columns holds the number."""


def read_printed(row: Mapping[str, str], column: str | Reader) -> float:
    """Return the number of a printed row, from a column or by a function of the row."""
    return column(row) if callable(column) else float(row[column])


def printed_rows(name: str) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a paper's registered printed table, digit for digit."""
    rows: tuple[Mapping[str, str], ...] = registry.entry("printed", name).resolve()
    return rows
