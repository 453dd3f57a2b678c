"""The rule of the quickstart: does transfer fall as class separation rises, within three draws of the world?

It was written on 2026-11-26, before any network of the quickstart was transferred. The objectives come from a
pilot of pretraining alone (seed 7001, which no study uses): softmax; a logit penalty that separated the
classes further, at equal accuracy after 14 epochs; and squared error, which separates them far, at a cost in
accuracy. Whether the accuracies of the study's twelve epochs are equal is told, and not asked for.

Linear transfer, the mean over the study's tasks, is regressed on R² within draws: one slope, and an intercept
for each draw. With nine networks and three draws it has 9 - 3 - 1 = 5 degrees of freedom. As networks of one
draw share nothing but the draw, they count one by one, where the rules on strengths count seeds. Mostly the
slope lies between squared error and the other two, so that it is no price of separation by itself: squared
error is less accurate as well. The differences of both to softmax are paired
within draws (t, two degrees of freedom), and are told with their intervals beside the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.paper.claims.criteria import CRITERIA, DOSES, Criteria
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    common_seeds,
    decide,
    difference,
    effect_by_t,
)
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.strengths import PER
from penultimate.report.measurements import Measurements, Seed
from penultimate.statistics import mean, partial_slopes

QUICK_RULE = "2026-11-26, the quickstart"
"""The date of this rule."""
COMPARED = ("softmax", "logit_penalty(beta=0.0047)", "squared_error(kappa=9, scale=1.28, target=3.75)")
"""The baseline of the quickstart, the objective of equal accuracy, and the one that separates far."""


@dataclass(frozen=True)
class BesideSoftmax:
    """What an objective has more than softmax: R² and accuracy in means, transfer with its interval."""

    spec: str
    separation: float
    accuracy: float
    transfer: Effect


@dataclass(frozen=True)
class QuickAnswer:
    """The verdict of the rule over a number of draws; a `price` is positive if transfer falls."""

    draws: int
    price: Effect
    verdict: Verdict
    beside: tuple[BesideSoftmax, ...]


def is_quick(measurements: Measurements) -> bool:
    """Return whether a study compares the quickstart's three objectives, to which alone the rule applies."""
    if measurements.limited or len(measurements.arms) > 1:
        return False
    return {one.spec for one in measurements.objectives} == {*COMPARED}


def answer_quickly(measurements: Measurements, criteria: Criteria = CRITERIA) -> QuickAnswer | None:
    """Return the answer from the draws in which all three objectives are measured, or None with too few."""
    evidence = gather(measurements)
    separation, accuracy, transfer = (
        evidence.values(aspect) for aspect in ("separation", "accuracy", "linear")
    )
    columns = [of.get(spec, {}) for of in (separation, accuracy, transfer) for spec in COMPARED]
    draws = common_seeds(columns)
    if len(draws) < criteria.least_runs.value:
        return None
    networks = [(draw, spec) for draw in draws for spec in COMPARED]
    across, up = ([of[spec][draw] for draw, spec in networks] for of in (separation, transfer))
    found = partial_slopes([draw for draw, _ in networks], [across], up)
    if found is None or found[0].error == 0:
        return None
    price = fall(found[0].slope, found[0].error, found[0].degrees_of_freedom, criteria)
    beside = [beside_softmax(measurements, spec, criteria) for spec in COMPARED[1:]]
    told = tuple(one for one in beside if one is not None)
    if len(told) < len(beside):
        return None
    return QuickAnswer(len(draws), price, decide(price, criteria), told)


def beside_softmax(
    measurements: Measurements, spec: str, criteria: Criteria = CRITERIA
) -> BesideSoftmax | None:
    """Return what an objective has more than softmax within draws, or None if that has no interval."""
    evidence = gather(measurements)
    separation, accuracy, transfer = (
        [evidence.values(aspect).get(one, {}) for one in (spec, COMPARED[0])]
        for aspect in ("separation", "accuracy", "linear")
    )
    gained = difference(transfer, [1, -1], criteria=criteria)
    draws = common_seeds([*separation, *accuracy, *transfer])
    if gained is None or not draws:
        return None
    return BesideSoftmax(spec, _mean_difference(separation, draws), _mean_difference(accuracy, draws), gained)


def fall(slope: float, error: float, degrees: int, criteria: Criteria = CRITERIA) -> Effect:
    """Return the effect that transfer falls with R², in points for each .1, from a slope and its error.

    >>> effect = fall(slope=-18.0, error=3.0, degrees=5)
    >>> round(effect.estimate, 2), round(effect.low, 2), round(effect.high, 2), decide(effect)
    (1.8, 1.03, 2.57, 'holds')
    """
    return effect_by_t(-PER * slope, PER * error, degrees, DOSES.least_price.value, criteria)


def _mean_difference(pair: Sequence[BySeed], seeds: Sequence[Seed]) -> float:
    one, other = pair
    return mean([one[seed] - other[seed] for seed in seeds])
