"""Arrays that rows point to, which `StudyResults.arrays(step, metric)` reads."""

from __future__ import annotations

from typing import TypeAlias

from penultimate.report.measurements import Measurements, Seed
from penultimate.report.quantity import Quantity

ArraysByRun: TypeAlias = dict[str, dict[Seed, list[float]]]
"""An array of the runs of each objective: {canonical spec: {seed: values}}."""


def arrays_of(measurements: Measurements, quantity: Quantity) -> list[ArraysByRun]:
    """Return each of a quantity's arrays for every run that has them, in the study's order."""
    read = measurements.results.arrays
    arrays: list[ArraysByRun] = [{} for _ in quantity.arrays]
    if read is None:
        return arrays
    for objective in measurements.objectives:
        rows = measurements.rows(quantity.metric, quantity.split).where(objective=objective.spec)
        for row in sorted(rows, key=lambda row: -1 if row.seed is None else row.seed):
            values = read(str(row.step), quantity.metric)
            for array, name in zip(arrays, quantity.arrays, strict=True):
                array.setdefault(objective.spec, {})[row.seed] = [float(value) for value in values[name]]
    return arrays
