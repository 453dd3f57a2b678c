"""Tuning of objectives' hyperparameters on the holdout of the source, with the same budget for all.

A cell of a grid is a `train` step of the ordinary graph (the one that a study with this objective, recipe
and seed would have), so cells are cached, resumed and shared like any other step. All objectives are searched
side by side: each round trains the cells that their searches request next.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penultimate.checks import is_whole
from penultimate.data.catalog import DatasetCard
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.records.tuning import CellRun, GridCell, Tuned, TunedAxis, accuracies
from penultimate.specs import parse_sum
from penultimate.study.blocks import Search
from penultimate.study.fields import expect_splits
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import (
    Axis,
    Number,
    axes_of,
    check_names,
    kind_of,
    settings_of,
    with_values,
)
from penultimate.tuning.choice import Point
from penultimate.tuning.search import REFINEMENT, Edge, Found, cells_of_grid, search

ALL = "all"
BUDGET = 9
"""Default number of cells per objective: a grid of five, two expansions and one refinement."""
EXPANSIONS = 2
"""Default number of times that an axis is expanded."""

Setting = tuple[str, tuple[tuple[str, Number], ...]]
"""What a cell trains: the canonical objective, and the changes to the recipe."""


@dataclass(frozen=True)
class SettingOutcome:
    """The outcome of a setting's runs, and the epoch in which their mean holdout accuracy was highest."""

    runs: tuple[CellRun, ...]
    peak_epoch: int | None = None


Runner = Callable[[Sequence[Setting]], Mapping[Setting, SettingOutcome]]
"""Function that trains settings with every seed; those with a failed (not: diverged) run are left out."""


@dataclass(frozen=True)
class Candidate:
    """An objective to be tuned, with its starting values and its axes.

    `adjusted` is the recipe with the study's own changes for this objective.
    """

    start: str
    axes: tuple[Axis, ...]
    recipe: Recipe
    adjusted: Recipe

    @property
    def slug(self) -> str:
        return resolve(self.start).preset or " + ".join(kind_of(self.start))

    def most_cells(self, plan: TuningPlan) -> int:
        """Return the largest number of cells that its search can take."""
        if plan.refine or plan.expansions:
            return plan.budget if any(len(axis.grid) > 1 for axis in self.axes) else 1
        return cells_of_grid(self.axes, plan.product)

    def setting(self, point: Point) -> Setting:
        """Return the setting that is trained at a point of the axes."""
        changes = settings_of(self.recipe, self.adjusted, self.axes, point)
        return with_values(self.start, self.axes, point), changes


@dataclass(frozen=True)
class TuningPlan:
    """The plan of a tuning, checked before anything is trained."""

    study: Study
    listed: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    budget: int
    expansions: int
    refine: bool = True
    product: bool = False
    stops: bool = False
    by_mean: bool = False


def plan_tuning(
    study: Study,
    names: Sequence[str] = (ALL,),
    grids: Mapping[str, Sequence[Number]] | None = None,
    budget: int | None = None,
    expansions: int | None = None,
    product: bool = False,
) -> TuningPlan:
    """Return the plan of the searches for some objectives of a study, or for all (of a sweep, the first).

    `names` are names of the study's objectives (the study then gives the starting values), presets or spec
    strings. Grids, budget and expansions default to those of the study's `search`. Without one, the budget is
    BUDGET, or the cells that the largest given grid and a refinement take. Raises RequestError for a source
    without a holdout, an unknown name, a grid that belongs to no objective or holds a value out of range, and
    a budget that is too small for the grids.

    >>> from penultimate.study import load_study
    >>> plan = plan_tuning(load_study("nine"), ["squared_error"])
    >>> [(axis.key, axis.grid) for axis in plan.candidates[0].axes][:2], plan.budget
    ([('kappa', (4.5, 9, 18)), ('target', (1.88, 3.75, 7.5))], 9)
    """
    _expect_holdout(study)
    planned = None if grids else study.search
    if planned is not None:
        grids = planned.grids
        budget = planned.budget if budget is None else budget
        expansions = planned.expansions if expansions is None else expansions
        product = product or planned.product
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
    check_names(starts if planned is None else listed, grids)
    usual = study.main.recipe
    adjusted = {text: block.recipe for block in reversed(study.runs) for text in block.objectives}
    candidates = tuple(
        Candidate(start, axes_of(start, recipe, grids), usual, recipe)
        for start, recipe in ((start, adjusted.get(start, usual)) for start in starts)
    )
    expansions = EXPANSIONS if expansions is None else expansions
    _check_whole("expansions", expansions, 0)
    largest = max(candidates, key=lambda candidate: cells_of_grid(candidate.axes, product))
    needed = cells_of_grid(largest.axes, product)
    if budget is None:
        budget = max(BUDGET, needed + REFINEMENT if grids else needed)
    _check_whole("budget", budget, 1)
    if budget < needed:
        raise RequestError(
            f"a budget of {budget} does not hold the grid of {largest.slug}, which has {needed} cells"
            f" ({'; '.join(map(str, largest.axes))}); give --budget {needed + REFINEMENT} (two of them"
            " to refine it), or a shorter --grid"
        )
    for candidate in candidates:
        for axis in candidate.axes:
            for value in axis.grid:  # a recipe may refuse a combination of values that it allows one by one
                point = tuple(value if other is axis else other.centre for other in candidate.axes)
                recipe = candidate.recipe.changed(dict(candidate.setting(point)[1]))
                recipe.expect_shared_by(round(study.gpus))
    how = planned or Search()
    if how.stops:
        usual.first_stop()
    return TuningPlan(
        study, listed, candidates, budget, expansions, how.refine, product, how.stops, how.by_mean
    )


