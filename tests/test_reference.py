"""The runs that come with the package: whole, and the choices that the built-in studies are made of."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from penultimate.paper.studies import searches, world
from penultimate.records.archive import network_of, read_kept, reference
from penultimate.records.reading import reference_tuning
from penultimate.records.references import references
from penultimate.records.table import COLUMNS
from penultimate.registry import names
from penultimate.results.exhibit import number_of, show
from penultimate.results.rows import read_reference
from penultimate.study import load_study
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import kind_of
from penultimate.tuning.grid import search_study

SEARCHES = ("matched_search", "matched_search_scaled", "matched_sweep_search")
GLYPHS = 9 * 9 + 9 * 5 + 4 * 2 + 8 * 3
OTHERWISE, BACKBONES = 4 * 3 + 4 * 3 + 4 + 2 + 7 * 3, 4 * 1 + 5 * 3 + 2 * 9 * 3
FULL = 9 * 2 + (4 + 4 + 4 + 2 + 7) + 8 + (9 + 1) + 2 * 9
RUNS = {
    "glyphs": GLYPHS,
    "evidence": GLYPHS + OTHERWISE + BACKBONES,
    "full": FULL,
    "shared_classes": 9 * 3,
    "sweep": (9 + 5 * 5 + 3 * 4 + 8 + 3 * 4 + 4 * 2) * 5,
    "head_decay": 9 * 5,
    "class_counts": 3 * 4 * 3,
    "better_search": 8 * 2,
    "better": 2 * 8,
}
"""The runs that are kept, and how many networks each has."""
WITHOUT_ROWS = {"data", "sheet", "extract", "corrupted", "hard"}
WITHOUT_ROWS |= {f"{kind}_{part}" for kind in ("fine_tune", "scratch") for part in ("cell", "choice")}
NETWORK = ("objective", "backbone", "arm", "seed", "draw")

place_of = operator.attrgetter(*(name for name in COLUMNS if name not in ("step", "value")))


def test_the_reference_runs_are_glyphs_what_rests_on_it_the_further_studies_and_the_searches() -> None:
    assert set(references()) == {*RUNS, *(f"tune-{name}" for name in SEARCHES)}


@pytest.mark.parametrize("name", sorted(references()))
def test_a_reference_run_is_whole_and_says_where_it_comes_from(name: str) -> None:
    kept = read_kept(references()[name])
    assert kept.provenance["commit"]
    assert not kept.provenance["dirty"]
    assert kept.provenance["data"]
    assert kept.provenance["measured"] >= "2026-11-22"
    assert kept.description["command"].startswith("penultimate ")
    assert len(kept.table) > 0
    assert kept.table.where(status="diverged").values().size == 0
    source = "glyphs_tuning" if name.removeprefix("tune-") in SEARCHES else "glyphs"
    assert {row.source for row in kept.table} == {source}
    assert {row.step.partition(".")[0] for row in kept.table if row.step} == {
        name for name, (done, _) in kept.provenance["steps"].items() if done
    } - WITHOUT_ROWS


def recipe_of(held: dict[str, Any]) -> Recipe:
    """A kept recipe without settings that recipes had when it was kept."""
    return Recipe(**{name: held[name] for name in vars(Recipe()) if name in held})


def pinned(name: str) -> Study:
    """The study that a reference run was made of, whatever the study of its name asks for today."""
    described = reference(name).description
    grids = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in block.items()}
        for block in described["networks"]
    ]
    return Study(
        **{key: described[key] for key in ("name", "title", "question", "source")},
        targets=tuple(described["targets"]),
        networks=tuple(Runs(**{**grid, "recipe": recipe_of(grid["recipe"])}) for grid in grids),
        measure=tuple(described["measure"]),
    )


@pytest.mark.parametrize(("name", "count"), RUNS.items())
def test_a_reference_run_has_what_its_description_asks_of_every_network_and_of_no_other(
    name: str, count: int
) -> None:
    table, study = reference(name).table, pinned(name)
    assert {network_of(row) for row in table.where(metric="top1", split="holdout")} == set(study.keys())
    assert len(study.keys()) == count
    graph = unfold(study)
    undefined = reference(name).provenance["undefined"]  # of features that collapsed, and said so
    asked = {
        (step.name, *map({**step.columns, "arm": arm or None}.get, NETWORK))
        for step_id, step in graph.steps.items()
        if step.name not in WITHOUT_ROWS and step.columns.get("objective") and step_id not in undefined
        for arm in graph.arms[step_id]
    }
    found = {
        (str(row.step).partition(".")[0], *(getattr(row, column) for column in NETWORK))
        for row in table
        if row.objective and row.objective_b is None
    }
    compared = {place for place in found if place[0] == "similarity"}  # beside the step of all networks
    assert found - compared == asked


@pytest.mark.parametrize("name", RUNS)
def test_what_todays_study_has_in_common_with_its_reference_run_are_the_same_steps(name: str) -> None:
    """A kept number stands for what the study asks for today, which may be more, but not otherwise."""
    then, now = (
        {
            (step.name, *map(step.columns.get, (*NETWORK, "target"))): step_id
            for step_id, step in unfold(study).steps.items()
            if step.name not in WITHOUT_ROWS and step.columns.get("seed") is not None
        }
        for study in (pinned(name), load_study(name))
    )
    common = then.keys() & now.keys()
    assert len(common) > 100
    assert {place: then[place] for place in common} == {place: now[place] for place in common}


def chosen(search: str) -> dict[str, dict[str, int | float]]:
    """Return what a kept search chose: {objective: its changes of the recipe}."""
    tuning = reference_tuning(search)
    assert tuning is not None
    return {one.best.objective: dict(one.best.settings) for one in tuning.objectives if one.best}


def test_the_studies_use_what_the_searches_chose() -> None:
    first, scaled, swept = map(chosen, SEARCHES)
    assert (*first, *scaled) == searches.CHOSEN
    assert len({*map(kind_of, searches.CHOSEN)}) == 9
    changed = {text: change for text, change in {**first, **scaled}.items() if change}
    assert {text: change for text, change in changed.items() if change["learning_rate"] != 1.2} == (
        searches.CHANGES
    )
    ((objective, change),) = swept.items()
    assert objective in world.TEMPERATURES
    assert change == {"learning_rate": searches.SWEEP_LEARNING_RATE}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_search_of_a_study_is_the_one_that_was_made(name: str) -> None:
    tuning = reference_tuning(name)
    assert tuning is not None
    search = search_study(load_study(name))
    assert search.tunes is not None
    for one, made in zip(search.tunes.objectives, tuning.objectives, strict=True):
        assert one.slug == made.slug
        assert [axis.grid for axis in one.axes] == [made.tried(place) for place in range(len(made.axes))]
        planned = {(cell.objective, cell.settings) for cell in one.cells}
        assert {(cell.objective, tuple(map(tuple, cell.settings))) for cell in made.cells} <= planned
    assert (search.main.seeds, search.source) == (tuning.seeds, tuning.source)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_shown_from_the_package(name: str) -> None:
    tuning = reference_tuning(name)
    assert tuning is not None
    for table in ("tableA1", "iclr_tableA2"):
        shown = show(table, read_reference(f"tune-{name}"))
        assert {*shown.tables[0].slugs} == {one.slug for one in tuning.objectives}
    assert show("tableA1", read_reference(f"tune-{name}")).figures


@pytest.mark.long
@pytest.mark.parametrize("name", ["evidence", "full"])
def test_the_whole_reference_runs_lack_nothing_of_any_exhibit_of_the_paper(name: str) -> None:
    whole = read_reference(name)
    of_the_paper = [each for each in names("exhibit") if number_of(each) != each]
    assert len(of_the_paper) > 30
    lacking = [each for each in of_the_paper if "ot measured: `" in " ".join(show(each, whole).notes)]
    assert lacking == []


def test_the_whole_reference_run_has_the_numbers_of_glyphs() -> None:
    part, whole = (
        {(str(row.step).partition(".")[0], *place_of(row)): row.value for row in reference(name).table}
        for name in ("glyphs", "evidence")
    )
    assert len(part) > 10_000
    assert part.items() <= whole.items()
