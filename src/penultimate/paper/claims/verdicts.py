"""The verdicts on all claims, on a study and on the paper's own numbers."""

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
from penultimate.paper.claims.rules import Claim, Rule
from penultimate.paper.claims.trials import Assessment, Trials, assess

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
    """

    claim: Claim
    paper: str
    printed: Assessment | None
    ours: Assessment


def judge(
    evidence: StudyEvidence,
    claims: Sequence[Claim] = EVERY_CLAIM,
    criteria: Criteria = CRITERIA,
    further: FurtherCriteria = FURTHER,
) -> tuple[Judged, ...]:
    """Return the verdict on every claim; a limited study decides none."""
    evidence = dataclasses.replace(evidence, criteria=criteria, further=further)
    pooled = with_repeats(evidence) if any(claim.key in POOLED for claim in claims) else evidence
    judged = []
    for claim in claims:
        found = on_printed(claim.rule, criteria, further)
        printed = None if found.missing else found
        own = pooled if claim.key in POOLED else evidence
        ours = _of_study(own, claim)
        ours = dataclasses.replace(ours, reason=ours.reason + pooled_words(evidence, own))
        judged.append(Judged(claim, claim.prints or (printed.ours if printed else ""), printed, ours))
    return tuple(judged)


@cache
def on_printed(rule: Rule, criteria: Criteria = CRITERIA, further: FurtherCriteria = FURTHER) -> Assessment:
    """Return what a rule says of the paper's printed numbers."""
    return apply_rule(QuotedEvidence(criteria=criteria, further=further), rule)


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