def _expect_holdout(study: Study) -> None:
    try:
        expect_splits(study.card(study.source), ("holdout",), "be tuned on")
    except RequestError as error:
        held = f"{study.source}_tuning"
        hint = f". '{held}' is the same with a holdout: --set source={held}" if held in ENTRIES else ""
        raise RequestError(f"{error}{hint}") from None


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
    if not is_whole(value, least):
        raise RequestError(f"--{what} is a whole number, {least} or more, not {value!r}")


def conduct(plan: TuningPlan, runner: Runner, command: str = "") -> tuple[Tuned, ...]:
    """Search all candidates side by side; those with a failed training are left out, and can be continued.

    Nothing is chosen for a candidate if every cell diverged.
    """
    outcomes: dict[Setting, SettingOutcome] = {}
    done: dict[str, Tuned] = {}
    candidates = {candidate.slug: candidate for candidate in plan.candidates}
    searches = {
        slug: search(candidate.axes, plan.budget, plan.expansions, plan.refine, plan.product, plan.by_mean)
        for slug, candidate in candidates.items()
    }
    wanted = {slug: next(rounds) for slug, rounds in searches.items()}
    while wanted:
        asked = [candidates[slug].setting(point) for slug, points in wanted.items() for point in points]
        outcomes.update(runner(list(dict.fromkeys(asked))))
        for slug, points in list(wanted.items()):
            del wanted[slug]
            settings = {point: candidates[slug].setting(point) for point in points}
            if any(setting not in outcomes for setting in settings.values()):
                continue
            answers = {point: accuracies(outcomes[setting].runs) for point, setting in settings.items()}
            try:
                wanted[slug] = searches[slug].send(answers)
            except StopIteration as end:
                tuned = _tuned(candidates[slug], end.value, outcomes, command)
                chance = at_chance(tuned, plan.study.card(plan.study.source))
                late = at_the_end(tuned, candidates[slug].recipe.epochs) if plan.stops else ""
                done[slug] = dataclasses.replace(tuned, at_chance=chance, at_the_end=late)
    return tuple(done[slug] for slug in candidates if slug in done)


def _tuned(
    candidate: Candidate, found: Found, outcomes: Mapping[Setting, SettingOutcome], command: str
) -> Tuned:
    edges = {edge.axis: _edge_text(candidate, edge, found) for edge in found.edges}
    axes = tuple(
        TunedAxis(
            axis.key,
            axis.parameter.symbol or axis.parameter.name,
            axis.start,
            axis.grid,
            axis.from_above,
            edges.get(place, ""),
        )
        for place, axis in enumerate(candidate.axes)
    )
    cells = []
    for point, phase in found.phases.items():
        objective, changes = candidate.setting(point)
        outcome = outcomes[objective, changes]
        cells.append(GridCell(objective, point, changes, phase, outcome.runs, outcome.peak_epoch))
    label = resolve(candidate.start).label
    points = list(found.phases)
    chosen, highest = (
        None if point is None else points.index(point) for point in (found.chosen, found.highest)
    )
    return Tuned(
        candidate.slug, label, candidate.start, axes, tuple(cells), chosen, command, highest, found.margin
    )


def at_chance(tuned: Tuned, described: DatasetCard) -> str:
    """Return a remark if even the best cell is not two standard errors better than guessing, or else ""."""
    chance = 1 / described.classes
    error = math.sqrt(chance * (1 - chance) / described.sizes["holdout"])
    if tuned.top is None or tuned.top.mean > chance + 2 * error:
        return ""
    return (
        f"no cell is better than guessing ({100 * chance:.1f} % of {described.classes} classes, ±"
        f" {100 * error:.1f}), so this choice means nothing; train for longer, or try other values"
    )


def at_the_end(tuned: Tuned, epochs: int) -> str:
    """Return a remark if the chosen cell is best in the last epoch that it was trained for, or else ""."""
    if tuned.best is None or tuned.best.peak_epoch != epochs:
        return ""
    return (
        f"its mean is highest in the last epoch, {epochs}, so it may rise further; a longer training may be"
        " better"
    )


def _edge_text(candidate: Candidate, edge: Edge, found: Found) -> str:
    """Return the sentence about a chosen value that is the outermost of those that were tried."""
    assert found.chosen is not None
    axis = candidate.axes[edge.axis]
    why = {
        "range": f"the range {axis.parameter.interval} holds no further step",
        "inside": "the highest mean lies further in, where the search went on",
        "expansions": "the expansions allowed were used up",
        "budget": "the budget held no further expansion",
    }[edge.reason]
    return (
        f"{axis.key} = {found.chosen[edge.axis]!r} is the {edge.side} value that was tried, so a better one"
        f" may lie beyond; {why}"
    )
