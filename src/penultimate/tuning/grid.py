"""A search for hyperparameters as an ordinary study: one network for each cell of a grid and each seed.

A cell is a `train` step of the ordinary graph, the one that a study with this objective, recipe and seed
would have, so that cells are cached, resumed and shared like any other step. Nothing but the holdout of the
source is measured, and every objective is searched in the same way.
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Mapping, Sequence

from penultimate import registry
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.records.tuning import GridCell, Number, Tuned, Tuning, folder_name
from penultimate.specs import parse_sum
from penultimate.study.blocks import Runs, Search
from penultimate.study.selection import AND, OWN_RECIPE
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import (
    RECIPE,
    Axes,
    Grids,
    axes_of,
    check_names,
    kind_of,
    recipe_at,
    settings_of,
    with_values,
)

ALL = "all"


def search_study(
    study: Study,
    objectives: Sequence[str] = (ALL,),
    grids: Grids | None = None,
    product: bool = False,
    rungs: int | None = None,
) -> Study:
    """Return the study that searches for the hyperparameters of some objectives of a study, or of all.

    `objectives` are names of the study's objectives (the study then gives the starting values), presets or
    spec strings; "all" stands for all of the study, of a sweep for the first. Each axis is varied around the
    start while the others stay there; a `product` tries every combination. `grids` take the place of those of
    the study's `search`, and both that of default grids (of `rungs` values). Raises RequestError for a source
    without a holdout, an unknown name, and a grid that belongs to no objective or holds a value out of range.

    >>> from penultimate.study import load_study
    >>> search = search_study(load_study("nine"), ["dropout"], {"keep": (0.5, 0.9)})
    >>> search.name, search.objectives, search.targets
    ('tune-nine', ('dropout(keep=0.9)', 'dropout(keep=0.5)'), ())
    """
    _expect_holdout(study)
    how, given = study.search or Search(), grids or {}
    firsts: dict[tuple[str, ...], str] = {}
    for text in study.objectives:
        firsts.setdefault(kind_of(text), text)
    listed = tuple(firsts.values())
    starts = (
        listed if list(objectives) == [ALL] else tuple(_start(study, name, firsts) for name in objectives)
    )
    if len(set(map(kind_of, starts))) < len(starts):
        raise RequestError("an objective is named twice; name each once")
    check_names(listed, how.grids)
    check_names(starts, given)
    declared = {
        name: of for name, of in how.grids.items() if not any(name.endswith(f".{new}") for new in given)
    }
    usual = study.main.recipe
    if how.stops:
        usual.first_stop()
    adjusted = {text: block.recipe for block in reversed(study.runs) for text in block.objectives}
    blocks: dict[tuple[str, Recipe], list[str]] = {}
    searched = []
    for start in starts:
        recipe = adjusted.get(start, usual)
        axes = axes_of(start, recipe, {**declared, **given}, rungs)
        cells = _cells(start, axes, usual, recipe, product or how.product)
        for cell in cells:
            blocks.setdefault((cell.arm, usual.changed(dict(cell.settings))), []).append(cell.objective)
        whole = resolve(start)
        slug = whole.preset or " + ".join(kind_of(start))
        searched.append(Tuned(slug, whole.label, start, tuple(axes.values()), cells))
    plan = Tuning(
        study.name,
        study.source,
        study.main.backbones[0],
        study.main.seeds,
        dataclasses.asdict(usual),
        study.limited,
        listed,
        tuple(searched),
        product or how.product,
        how.stops,
        how.by_mean,
    )
    networks = tuple(
        Runs(tuple(texts), recipe, study.main.backbones[:1], study.main.seeds, study.main.draws, arm)
        for (arm, recipe), texts in blocks.items()
    )
    return Study(
        folder_name(study.name),
        f"The search for the hyperparameters of study {study.name}",
        "Which hyperparameters of each objective reach the highest accuracy on the holdout?",
        study.source,
        (),
        networks,
        measure=(),
        threads=study.threads,
        gpus=study.gpus,
        limited=study.limited,
        tunes=plan,
        expected_seconds=study.expected_seconds,
        data={name: where for name, where in study.data.items() if name == study.source},
        reading={name: how for name, how in study.reading.items() if name == study.source},
    )


def _expect_holdout(study: Study) -> None:
    if "holdout" not in study.card(study.source).sizes:
        held = f"{study.source}_tuning"
        hint = f"; '{held}' is the same with a holdout: --set source={held}" if held in ENTRIES else ""
        raise RequestError(f"'{study.source}' cannot be tuned on: it has no split holdout{hint}")


def _start(study: Study, name: str, firsts: Mapping[tuple[str, ...], str]) -> str:
    by_slug = {slug: text for text, slug in study.slugs().items()}
    if name in by_slug:
        return by_slug[name]
    canonical = resolve(name).canonical
    bare = not any(term.arguments for term in parse_sum(name))
    return firsts.get(kind_of(canonical), canonical) if bare else canonical


def _cells(start: str, axes: Axes, usual: Recipe, adjusted: Recipe, product: bool) -> tuple[GridCell, ...]:
    """Return the cells of an objective: the central one first, then those around it, or all combinations.

    A cell with other settings of the recipe than the central one has an arm that is named by them.
    """
    centre = tuple(axis.centre for axis in axes.values())
    points = [centre]
    if product:
        points += itertools.product(*(axis.grid for axis in axes.values()))
    else:
        for place, axis in enumerate(axes.values()):
            points += ((*centre[:place], value, *centre[place + 1 :]) for value in axis.grid)
    cells = []
    for point in dict.fromkeys(points):
        changed = [
            f"{name} {value!r}"
            for (owner, name), value, usually in zip(axes, point, centre, strict=True)
            if owner == RECIPE and value != usually
        ]
        settings = settings_of(usual, recipe_at(adjusted, axes, point))
        cells.append(GridCell(with_values(start, axes, point), point, settings, arm="; ".join(changed)))
    return tuple(cells)


# -- what was chosen ----------------------------------------------------------------------------------------


def recipe_changes(tuning: Tuning, cell: GridCell) -> dict[str, Number]:
    """Return what a cell changes in the recipe of its search, the epoch at which it is to stop among it."""
    changes = dict(cell.settings)
    if tuning.stops and cell.peak_epoch is not None:
        changes |= tuning.recipe_of(cell).stopped_after(cell.peak_epoch)
    return changes


def run_command(tuning: Tuning, study: Study, name: str, options: Sequence[str] = ()) -> str:
    """Return the command that trains what a search chose, or "" if nothing was chosen.

    A declared search has no transfer tasks; then the command runs the first study that is tuned by it. `name`
    is the study as it was typed, and `options` are those that its run shares with the search.
    """
    chosen = [tuned.best for tuned in tuning.objectives if tuned.best]
    if not chosen:
        return ""
    if not study.targets:
        studies = (registry.entry("study", one).resolve() for one in registry.names("study"))
        study = next((one for one in studies if study.name in one.tuned_by), study)
        name = study.name if study.targets else name
    recipes = {text: block.recipe for block in reversed(study.runs) for text in block.objectives}
    additions = []
    for cell in chosen:
        changes = recipe_changes(tuning, cell)
        if recipes.get(cell.objective) != study.main.recipe.changed(changes):
            own = AND.join(f"recipe.{key}={value!r}" for key, value in changes.items())
            additions += ["--add", f"{cell.objective}{OWN_RECIPE if own else ''}{own}"]
    return shlex.join(["penultimate", "run", name, *options, *additions])
