"""Sparsity, simplex-ETF, hardness, spectra, distances: exhibits hold the rows and their arrays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from penultimate import published
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.report.exhibits import arrays as room
from penultimate.report.exhibits import figure3, figure_e1, figure_e2, figure_e3, table_e2
from penultimate.report.exhibits.arrays import ArrayReader
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, Panel, StudyResults
from penultimate.report.exhibits.measurements import admit
from penultimate.report.figures import draw_panel
from penultimate.report.palette import marks
from penultimate.report.tables import render_exhibit_text
from penultimate.table import Row, Table
from tests.oracles.report import mean_of, spearman_rho, standard_error_of
from tests.report.synthetic import MEASURED, study

BUILDERS = {
    "tableE2": table_e2.build,
    "figure3": figure3.build,
    "figureE1": figure_e1.build,
    "figureE2": figure_e2.build,
    "figureE3": figure_e3.build,
}
LAYERS = ("block2", "block10", "block1")
SCALARS = {
    **{f"nc_{key}": "train" for key in table_e2.MEASURES},
    "nc4": "train",
    "sparsity": "test",
    "angular_visual_hardness": "test",
    "cosine_distance_within": "train",
    "cosine_distance_between": "train",
}
ARRAYS = {"hardness_density": "test", "singular_values": "train", "cosine_distance_density": "train"}


@dataclasses.dataclass(frozen=True)
class Measured(StudyResults):
    """Results whose steps left arrays as well."""

    arrays: ArrayReader | None = None


def arrays_of(step: str, metric: str) -> Mapping[str, np.ndarray]:
    """What a step would have left, derived from its name alone."""
    assert step.startswith(metric)
    random = np.random.default_rng(sum(step.encode()))
    if metric == "singular_values":
        shapes = {"activations": 12, "weights": 8, "centroids": 8}
        found = {name: np.sort(random.uniform(0.1, 1, size))[::-1] for name, size in shapes.items()}
        found["centroids"][-1] = 1e-18
        return found
    if metric == "hardness_density":
        points, centre = np.linspace(0, 2, 101), random.uniform(0.7, 0.9)
        return {"points": points, "density": np.exp(-((points - centre) ** 2) / 0.01)}
    points, centre = np.linspace(0, 2, 101), random.uniform(0.2, 0.4)
    within = np.exp(-((points - centre) ** 2) / 0.01)
    return {"points": points, "within": within, "between": 0.3 * np.exp(-((points - 0.8) ** 2) / 0.01)}


def measured(seeds: Sequence[int] = (0, 1), layers: Sequence[str] = LAYERS, **arguments: Any) -> Measured:
    plain = study(seeds, **arguments)
    rows = list(plain.table)
    objectives = [one["spec"] for one in plain.description["objectives"]]
    for place, spec in enumerate(objectives):
        for seed in seeds:
            random = np.random.default_rng([place, seed])
            about: dict[str, Any] = {
                "objective": spec,
                "seed": seed,
                "backbone": "glyphnet",
                "source": "glyphs",
                "target": "glyphs",
            }
            for metric, split in SCALARS.items():
                rows.append(Row(metric=metric, split=split, value=random.uniform(0.01, 0.6), **about))
            for layer in layers:
                value = random.uniform(0.2, 1)
                rows.append(Row(metric="sparsity", split="test", layer=layer, value=value, **about))
            for metric, split in ARRAYS.items():
                step = f"{metric}.{place}-{seed}"
                rows.append(Row(metric=metric, split=split, value=101.0, step=step, **about))
    return Measured(plain.description, Table(rows), None, plain.provenance, arrays_of)


@pytest.fixture(scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def results(request: pytest.FixtureRequest) -> Measured:
    return measured(request.param)


def values(
    results: StudyResults, objective: str, metric: str, split: str, layer: str | None = None
) -> list[float]:
    spec = resolve(next(text for text in MEASURED if text.startswith(objective))).canonical
    wanted = (spec, metric, split, layer, None)
    return [
        row.value
        for row in results.table
        if (row.objective, row.metric, row.split, row.layer, row.epoch) == wanted
    ]


def table_of(made: Exhibit, name: str) -> ExhibitTable:
    return next(table for table in made.tables if table.name == name)


def panels(made: Exhibit) -> dict[str, Panel]:
    return {panel.name: panel for figure in made.figures for panel in figure.panels}


def test_table_e2_holds_mean_and_standard_error_beside_the_printed_ones(results: Measured) -> None:
    made = table_e2.build(results)
    ours, printed = table_of(made, "tableE2"), table_of(made, "tableE2_published")
    assert len(ours.rows) == len(printed.rows) == 9
    for row in ours.rows:
        for column, cell in zip(ours.columns, row.cells, strict=True):
            key = column.key
            own = values(results, row.objective, "nc4" if key == "nc4_percent" else f"nc_{key}", "train")
            scale = 100 if key == "nc4_percent" else 1
            assert cell.value == pytest.approx(scale * mean_of(own))
            if len(own) > 1:
                assert cell.error == pytest.approx(scale * standard_error_of(own))
    csv = {row["objective"]: row for row in published.printed("neurips_tableE2_simplex_etf")}
    assert [column.key for column in printed.columns] == list(table_e2.MEASURES)
    for row in printed.rows:
        for column, cell in zip(printed.columns, row.cells, strict=True):
            shown = csv[row.objective]
            assert cell.text == f"{shown[column.key]} ± {shown[f'{column.key}_se']}"


def test_table_e2_says_how_the_last_column_goes_with_class_separation(results: Measured) -> None:
    note = next(note for note in table_e2.build(results).notes if "against class separation" in note)
    means = [
        [mean_of(values(results, text.partition("(")[0], metric, "train")) for text in MEASURED]
        for metric in ("nc_trace_sw_pinv_sb_over_c", "class_separation")
    ]
    assert f"ρ = {spearman_rho(*means):.2f}".replace("-", "−") + ", p" in note.partition("here")[0]
    traces = {
        row["objective"]: float(row["trace_sw_pinv_sb_over_c"])
        for row in published.printed("neurips_tableE2_simplex_etf")
    }
    r2 = {
        row["objective"]: float(row["class_separation_r2"])
        for row in published.printed("neurips_table3_class_separation")
    }
    rho = spearman_rho(list(traces.values()), [r2[name] for name in traces])
    assert f"ρ = {rho:.2f}".replace("-", "−") in note.partition("here")[2]


def test_figure3_orders_the_layers_and_ends_in_the_penultimate_features(results: Measured) -> None:
    made = figure3.build(results)
    table = table_of(made, "figure3")
    assert [column.label for column in table.columns] == ["block1", "block2", "block10", "Penultimate"]
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            layer = None if column.label == "Penultimate" else column.label
            own = values(results, row.objective, "sparsity", "test", layer)
            assert cell.value == pytest.approx(100 * mean_of(own))
    panel = panels(made)["figure3-ours"]
    for curve, row in zip(panel.curves, table.rows, strict=True):
        assert curve.objective == row.objective
        assert curve.points == tuple((i, pytest.approx(cell.value)) for i, cell in enumerate(row.cells, 1))
    assert not any("not measured" in note for note in made.notes)

    described = dataclasses.replace(results, description={**results.description, "layers": list(LAYERS)})
    again = table_of(figure3.build(described), "figure3")
    assert [column.label for column in again.columns] == [*LAYERS, "Penultimate"]


def test_figure3_without_blocks_is_a_table_and_says_so() -> None:
    made = figure3.build(measured(layers=()))
    assert made.figures == ()
    assert [column.label for column in table_of(made, "figure3").columns] == ["Penultimate"]
    assert made.notes[0].startswith("The share of non-zero activations, block by block: not measured: run")
    printed = {row.objective: row.cells[0].text for row in table_of(made, "figure3_published").rows}
    assert set(printed) == set(PRESETS)
    assert (printed["softmax"], printed["squared_error"], printed["sigmoid"]) == ("92.8", "< 25", "–")


def mean_array(results: Measured, place: int, metric: str, name: str) -> np.ndarray:
    steps = sorted(
        {row.step for row in results.table if row.step and row.step.startswith(f"{metric}.{place}-")}
    )
    return np.mean([arrays_of(step, metric)[name] for step in steps], axis=0)


def test_densities_are_the_means_of_the_runs(results: Measured) -> None:
    panel = panels(figure_e1.build(results))["figureE1-ours"]
    assert len(panel.curves) == 9
    grid = np.linspace(0, 2, 101)
    for place, curve in enumerate(panel.curves):
        expected = dict(zip(grid, mean_array(results, place, "hardness_density", "density"), strict=True))
        shown = dict(curve.points)
        assert 10 < len(shown) < 101
        for x, y in shown.items():
            nearest = min(expected, key=lambda point: abs(point - x))
            assert y == pytest.approx(expected[nearest], rel=1e-5)
        assert max(shown.values()) == pytest.approx(max(expected.values()), rel=1e-5)
    top1 = 100 * mean_of(values(results, "softmax", "top1", "test"))
    assert panel.curves[0].label == f"{PRESETS['softmax'].label} ({top1:.1f} %)"


def test_hardness_is_shown_as_a_multiple_of_one_over_the_classes(results: Measured) -> None:
    table = table_of(figure_e1.build(results), "figureE1")
    for row in table.rows:
        own = values(results, row.objective, "angular_visual_hardness", "test")
        assert row.cells[0].value == pytest.approx(128 * mean_of(own))
        assert row.cells[1].value == pytest.approx(
            100 * mean_of(values(results, row.objective, "top1", "test"))
        )


def test_spectra_fall_from_zero_and_leave_rounding_out(results: Measured) -> None:
    made = panels(figure_e2.build(results))
    lengths = {"figureE2-activations": 12, "figureE2-weights": 8, "figureE2-centroids": 7}
    assert list(made) == list(lengths)
    for name, panel in made.items():
        for curve in panel.curves:
            heights = [y for _, y in curve.points]
            assert [x for x, _ in curve.points] == list(range(1, lengths[name] + 1))
            assert heights[0] == 0
            assert heights == sorted(heights, reverse=True)
    seeds = len(admit(results).seeds)
    runs = [arrays_of(f"singular_values.3-{seed}", "singular_values")["weights"] for seed in range(seeds)]
    expected = mean_of([math.log10(one[4] / one[0]) for one in runs])
    assert made["figureE2-weights"].curves[3].points[4] == (5, pytest.approx(expected, rel=1e-5))


def test_spectra_are_summed_up_by_the_directions_that_hold_most_of_them(results: Measured) -> None:
    seeds = range(len(admit(results).seeds))
    for place, row in enumerate(table_of(figure_e2.build(results), "figureE2").rows):
        for name, cell in zip(figure_e2.MATRICES, row.cells, strict=True):
            counts = []
            for seed in seeds:
                squares = [
                    value**2
                    for value in arrays_of(f"singular_values.{place}-{seed}", "singular_values")[name]
                ]
                counts.append(next(n for n in range(1, 13) if sum(squares[:n]) >= 0.9 * sum(squares)))
            assert cell.value == pytest.approx(mean_of(counts))


def test_distances_are_drawn_twice_within_solid_and_between_dashed(results: Measured) -> None:
    made = figure_e3.build(results)
    whole, closer = panels(made).values()
    assert [curve.dashed for curve in whole.curves] == [False] * 9 + [True] * 9
    assert closer.curves == whole.curves
    highest = max(y for curve in whole.curves for _, y in curve.points)
    assert whole.y_limits is not None
    assert whole.y_limits[0] == 0
    assert whole.y_limits[1] > highest
    assert closer.y_limits is not None
    assert closer.y_limits[1] < highest
    for place, curve in enumerate(whole.curves[9:]):
        peak = mean_array(results, place, "cosine_distance_density", "between").max()
        assert max(y for _, y in curve.points) == pytest.approx(peak, rel=1e-5)
    table = table_of(made, "figureE3")
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            assert cell.value == pytest.approx(mean_of(values(results, row.objective, column.key, "train")))


@pytest.mark.parametrize("name", list(BUILDERS))
def test_what_was_not_measured_is_said_and_not_drawn(name: str) -> None:
    made = BUILDERS[name](study())
    assert made.figures == ()
    assert all(table.source == "published" for table in made.tables)
    assert sum("not measured: run `penultimate run" in note for note in made.notes) == 1


@pytest.mark.parametrize("name", list(BUILDERS))
def test_limited_studies_are_refused_unasked(name: str) -> None:
    limited = measured((0,), limited=True)
    with pytest.raises(RequestError, match="limited run"):
        BUILDERS[name](limited)
    assert BUILDERS[name](limited, allow_limited=True).limited


@pytest.mark.parametrize("name", list(BUILDERS))
def test_the_order_of_rows_does_not_matter_and_diverged_runs_are_left_out(name: str) -> None:
    results = measured()
    made = BUILDERS[name](results)
    diverged = [
        dataclasses.replace(row, status="diverged", value=0.99, seed=7, step=f"{row.step}-7")
        for row in results.table
        if row.objective == "softmax" and row.metric in {*SCALARS, *ARRAYS}
    ]
    order = np.random.default_rng(0).permutation(len(results.table))
    shuffled = Table([*diverged, *(results.table[int(i)] for i in order)])
    again = BUILDERS[name](dataclasses.replace(results, table=shuffled))
    assert (again.tables, again.figures) == (made.tables, made.figures)
    assert any("Diverged" in note and "seed 7" in note for note in again.notes)


def test_runs_of_another_architecture_are_kept_apart() -> None:
    results = measured((0,))
    others = [
        dataclasses.replace(row, backbone="other", value=0.99, step=f"{row.step}-other")
        for row in results.table
        if row.metric in {*SCALARS, *ARRAYS}
    ]
    both = dataclasses.replace(results, table=Table([*results.table, *others]))
    for build in BUILDERS.values():
        assert (build(both).tables, build(both).figures) == (build(results).tables, build(results).figures)


def test_a_temperature_sweep_is_not_drawn_among_the_objectives() -> None:
    sweep = [f"cosine_softmax(temperature={t}, scale={t})" for t in (0.03, 0.05, 0.07)]
    results = measured((0,), objectives=(*MEASURED, *sweep))
    for build in (figure_e1.build, figure_e2.build, figure3.build):
        assert all(len(panel.curves) == 9 for panel in panels(build(results)).values())


@pytest.mark.parametrize("name", list(BUILDERS))
def test_exhibits_are_drawn_and_written(name: str) -> None:
    made = BUILDERS[name](measured((0,)))
    assert made.number in ("Table E.2", "Figure 3", "Figure E.1", "Figure E.2", "Figure E.3")
    text = render_exhibit_text(made)
    assert made.title in text
    known = marks(list(PRESETS))
    for panel in panels(made).values():
        svg = draw_panel(panel, known).styled("x")
        assert svg.count("data-mark") >= len(panel.curves)


def test_trimming_keeps_what_can_be_seen() -> None:
    objective = admit(study()).objectives[0]
    x = np.linspace(0, 10, 11)
    peak = room.curve(objective, x, np.where(np.abs(x - 5) < 1.5, 1.0, 1e-4), "peak")
    low = room.curve(objective, x, np.where(x == 8, 0.01, 0.0), "low", dashed=True)
    kept = room.trimmed((peak, low))
    assert [[a for a, _ in one.points] for one in kept] == [[4, 5, 6, 7, 8]] * 2
    assert [one.dashed for one in kept] == [False, True]
    assert room.trimmed(()) == ()
