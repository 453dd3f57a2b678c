"""The search for the best cell of a grid, with a fixed budget of cells.

1. Grid: one axis after the other, with the others at their best values so far; for a product, every
   combination of values.
2. Expansion: if the best value is the outermost of its axis, another one is tried beyond it, by the same
   ratio; axis by axis, each a limited number of times and within its range.
3. Refinement: the density around the best is doubled, axis by axis, until the budget is spent; for a
   product, once, on all axes together, from the best cell's neighbours on one side to those on the other (for
   two axes 5 x 5 cells); or not at all.

The search moves to the highest mean over seeds and, among equals, to the cell nearest to the start. A cell
with a diverged run is never the best. The cell that is chosen in the end is the middle one of those that the
seeds cannot tell from the best (`choice`), or, `by_mean`, the best itself.

Kornblith et al., ICLR 2021 submission, appendix A.1 (there done manually; the budget is ours).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penultimate.tuning.axes import Axis, Number
from penultimate.tuning.choice import EQUAL, Point, middle, tied

Accuracies = Sequence[float]
"""A cell's accuracy by seed; empty if a run diverged."""
Rounds = Generator[list[Point], Mapping[Point, Accuracies], "Found"]
"""Generator that yields the cells whose accuracies it needs next, is sent these, and returns its findings."""
Step = Generator[list[Point], Mapping[Point, Accuracies], None]
Phase = Literal["grid", "expansion", "refinement"]
Reason = Literal["range", "inside", "expansions", "budget"]

DIVERGED = -math.inf
REFINEMENT = 2
"""The number of cells that refine an axis once: one on either side of the best."""


@dataclass(frozen=True)
class Edge:
    """A chosen value that is the outermost one tried on its axis, and why nothing beyond it was tried.

    `reason`: the "range" of valid values ends there, the highest mean lies further "inside", or the
    "expansions" or the "budget" were used up.
    """

    axis: int
    side: Literal["smallest", "largest"]
    reason: Reason


@dataclass(frozen=True)
class Found:
    """Result of a search: each cell's mean and phase, the cell that was chosen, and the one of highest mean.

    These two are None if all cells diverged. Cells less than `margin` below the highest mean are tied with
    it.
    """

    chosen: Point | None
    highest: Point | None
    margin: float | None
    scores: Mapping[Point, float]
    phases: Mapping[Point, Phase]
    edges: tuple[Edge, ...]


def cells_of_grid(axes: Sequence[Axis], product: bool = False) -> int:
    """Return the number of cells in the first pass: a cross through the centre, or a product of the grids."""
    if product:
        return math.prod(len(axis.grid) for axis in axes)
    return 1 + sum(len(axis.grid) - 1 for axis in axes)


def search(
    axes: Sequence[Axis],
    budget: int,
    expansions: int,
    refine: bool = True,
    product: bool = False,
    by_mean: bool = False,
) -> Rounds:
    """Return the rounds of a search for at most `budget` cells, and exactly that many if it can refine.

    >>> from penultimate.tuning.axes import axes_of
    >>> from penultimate.training.recipe import Recipe
    >>> rounds = search(axes_of("label_smoothing", Recipe(), {}), budget=9, expansions=2)
    >>> cells = next(rounds)
    >>> while True:
    ...     try:
    ...         cells = rounds.send({cell: [-abs(cell[0] - 0.15)] for cell in cells})
    ...     except StopIteration as end:
    ...         print(end.value.chosen, len(end.value.scores))
    ...         break
    (0.141,) 9
    """
    return _Search(tuple(axes), budget, expansions, refine, product, by_mean).rounds()


