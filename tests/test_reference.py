"""The runs that come with the package: whole, and the choices that the built-in studies are made of."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import ModuleType

import pytest

from penultimate.report import exhibit, read_reference
from penultimate.studies import chosen, chosen_glyphs, glyphs
from penultimate.study import load_study
from penultimate.study.kept import read_kept, references
from penultimate.study.reading import reference_tuning
from penultimate.study.tuning_words import chosen_source


@pytest.mark.parametrize("name", sorted(references()))
def test_a_reference_run_is_whole_and_says_where_it_comes_from(name: str) -> None:
    kept = read_kept(references()[name])
    assert kept.provenance["commit"]
    assert not kept.provenance["dirty"]
    assert kept.provenance["data"]
    assert kept.description["command"].startswith("penultimate ")
    assert len(kept.table) > 0
    assert kept.table.where(status="diverged").values().size == 0


@pytest.mark.parametrize(
    ("search", "choices", "study"),
    [("rehearsal", chosen, "quickstart"), ("glyphs_search", chosen_glyphs, "glyphs")],
)
def test_a_search_chose_what_its_study_uses(search: str, choices: ModuleType, study: str) -> None:
    tuning = reference_tuning(search)
    assert tuning is not None
    assert len(tuning.objectives) == len(choices.NINE) == 9
    assert len({len(one.cells) for one in tuning.objectives if one.axes}) == 1
    assert Path(str(choices.__file__)).read_text() == chosen_source(tuning)
    loaded = load_study(study)
    assert loaded.tuned_by == search
    assert set(loaded.objectives) >= {one.best.objective for one in tuning.objectives if one.best}


def test_the_sweeps_learning_rate_is_the_one_that_was_found() -> None:
    tuning = reference_tuning("glyphs_sweep_search")
    assert tuning is not None
    best = tuning.objectives[0].best
    assert best is not None
    assert best.objective in glyphs.SWEEP
    assert dict(best.settings) == {"learning_rate": glyphs.SWEEP_LEARNING_RATE}


def test_the_search_is_shown_from_the_package() -> None:
    shown = exhibit("tableA1", read_reference("tune-rehearsal"))
    assert len(shown.tables[0].rows) >= 9
    assert shown.figures


def test_without_a_name_the_first_reference_run_is_read() -> None:
    assert read_reference().provenance == read_reference(min(references())).provenance


def test_choices_that_change_the_recipe_can_be_imported(tmp_path: Path) -> None:
    tuning = reference_tuning("glyphs_sweep_search")
    assert tuning is not None
    (tmp_path / "chosen.py").write_text(chosen_source(tuning))
    found = runpy.run_path(str(tmp_path / "chosen.py"))
    swept = "cosine_softmax(scale=0.05, temperature=0.05)"
    assert found["ADJUSTMENTS"] == {swept: {"learning_rate": glyphs.SWEEP_LEARNING_RATE}}
    assert "'" not in next(line for line in chosen_source(tuning).splitlines() if swept + '": {' in line)
