"""The paper's claims, judged on a study by rules that were written down before it ran."""

from __future__ import annotations

from penultimate.report.claims.evidence import read
from penultimate.report.claims.rules import spoken
from penultimate.report.claims.verdicts import Judged, judge
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults, TableRow


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    study = read(results, allow_limited)
    judged = judge(study)
    columns = (
        Column("paper", "Its evidence", "The paper (ImageNet)"),
        Column("ours", "Our evidence", "This study"),
        Column("verdict", "Verdict", "This study"),
        Column("reason", "Why", "This study"),
    )
    table = ExhibitTable(
        "claims", "Claim by claim", "The paper's claim, in our words", columns, tuple(map(_row, judged))
    )
    return Exhibit(
        "claims",
        "Which of the paper's claims hold here",
        "Each claim of the paper that this study can judge: the paper's numbers, recomputed from its printed"
        " tables; the same numbers measured here, with 95 % intervals; and what they come to. Undecided"
        " means that these data cannot tell, not that the claim is in doubt.",
        (table,),
        notes=(*spoken(), *study.measurements.notes()),
        limited=study.measurements.limited,
    )


def _row(judged: Judged) -> TableRow:
    claim, ours = judged.claim, judged.ours
    cells = (
        Cell(f"{judged.paper} ({claim.where})"),
        Cell(ours.ours),
        Cell(ours.verdict),
        Cell(ours.reason.replace("`", "")),
    )
    return TableRow(claim.says, cells)
