"""A study of two architectures: every exhibit speaks of the first, figure B.1 of the second, and says so."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate import registry
from penultimate.records.table import Row, Table
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import Measurements, admit
from penultimate.report.spec import assemble
from tests.report.reading import described, glyphs, with_rows, without_second
from tests.report.test_contract import exhibit_of

FIRST, SECOND = "glyphnet", "another"


def of_second(results: StudyResults) -> list[Row]:
    """The same rows of another architecture, with other values and no arrays."""
    return [
        dataclasses.replace(row, backbone=SECOND, value=0.5 * row.value, step=None)
        for row in results.table
        if row.metric != "layer_cka" and row.backbone is not None
    ]


def with_second(results: StudyResults) -> StudyResults:
    """The study as if all of its main grid had been trained with another architecture too."""
    first, *others = results.description["networks"]
    return described(results, networks=[{**first, "backbones": [FIRST, SECOND]}, *others])


@pytest.fixture(scope="module")
def one() -> StudyResults:
    return without_second(glyphs())


@pytest.fixture(scope="module")
def two(one: StudyResults) -> StudyResults:
    # The second's rows first: what is shown may not hang on the order.
    return dataclasses.replace(with_second(one), table=Table([*of_second(one), *one.table]))


@pytest.fixture(scope="module")
def both(one: StudyResults, two: StudyResults) -> tuple[Measurements, Measurements]:
    return admit(one), admit(two)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [name for name in registry.names("exhibit") if name != "claims" and not exhibit_of(name).of_another],
)
def test_networks_of_two_architectures_are_never_mixed(
    name: str, both: tuple[Measurements, Measurements]
) -> None:
    data = registry.entry("exhibit", name).resolve()
    alone, beside = (assemble(data, measurements) for measurements in both)
    assert (beside.tables, beside.figures, beside.caption) == (alone.tables, alone.figures, alone.caption)
    others = [note for note in beside.notes if note not in alone.notes]
    assert others == [
        f"Only the first architecture, {FIRST}, is shown; also measured: {SECOND} (Table B.1, Figure B.1)."
    ]


@pytest.mark.long
def test_only_claims_of_a_second_architecture_look_at_it(both: tuple[Measurements, Measurements]) -> None:
    data = registry.entry("exhibit", "claims").resolve()
    alone, beside = ({row.label: row for row in assemble(data, one).tables[0].rows} for one in both)
    further = {label for label in beside if "second architecture" in label}
    assert further - set(alone)
    assert {label: row for label, row in beside.items() if label not in further} == {
        label: row for label, row in alone.items() if label not in further
    }


def test_an_architecture_that_is_there_for_figure_b1_goes_without_saying() -> None:
    """The second one of the reference run has four of the nine objectives."""
    for name in ("table1", "figure2", "figure5"):
        assert not any("architecture" in note for note in exhibit(name, glyphs()).notes)
    assert "The architecture here is glyphplain" in " ".join(exhibit("figureB1", glyphs()).notes)


def test_figure_b1_says_whose_layers_it_shows() -> None:
    built = exhibit("figureB1", glyphs())
    assert built.figures
    assert built.caption.startswith("The architecture: glyphplain.")
    assert f"The architecture here is glyphplain; all other exhibits show {FIRST}." in built.notes
    assert not any("Only the first architecture" in note for note in built.notes)


def test_figure_b1_of_two_architectures_not_compared_yet_asks_for_the_study_itself(one: StudyResults) -> None:
    (gap,) = exhibit("figureB1", with_second(one)).missing
    assert gap.command == "penultimate run glyphs"


def test_the_second_architecture_does_not_stand_in_for_the_first(one: StudyResults) -> None:
    begun = dataclasses.replace(with_second(one), table=Table(of_second(one)))
    measurements = admit(begun)
    assert measurements.backbone == FIRST
    for name in (
        "table1",
        "table3",
        "table4",
        "figure2",
        "figureD3",
        "figureC5",
        "tableC2",
        "tableC3",
        "figure4",
    ):
        built = assemble(registry.entry("exhibit", name).resolve(), measurements)
        assert {table.source for table in built.tables} <= {"published"}, name
        assert {panel.source for figure in built.figures for panel in figure.panels} <= {"published"}, name


def test_a_run_of_the_second_architecture_that_diverged_is_told_apart(two: StudyResults) -> None:
    step = "train.sigmoid-s0.00ff"
    network = {"objective": "sigmoid", "backbone": SECOND, "arm": "", "seed": 0, "draw": 0}
    provenance = {"diverged": {step: "NaN"}, "diverged_networks": {step: [network]}}
    told = exhibit("table1", dataclasses.replace(two, provenance=provenance)).notes
    (said,) = [note for note in told if "Diverged" in note]
    assert f"Sigmoid, seed 0 with {SECOND} (NaN)" in said
    gone = Row(
        step=step, objective="sigmoid", backbone=SECOND, seed=0, epoch=2, metric="top1", value=0.1,
        status="diverged",
    )  # fmt: skip
    mixed = with_rows(two, [gone])
    (said,) = [note for note in exhibit("table1", mixed).notes if "Diverged" in note]
    assert f"Sigmoid, seed 0 with {SECOND} after epoch 2" in said
    assert exhibit("table1", mixed).tables == exhibit("table1", two).tables


@pytest.mark.parametrize(
    ("backbone", "schedule", "shown"),
    [("inception_v3", "exponential", ("tableB1", "figureB1")), ("allcnnc", "cosine", ("iclr_table1",))],
)
def test_a_further_architecture_of_a_paper_is_shown_as_such_where_it_is_alone(
    one: StudyResults, backbone: str, schedule: str, shown: tuple[str, ...]
) -> None:
    rows = Table(dataclasses.replace(row, backbone=row.backbone and backbone) for row in one.table)
    changes = {"schedule": schedule, "averaging_window": 0.0}
    grids = [
        {**grid, "backbones": [backbone], "recipe": {**grid["recipe"], **changes}}
        for grid in one.description["networks"]
    ]
    alone = dataclasses.replace(described(one, networks=grids), table=rows)
    for name in shown:
        assert not exhibit(name, one).is_measured
        built = exhibit(name, alone)
        assert built.is_measured
        assert built.missing == ()
        assert "All other" not in built.caption
        assert not any("all other exhibits show" in note for note in built.notes)
