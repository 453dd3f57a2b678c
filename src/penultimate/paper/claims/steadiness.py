"""How a verdict on a rank correlation hangs on single seeds; the rules themselves are not touched."""

from __future__ import annotations

from penultimate.paper.claims.effects import decide, rank_effect, resampled_correlations
from penultimate.paper.claims.evidence import StudyEvidence
from penultimate.paper.claims.rankings import balanced_sides
from penultimate.paper.claims.rules import Ranked
from penultimate.paper.claims.verdicts import apply_rule
from penultimate.report.text import fixed, in_words, signed


def steadiness(evidence: StudyEvidence, rule: Ranked) -> str:
    """Return how often a verdict is lost without one seed, and in resamples of all seeds.

    A resample is judged by its rank correlation alone, without an interval over its own seeds. Nothing is
    said of an open verdict, and of fewer seeds than have one for a rule without one of them.
    """
    verdict, seeds = apply_rule(evidence, rule).verdict, evidence.measurements.seeds
    if verdict == "undecided" or len(seeds) <= evidence.criteria.least_runs.value:
        return ""
    without = [evidence.of_seeds([other for other in seeds if other != seed]) for seed in seeds]
    lost = sum(apply_rule(one, rule).verdict != verdict for one in without)
    share, median = _resampled(evidence, rule, verdict)
    return (
        f"How this hangs on seeds: without one of them the verdict is lost in {in_words(lost, 'none')} of"
        f" {in_words(len(seeds))} cases, and in resamples of all of them in {fixed(100 * share, 0)} %"
        f" (median ρ {signed(median, 2)})."
    )


def _resampled(evidence: StudyEvidence, rule: Ranked, verdict: str) -> tuple[float, float]:
    """Return the share of resamples of the seeds in which a verdict is lost, and their median rho."""
    import numpy as np

    of_x, of_y = balanced_sides(evidence, rule)
    x, y, rhos = resampled_correlations(of_x, of_y, evidence.criteria)
    _, first, counts = np.unique(rhos.round(9), return_index=True, return_counts=True)
    lost = 0
    for place, count in zip(first, counts, strict=True):
        effect = rank_effect(x[place].tolist(), y[place].tolist(), rule.sign, None, evidence.criteria)
        lost += int(count) * (effect is None or decide(effect, evidence.criteria) != verdict)
    return lost / len(rhos), float(np.median(rhos))
