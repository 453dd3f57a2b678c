"""All 42 exhibits of the paper from one run of `full` in small: that they are whole, drawn, and traced."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from penultimate.engine.machine import code_version
from penultimate.paper.studies import full
from penultimate.records.reading import reference_tuning
from penultimate.records.tuning import searches_held
from penultimate.report import StudyResults, exhibit, read_study
from penultimate.report.base import Built
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.page.provenance import provenance
from penultimate.study import Study
from tests.miniature import miniature
from tests.report.test_contract import IN_THE_PAPERS, exhibit_of

pytestmark = pytest.mark.long
FROM_SETTINGS = {"tableA1", "tableA2", "iclr_tableA2"}
"""What a study's settings and the searches behind them make, and no step."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def results(finished_miniature: Path) -> StudyResults:
    return read_study(finished_miniature, "miniature")


@pytest.fixture(scope="module")
def metas(finished_miniature: Path) -> dict[str, dict[str, Any]]:
    """What each step has left beside its results."""
    paths = finished_miniature.glob("steps/*/meta.json")
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


@pytest.fixture(scope="module")
def built(results: StudyResults) -> Callable[[str], Built]:
    """Its exhibits by name, each built once."""
    return functools.cache(lambda name: exhibit(name, results, allow_limited=True))


def test_it_has_every_grid_and_every_measurement_of_the_whole() -> None:
    def grids(study: Study) -> set[tuple[str, str, str]]:
        return {
            (key.arm, key.backbone.partition("(")[0], one.measurement.name)
            for key, requests in study.measured().items()
            for one in requests
        }

    small = miniature()
    assert grids(small) == grids(full.STUDY)
    assert {target.removesuffix("_smoke") for target in small.targets} <= {*full.STUDY.targets}


@pytest.mark.parametrize("name", IN_THE_PAPERS)
def test_an_exhibit_is_whole_and_has_numbers_of_this_run(name: str, built: Callable[[str], Built]) -> None:
    made = built(name)
    assert made.missing == ()
    assert made.wanted
    assert made.limited
    assert made.is_measured
    tables = [table for table in made.tables if table.source == "ours"]
    panels = [panel for figure in made.figures for panel in figure.panels if panel.source == "ours"]
    assert any(cell.value is not None for table in tables for row in table.rows for cell in row.cells) or any(
        panel.points or panel.curves or (panel.raster and not panel.raster.is_scale) for panel in panels
    )


@pytest.mark.parametrize("name", IN_THE_PAPERS)
def test_its_figures_are_drawn(name: str, built: Callable[[str], Built]) -> None:
    made = built(name)
    assert made.figures or made.tables
    for panel in (panel for figure in made.figures for panel in figure.panels):
        shown = {mark.objective for mark in (*panel.points, *panel.curves)}
        shown |= {*panel.raster.row_marks, *panel.raster.column_marks} if panel.raster else set()
        known = marks(sorted(shown - {""}))
        drawn = ElementTree.fromstring(draw_panel(panel, known).styled(panel.name, page=False))
        assert drawn.tag == f"{SVG}svg"
        assert next(drawn.iter(f"{SVG}path"), None) is not None


@pytest.mark.parametrize("name", [name for name in IN_THE_PAPERS if name not in FROM_SETTINGS])
def test_its_numbers_are_traced_to_the_data(
    name: str, results: StudyResults, metas: dict[str, dict[str, Any]]
) -> None:
    """Every row that it shows is of a step of the study, and that of images whose digest is known."""
    made = exhibit_of(name)
    main = results.description["networks"][0]["backbones"][0]
    steps = {str(row.step) for row in results.table if made.shows(row, main)}
    assert steps
    assert steps <= {*results.description["steps"]}
    for step in steps:
        behind = ancestors(step, metas)
        data = [meta for meta in behind if meta["step"] == "data"]
        assert data
        assert all(re.fullmatch("[0-9a-f]{64}", meta["content_digest"]) for meta in data)
        assert {meta["step"] for meta in behind} & {"train", "from_scratch"}
        assert {meta["commit"] for meta in behind} == {code_version()[0]}
        assert all(meta["host"] and meta["device"] and meta["packages"]["torch"] for meta in behind)


def ancestors(step: str, metas: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What a step and all that it depends on have left."""
    found: dict[str, dict[str, Any]] = {}
    left = [step]
    while left:
        each = left.pop()
        if each not in found:
            found[each] = metas[each]
            left += metas[each]["parents"]
    return [*found.values()]


def test_the_searches_behind_it_are_those_of_the_whole(
    results: StudyResults, built: Callable[[str], Built]
) -> None:
    """They come with the package; the tables that hold them name each."""
    assert {name for name in IN_THE_PAPERS if not exhibit_of(name).quantities} == FROM_SETTINGS
    searches = full.STUDY.tuned_by
    assert searches_held(results.description) == tuple(map(reference_tuning, searches))
    for name in FROM_SETTINGS - {"tableA2"}:
        made = built(name)
        words = " ".join([*made.notes, *(note for table in made.tables for note in table.notes)])
        assert all(f"The search {search} chose for " in words for search in searches)


def test_the_page_tells_where_the_run_comes_from(results: StudyResults) -> None:
    told = dict(provenance(results))
    assert told["Command"] == "penultimate run miniature"
    assert told.get("Commit", "") == code_version()[0]
    for label in ("Machines", "Processor", "Device", "Python", "Packages", "Threads per process"):
        assert told[label]
    drawn = {f"{name} (draw {draw})" for name in miniature().targets for draw in (0, 9)}
    digests = dict(told["Data (sha256)"])
    assert drawn <= digests.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests.values())
    for done, _, total in (text.partition(" of ") for _, text in told["Steps done, of how many"]):
        assert done == total
    assert dict(told["Training recipe"])["epochs"] == "1"
