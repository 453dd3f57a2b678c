"""Every claim judged: the paper's evidence and ours in a line each, the verdict, and its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.report.claims.comparisons import against_all, best_in_paper, better, better_in_paper
from penultimate.report.claims.evidence import Assessment, Evidence, paper
from penultimate.report.claims.rankings import levels, levels_text, ranked, ranked_in_paper
from penultimate.report.claims.rules import (
    CLAIMS,
    CRITERIA,
    BestOfAll,
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
    ours: Assessment


def judge(
    evidence: Evidence, claims: Sequence[Claim] = CLAIMS, criteria: Criteria = CRITERIA
) -> tuple[Judged, ...]:
    """The verdict on every claim; a limited study decides none."""
    judged = []
    for claim in claims:
        ours = _judge(evidence, claim, criteria)
        if evidence.measurements.limited:
            ours = dataclasses.replace(ours, verdict="undecided", reason=LIMITED)
        judged.append(Judged(claim, _in_paper(claim, criteria), ours))
    return tuple(judged)


def _judge(evidence: Evidence, claim: Claim, criteria: Criteria) -> Assessment:
    match claim.rule:
        case Better(aspect, objective):
            return better(evidence, aspect, objective, criteria)
        case BestOfAll(aspect):
            return against_all(evidence, aspect, criteria, unbeaten=False)
        case Unbeaten(aspect):
            return against_all(evidence, aspect, criteria, unbeaten=True)
        case Ranked():
            return ranked(evidence, claim.rule, criteria)
        case Levels(aspect):
            return levels(evidence, aspect, criteria)


def _in_paper(claim: Claim, criteria: Criteria) -> str:
    match claim.rule:
        case Better(aspect, objective):
            return better_in_paper(aspect, objective, criteria)
        case BestOfAll(aspect) | Unbeaten(aspect):
            return best_in_paper(aspect)
        case Ranked():
            return ranked_in_paper(claim.rule, criteria)
        case Levels(aspect):
            return levels_text({float(t): value for t, value in paper(aspect, "temperatures").items()})
