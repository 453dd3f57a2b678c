"""The exhibit of layers that are thrown away: its table, verdicts and figure, and what it says is missing."""

from __future__ import annotations

import dataclasses
import functools
from itertools import product

import numpy as np
import pytest
from scipy import stats

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.projectors import DEPTHS, OBJECTIVES, PROJECTOR_CLAIMS, behind
from penultimate.records.table import Table
from penultimate.report import exhibit, render_exhibit_text
from penultimate.report.base import Built, Cell
from penultimate.study import load_study
from tests.report.reading import glyphs
from tests.report.test_projector_claims import (
    SEEDS,
    Truth,
    by_seed,
    judged,
    planted_projectors,
    transfer,
)

METRICS = ("top1", "class_separation", "linear", "knn")
SLOWER: Truth = lambda spec, depth: 77 - 0.5 * depth - 3.3 * spec.startswith("squared")  # noqa: E731


def cells_of(built: Built) -> dict[str, tuple[Cell, ...]]:
    (table,) = (table for table in built.tables if table.name == "projectors_networks")
    return {row.label: row.cells for row in table.rows}


@functools.cache
def values(metric: str, depth: int, spec: str = "") -> np.ndarray:
    """Of one objective or of all, by seed, straight from the rows; R² is no percentage."""
    if not spec:
        return np.mean([values(metric, depth, each) for each in OBJECTIVES], axis=0)
    return np.array(by_seed(WHOLE, metric, depth, spec)) / (100 if metric == "class_separation" else 1)


WHOLE = planted_projectors(transfer(0.8, 0.5), transfer(0.1), SLOWER, noise=0.4)


@pytest.fixture(scope="module")
def built() -> Built:
    return exhibit("projectors", WHOLE)


def test_every_objective_stands_at_every_depth_with_its_change(built: Built) -> None:
    found = cells_of(built)
    assert len(found) == (len(OBJECTIVES) + 1) * len(DEPTHS)
    for spec, depth in product((*OBJECTIVES, ""), DEPTHS):
        cells = found[f"{resolve(spec).label if spec else 'Mean of the objectives'} (depth {depth})"]
        for place, metric in enumerate(METRICS):
            own, digits = values(metric, depth, spec), 3 if metric == "class_separation" else 2
            mean, change = cells[2 * place : 2 * place + 2]
            assert mean.value == pytest.approx(own.mean())
            assert mean.text == f"{own.mean():.{digits}f} ± {stats.sem(own):.{digits + 1}f}"
            if not depth:
                assert (change.text, change.value) == ("–", None)
                continue
            gain = own - values(metric, 0, spec)
            low, high = stats.ttest_1samp(gain, 0).confidence_interval()
            said = f"{gain.mean():+.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
            assert change.text == said.replace("-", "−").replace("+0.00 ", "0.00 ")
            assert change.value == pytest.approx(gain.mean())


def test_the_range_of_the_objectives_is_told_at_every_depth_that_all_have(built: Built) -> None:
    means = {
        depth: np.array([values("linear", depth, spec).mean() for spec in OBJECTIVES]) for depth in DEPTHS
    }
    told = [f"{of.min():.2f} to {of.max():.2f} % at depth {depth}" for depth, of in means.items()]
    assert f"The objectives' linear transfer, by means: {told[0]}, {told[1]} and {told[2]}." in built.notes


def test_the_finding_states_the_verdicts_and_the_table_has_them(built: Built) -> None:
    verdicts, of_claims = built.tables[0], judged(WHOLE)
    assert [(row.label, row.cells[0].text) for row in verdicts.rows] == [
        (claim.says, of_claims[claim.key].verdict) for claim in PROJECTOR_CLAIMS
    ]
    gain = (values("linear", 2) - values("linear", 0)).mean()
    assert built.finding.startswith(
        "Ours: With two hidden layers thrown away after training, linear transfer is better:"
        f" +{gain:.2f} points of linear transfer ("
    )
    for said in (
        "; whether kNN transfer is better is open: ",
        "; the objectives differ less in linear transfer: −",
        "; test accuracy is lower than softmax's with none: −",
    ):
        assert said in built.finding
    contrary = exhibit("projectors", planted_projectors(transfer(-0.8, 1.2))).finding
    assert "linear transfer is no better: −1.6" in contrary
    assert "the objectives do not differ less in linear transfer: +" in contrary
    assert "test accuracy is no lower than softmax's with none: " in contrary


def test_separation_as_a_mediator_is_one_sentence_of_means(built: Built) -> None:
    (said,) = (note for note in built.notes if note.startswith("R² as a mediator"))
    first, last = (values("class_separation", depth).mean() for depth in (0, 2))
    assert f"mean R² goes from {first:.3f} to {last:.3f}, by −{first - last:.3f} (" in said
    first, last = (values("linear", depth).mean() for depth in (0, 2))
    assert f"linear transfer from {first:.2f} to {last:.2f} %, by +{last - first:.2f} (" in said
    both = sum(
        values("class_separation", 2, spec).mean() < values("class_separation", 0, spec).mean()
        and values("linear", 2, spec).mean() > values("linear", 0, spec).mean()
        for spec in OBJECTIVES
    )
    assert both == 5
    assert said.endswith("R² falls and transfer rises in five of five objectives.")
    worse = exhibit("projectors", planted_projectors(transfer(-0.8, 1.0)))
    assert any(
        note.endswith("R² falls and transfer rises in none of five objectives.") for note in worse.notes
    )


