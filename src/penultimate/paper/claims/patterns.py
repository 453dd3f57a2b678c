"""Claims about one number per seed: from the course of training, from tasks, or from pairs of networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import linear_regression

from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.claims.aspects import NAMES, QUANTITIES, SHARED, Aspect
from penultimate.paper.claims.comparisons import least_difference
from penultimate.paper.claims.courses import kinship
from penultimate.paper.claims.criteria import Criteria
from penultimate.paper.claims.effects import BySeed, Verdict, common_seeds, decide, difference, each
from penultimate.paper.claims.evidence import (
    BASELINE,
    Assessment,
    Evidence,
    not_judged,
    of_all_alternatives,
    unmeasured,
)
from penultimate.paper.claims.rules import ALTERNATIVES, NonePositive, Positive
from penultimate.paper.claims.wording import (
    COPIES,
    Least,
    amount,
    difference_text,
    names_of,
    not_enough_runs,
    range_text,
    reason,
)
from penultimate.paper.printed import printed_correlations
from penultimate.report.shapes.pairs import pairs_of
from penultimate.report.text import counted, fixed
from penultimate.statistics import mean, spearman


def positive(evidence: Evidence, rule: Positive, criteria: Criteria) -> Assessment:
    """Judge whether a number that was measured for each seed has a mean above zero."""
    values, margin = _of_seeds(evidence, rule, criteria)
    if not values:
        return unmeasured(NAMES[rule.aspect])
    effect = difference([values], [1], margin, criteria)
    ours = difference_text(mean(values.values()), effect, [len(values)], rule.aspect)
    ours = ours.replace(" each", "" if rule.objective else ", each with all objectives")
    if len(values) < criteria.least_runs.value:
        return not_judged(ours, not_enough_runs([len(values)], criteria))
    if effect is None:
        return not_judged(ours, COPIES)
    verdict = decide(effect, criteria)
    return Assessment(ours, verdict, reason(effect, verdict, _least(margin, rule.aspect), criteria))


def _least(margin: float, aspect: Aspect) -> Least:
    least = amount(margin, aspect)
    return Least(f"at least {least}", f"{least} or more")


def _of_seeds(evidence: Evidence, rule: Positive, criteria: Criteria) -> tuple[BySeed, float]:
    """Return the number for each seed, and the smallest number that counts."""
    if rule.aspect == "kinship":
        quantity = QUANTITIES["kinship"]
        gains, others = kinship(pairs_of(evidence.measurements.or_in_arm(ONE_DRAW), quantity))
        scaled = {seed: quantity.scale * gain for seed, gain in gains.items()}
        return scaled, criteria.least_gain.value * (100 - quantity.scale * others)
    if rule.aspect == "shared":
        return _shared(evidence), criteria.least_contrast.value
    softmax, _ = evidence.alternatives("separation")
    values, alternatives = evidence.alternatives(rule.aspect)
    values = values if rule.objective == BASELINE else alternatives.get(rule.objective, {})
    if not softmax:
        return {}, 0.0
    return values, least_difference("separation", mean(softmax.values()), criteria)


def _shared(evidence: Evidence) -> BySeed:
    """Return, for each seed, the slope of the tasks' rho (R² with transfer) over their shares of classes.

    If tasks share all of their classes or none, the slope is the mean rho of the former less that of the
    latter. Networks without a seed are left out, and so are, for each seed, tasks on which all transfer
    alike.
    """
    separation = {spec: runs for spec, runs in evidence.values("separation").items() if {*runs} != {None}}
    tasks = {task: evidence.on_task(task).values("linear") for task in evidence.measurements.targets}
    if len({*map(_share, tasks)}) < 2 or len(separation) < 3:
        return {}
    runs = [separation, *tasks.values()]
    seeds = common_seeds(of.get(spec, {}) for of in runs for spec in separation)
    slopes = {
        seed: slope_over_shares(
            {
                task: spearman(
                    [of_spec[seed] for of_spec in separation.values()],
                    [of[spec][seed] for spec in separation],
                    exact=False,
                ).rho
                for task, of in tasks.items()
            }
        )
        for seed in seeds
    }
    return {seed: value for seed, value in slopes.items() if not math.isnan(value)}


def slope_over_shares(rhos: Mapping[str, float]) -> float:
    """Return the least-squares slope of the tasks' rho over the share of their classes that pretraining has.

    If tasks share all of their classes or none, it is the difference of two means. A task without a rho is
    left out. The slope is NaN if all tasks share alike.

    >>> slope_over_shares({"newfaces": -0.5, "shared_50": -0.75, "maths": -1.0, "typeface": math.nan})
    0.5
    """
    points = [(_share(task), rho) for task, rho in rhos.items() if not math.isnan(rho)]
    shares = [share for share, _ in points]
    if len({*shares}) < 2:
        return math.nan
    return linear_regression(shares, [rho for _, rho in points]).slope


def _share(task: str) -> float:
    return SHARED.get(task, 0.0)


def shared_in_paper() -> str:
    """Return the paper's rho on Pets, and the range of its rho on the other tasks."""
    rhos = printed_correlations()
    shared = rhos.pop("pets")
    others = range_text(min(rhos.values()), max(rhos.values()), 2)
    return f"ρ = {fixed(shared, 2)} for Pets, {others} for the others"


def none_positive(evidence: Evidence, rule: NonePositive, criteria: Criteria) -> Assessment:
    """Judge whether no alternative has a mean above zero: each must be excluded, and one refutes it."""
    softmax, _ = evidence.alternatives("separation")
    _, values = evidence.alternatives(rule.aspect)
    if not values or not softmax:
        return unmeasured(NAMES[rule.aspect])
    margin = least_difference("separation", mean(softmax.values()), criteria)
    most = max(values, key=lambda slug: mean(values[slug].values()))
    text = difference_text(mean(values[most].values()), None, [len(values[most])], rule.aspect)
    ours = f"The largest fall: {names_of([most])}, {text}"
    enough = [slug for slug, runs in values.items() if len(runs) >= criteria.least_runs.value]
    found = {slug: difference([values[slug]], [1], margin, criteria) for slug in enough}
    effects = {slug: effect for slug, effect in found.items() if effect is not None}
    if not effects:
        return not_judged(ours, COPIES if enough else not_enough_runs([len(values[most])], criteria))
    verdicts = each(effects, ALTERNATIVES, criteria)
    least = f"{amount(margin, rule.aspect)} or more"

    def why(names: str) -> dict[Verdict, str]:
        return {
            "holds": f"Excluded for each of {counted(len(verdicts), 'alternative')}: {least}.",
            "does not hold": f"Beyond chance (corrected), by an estimated {least}: {names}.",
            "undecided": f"Open for {names}: {least} is neither shown nor excluded.",
        }

    return of_all_alternatives(ours, verdicts, why)
