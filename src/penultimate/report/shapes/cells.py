"""Cells of tables: means over runs, standard errors and bold, and the paper's printed values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penultimate.report.base import MISSING, UNBEATEN, WORSE, Cell, ExhibitTable
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.text import counted, fixed
from penultimate.statistics.comparison import LEAST_RUNS, LEVEL

MEAN_PER_CLASS = "†"
"""Marks a data set whose accuracy is the mean over classes."""

BOLD = "Bold: "
"""The beginning of the legend of bold, which a terminal replaces by asterisks."""
UNMARKED = "Nothing is marked: "
"""The beginning of the legend of a table in which no value is worse than another beyond chance."""
_LEGEND = re.compile(rf"^{BOLD}no other( \w+)? in the column is better beyond chance")


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


def bold_notes(measurements: Measurements) -> tuple[str, ...]:
    """Return notes on the meaning of bold in this study, and on the test behind it."""
    least, few = counted(LEAST_RUNS, "seed"), counted(len(measurements.seeds), "seed")
    if len(measurements.seeds) < LEAST_RUNS:
        return (f"Nothing is bold: with {few} nothing is called best; {least} are needed.",)
    return (
        f"{BOLD}{UNBEATEN}.",
        "What is beyond chance: objectives are compared within seeds (paired t-test, two-sided level"
        f" {LEVEL:g}, {least} or more), and p is corrected for all comparisons of an objective (Holm), as the"
        " claims are judged; that one is ahead of each of the others needs no correction.",
    )


def with_marks(
    tables: tuple[ExhibitTable, ...], notes: Iterable[str], measurements: Measurements
) -> tuple[tuple[ExhibitTable, ...], list[str]]:
    """Return an exhibit's tables and notes, with the exception marked and explained, never the rule.

    Values that no other in their column beats are bold, as papers print them. Where they are more than those
    that are beaten, the beaten ones are marked instead, in all tables of the exhibit alike. Marks of runs
    that no note explains get the study's `bold_notes`.
    """
    kept = [*notes]
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    are_marked = any(cell.of_runs and (cell.best or cell.beaten) for cell in cells)
    if are_marked and not any(map(_LEGEND.match, kept)):
        kept += bold_notes(measurements)
    beaten = sum(cell.beaten for cell in cells)
    if not any(map(_LEGEND.match, kept)) or 2 * beaten >= sum(cell.best or cell.beaten for cell in cells):
        return tables, kept
    said = (
        rf"{WORSE}: another\1 in the column is better beyond chance"
        if beaten
        else rf"{UNMARKED}in no column is one\1 better than another beyond chance"
    )
    marked = tuple(replace(table, marks_worse=True) for table in tables)
    return marked, [_LEGEND.sub(said, note) for note in kept]
