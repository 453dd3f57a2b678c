"""Tables A.1: what was searched, tried and chosen, as the record of a search has it, beside the paper's."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from penultimate.paper import published
from penultimate.records.reading import reference_tuning
from penultimate.records.tuning import Tuning, from_json
from penultimate.report import StudyResults, exhibit
from tests.report.planted import NINE
from tests.report.reading import column_of, described, glyphs, table_of
from tests.report.synthetic import study

TUNING: dict[str, Any] = glyphs().description["tuning"]
"""The search behind the reference run, as it was kept."""
BOTH = pytest.mark.parametrize("name", ["tableA1", "iclr_tableA2"])


@pytest.fixture(scope="module")
def tuning() -> Tuning:
    return from_json(TUNING)


def texts(results: StudyResults, name: str, table: str, key: str) -> list[str]:
    shown = table_of(exhibit(name, results), table)
    place = [column.key for column in shown.columns].index(key)
    return [row.cells[place].text for row in shown.rows]


def test_table_a1_holds_every_choice(tuning: Tuning) -> None:
    expected = [
        (one.slug, f"{one.best.values[place]:.6g}", f"{100 * one.best.mean:.2f}")
        for one in tuning.objectives
        for place in range(len(one.axes))
        if one.best
    ]
    table = table_of(exhibit("tableA1", glyphs()), "tableA1")
    keys = [column.key for column in table.columns]
    shown = [
        (row.objective, *(row.cells[keys.index(key)] for key in ("chosen_value", "holdout_top1_percent")))
        for row in table.rows
    ]
    searched = [
        (slug, chosen.text, f"{accuracy.value:.2f}") for slug, chosen, accuracy in shown if chosen.text != "–"
    ]
    assert searched == expected
    assert [row.objective for row in table.rows if row.cells[0].text == "none"] == ["softmax", "sigmoid"]
    assert {cell.value for cell in column_of(table, "epochs").values()} == {28}


def test_table_a1_prints_the_papers_choices() -> None:
    printed = published.printed("neurips_tableA1_hyperparameters")
    for key in ("chosen_value", "epochs"):
        assert texts(glyphs(), "tableA1", "tableA1_published", key) == [row[key] or "–" for row in printed]


def test_the_figure_holds_every_cell_that_did_not_diverge(tuning: Tuning) -> None:
    (figure,) = exhibit("tableA1", glyphs()).figures
    drawn = [
        (one, place)
        for one in tuning.objectives
        for place in range(len(one.axes))
        if len(one.tried(place)) > 1
    ]
    assert drawn
    assert len(figure.panels) == len(drawn)
    for panel, (one, place) in zip(figure.panels, drawn, strict=True):
        assert [point.y for point in panel.points] == pytest.approx([100 * cell.mean for cell in one.cells])
        (chosen,) = [point for point in panel.points if not point.faint]
        assert one.best is not None
        value = one.best.values[place]
        assert chosen.x == pytest.approx(math.log10(1 - value if one.slug == "dropout" else value))


def test_what_the_search_found_and_this_study_does_not_follow_is_said(tuning: Tuning) -> None:
    assert not any("Not searched" in note for note in exhibit("tableA1", glyphs()).notes)
    first = tuning.objectives[0]
    fewer = dataclasses.asdict(dataclasses.replace(tuning, objectives=tuning.objectives[1:]))
    (said,) = [
        note for note in exhibit("tableA1", described(glyphs(), tuning=fewer)).notes if "Not searched" in note
    ]
    assert said == f"Not searched, and used as they are: {first.slug}."
    other = described(study(), tuning=TUNING)
    notes = exhibit("tableA1", other).notes
    assert "This study uses logit_penalty(beta=0.003); the search chose logit_penalty(beta=0.001)." in notes
    assert any("epochs = 28 (here 20)" in note for note in notes)


def test_a_search_older_than_a_setting_had_its_default() -> None:
    """The kept search knows neither AutoAugment nor Mixup: a study without them has its recipe."""
    main, *others = glyphs().description["networks"]
    recipe = main["recipe"]
    assert "mixup" not in TUNING["recipe"]["augmentation"]
    for mixup, said in (
        (0.0, []),
        (0.2, ["The search was made with another recipe: mixup = 0 (here 0.2)."]),
    ):
        later = {**recipe, "augmentation": {**recipe["augmentation"], "autoaugment": False, "mixup": mixup}}
        results = described(glyphs(), name="other", networks=[{**main, "recipe": later}, *others])
        notes = exhibit("tableA1", results).notes
        assert [note for note in notes if "another recipe" in note] == said


def test_iclr_table_a2_holds_the_rates_and_decays_that_were_chosen(tuning: Tuning) -> None:
    ours, *papers = exhibit("iclr_tableA2", glyphs()).tables
    assert [paper.source for paper in papers] == ["published", "published"]
    assert [row.objective for row in ours.rows] == list(NINE)
    rate, decay = tuning.recipe["learning_rate"], tuning.recipe["weight_decay"]
    for slug, cell in column_of(ours, "lr_times_weight_decay").items():
        assert cell.value == pytest.approx(rate * decay), slug
    rows = published.printed("iclr_tableA2_cifar_hyperparameters")
    place = [column.key for column in papers[0].columns].index("learning_rate")
    assert [row.cells[place].text for paper in papers for row in paper.rows] == [
        f"{float(row['learning_rate']):.3g}" for row in rows
    ]


MATCHED = ("matched_search", "matched_search_scaled", "matched_sweep_search")


def tuned_by(*names: str, made: int | None = None, **changes: Any) -> StudyResults:
    """The reference run as if some searches were behind it, of which the first `made` are there."""
    found = [reference_tuning(name) for name in names[:made]]
    held = [dataclasses.asdict(search) for search in found if search]
    return described(glyphs(), tuned_by=list(names), tuning=held, **changes)


@BOTH
def test_two_searches_are_one_table_of_nine_objectives(name: str) -> None:
    table = exhibit(name, tuned_by(*MATCHED[:2])).tables[0]
    assert [*dict.fromkeys(row.objective for row in table.rows)] == list(NINE)
    cells = {slug: cell.text for slug, cell in column_of(table, "cells").items()}
    assert (cells["softmax"], cells["dropout"]) == ("1", "7")
    assert (cells["cosine_softmax"], cells["squared_error"]) == ("8", "10")
    assert "Glyphs (for tuning)" in table.title


@BOTH
def test_of_several_searches_it_is_said_which_chose_what(name: str) -> None:
    built = exhibit(name, tuned_by(*MATCHED[:2]))
    said = [note for note in (*built.tables[0].notes, *built.notes) if " chose for " in note]
    assert said[0].startswith("The search matched_search chose for Softmax, Label smoothing, Sigmoid, ")
    assert said[1:] == [
        "The search matched_search_scaled chose for Cosine softmax and Squared error. It had 8 to 10"
        " cells an objective, each trained with seeds 100, 101, 102."
    ]
    assert built.missing == ()


def test_with_several_searches_no_objective_is_called_unsearched() -> None:
    built = exhibit("tableA1", tuned_by(*MATCHED[:2]))
    assert not any("Not searched" in note for note in built.notes)
    (recipe,) = [note for note in built.notes if "another recipe" in note]
    assert recipe.startswith(
        "The searches matched_search and matched_search_scaled were made with another recipe: "
    )
    assert "epochs = 44 (here 28)" in recipe
    (scaled,) = [note for note in exhibit("tableA1", tuned_by(*MATCHED[:1])).notes if "Not searched" in note]
    assert scaled.count("(") == 2  # those of the other search


@BOTH
def test_an_objective_of_two_searches_is_told_apart_by_their_names(name: str) -> None:
    built = exhibit(name, tuned_by(*MATCHED))
    labels = dict.fromkeys(row.label for row in built.tables[0].rows if row.objective == "cosine_softmax")
    assert [*labels] == [f"Cosine softmax ({search})" for search in MATCHED[1:]]
    if name == "iclr_tableA2":
        assert [cell.value for cell in built.tables[0].rows[-1].cells[:1]] == [2.4]
        assert "nine objectives with learning rates of 0.6 to 2.4" in built.finding


def test_a_rate_that_the_study_does_not_train_with_is_said() -> None:
    spec = "cosine_softmax(scale=0.05, temperature=0.05)"
    said = f"This study trains {spec} with learning_rate = 1.7; the search chose 2.4."
    assert said in exhibit("tableA1", tuned_by(*MATCHED)).notes
    blocks = glyphs().description["networks"]
    follows = [{**of, "recipe": {**of["recipe"], "learning_rate": 2.4}} for of in blocks]
    notes = exhibit("tableA1", tuned_by(*MATCHED, networks=follows)).notes
    assert not any("This study trains" in note for note in notes)


@BOTH
def test_a_search_that_is_named_and_not_there_is_missing(name: str) -> None:
    (gap,) = exhibit(name, tuned_by(*MATCHED, made=2)).missing
    assert str(gap) == (
        "The search matched_sweep_search: not measured: run"
        " `penultimate tune all --study matched_sweep_search`"
    )


@BOTH
def test_a_run_that_was_kept_with_one_search_shows_it_as_one_of_a_list(name: str) -> None:
    once = described(glyphs(), tuned_by="glyphs_search", tuning=TUNING)
    now = described(glyphs(), tuned_by=["glyphs_search"], tuning=[TUNING])
    assert exhibit(name, once) == exhibit(name, now)


@BOTH
def test_without_a_search_the_values_in_use_stand_there_and_it_is_said(name: str) -> None:
    """Those of every arm, each with the recipe that it was trained with."""
    kept = {key: value for key, value in glyphs().description.items() if key != "tuning"}
    built = exhibit(name, dataclasses.replace(glyphs(), description=kept))
    (gap,) = built.missing
    assert str(gap) == (
        "The search for hyperparameters: not measured: run `penultimate tune all --study glyphs`"
    )
    ours = built.tables[0]
    assert ours.title.startswith("The values that this study uses")
    assert built.figures == ()
    sweep = [row for row in ours.rows if "τ = 0.08" in row.label]
    assert sweep
    if name == "iclr_tableA2":
        assert [row.cells[0].value for row in sweep] == [1.7]
        assert column_of(ours, "learning_rate")["softmax"].value == 0.6
