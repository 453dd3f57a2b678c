"""The verdicts on all claims, each with the paper's evidence and ours in a line, and with its replication."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.paper.claims.comparisons import (
    against_all,
    best_for_most,
    best_for_most_in_paper,
    better,
    better_in_paper,
    in_paper,
)
from penultimate.paper.claims.criteria import CRITERIA, FURTHER, Criteria, FurtherCriteria
from penultimate.paper.claims.evidence import Assessment, Evidence, paper
from penultimate.paper.claims.further import EVERY_CLAIM
from penultimate.paper.claims.head_decay import regained, regained_in_paper
from penultimate.paper.claims.likeness import last_layers
from penultimate.paper.claims.patterns import none_positive, positive, shared_in_paper
from penultimate.paper.claims.prices import judge_dose
from penultimate.paper.claims.rankings import levels, levels_text, ranked, ranked_in_paper, trend
from penultimate.paper.claims.rules import (
    FIRST_RULES,
    Alike,
    BestForMost,
    BestOfAll,
    Better,
    Claim,
    Dose,
    LastLayers,
    Levels,
    Narrower,
    NonePositive,
    NoSum,
    OnlyAccuracy,
    OnlyThese,
    Positive,
    Ranked,
    Regained,
    Trend,
    Unbeaten,
)
from penultimate.paper.claims.spreads import narrower, narrower_in_paper
from penultimate.paper.claims.unchanged import (
    alike,
    alike_in_paper,
    no_sum,
    no_sum_in_paper,
    only_accuracy,
    only_accuracy_in_paper,
)
from penultimate.report.measurements import Seed

LIMITED = "A limited run is no evidence."


@dataclass(frozen=True)
class Judged:
    """A claim with the evidence on both sides.

    first   the verdict of the first rules on the same runs; None for a claim that they did not have
    halves  the verdicts of the present rules on the first half of the seeds, and on the second
    """

    claim: Claim
    paper: str
    ours: Assessment
    first: Assessment | None
    halves: tuple[Assessment, Assessment]


def judge(
    evidence: Evidence,
    claims: Sequence[Claim] = EVERY_CLAIM,
    criteria: Criteria = CRITERIA,
    further: FurtherCriteria = FURTHER,
) -> tuple[Judged, ...]:
    """Return the verdict on every claim; a limited study decides none."""
    first, second = (evidence.of_seeds(half) for half in halves(evidence.measurements.seeds))
    return tuple(
        Judged(
            claim,
            claim.prints or _in_paper(claim, criteria, further),
            _assess(evidence, claim, criteria, further),
            _assess(evidence, claim, criteria, further, False) if claim.since == FIRST_RULES else None,
            (_assess(first, claim, criteria, further), _assess(second, claim, criteria, further)),
        )
        for claim in claims
    )


def halves(seeds: Sequence[Seed]) -> tuple[tuple[Seed, ...], tuple[Seed, ...]]:
    """Return the seeds in two halves, in their order; if their number is odd, the first half has one more.

    >>> halves([0, 1, 2, 3, 4])
    ((0, 1, 2), (3, 4))
    """
    middle = (len(seeds) + 1) // 2
    return tuple(seeds[:middle]), tuple(seeds[middle:])


def _assess(
    evidence: Evidence, claim: Claim, criteria: Criteria, further: FurtherCriteria, blocks: bool = True
) -> Assessment:
    ours = _judge(evidence, claim, criteria, further, blocks)
    if evidence.measurements.limited:
        return dataclasses.replace(ours, verdict="undecided", reason=LIMITED, judged=False)
    return ours


def _judge(
    evidence: Evidence, claim: Claim, criteria: Criteria, further: FurtherCriteria, blocks: bool
) -> Assessment:
    match claim.rule:
        case Better(aspect, objective):
            return better(evidence, aspect, objective, criteria, blocks)
        case BestOfAll() | Unbeaten() | OnlyThese():
            return against_all(evidence, claim.rule, criteria, blocks)
        case BestForMost():
            return best_for_most(evidence, claim.rule, criteria, blocks)
        case Ranked(x, y, sign):
            return ranked(evidence, x, y, sign, criteria)
        case Trend(aspect, sign):
            if blocks:
                return trend(evidence, claim.rule, criteria)
            return ranked(evidence, "temperature", aspect, sign, criteria, "temperatures")
        case Levels(aspect):
            return levels(evidence, aspect, criteria, blocks)
        case Positive():
            return positive(evidence, claim.rule, criteria)
        case NonePositive():
            return none_positive(evidence, claim.rule, criteria)
        case Narrower():
            return narrower(evidence, claim.rule, criteria, further)
        case Alike():
            return alike(evidence, claim.rule, criteria, further)
        case LastLayers():
            return last_layers(evidence, criteria, further)
        case OnlyAccuracy():
            return only_accuracy(evidence, claim.rule, criteria, further)
        case NoSum():
            return no_sum(evidence, criteria)
        case Dose():
            return judge_dose(evidence, claim.rule, criteria)
        case Regained():
            return regained(evidence, claim.rule, criteria)


def _in_paper(claim: Claim, criteria: Criteria, further: FurtherCriteria) -> str:
    match claim.rule:
        case Better(aspect, objective):
            return better_in_paper(aspect, objective, criteria)
        case BestOfAll() | Unbeaten() | OnlyThese():
            return in_paper(claim.rule)
        case BestForMost(aspect):
            return best_for_most_in_paper(aspect)
        case Ranked(x, y):
            return ranked_in_paper(x, y, criteria)
        case Trend(aspect):
            return ranked_in_paper("temperature", aspect, criteria, "temperatures")
        case Levels(aspect):
            return levels_text({float(t): value for t, value in paper(aspect, "temperatures").items()})
        case Narrower():
            return narrower_in_paper(claim.rule)
        case Alike():
            return alike_in_paper(claim.rule, further)
        case OnlyAccuracy():
            return only_accuracy_in_paper(claim.rule)
        case NoSum():
            return no_sum_in_paper()
        case Regained():
            return regained_in_paper(claim.rule, criteria)
        case Positive() | NonePositive() | LastLayers() | Dose():
            return shared_in_paper()
