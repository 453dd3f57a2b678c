"""Tune the hyperparameters of objectives: on the holdout of the pretraining set, with one budget for all.

A cell of a grid is a `train` step of the ordinary graph (the one that a study with this objective, recipe
and seed would have), so cells are cached, resumed and shared like any other step. All objectives are searched
side by side: a round trains the cells that their searches ask for next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.registry import parse_sum
from penultimate.study.spec import Study
from penultimate.study.tuning_axes import (
    FROM_ABOVE,
    Axis,
    Number,
    axes_of,
    check_names,
    recipe_with,
    settings_of,
    with_values,
)
from penultimate.study.tuning_record import Cell, Run, Tuned, TunedAxis, mean_accuracy
from penultimate.study.tuning_search import REFINEMENT, Edge, Found, Point, Rounds, cells_of_grid, search
from penultimate.study.tuning_words import kind_of
from penultimate.training.recipe import Recipe

ALL = "all"
BUDGET = 9
"""Cells of an objective, unless said otherwise: a grid of five, two expansions, one refinement."""
EXPANSIONS = 2
"""How often an axis is expanded, unless said otherwise."""

Setting = tuple[str, tuple[tuple[str, Number], ...]]
"""What is trained: the canonical objective, and what is changed in the recipe."""


@dataclass(frozen=True)
class Outcome:
    """What became of the runs of a setting, and in which epoch their mean holdout accuracy was highest."""

    runs: tuple[Run, ...]
    peak_epoch: int | None = None


Runner = Callable[[Sequence[Setting]], Mapping[Setting, Outcome]]
"""Trains settings with every seed; those whose training failed (not: diverged) are missing in the answer."""


@dataclass(frozen=True)
class Candidate:
    """An objective that is to be tuned, from its start, along its axes.

    `adjusted` is what the study itself changes in its recipe for this objective.
    """

    start: str
    axes: tuple[Axis, ...]
    recipe: Recipe
    adjusted: Recipe

    @property
    def slug(self) -> str:
        return resolve(self.start).preset or " + ".join(kind_of(self.start))

    def most_cells(self, budget: int) -> int:
        """How many cells its search can take."""
        return budget if any(len(axis.grid) > 1 for axis in self.axes) else 1

    def setting(self, point: Point) -> Setting:
        """What is trained at a point of the axes."""
        return with_values(self.start, self.axes, point), settings_of(
            self.recipe, self.adjusted, self.axes, point
        )


@dataclass(frozen=True)
class TuningPlan:
    """What a tuning is asked to do, checked before anything is trained."""

    study: Study
    listed: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    budget: int
    expansions: int


def plan_tuning(
    study: Study,
    names: Sequence[str] = (ALL,),
    grids: Mapping[str, Sequence[Number]] | None = None,
    budget: int | None = None,
    expansions: int = EXPANSIONS,
) -> TuningPlan:
    """The searches of some objectives of a study, or of all of them (of a sweep, the first).

    `names` are those of the study (which gives the values to start from), presets or spec strings. Without a
    budget it is BUDGET, or what the largest given grid and a refinement take. Raises RequestError for what
    cannot be tuned: an unknown name, a grid that belongs to nothing or holds a value out of range, a budget
    that does not hold the grids.

    >>> from penultimate.study import load_study
    >>> made = plan_tuning(load_study("quickstart"), ["squared_error"])
    >>> [(axis.key, axis.grid) for axis in made.candidates[0].axes][:2], made.budget
    ([('kappa', (4.5, 9, 18)), ('target', (5, 10, 20))], 9)
    """
    grids = grids or {}
    firsts: dict[tuple[str, ...], str] = {}
    for text in study.objectives:
        firsts.setdefault(kind_of(text), text)
    listed = tuple(firsts.values())
    starts = listed if list(names) == [ALL] else tuple(_start(study, name, firsts) for name in names)
    if not starts:
        raise RequestError("which objective is to be tuned? Name it, or say all")
    for place, start in enumerate(starts):
        if kind_of(start) in [kind_of(other) for other in starts[:place]]:
            raise RequestError(f"'{names[place]}' is named twice; name each objective once")
    check_names(starts, grids)
    candidates = tuple(
        Candidate(start, axes_of(start, adjusted, grids), study.recipe, adjusted)
        for start, adjusted in ((start, study.recipe_of(start)) for start in starts)
    )
    _check_whole("expansions", expansions, 0)
    largest = max(candidates, key=lambda one: cells_of_grid(one.axes))
    needed = cells_of_grid(largest.axes)
    if budget is None:
        budget = max(BUDGET, needed + REFINEMENT if grids else needed)
    _check_whole("budget", budget, 1)
    if budget < needed:
        raise RequestError(
            f"a budget of {budget} does not hold the grid of {largest.slug}, which has {needed} cells; give"
            f" --budget {needed + REFINEMENT} (two of them to refine it), or a shorter --grid"
        )
    for one in candidates:
        for axis in one.axes:
            for value in axis.grid:  # a recipe may refuse together what it allows one by one
                point = tuple(value if other is axis else other.centre for other in one.axes)
                recipe_with(one.recipe, one.setting(point)[1])
    return TuningPlan(study, listed, candidates, budget, expansions)


def _start(study: Study, name: str, firsts: Mapping[tuple[str, ...], str]) -> str:
    if name == ALL:
        raise RequestError("'all' stands alone; name some objectives, or say all")
    by_slug = {slug: text for text, slug in study.slugs().items()}
    if name in by_slug:
        return by_slug[name]
    canonical = resolve(name).canonical
    bare = not any(term.arguments for term in parse_sum(name))
    return firsts.get(kind_of(canonical), canonical) if bare else canonical


def _check_whole(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RequestError(f"--{what} is a whole number, {least} or more, not {value!r}")


def conduct(plan: TuningPlan, runner: Runner, command: str = "") -> tuple[Tuned, ...]:
    """Search all candidates side by side; those in which a training failed are left out, to be continued.

    Nothing is chosen where every cell diverged.
    """
    searches: dict[str, Rounds] = {}
    wanted: dict[str, list[Point]] = {}
    outcomes: dict[Setting, Outcome] = {}
    done: dict[str, Tuned] = {}
    by_slug = {one.slug: one for one in plan.candidates}
    for slug, one in by_slug.items():
        searches[slug] = search(one.axes, plan.budget, plan.expansions)
        wanted[slug] = next(searches[slug])
    while wanted:
        asked = [by_slug[slug].setting(point) for slug, points in wanted.items() for point in points]
        outcomes.update(runner(list(dict.fromkeys(asked))))
        for slug, points in list(wanted.items()):
            one = by_slug[slug]
            if any(one.setting(point) not in outcomes for point in points):
                del wanted[slug]
                continue
            scores = {point: mean_accuracy(outcomes[one.setting(point)].runs) for point in points}
            try:
                wanted[slug] = searches[slug].send(scores)
            except StopIteration as end:
                done[slug] = _tuned(one, end.value, outcomes, command)
                del wanted[slug]
    return tuple(done[slug] for slug in by_slug if slug in done)


def _tuned(one: Candidate, found: Found, outcomes: Mapping[Setting, Outcome], command: str) -> Tuned:
    points = list(found.scores)
    edges = {edge.axis: _edge_text(one, edge, found) for edge in found.edges}
    axes = tuple(
        TunedAxis(
            axis.key,
            axis.parameter.symbol or axis.parameter.name,
            axis.start,
            axis.grid,
            axis.parameter.name in FROM_ABOVE,
            edges.get(place, ""),
        )
        for place, axis in enumerate(one.axes)
    )
    return Tuned(
        one.slug,
        resolve(one.start).label,
        one.start,
        axes,
        tuple(_cell(one, point, found.phases[point], outcomes[one.setting(point)]) for point in points),
        None if found.best is None else points.index(found.best),
        command,
    )


def _cell(one: Candidate, point: Point, phase: str, outcome: Outcome) -> Cell:
    objective, settings = one.setting(point)
    return Cell(objective, point, settings, phase, outcome.runs, outcome.peak_epoch)


def _edge_text(one: Candidate, edge: Edge, found: Found) -> str:
    """The sentence about a best value that is the outermost of those that were tried."""
    assert found.best is not None
    axis = one.axes[edge.axis]
    why = {
        "range": f"the range {axis.parameter.interval} holds no further step",
        "expansions": "the expansions allowed were used up",
        "budget": "the budget held no further expansion",
    }[edge.reason]
    return (
        f"{axis.key} = {found.best[edge.axis]!r} is the {edge.side} value that was tried, so a better one may"
        f" lie beyond; {why}"
    )
