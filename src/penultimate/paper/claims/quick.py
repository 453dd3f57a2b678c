"""The rule of the quickstart: does transfer fall as class separation rises, within three draws of the world?

It was written on 2026-11-26, before any network of the quickstart was transferred. Linear transfer, the mean
over the study's tasks, is regressed on R² within draws: one slope, and an intercept for each draw. Mostly the
slope lies between squared error and the other two, so that it is no price of separation by itself: squared
error is less accurate as well.
"""

from __future__ import annotations

from typing import NamedTuple

import penultimate.paper.claims.evidence as evidence
from penultimate.paper.claims.effects import Effect, Verdict, by_t, decide
from penultimate.paper.claims.margins import LEAST_PRICE, LEAST_RUNS, PER
from penultimate.results.rows import Run, shared_seeds
from penultimate.statistics import slope_within

COMPARED = ("softmax", "logit_penalty(beta=0.0047)", "squared_error(kappa=9, scale=1.28, target=3.75)")
"""The baseline of the quickstart, the objective of equal accuracy, and the one that separates far."""


class Beside(NamedTuple):
    """What an objective has more than softmax: R² and accuracy in means, transfer with its interval."""

    label: str
    separation: float
    accuracy: float
    transfer: Effect


class QuickAnswer(NamedTuple):
    """The verdict of the rule over a number of draws; a `price` is positive if transfer falls."""

    draws: int
    price: Effect
    verdict: Verdict
    beside: tuple[Beside, ...]


def is_quick(run: Run) -> bool:
    """Return whether a study compares the quickstart's three objectives, to which alone the rule applies."""
    specs = {each.spec for each in run.objectives()}
    return not run.limited and len(run.arms) == 1 and specs == {*COMPARED}


def answer_quickly(run: Run) -> QuickAnswer | None:
    """Return the answer from the draws in which all three objectives are measured, or None with too few."""
    of = evidence.Evidence(run)
    frames = [of.frame(each) for each in (evidence.SEPARATION, evidence.LINEAR, evidence.ACCURACY)]
    slugs = {each.spec: each.slug for each in run.objectives()}
    columns = [slugs[spec] for spec in COMPARED]
    if not all({*columns} <= {*frame} for frame in frames):
        return None
    draws = shared_seeds(frame[columns] for frame in frames)
    if len(draws) < LEAST_RUNS:
        return None
    x, y = (frame.loc[draws, columns] for frame in frames[:2])
    found = slope_within((x.loc[draw].tolist(), y.loc[draw].tolist()) for draw in draws)
    beside = [beside_softmax(run, spec) for spec in COMPARED[1:]]
    told = tuple(one for one in beside if one is not None)
    if found is None or found.standard_error == 0 or len(told) < len(beside):
        return None
    price = by_t(-PER * found.slope, PER * found.standard_error, found.degrees_of_freedom, LEAST_PRICE)
    return QuickAnswer(len(draws), price, decide(price), told)


def beside_softmax(run: Run, spec: str) -> Beside | None:
    """Return what an objective has more than softmax within draws, or None if that has no interval."""
    of = evidence.Evidence(run)
    own = next((each for each in run.objectives() if each.spec == spec), None)
    frames = [of.frame(each) for each in (evidence.SEPARATION, evidence.ACCURACY, evidence.LINEAR)]
    pair = [own.slug if own else "", COMPARED[0]]
    if own is None or not all({*pair} <= {*frame} for frame in frames):
        return None
    effect, draws = of.effect([frames[2][slug].dropna() for slug in pair], (1, -1))
    shared = shared_seeds(frame[pair] for frame in frames)
    if draws < 2 or not shared:
        return None
    more = [float((frame[own.slug] - frame[pair[1]])[shared].mean()) for frame in frames[:2]]
    return Beside(own.label, more[0], more[1], effect)
