"""Objectives that combine several: their parts, and the highest holdout accuracy of their runs."""

from __future__ import annotations

from collections.abc import Mapping

from penultimate import specs
from penultimate.errors import RequestError
from penultimate.paper.arms import COMBINATIONS
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import Quantity

HOLDOUT = Quantity("top1", split="holdout", over="epochs", arm=COMBINATIONS)
SINGLE = HOLDOUT.of_arm("")


def terms_of(spec: str) -> list[specs.Spec]:
    """Return the terms of an objective's spec; none for a given network.

    >>> [str(term) for term in terms_of("dropout(keep=0.8) + sigmoid()")]
    ['dropout(keep=0.8)', 'sigmoid']
    """
    try:
        return list(specs.parse_sum(spec))
    except RequestError:
        return []


def best_epochs(measurements: Measurements, arm: str = "") -> ByRun:
    """Return the highest holdout accuracy of each run, for every objective of an arm."""
    of_arm = measurements.in_arm(arm)
    courses = {one.spec: of_arm.curve(one, HOLDOUT.metric, HOLDOUT.split) for one in of_arm.objectives}
    return {
        spec: {seed: max(value for _, value in points) for seed, points in runs.items()}
        for spec, runs in courses.items()
        if runs
    }


def of_one_recipe(measurements: Measurements) -> bool:
    """Return whether the main arm has the combinations' recipe, so that its objectives are their parts."""
    recipe: Mapping[str, object] = measurements.recipe
    return recipe == measurements.in_arm(COMBINATIONS).recipe
