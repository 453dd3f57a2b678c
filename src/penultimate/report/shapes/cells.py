"""Cells of tables: means over runs, standard errors and bold, and the paper's printed values."""

from __future__ import annotations

from collections.abc import Mapping

from penultimate.report.base import MISSING, Cell
from penultimate.report.measurements import Seed
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.text import counted, fixed

MEAN_PER_CLASS = "†"
"""Marks a data set whose accuracy is the mean over classes."""


def run_cell(
    runs: Mapping[Seed, float] | None,
    digits: int,
    scale: float = 1,
    best: bool = False,
    shows_error: bool = False,
    beaten: bool = False,
) -> Cell:
    """Return a cell of the mean over runs {seed: value}, times `scale`, with its standard error."""
    if not runs:
        return Cell(MISSING, detail="not measured")
    summary = summarise([scale * value for value in runs.values()])
    text = fixed(summary.mean, digits)
    detail = f"mean of {counted(summary.n, 'run')}"
    error = error_of(summary)
    if error is not None:
        rounded = fixed(error, digits + 1)
        detail += f", standard error {rounded}"
        text = f"{text} ± {rounded}" if shows_error else text
    return Cell(text, summary.mean, error, summary.n, best, detail, of_runs=True, beaten=beaten)


def published_cell(printed: str, error: str = "") -> Cell:
    """Return a cell of a printed value, digit for digit."""
    if not printed:
        return Cell(MISSING, detail="not reported")
    text = f"{printed} ± {error}" if error else printed
    return Cell(text, float(printed), float(error) if error else None, detail="as printed")
