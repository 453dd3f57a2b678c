"""Every claim judged: the paper's evidence and ours in a line each, the verdict, and its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.report.claims.comparisons import against_all, best_in_paper, better, better_in_paper
from penultimate.report.claims.evidence import Finding, Study, paper
from penultimate.report.claims.rankings import levels, levels_text, ranked, ranked_in_paper
from penultimate.report.claims.rules import (
    CLAIMS,
    CRITERIA,
    Best,
    Better,
    Claim,
    Criteria,
    Levels,
    Ranked,
    Unbeaten,
)

LIMITED = "A limited run is no evidence."


@dataclass(frozen=True)
class Judged:
    """A claim with the evidence on both sides."""

    claim: Claim
    paper: str
    ours: Finding


def judge(
    study: Study, claims: Sequence[Claim] = CLAIMS, criteria: Criteria = CRITERIA
) -> tuple[Judged, ...]:
    """The verdict on every claim; a limited study decides none."""
    judged = []
    for claim in claims:
        ours = _judge(study, claim, criteria)
        if study.measurements.limited:
            ours = dataclasses.replace(ours, verdict="undecided", reason=LIMITED)
        judged.append(Judged(claim, _in_paper(claim, criteria), ours))
    return tuple(judged)


def _judge(study: Study, claim: Claim, criteria: Criteria) -> Finding:
    match claim.rule:
        case Better(quantity, objective):
            return better(study, quantity, objective, criteria)
        case Best(quantity):
            return against_all(study, quantity, criteria, unbeaten=False)
        case Unbeaten(quantity):
            return against_all(study, quantity, criteria, unbeaten=True)
        case Ranked():
            return ranked(study, claim.rule, criteria)
        case Levels(quantity):
            return levels(study, quantity, criteria)


def _in_paper(claim: Claim, criteria: Criteria) -> str:
    match claim.rule:
        case Better(quantity, objective):
            return better_in_paper(quantity, objective, criteria)
        case Best(quantity) | Unbeaten(quantity):
            return best_in_paper(quantity)
        case Ranked():
            return ranked_in_paper(claim.rule, criteria)
        case Levels(quantity):
            return levels_text({float(t): value for t, value in paper(quantity, "temperatures").items()})
