"""Marks in tables: the exception is marked, never the rule, and the legend says which mark means what."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Mapping

import pytest

from penultimate.records.table import Table
from penultimate.report import exhibit, render_exhibit_text
from penultimate.report.base import WORSE, Built, Cell, ExhibitTable
from penultimate.report.inline import table_html
from penultimate.report.tables import to_csv, to_latex
from penultimate.statistics import bold
from tests.report.reading import table_of
from tests.report.synthetic import study

SEEDS = (0, 1, 2)
LEADING = {
    "softmax": (0.90, 0.91, 0.92),
    "sigmoid": (0.5, 0.51, 0.52),
    "dropout(keep=0.9)": (0.4, 0.43, 0.45),
}
TIED = {"softmax": (0.90, 0.91, 0.92), "sigmoid": (0.89, 0.915, 0.91), "dropout(keep=0.9)": (0.4, 0.43, 0.45)}
EQUAL = {
    "softmax": (0.90, 0.91, 0.92),
    "sigmoid": (0.89, 0.915, 0.91),
    "dropout(keep=0.9)": (0.91, 0.9, 0.93),
}


def shown(accuracies: Mapping[str, tuple[float, ...]]) -> tuple[Built, ExhibitTable]:
    """The exhibit of class separation beside test accuracies, which the objectives have as given."""
    results = study(SEEDS, objectives=tuple(accuracies))
    rows = [
        dataclasses.replace(row, value=accuracies[str(row.objective)][int(row.seed or 0)])
        if row.metric == "top1" and row.split == "test" and row.epoch is None
        else row
        for row in results.table
    ]
    built = exhibit("table3", dataclasses.replace(results, table=Table(rows)))
    return built, table_of(built, "table3")


@pytest.mark.parametrize("accuracies", [LEADING, TIED, EQUAL])
def test_the_exception_is_marked_and_the_test_agrees(accuracies: dict[str, tuple[float, ...]]) -> None:
    built, made = shown(accuracies)
    cells = {row.objective: row.cells[0] for row in made.rows}
    found = bold(
        {name.partition("(")[0]: dict(zip(SEEDS, values, strict=True)) for name, values in accuracies.items()}
    )
    assert {name for name, cell in cells.items() if cell.best} == found.entries
    assert {name for name, cell in cells.items() if cell.beaten} == cells.keys() - found.entries
    marked = {name for name, cell in cells.items() if made.is_bold(cell) or made.is_worse(cell)}
    assert 2 * len(marked) <= len(cells)
    legends = [note for note in built.notes if note.startswith((WORSE, "Bold: ", "Nothing is marked"))]
    bolded = any(map(made.is_bold, cells.values()))
    sign = "Bold: no other" if bolded else f"{WORSE}: another" if marked else "Nothing is marked: in no"
    assert [legend.startswith(sign) for legend in legends] == [True]


def test_every_form_of_a_table_has_the_same_marks() -> None:
    built, made = shown(TIED)
    worse = [row.label for row in made.rows if row.cells[0].beaten]
    assert worse == ["Dropout"]
    lines = {
        "terminal": render_exhibit_text(built).splitlines(),
        "latex": to_latex(made, "", built.notes).splitlines(),
        "html": table_html(made).replace("</tr>", "\n").splitlines(),
    }
    for form, sign in (("terminal", WORSE), ("latex", "bigtriangledown"), ("html", WORSE)):
        held = [
            line for line in lines[form] if re.search(rf"\d\S*{sign}|\d\\rlap.*{sign}|\d.*<sup.*{sign}", line)
        ]
        assert len(held) == 1, form
        assert "Dropout" in held[0]
    assert any("another in the column is better" in line for line in lines["latex"])
    assert not any("textbf" in line for line in lines["latex"])
    assert WORSE not in to_csv(made)
    assert len([*csv.reader(io.StringIO(to_csv(made)))]) == 1 + len(made.rows)


def test_what_cannot_be_tested_is_neither_best_nor_worse() -> None:
    cell = Cell("1", 1.0)
    table = ExhibitTable("t", "T", "", (), (), marks_worse=True)
    assert not table.is_bold(cell)
    assert not table.is_worse(cell)
