"""A study of two architectures: every exhibit speaks of the first, figure B.1 of the second, and says so."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate import registry
from penultimate.report import exhibit
from penultimate.report.exhibits.base import StudyResults
from penultimate.report.regime import features
from penultimate.table import Row, Table
from tests.report.test_layer_exhibits import measured
from tests.report.test_prediction_exhibits import predictions_rows
from tests.report.test_robustness_exhibit import robustness_rows

FIRST, SECOND = "glyphnet", "glyphplain"


def of_second(rows: list[Row]) -> list[Row]:
    """The same rows of the other architecture, with other values."""
    return [
        dataclasses.replace(row, backbone=SECOND, value=0.5 * row.value, step=f"{row.step}-plain")
        for row in rows
        if row.metric != "layer_cka"
    ]


@pytest.fixture(scope="module")
def one() -> StudyResults:
    made = measured((0, 1), backbones=(FIRST,))
    return dataclasses.replace(
        made, table=Table([*made.table, *predictions_rows((0, 1)), *robustness_rows((0, 1))])
    )


@pytest.fixture(scope="module")
def two(one: StudyResults) -> StudyResults:
    maps = Row(
        step=f"similarity.{SECOND}",
        backbone=SECOND,
        source="glyphs",
        target="glyphs",
        split="test",
        metric="layer_cka",
        value=9.0,
        unit="points",
    )
    # The second's rows first: what is shown may not hang on the order.
    return dataclasses.replace(
        one,
        table=Table([*of_second(list(one.table)), maps, *one.table]),
        description={**one.description, "backbones": [FIRST, SECOND]},
    )


@pytest.mark.parametrize("name", [name for name in registry.names("exhibit") if name != "figureB1"])
def test_networks_of_two_architectures_are_never_mixed(
    one: StudyResults, two: StudyResults, name: str
) -> None:
    alone, both = exhibit(name, one), exhibit(name, two)
    assert (both.tables, both.figures, both.caption) == (alone.tables, alone.figures, alone.caption)
    others = [note for note in both.notes if note not in alone.notes]
    assert all(f"{FIRST}, is shown; also measured: {SECOND} (Figure B.1)" in note for note in others)


def test_the_first_architecture_is_named_beside_its_numbers(two: StudyResults) -> None:
    for name in ("table1", "figure2", "figure5", "table3", "figureC5"):
        assert any(
            f"Only the first architecture, {FIRST}, is shown" in note for note in exhibit(name, two).notes
        )


def test_an_architecture_that_is_there_for_figure_b1_is_named_once_on_the_page(two: StudyResults) -> None:
    aside = dataclasses.replace(
        two, description={**two.description, "objectives_of": {SECOND: ["softmax", "sigmoid"]}}
    )
    for name in ("table1", "figure2", "figure5"):
        assert not any("architecture" in note for note in exhibit(name, aside).notes)
    assert f"The architecture here is {SECOND}" in " ".join(exhibit("figureB1", aside).notes)


def test_figure_b1_says_whose_layers_it_shows(two: StudyResults) -> None:
    made = exhibit("figureB1", two)
    assert made.figures
    assert made.caption.startswith(f"The architecture: {SECOND}.")
    assert f"The architecture here is {SECOND}; all other exhibits show {FIRST}." in made.notes
    assert not any("Only the first architecture" in note for note in made.notes)


def test_figure_b1_of_two_architectures_not_compared_yet_asks_for_the_study_itself(
    one: StudyResults,
) -> None:
    begun = dataclasses.replace(one, description={**one.description, "backbones": [FIRST, SECOND]})
    assert "not measured: run `penultimate run quickstart`" in exhibit("figureB1", begun).notes[0]


def test_the_second_architecture_does_not_stand_in_for_the_first(one: StudyResults) -> None:
    begun = dataclasses.replace(
        one,
        table=Table(of_second(list(one.table))),
        description={**one.description, "backbones": [FIRST, SECOND]},
    )
    for name in ("table1", "table3", "figure2", "figureD3", "figureC5", "tableC2", "tableC3", "figure4"):
        made = exhibit(name, begun)
        ours = [table for table in made.tables if "published" not in table.name]
        assert not any(
            cell.value is not None
            for table in ours
            for row in table.rows
            for cell in row.cells
            if row.objective and "paper" not in table.title.lower()
        ), name


def test_a_run_of_the_second_architecture_that_diverged_is_told_apart(two: StudyResults) -> None:
    step = "train.sigmoid-s0.00ff"
    provenance = {"diverged": {step: "NaN"}, "diverged_runs": {step: ["sigmoid", 0, SECOND]}}
    (said,) = [
        note
        for note in exhibit("table1", dataclasses.replace(two, provenance=provenance)).notes
        if "Diverged" in note
    ]
    assert f"Sigmoid, seed 0 with {SECOND} (NaN)" in said
    gone = Row(
        step=step, objective="sigmoid", backbone=SECOND, seed=0, epoch=2, metric="top1", value=0.1,
        status="diverged",
    )  # fmt: skip
    mixed = dataclasses.replace(two, table=Table([*two.table, gone]))
    (said,) = [note for note in exhibit("table1", mixed).notes if "Diverged" in note]
    assert f"Sigmoid, seed 0 with {SECOND} after epoch 2" in said
    claims = exhibit("claims", mixed)
    assert claims.tables == exhibit("claims", two).tables


def test_the_width_of_features_is_the_first_architectures() -> None:
    assert features({"backbones": ["glyphplain", "glyphnet(features=32)"]}) == 256
    assert features({"backbones": ["unknown", "glyphnet"]}) is None
