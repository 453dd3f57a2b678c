"""Marks in tables: the exception is marked, never the rule, and a legend says which mark means what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from penultimate.report.base import UNBEATEN, WORSE, ExhibitTable
from penultimate.report.measurements import Measurements
from penultimate.report.text import counted
from penultimate.statistics.comparison import LEAST_RUNS, LEVEL

BOLD = "Bold: "
"""The beginning of the legend of bold, which a terminal replaces by asterisks."""
UNMARKED = "Nothing is marked: "
"""The beginning of the legend of a table in which no value is worse than another beyond chance."""
_LEGEND = re.compile(rf"^{BOLD}no other( \w+)? in the column is better beyond chance")


def bold_notes(measurements: Measurements) -> tuple[str, ...]:
    """Return notes on the meaning of bold in this study, and on the test behind it."""
    least, few = counted(LEAST_RUNS, "seed"), counted(len(measurements.seeds), "seed")
    if len(measurements.seeds) < LEAST_RUNS:
        return (f"Nothing is bold: {few} cannot show which is best; {least} are needed.",)
    return (
        f"{BOLD}{UNBEATEN}.",
        "Beyond chance: objectives are compared seed by seed (paired t-test, two-sided level"
        f" {LEVEL:g}, {least} or more), with p corrected for all comparisons of an objective (Holm), as for"
        " the claims. An objective that is ahead of each of the others needs no correction.",
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
