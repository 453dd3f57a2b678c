"""Choice among the cells of a search: the middle of those that its seeds cannot distinguish from the best.

The holdout has a flat optimum in the strength of a regulariser, while class separation changes by half along
it; the highest mean alone would therefore choose among equals by noise. So the following rule holds for all
objectives alike. It dates from 2026-11-22, before the first search that it judged:

1. Cells are compared within seeds. The margin is the standard error of the difference between the means of
   two cells, sqrt(2 s^2 / seeds), where s^2 is the residual variance of accuracy in the two-way layout of
   cells and seeds. A cell with a diverged run takes no part. A cell that lies more than `FAR` below the best
   says nothing about the noise near the best, and is left out of s^2.
2. The cells whose mean is less than the margin below the highest are tied with it. With a single seed or a
   single cell there is no margin, and only equal means are tied.
3. Of the tied cells the middle one is chosen: the one with the smallest sum of distances to all tied cells
   (along the axes, in steps of their grids). If several have the smallest sum, the one with the higher mean
   is chosen, and then the one nearest to the start.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from penultimate.records.table import Row
from penultimate.records.tuning import CellRun, GridCell, Network, Point, Tuned, Tuning

FAR = 0.05
"""The distance below the best, as a fraction of all images, beyond which a cell says nothing about noise."""
EQUAL = 12
"""Decimals to which means and distances are compared, so that equal accuracies have equal means."""


def margin(accuracies: Sequence[Sequence[float]]) -> float | None:
    """Return the standard error of the difference between two cells' means, with seeds as blocks, or None.

    s^2 = sum_cs (a_cs - a_c. - a_.s + a_..)^2 / ((C - 1)(S - 1)), the margin is sqrt(2 s^2 / S).

    >>> margin([[0.80, 0.82], [0.81, 0.83]])  # the seeds agree about the cells
    0.0
    >>> margin([[0.80], [0.90]]) is None
    True
    """
    cells, seeds = len(accuracies), len(accuracies[0]) if accuracies else 0
    if cells < 2 or seeds < 2:
        return None
    of_cell = [math.fsum(row) / seeds for row in accuracies]
    of_seed = [math.fsum(column) / cells for column in zip(*accuracies, strict=True)]
    middle = math.fsum(of_cell) / cells
    residuals = [
        round(value - of_cell[cell] - of_seed[seed] + middle, 15)
        for cell, row in enumerate(accuracies)
        for seed, value in enumerate(row)
    ]
    variance = math.fsum(value**2 for value in residuals) / ((cells - 1) * (seeds - 1))
    return math.sqrt(2 * variance / seeds)


def tied(runs: Mapping[Point, Sequence[float]]) -> tuple[frozenset[Point], float | None]:
    """Return the cells that cannot be distinguished from the best, and the margin.

    `runs` holds the accuracies of each cell, one for each seed.

    >>> tied({(1,): [0.80, 0.82], (2,): [0.81, 0.82], (4,): [0.70, 0.80]})[0] == {(1,), (2,)}
    True
    """
    means = {point: round(math.fsum(row) / len(row), EQUAL) for point, row in runs.items()}
    highest = max(means.values())
    within = margin([runs[point] for point, value in means.items() if value > highest - FAR])
    near = (point for point, value in means.items() if value == highest or highest - value < (within or 0))
    return frozenset(near), within


def middle(points: Sequence[Point], distance: Callable[[Point, Point], float]) -> Point:
    """Return the point with the smallest sum of distances to all points, or the first of several such.

    >>> middle([(8,), (1,), (2,)], lambda a, b: abs(a[0] - b[0]))
    (2,)
    """
    return min(points, key=lambda point: round(math.fsum(distance(point, other) for other in points), EQUAL))


def choose(plan: Tuning, rows: Iterable[Row], lost: Mapping[Network, str] | None = None) -> Tuning:
    """Return a search with the accuracies of its cells and the cell that is chosen for each objective.

    `rows` are those of the search's study; only the top-1 on the holdout is read. `lost` names the networks
    that diverged, and why. Objectives with a cell that is not trained yet are left out, and nothing is chosen
    for one of which every cell diverged.
    """
    curves: dict[Network, dict[int, float]] = {}
    for row in rows:
        if (row.metric, row.split) == ("top1", "holdout") and row.epoch is not None:
            network = (str(row.objective), row.arm or "", int(row.seed or 0))
            curves.setdefault(network, {})[row.epoch] = row.value
    chosen = []
    for tuned in plan.objectives:
        cells = [_measured(plan, cell, curves, lost or {}) for cell in tuned.cells]
        measured = tuple(cell for cell in cells if cell is not None)
        if len(measured) == len(cells):
            chosen.append(_chosen(plan, dataclasses.replace(tuned, cells=measured)))
    return dataclasses.replace(plan, objectives=tuple(chosen))


def _measured(
    plan: Tuning, cell: GridCell, curves: Mapping[Network, Mapping[int, float]], lost: Mapping[Network, str]
) -> GridCell | None:
    """Return a cell with the outcome of its runs, or None if one is not there yet."""
    networks = [(cell.objective, cell.arm, seed) for seed in plan.seeds]
    if not all(network in curves or network in lost for network in networks):
        return None
    recipe = plan.recipe_of(cell)
    peak = None
    if not any(network in lost for network in networks):
        peak = _peak([curves[network] for network in networks], recipe.first_stop() if plan.stops else 0)
    runs = []
    for network in networks:
        if network in lost:
            runs.append(CellRun(network[2], None, lost[network]))
            continue
        curve = curves[network]
        ended = max(curve.values()) if recipe.stopping == "best" else curve[max(curve)]
        runs.append(CellRun(network[2], curve[peak] if plan.stops and peak is not None else ended))
    return dataclasses.replace(cell, runs=tuple(runs), peak_epoch=peak)


def _peak(curves: Sequence[Mapping[int, float]], first: float) -> int | None:
    """Return the earliest epoch of the highest mean among those, from the first on, that every run has."""
    shared = set.intersection(*map(set, curves))
    means = {
        epoch: round(math.fsum(curve[epoch] for curve in curves), EQUAL) for epoch in shared if epoch >= first
    }
    return max(sorted(means), key=lambda epoch: means[epoch], default=None)


def _chosen(plan: Tuning, tuned: Tuned) -> Tuned:
    """Return an objective's search with its choice."""
    cells = {cell.values: cell for cell in tuned.cells if cell.accuracies}
    if not cells:
        return tuned
    start = tuned.cells[0].values

    def distance(here: Point, there: Point) -> float:
        steps = zip(tuned.axes, here, there, strict=True)
        return math.fsum(abs(axis.position(a) - axis.position(b)) / axis.step for axis, a, b in steps)

    def rank(point: Point) -> tuple[float, float, Point]:
        return -round(cells[point].mean, EQUAL), round(distance(point, start), EQUAL), point

    near, within = tied({point: cell.accuracies for point, cell in cells.items()})
    highest = min(cells, key=rank)
    chosen = highest if plan.by_mean else middle(sorted(near, key=rank), distance)
    places = [cell.values for cell in tuned.cells]
    return dataclasses.replace(
        tuned, chosen=places.index(chosen), highest=places.index(highest), margin=within
    )