class _Search:
    def __init__(
        self,
        axes: tuple[Axis, ...],
        budget: int,
        expansions: int,
        refine: bool,
        product: bool,
        by_mean: bool,
    ) -> None:
        self.axes, self.budget, self.refine, self.product = axes, budget, refine, product
        self.by_mean = by_mean
        self.accuracies: dict[Point, Accuracies] = {}
        self.scores: dict[Point, float] = {}
        self.phases: dict[Point, Phase] = {}
        self.rungs = [set(axis.grid) for axis in axes]
        self.expansions_left = [expansions for _ in axes]
        self.centre: Point = tuple(axis.centre for axis in axes)

    def rounds(self) -> Rounds:
        if not self.axes:
            yield from self.measure([self.centre], "grid")
        for place, axis in enumerate(self.axes):
            yield from self.measure(self.having(place, axis.grid), "grid")
        yield from self.while_it_helps("expansion", self.expanded)
        if self.best is None:
            return Found(None, None, None, self.scores, self.phases, ())
        if self.refine and self.product:
            around = [
                [value, *self.halves(place), *self.neighbours(place)] for place, value in enumerate(self.best)
            ]
            yield from self.measure(itertools.product(*around), "refinement")
        elif self.refine:
            yield from self.while_it_helps("refinement", self.halves)
        near, margin = tied({point: row for point, row in self.accuracies.items() if row})
        chosen = self.best if self.by_mean else middle(sorted(near, key=self.rank), self.distance)
        return Found(chosen, self.best, margin, self.scores, self.phases, tuple(self.edges(chosen)))

    def while_it_helps(self, phase: Phase, values: Callable[[int], list[Number]]) -> Step:
        """Cycle through the axes, measuring the values that each needs next, until none needs any."""
        before = -1
        while before < len(self.scores) < self.budget:
            before = len(self.scores)
            for place in range(len(self.axes)):
                yield from self.measure(self.having(place, values(place)), phase)

    def measure(self, points: Iterable[Point], phase: Phase) -> Step:
        """Request the accuracies of points that are not known yet, as far as the budget allows."""
        new = [point for point in dict.fromkeys(points) if point not in self.scores]
        new = new[: self.budget - len(self.scores)]
        if new:
            answers = yield new
            for point in new:
                self.accuracies[point] = row = answers[point]
                self.scores[point] = math.fsum(row) / len(row) if row else DIVERGED
                self.phases[point] = phase

    def expanded(self, place: int) -> list[Number]:
        """Return the next value outwards if the best one is outermost and an expansion is left, else []."""
        further = self.outward(place, self.best) if self.expansions_left[place] else None
        if further is None or len(self.scores) >= self.budget:
            return []
        self.expansions_left[place] -= 1
        self.rungs[place].add(further)
        return [further]

    @property
    def best(self) -> Point | None:
        alive = [point for point, score in self.scores.items() if score > DIVERGED]
        return min(alive, key=self.rank, default=None)

    def rank(self, point: Point) -> tuple[float, float, Point]:
        return -round(self.scores[point], EQUAL), round(self.distance(point, self.centre), EQUAL), point

    def distance(self, here: Point, there: Point) -> float:
        """Return the distance between two cells: the sum over axes, in steps of their grids."""
        steps = zip(self.axes, here, there, strict=True)
        return math.fsum(abs(axis.position(a) - axis.position(b)) / axis.step for axis, a, b in steps)

    def along(self, place: int, values: Iterable[Number]) -> list[Point]:
        """Return the cells that differ from the best cell on one axis; at first, from the central cell."""
        here = self.best or self.centre
        return [(*here[:place], value, *here[place + 1 :]) for value in values]

    def having(self, place: int, values: Iterable[Number]) -> Iterable[Point]:
        """Return the cells to measure that have these values on one axis."""
        if not self.product:
            return self.along(place, values)
        others = [sorted(rungs) for rungs in self.rungs]
        return itertools.product(*others[:place], list(values), *others[place + 1 :])

    def end(self, place: int, point: Point | None) -> Literal["smallest", "largest"] | None:
        """Return the end of an axis at which a cell lies, or None if it is inside or the only value."""
        rungs = self.rungs[place]
        if point is None or len(rungs) < 2 or point[place] not in (min(rungs), max(rungs)):
            return None
        return "smallest" if point[place] == min(rungs) else "largest"

    def outward(self, place: int, point: Point | None) -> Number | None:
        """Return the next value beyond the end at which a cell lies, if the range has one."""
        end = self.end(place, point)
        if end is None:
            return None
        edge, inner = sorted(self.rungs[place], reverse=end == "largest")[:2]
        return self.axes[place].beyond(edge, inner)

    def neighbours(self, place: int) -> list[Number]:
        """Return the values on either side of the best one on an axis, with the better one first."""
        assert self.best is not None
        known = sorted({point[place] for point in self.scores})
        at = known.index(self.best[place])
        sides = known[max(0, at - 1) : at] + known[at + 1 : at + 2]
        return sorted(sides, key=lambda side: -self.scores.get(self.along(place, [side])[0], DIVERGED))

    def halves(self, place: int) -> list[Number]:
        """Return the values halfway to the neighbours of the best one."""
        assert self.best is not None
        middles = [self.axes[place].between(self.best[place], side) for side in self.neighbours(place)]
        return [middle for middle in middles if middle is not None]

    def edges(self, point: Point) -> Iterable[Edge]:
        for place in range(len(self.axes)):
            end = self.end(place, point)
            if end is not None:
                yield Edge(place, end, self.reason(place, point))

    def reason(self, place: int, point: Point) -> Reason:
        """Return the reason why nothing was tried beyond the end at which a cell lies."""
        if self.outward(place, point) is None:
            return "range"
        if self.end(place, self.best) != self.end(place, point):
            return "inside"
        return "budget" if self.expansions_left[place] else "expansions"
