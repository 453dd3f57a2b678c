"""Cells and tables of paired comparisons, for joined features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penultimate.evaluation.boards import Board
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.networks import StudyObjective
from penultimate.report.text import p_value, signed
from penultimate.report.text import percent as in_percent


def accuracy_cell(board: Board, network: StudyObjective) -> Cell:
    """Return a network's accuracy on a board with its interval, bold if no other is better beyond chance."""
    found = next((each for each in board.standings if each.network == network), None)
    if found is None:
        return Cell(MISSING, detail="not measured")
    value = found.interval
    best = found.is_unbeaten and len(board.standings) > 1
    text = f"{in_percent(value.value)} [{in_percent(value.low)}, {in_percent(value.high)}]"
    beaten = not found.is_unbeaten
    return Cell(text, 100 * value.value, best=best, detail="95 % interval over test images", beaten=beaten)


def table_of_differences(
    name: str,
    title: str,
    names: str,
    boards: Sequence[Board],
    pairs: Iterable[tuple[StudyObjective, StudyObjective]],
) -> ExhibitTable:
    """Return a table of paired differences: one row for each pair, with points and p on each board."""
    columns = tuple(
        column
        for board in boards
        for group in [board.title if board.name else "Mean of the tasks"]
        for column in (
            Column(f"{board.name or 'mean'}_points", "Points", group),
            Column(f"{board.name or 'mean'}_p", "p", group),
        )
    )
    rows = tuple(
        TableRow(
            f"{one.label} – {other.label}",
            tuple(cell for board in boards for cell in difference_cells(board, one, other)),
        )
        for one, other in pairs
    )
    return ExhibitTable(name, title, names, columns, rows)


def difference_cells(board: Board, one: StudyObjective, other: StudyObjective) -> tuple[Cell, Cell]:
    """Return by how many points one network is ahead of another on a board, and the corrected p."""
    for first, second, pair in board.pairs:
        if {first, second} == {one, other}:
            points = pair.difference if first == one else -pair.difference
            return (
                Cell(signed(100 * points, 1), 100 * points, best=pair.is_told_apart),
                Cell(p_value(pair.p).removeprefix("p = ").removeprefix("p "), pair.p),
            )
    return Cell(MISSING), Cell(MISSING)
