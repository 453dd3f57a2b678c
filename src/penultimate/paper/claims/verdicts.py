"""The verdicts on all claims: on this study, on the paper's own numbers, and on each half of the seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from penultimate.paper.claims import (
    both,
    certainty,
    comparisons,
    head_decay,
    label_spaces,
    likeness,
    patterns,
    prices,
    projectors,
    rankings,
    rules,
    spreads,
)
from penultimate.paper.claims.criteria import CRITERIA, FOURTH, FURTHER, Criteria, FurtherCriteria
from penultimate.paper.claims.evidence import Evidence, StudyEvidence
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.quoted import QuotedEvidence
from penultimate.paper.claims.repeats import POOLED, pooled_words, with_repeats
from penultimate.paper.claims.rules import FIRST_RULES, Claim, Rule
from penultimate.paper.claims.trials import Assessment, Trials, assess
from penultimate.report.measurements import Seed

LIMITED = "A limited run is no evidence."
TRIALS: Mapping[type, Callable[[Any, Any], Trials | Assessment]] = {
    rules.Better: comparisons.better,
    rules.BestOfAll: comparisons.against_all,
    rules.Unbeaten: comparisons.against_all,
    rules.OnlyThese: comparisons.against_all,
    rules.Alike: comparisons.alike,
    rules.BestForMost: comparisons.best_for_most,
    rules.BestForShare: comparisons.best_for_most,
    rules.Below: comparisons.below,
    rules.Adds: comparisons.adds,
    rules.SomeBetter: comparisons.some_better,
    rules.NoSingleBest: comparisons.no_single_best,
    rules.Ranked: rankings.ranked,
    rules.Unassociated: rankings.ranked,
    rules.Trend: rankings.trend,
    rules.Levels: rankings.levels,
    rules.Positive: patterns.positive,
    rules.NonePositive: patterns.none_positive,
    rules.OnlyAccuracy: patterns.only_accuracy,
    rules.NoSum: patterns.no_sum,
    rules.Narrower: spreads.narrower,
    rules.LastLayers: likeness.last_layers,
    rules.NoMixture: likeness.no_mixture,
    rules.Dose: prices.judge_dose,
    rules.Regained: head_decay.regained,
    rules.LabelSpaces: label_spaces.judge_label_spaces,
    rules.BetterInBoth: both.better_in_both,
    rules.Projected: projectors.judge_projected,
    rules.Ranking: certainty.judge_ranking,
}
"""What each kind of rule tests on the evidence of a study, or of the paper, or what it finds there."""


@dataclass(frozen=True)
class Judged:
    """A claim with the evidence on both sides.

    paper   the paper's numbers in a line
    printed what the rule says of the paper's printed numbers; None if it prints none of them
    first   the verdict of the first rules on the same runs; None for a claim that they did not have
    halves  the verdicts of the present rules on the first half of the seeds, and on the second
    """

    claim: Claim
    paper: str
    printed: Assessment | None
    ours: Assessment
    first: Assessment | None
    halves: tuple[Assessment, Assessment]


def judge(
    evidence: StudyEvidence,
    claims: Sequence[Claim] = EVERY_CLAIM,
    criteria: Criteria = CRITERIA,
    further: FurtherCriteria = FURTHER,
) -> tuple[Judged, ...]:
    """Return the verdict on every claim; a limited study decides none."""
    evidence = dataclasses.replace(evidence, criteria=criteria, further=further)
    pooled = with_repeats(evidence) if any(claim.key in POOLED for claim in claims) else evidence
    alone = _with_halves(evidence)
    together = alone if pooled is evidence else _with_halves(pooled)
    judged = []
    for claim in claims:
        found = on_printed(claim.rule, criteria, further)
        printed = None if found.missing else found
        whole, first, second = together if claim.key in POOLED else alone
        blind = dataclasses.replace(whole, blocks=False)
        ours = _of_study(whole, claim)
        judged.append(
            Judged(
                claim,
                claim.prints or (printed.ours if printed else ""),
                printed,
                dataclasses.replace(ours, reason=ours.reason + pooled_words(evidence, whole)),
                _of_study(blind, claim) if claim.since == FIRST_RULES else None,
                (_of_study(first, claim), _of_study(second, claim)),
            )
        )
    return tuple(judged)


def _with_halves(evidence: StudyEvidence) -> tuple[StudyEvidence, StudyEvidence, StudyEvidence]:
    """Return the evidence of all seeds, of the first half of them, and of the second."""
    first, second = (evidence.of_seeds(half) for half in halves(evidence.measurements.seeds))
    return evidence, first, second


@cache
def on_printed(rule: Rule, criteria: Criteria = CRITERIA, further: FurtherCriteria = FURTHER) -> Assessment:
    """Return what a rule says of the paper's printed numbers."""
    return apply_rule(QuotedEvidence(criteria=criteria, further=further), rule)


def halves(seeds: Sequence[Seed]) -> tuple[tuple[Seed, ...], tuple[Seed, ...]]:
    """Return the seeds in two halves, in their order; if their number is odd, the first half has one more.

    >>> halves([0, 1, 2, 3, 4])
    ((0, 1, 2), (3, 4))
    """
    middle = (len(seeds) + 1) // 2
    return tuple(seeds[:middle]), tuple(seeds[middle:])


def apply_rule(evidence: Evidence, rule: Rule) -> Assessment:
    """Return what a rule says of the evidence."""
    if isinstance(rule, rules.Elsewhere):
        elsewhere = evidence.elsewhere()
        if elsewhere is None:
            return assess(
                evidence.lacking("benchmarks", "transfer of a second architecture"), evidence.criteria
            )
        return apply_rule(elsewhere, rule.rule)
    found = TRIALS[type(rule)](evidence, rule)
    return assess(found, evidence.criteria, evidence.is_exact) if isinstance(found, Trials) else found


def _of_study(evidence: StudyEvidence, claim: Claim) -> Assessment:
    ours = apply_rule(evidence, claim.rule)
    if evidence.measurements.limited:
        return dataclasses.replace(ours, verdict="undecided", reason=LIMITED, judged=False)
    on_edge, cells = evidence.on_edge()
    of_fine_tuning = "fine_tuned" in dataclasses.astuple(claim.rule)
    if of_fine_tuning and ours.judged and on_edge > FOURTH.most_edges.value * cells:
        why = f"Not judged: {on_edge} of {cells} best cells lie on the edge of their grid, where a tenth may."
        return dataclasses.replace(ours, verdict="undecided", reason=why, judged=False)
    return ours
