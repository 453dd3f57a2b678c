"""Figures E.1, E.2 and E.3: hardness, spectra and distances hold the rows and the arrays that steps left."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from penultimate.objectives.presets import PRESETS
from penultimate.records.table import Row
from penultimate.report import exhibit
from penultimate.report.base import Curve, StudyResults
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.shapes.density import trimmed
from penultimate.report.terminal import render_exhibit_text
from tests.oracles.report import mean_of, standard_error_of
from tests.report.planted import NINE
from tests.report.reading import (
    Arrays,
    column_of,
    glyphs,
    objectives_of,
    only,
    panels,
    part_of,
    shuffled,
    table_of,
    values,
    with_rows,
)

NAMES = ("figureE1", "figureE2", "figureE3")
METRICS = {
    "hardness_density",
    "angular_visual_hardness",
    "singular_values",
    "cosine_distance_density",
    "cosine_distance_within",
    "cosine_distance_between",
}


def arrays_of(results: StudyResults, metric: str, slug: str) -> list[Arrays]:
    """What the runs of an objective have left, by seed."""
    spec, read = objectives_of(results)[slug], results.arrays
    assert read is not None
    rows = results.table.where(metric=metric, objective=spec, backbone="glyphnet", arm=None)
    return [read(str(row.step), metric) for row in sorted(rows, key=lambda row: row.seed or 0)]


def mean_array(metric: str, slug: str, name: str) -> np.ndarray:
    return np.mean([arrays[name].astype(float) for arrays in arrays_of(glyphs(), metric, slug)], axis=0)


def heights(curve: Curve) -> list[float]:
    return [y for _, y in curve.points]


def test_densities_of_hardness_are_the_means_of_the_runs_where_they_can_be_seen() -> None:
    panel = panels(exhibit("figureE1", glyphs()))["figureE1-ours"]
    assert [curve.objective for curve in panel.curves] == list(objectives_of(glyphs()))
    every = {slug: mean_array("hardness_density", slug, "density") for slug in objectives_of(glyphs())}
    for curve in panel.curves:
        points = mean_array("hardness_density", curve.objective, "points")
        first = int(np.argmin(np.abs(points - curve.points[0][0])))
        part = slice(first, first + len(curve.points))
        assert 10 < len(curve.points) < len(points)
        assert [x for x, _ in curve.points] == pytest.approx(points[part], rel=1e-5)
        assert heights(curve) == pytest.approx(every[curve.objective][part], rel=1e-5)
        assert max(heights(curve)) == pytest.approx(every[curve.objective].max(), rel=1e-5)
    highest = max(density.max() for density in every.values())
    assert panel.y_limits == (0, pytest.approx(1.05 * highest, rel=1e-5))
    top1 = 100 * mean_of(values(glyphs(), objective="softmax", metric="top1", split="test"))
    assert panel.curves[0].label == f"{PRESETS['softmax'].label} ({top1:.1f} %)"


def test_hardness_is_shown_as_a_multiple_of_one_over_the_classes() -> None:
    table = table_of(exhibit("figureE1", glyphs()), "figureE1")
    for row in table.rows:
        about = {"objective": objectives_of(glyphs())[row.objective], "split": "test"}
        hardness = [128 * value for value in values(glyphs(), metric="angular_visual_hardness", **about)]
        assert row.cells[0].value == pytest.approx(mean_of(hardness))
        assert row.cells[0].error == pytest.approx(standard_error_of(hardness))
        assert row.cells[1].value == pytest.approx(100 * mean_of(values(glyphs(), metric="top1", **about)))


def test_spectra_fall_from_zero_and_are_means_of_logarithms() -> None:
    drawn = panels(exhibit("figureE2", glyphs()))
    assert list(drawn) == ["figureE2-activations", "figureE2-weights", "figureE2-centroids"]
    for panel in drawn.values():
        for curve in panel.curves:
            assert [x for x, _ in curve.points] == list(range(1, len(curve.points) + 1))
            assert heights(curve)[0] == 0
            assert heights(curve) == sorted(heights(curve), reverse=True)
    weights = [
        arrays["weights"].astype(float) for arrays in arrays_of(glyphs(), "singular_values", "sigmoid")
    ]
    curve = next(curve for curve in drawn["figureE2-weights"].curves if curve.objective == "sigmoid")
    expected = mean_of([math.log10(spectrum[4] / spectrum[0]) for spectrum in weights])
    assert curve.points[4] == (5, pytest.approx(expected, rel=1e-5))


def test_singular_values_that_are_rounding_are_left_out() -> None:
    def truncated(step: str, metric: str) -> Arrays:
        assert glyphs().arrays is not None
        arrays = {name: array.copy() for name, array in glyphs().arrays(step, metric).items()}
        arrays["centroids"][40:] = 1e-18
        arrays["weights"][:] = 0
        return arrays

    built = exhibit("figureE2", dataclasses.replace(glyphs(), arrays=truncated))
    drawn = panels(built)
    assert list(drawn) == ["figureE2-activations", "figureE2-centroids"]
    assert {len(curve.points) for curve in drawn["figureE2-centroids"].curves} == {40}
    weights = column_of(table_of(built, "figureE2"), "directions_weights")
    assert {cell.text for cell in weights.values()} == {"–"}, "what has no length has no directions"


def test_spectra_are_summed_up_by_the_directions_that_hold_most_of_them() -> None:
    table = table_of(exhibit("figureE2", glyphs()), "figureE2")
    for row in table.rows:
        runs = arrays_of(glyphs(), "singular_values", row.objective)
        for name, cell in zip(("activations", "weights", "centroids"), row.cells, strict=True):
            counts = []
            for arrays in runs:
                squares = [float(value) ** 2 for value in arrays[name]]
                counts.append(next(n for n in range(1, 300) if sum(squares[:n]) >= 0.9 * sum(squares)))
            assert cell.value == pytest.approx(mean_of(counts))


def test_distances_are_drawn_twice_within_solid_and_between_dashed() -> None:
    built = exhibit("figureE3", glyphs())
    whole, closer = panels(built).values()
    assert [curve.dashed for curve in whole.curves] == [False] * 9 + [True] * 9
    assert closer.curves == whole.curves
    highest = max(y for curve in whole.curves for y in heights(curve))
    assert whole.y_limits is not None
    assert closer.y_limits is not None
    assert whole.y_limits[0] == closer.y_limits[0] == 0
    assert closer.y_limits[1] < highest < whole.y_limits[1]
    for curve in whole.curves:
        name = "between" if curve.dashed else "within"
        assert name in curve.label
        peak = mean_array("cosine_distance_density", curve.objective, name).max()
        assert max(heights(curve)) == pytest.approx(peak, rel=1e-5)
    for row in table_of(built, "figureE3").rows:
        for column, cell in zip(("within", "between"), row.cells, strict=True):
            about = {"metric": f"cosine_distance_{column}", "split": "train"}
            runs = values(glyphs(), objective=objectives_of(glyphs())[row.objective], **about)
            assert (cell.value, cell.error) == (
                pytest.approx(mean_of(runs)),
                pytest.approx(standard_error_of(runs)),
            )


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_measured_is_said_and_not_drawn(name: str) -> None:
    built = exhibit(name, only(glyphs(), lambda row: row.metric not in METRICS))
    assert built.figures == built.tables == ()
    assert len(built.missing) == 1
    assert built.notes[0] == f"{built.missing[0].what}: not measured: run `penultimate run nine`"
    unreadable = exhibit(name, dataclasses.replace(glyphs(), arrays=None))
    assert unreadable.figures == ()
    assert unreadable.missing == built.missing


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter_and_diverged_runs_are_left_out(name: str) -> None:
    built = exhibit(name, glyphs())

    def gone(row: Row) -> Row:
        return dataclasses.replace(row, status="diverged", value=0.99, seed=7, draw=7, step=f"{row.step}7")

    rows = [gone(row) for row in glyphs().table.where(objective="softmax", metric=METRICS, arm=None)]
    again = exhibit(name, shuffled(with_rows(glyphs(), rows)))
    assert (again.tables, again.figures) == (built.tables, built.figures)
    assert any("Diverged" in note and "seed 7" in note for note in again.notes)


@pytest.mark.parametrize("name", NAMES)
def test_other_arms_and_architectures_are_kept_apart(name: str) -> None:
    """The reference run has both: temperatures, and the objectives of figure B.1."""
    alone = only(glyphs(), lambda row: row.arm is None and row.backbone in (None, "glyphnet"))
    assert len(alone.table) < len(glyphs().table)
    built, of_alone = exhibit(name, glyphs()), exhibit(name, alone)
    assert (built.tables, built.figures, built.caption) == (
        of_alone.tables,
        of_alone.figures,
        of_alone.caption,
    )


@pytest.mark.parametrize("name", NAMES)
def test_exhibits_are_printed_and_drawn(name: str) -> None:
    built = exhibit(name, part_of(glyphs(), ["softmax", "squared_error"], [0]))
    assert built.title in render_exhibit_text(built)
    for panel in panels(built).values():
        assert draw_panel(panel, marks(list(NINE))).styled("x").count("data-mark") >= len(panel.curves) >= 2


def test_trimming_keeps_what_can_be_seen() -> None:
    peak = Curve(tuple((float(x), 1.0 if abs(x - 5) < 1.5 else 1e-4) for x in range(11)), "softmax", "peak")
    low = Curve(tuple((float(x), 0.01 if x == 8 else 0.0) for x in range(11)), "softmax", "low", dashed=True)
    kept = trimmed((peak, low))
    assert [[x for x, _ in curve.points] for curve in kept] == [[4, 5, 6, 7, 8]] * 2
    assert [curve.dashed for curve in kept] == [False, True]
    assert trimmed(()) == ()