def test_a_curve_joins_the_depths_of_an_objective_in_their_order(built: Built) -> None:
    (figure,) = built.figures
    (panel,) = figure.panels
    curves = {curve.objective: curve.points for curve in panel.curves}
    for spec in OBJECTIVES:
        wanted = [
            (values("top1", depth, spec).mean(), values("linear", depth, spec).mean()) for depth in DEPTHS
        ]
        name = resolve(spec).preset
        assert name is not None
        assert list(curves[name]) == [pytest.approx(place) for place in wanted]
        points = [point for point in panel.points if point.objective == name]
        assert [(point.x, point.y) for point in points] == [pytest.approx(place) for place in wanted]
        assert [point.shade for point in points] == [0, 0.5, 1]


def test_the_front_is_what_nothing_beats_in_both(built: Built) -> None:
    places = {
        f"{resolve(spec).label} (depth {depth})": (
            values("top1", depth, spec).mean(),
            values("linear", depth, spec).mean(),
        )
        for spec, depth in product(OBJECTIVES, DEPTHS)
    }
    front = {
        name
        for name, (x, y) in places.items()
        if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in places.values())
    }
    (said,) = (note for note in built.notes if note.startswith("On the Pareto front"))
    assert {name for name in places if name in said} == front


def test_a_depth_or_an_objective_that_lacks_is_named_and_the_rest_is_shown() -> None:
    in_one = [(OBJECTIVES[1], 1, 201)]
    in_all = [(OBJECTIVES[-1], 2, seed) for seed in SEEDS]
    whole = [(OBJECTIVES[2], depth, seed) for depth, seed in product(DEPTHS, SEEDS)]
    built = exhibit("projectors", planted_projectors(transfer(0.8), without=in_one))
    assert "On no curve, since not every seed has them: Label smoothing (depth 1)." in built.notes
    assert len(built.figures[0].panels[0].points) == 14
    assert cells_of(built)["Label smoothing (depth 1)"][5].detail == "within four seeds"
    built = exhibit("projectors", planted_projectors(transfer(0.8), without=in_all))
    assert built.finding.startswith(
        "Ours: What layers that are thrown away change cannot be said yet. Not meas"
    )
    assert "Squared error" in built.finding
    assert "Squared error (depth 2)" not in cells_of(built)
    assert "Mean of the objectives (depth 2)" not in cells_of(built)
    assert "Mean of the objectives (depth 1)" in cells_of(built)
    assert not any(note.startswith("R² as a mediator") for note in built.notes)
    built = exhibit("projectors", planted_projectors(transfer(0.8), without=whole))
    assert len(cells_of(built)) == 4 * len(DEPTHS)
    assert len(built.figures[0].panels[0].curves) == 4
    without_plain = [(OBJECTIVES[0], 0, seed) for seed in SEEDS]
    cells = cells_of(exhibit("projectors", planted_projectors(transfer(0.8), without=without_plain)))
    assert cells["Softmax (depth 1)"][5].text == "–"


def test_one_seed_has_changes_and_no_verdict() -> None:
    built = exhibit("projectors", planted_projectors(transfer(0.8), seeds=(203,), noise=0))
    assert built.finding.startswith(
        "Ours: What layers that are thrown away change cannot be said yet. One run"
    )
    assert cells_of(built)["Softmax (depth 2)"][5].text == "+1.60"
    assert "depth 2" in render_exhibit_text(built)


def test_values_that_are_no_numbers_are_left_out() -> None:
    rows = [
        dataclasses.replace(row, value=float("nan"))
        if row.objective == behind(OBJECTIVES[3], 2) and row.seed == 200
        else row
        for row in WHOLE.table
    ]
    built = exhibit("projectors", dataclasses.replace(WHOLE, table=Table(rows)))
    assert not any("nan" in cell.text for cells in cells_of(built).values() for cell in cells)
    assert "On no curve, since not every seed has them: Cosine softmax (depth 2)." in built.notes


def test_only_a_study_with_the_arm_shows_it_and_one_not_begun_is_told_what_to_run() -> None:
    assert not exhibit("projectors", glyphs()).wanted
    rows = [row for row in WHOLE.table if row.arm is None]
    smallest = dataclasses.replace(
        WHOLE, description=load_study("sweep_smallest").describe(), table=Table(rows)
    )
    assert not exhibit("projectors", smallest).wanted
    begun = exhibit("projectors", dataclasses.replace(WHOLE, table=Table(rows)))
    assert (begun.tables, begun.figures) == ((), ())
    assert [gap.command for gap in begun.missing] == ["penultimate run sweep"]
    pretrained = exhibit(
        "projectors", planted_projectors(transfer(), measured=("accuracy", "separation"), accuracy=SLOWER)
    )
    assert pretrained.finding.startswith(
        "Ours: With two hidden layers thrown away after training, test accuracy is lower than softmax's"
    )
    assert pretrained.figures == ()
