"""The table of verdicts of a set of claims that one kind of study can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penultimate.report.base import Cell, Column, ExhibitTable, TableRow

if TYPE_CHECKING:
    from penultimate.paper.claims.verdicts import Judged

CLAIM = "The claim, in our words"


def verdict_table(name: str, title: str, judged: Iterable[Judged]) -> ExhibitTable:
    """Return the table of claims with their verdicts, this study's evidence and the reasons."""
    columns = Column("verdict", "Verdict"), Column("ours", "This study's evidence"), Column("reason", "Why")
    rows = tuple(
        TableRow(one.claim.says, (Cell(one.ours.verdict), Cell(one.ours.ours), Cell(one.ours.reason)))
        for one in judged
    )
    return ExhibitTable(name, title, CLAIM, columns, rows)
