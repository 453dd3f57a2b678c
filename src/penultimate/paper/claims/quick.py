"""The rule of the quickstart: does transfer fall as class separation rises, within three draws of the world?

It was written on 2026-11-26, before any network of the quickstart was transferred. Linear transfer, the mean
over the study's tasks, is regressed on R² within draws: one slope, and an intercept for each draw. Mostly the
slope lies between squared error and the other two, so that it is no price of separation by itself: squared
error is less accurate as well.
"""

from __future__ import annotations

from typing import NamedTuple

from penultimate.paper.claims.effects import Effect, by_t
from penultimate.paper.claims.filed import LEAST_PRICE, LEAST_RUNS, PER, QUICK
from penultimate.paper.claims.numbers import ACCURACY, LINEAR, SEPARATION, Frame, Numbers
from penultimate.results.rows import Run, shared_seeds
from penultimate.statistics import partial_slopes


class Beside(NamedTuple):
    """What an objective has more than softmax: R² and accuracy in means, transfer with its interval."""

    label: str
    separation: float
    accuracy: float
    transfer: Effect


class QuickAnswer(NamedTuple):
    """The number of draws, the price (positive if transfer falls), and both objectives beside softmax."""

    draws: int
    price: Effect
    beside: list[Beside]


def is_quick(run: Run) -> bool:
    """Return whether a study compares the quickstart's three objectives, to which alone the rule applies."""
    specs = {each.spec for each in run.objectives()}
    return not run.limited and len(run.arms) == 1 and specs == {*QUICK}


def _in_shared_draws(run: Run, specs: tuple[str, ...]) -> list[Frame]:
    """Return R², accuracy and transfer of objectives in the draws that have all of them, or nothing."""
    slugs = {each.spec: each.slug for each in run.objectives()}
    frames = [Numbers(run).frame(each) for each in (SEPARATION, ACCURACY, LINEAR)]
    columns = [slugs.get(spec, "") for spec in specs]
    if not all({*columns} <= {*frame} for frame in frames):
        return []
    draws = shared_seeds(frame[columns] for frame in frames)
    return [frame.loc[draws, columns].set_axis([*specs], axis=1) for frame in frames] if draws else []


def answer_quickly(run: Run) -> QuickAnswer | None:
    """Return the answer from the draws in which all three objectives are measured, or None with too few."""
    frames = _in_shared_draws(run, QUICK)
    if not frames or len(frames[0]) < LEAST_RUNS:
        return None
    groups = [draw for draw in frames[0].index for _ in QUICK]
    across, _, up = (frame.to_numpy().ravel().tolist() for frame in frames)
    slopes = partial_slopes(groups, [across], up)
    beside = [found for spec in QUICK[1:] if (found := beside_softmax(run, spec))]
    if not slopes or slopes[0].error == 0 or len(beside) < 2:
        return None
    slope = slopes[0]
    price = by_t(-PER * slope.slope, PER * slope.error, slope.degrees_of_freedom, LEAST_PRICE)
    return QuickAnswer(len(frames[0]), price, beside)


def beside_softmax(run: Run, spec: str) -> Beside | None:
    """Return what an objective has more than softmax within draws, or None if that has no interval."""
    frames = _in_shared_draws(run, (spec, QUICK[0]))
    if not frames or len(frames[0]) < 2:
        return None
    separation, accuracy, transfer = (frame[spec] - frame[QUICK[0]] for frame in frames)
    label = next(each.label for each in run.objectives() if each.spec == spec)
    effect = Numbers(run).effect((transfer.to_dict(),), (1,))
    return Beside(label, float(separation.mean()), float(accuracy.mean()), effect)
