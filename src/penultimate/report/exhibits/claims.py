"""The paper's claims, judged on a study by rules that were written down before it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.claims.aspects import MEASURED_BY, read_by_claims
from penultimate.report.measurements import Measurements
from penultimate.report.spec import Bespoke, Exhibit, Piece

if TYPE_CHECKING:
    from penultimate.report.claims.verdicts import Judged

COLUMNS = (
    Column("paper", "Its evidence", "The paper (ImageNet)"),
    Column("ours", "Our evidence", "This study"),
    Column("verdict", "Verdict", "This study"),
    Column("reason", "Why", "This study"),
)


def _table(measurements: Measurements) -> Piece:
    from penultimate.report.claims.evidence import gather
    from penultimate.report.claims.rules import spoken
    from penultimate.report.claims.verdicts import judge

    rows = tuple(map(_row, judge(gather(measurements))))
    corner = "The paper's claim, in our words"
    return Piece((ExhibitTable("claims", "Claim by claim", corner, COLUMNS, rows),), method=spoken())


def _row(judged: Judged) -> TableRow:
    claim, ours = judged.claim, judged.ours
    cells = (
        Cell(f"{judged.paper} ({claim.where})"),
        Cell(ours.ours),
        Cell(ours.verdict),
        Cell(ours.reason.replace("`", "")),
    )
    return TableRow(claim.says, cells)


CLAIMS = Exhibit(
    name="claims",
    title="Which of the paper's claims hold here",
    caption="Each claim of the paper that this study can judge: the paper's numbers, recomputed from its"
    " printed tables; the same numbers measured here, with 95 % intervals; and what they come to. Undecided"
    " means that these data cannot tell, not that the claim is in doubt.",
    parts=(Bespoke(_table, read_by_claims()),),
    place=2,
    measured_by=MEASURED_BY,
    summary="The paper's claims, the evidence here, a verdict on each",
)
