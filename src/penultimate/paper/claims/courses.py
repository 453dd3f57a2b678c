"""Numbers for each run or seed, from measurements in the course of training or of pairs of networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penultimate.report.measurements import ByRun, Seed, Series
from penultimate.report.shapes.pairs import Pairs

Courses: TypeAlias = Mapping[str, Series]
"""The points (epoch, value) of every run: {spec: {seed: [(epoch, value), ...]}}."""


def below_their_peak(courses: Courses) -> ByRun:
    """Return how far each run ends below its value at the epoch of the peak.

    The peak is taken from the mean of the other runs, because the highest of several snapshots of the run
    itself would be high by chance too. A single run is its own measure; there is no value for runs of fewer
    than three snapshots.

    >>> below_their_peak({"softmax": {0: [(1, 0.1), (2, 0.4), (3, 0.25)], 1: [(1, 0.1), (2, 0.4), (3, 0.3)]}})
    {'softmax': {0: 0.15..., 1: 0.10...}}
    """
    falls: ByRun = {}
    for spec, runs in courses.items():
        values = {seed: dict(run) for seed, run in runs.items()}
        epochs = sorted(set.intersection(*(set(run) for run in values.values()))) if values else []
        if len(epochs) < 3:
            continue
        falls[spec] = {}
        for seed, run in values.items():
            others = [other for which, other in values.items() if which != seed] or [run]
            peak = max(epochs[:-1], key=lambda epoch: math.fsum(other[epoch] for other in others))
            falls[spec][seed] = run[peak] - run[epochs[-1]]
    return falls


def at_equal_training(train: Courses, test: Courses) -> ByRun:
    """Return the test accuracy of each run when its training accuracy first reaches a common level.

    The level is the highest training accuracy that all runs of the seed reach. Both accuracies are
    interpolated between snapshots; a run whose first snapshot lies above the level is left out.

    >>> course = {"softmax": {0: [(1, 0.4), (2, 0.8)]}, "sigmoid": {0: [(1, 0.5), (2, 0.6)]}}
    >>> test = {"softmax": {0: [(1, 0.4), (2, 0.6)]}, "sigmoid": {0: [(1, 0.5), (2, 0.55)]}}
    >>> at_equal_training(course, test)
    {'softmax': {0: 0.5}, 'sigmoid': {0: 0.55}}
    """
    seeds = {seed for runs in train.values() for seed in runs}
    levels = {
        seed: min(max(value for _, value in runs[seed]) for runs in train.values() if seed in runs)
        for seed in seeds
    }
    found: ByRun = {}
    for spec, runs in train.items():
        for seed, run in runs.items():
            ups = [up for _, up in test.get(spec, {}).get(seed, [])]
            value = level_crossing([across for _, across in run], ups, levels[seed])
            if value is not None:
                found.setdefault(spec, {})[seed] = value
    return found


def level_crossing(across: Sequence[float], up: Sequence[float], level: float) -> float | None:
    """Return the height of a line where it first reaches `level` across, or None if it starts above that."""
    if len(across) != len(up) or across[0] > level:
        return None
    for place, right in enumerate(across):
        if right >= level:
            left = across[max(place - 1, 0)]
            share = (level - left) / (right - left) if right > left else 1.0
            return up[max(place - 1, 0)] * (1 - share) + up[place] * share
    return None


def kinship(pairs: Pairs) -> tuple[dict[Seed, float], float]:
    """Return how much more alike two networks of one objective are than two of different objectives.

    Only networks of different seeds are compared. The difference of the two means over pairs is m. Since a
    seed is in many pairs, the result for each seed is the jackknife's pseudo-value n m - (n - 1) m', where m'
    leaves that seed out; for two seeds it is m itself, without a spread. There are no values if either kind
    of pair is missing, also without a seed. Networks without a seed are left out. The second result is the
    mean likeness of networks of different objectives.

    Arvesen, 1969.
    """
    apart = [
        (a, b, value) for (a, b), value in pairs.items() if None not in (a.seed, b.seed) and a.seed != b.seed
    ]
    seeds = sorted({key.seed for a, b, _ in apart for key in (a, b) if key.seed is not None})

    def mean(without: Seed, same: bool) -> float:
        values = [
            value
            for a, b, value in apart
            if without not in (a.seed, b.seed) and (a.objective == b.objective) == same
        ]
        return math.fsum(values) / len(values) if values else math.nan

    def gain(without: Seed) -> float:
        return mean(without, True) - mean(without, False)

    n, whole = len(seeds), gain(None)
    left = {seed: gain(seed) if n > 2 else whole for seed in seeds}
    if any(map(math.isnan, left.values())):
        return {}, mean(None, False)
    return {seed: n * whole - (n - 1) * one for seed, one in left.items()}, mean(None, False)
