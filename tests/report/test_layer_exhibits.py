"""Figures 2, B.1 and 4, and the maps that they are drawn as: they hold the arrays and the rows of layers."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS
from penultimate.report import palette, render_report
from penultimate.report.exhibits import figure2, figure4, figure_b1, figure_d3
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, Panel, Raster, StudyResults
from penultimate.report.figures import draw_panel, mark_variables
from penultimate.report.palette import HEAT_FLIP, HEAT_STEPS, marks
from penultimate.report.rasters import raster_size, short, step_of
from penultimate.report.tables import points_csv, render_exhibit_text
from penultimate.table import Row, Table
from tests.oracles.report import contrast, mean_of, oklab
from tests.report.synthetic import MEASURED, study

LAYERS = ("block1", "block2", "pooled")
BUILDERS: dict[str, Callable[..., Exhibit]] = {
    "figure2": figure2.build,
    "figureB1": figure_b1.build,
    "figureD3": figure_d3.build,
    "figure4": figure4.build,
}


def measured(
    seeds: Sequence[int] = (0, 1),
    backbones: Sequence[str] = ("glyphnet", "other"),
    splits: Sequence[str] = ("train", "test"),
    **arguments: Any,
) -> StudyResults:
    """A study whose steps compared the layers of each architecture; numbers derive from their places."""
    plain = study(seeds, **arguments)
    specs = [one["spec"] for one in plain.description["objectives"]]
    rows = list(plain.table)
    for backbone in backbones:
        about: dict[str, Any] = {"backbone": backbone, "source": "glyphs", "target": "glyphs"}
        points = {"metric": "layer_cka", "split": "test", "value": 9.0, "unit": "points"}
        rows.append(Row(step=f"similarity.{backbone}", **about, **points))
        for (place, spec), seed, split in itertools.product(enumerate(specs), seeds, splits):
            for depth, layer in enumerate((*LAYERS[:2], "penultimate")):
                value = 0.1 * depth + 0.01 * place + 0.001 * seed + 0.3 * (split == "train")
                known = {"objective": spec, "seed": seed, "split": split, "layer": layer}
                rows.append(Row(metric="class_separation", value=value, unit="ratio", **about, **known))
    names = [(spec, seed, -1, layer) for spec in specs for seed in seeds for layer in LAYERS]
    names += [("", -1, 0, layer) for layer in LAYERS]
    names += [(specs[0], seeds[0], 4, layer) for layer in LAYERS]

    def arrays(step: str, metric: str) -> dict[str, np.ndarray]:
        assert metric == "layer_cka"
        random = np.random.default_rng(len(step))
        half = random.uniform(0, 0.5, (len(names), len(names)))
        matrix = half + half.T
        np.fill_diagonal(matrix, 1)
        return {
            "matrix": matrix,
            "standard_error": matrix / 100,
            "objectives": np.array([spec for spec, _, _, _ in names]),
            "seeds": np.array([seed for _, seed, _, _ in names]),
            "epochs": np.array([epoch for _, _, epoch, _ in names]),
            "layers": np.array([layer for _, _, _, layer in names]),
            "sizes": np.array([250, 251]),
            "passes": np.array([0, 0]),
        }

    description = {**plain.description, "backbones": list(backbones)}
    return dataclasses.replace(plain, description=description, table=Table(rows), arrays=arrays)


def value_at(results: StudyResults, one: tuple[str, int, str], other: tuple[str, int, str]) -> float:
    """An entry of the first architecture's matrix, by objective (as it begins), seed and layer."""
    assert results.arrays is not None
    arrays = results.arrays("similarity.glyphnet", "layer_cka")
    named = list(zip(arrays["objectives"], arrays["seeds"], arrays["layers"], strict=True))

    def place(wanted: tuple[str, int, str]) -> int:
        spec, seed, layer = wanted
        return next(
            index
            for index, (known, s, name) in enumerate(named)
            if known.partition("(")[0] == spec and (s, name) == (seed, layer)
        )

    return float(arrays["matrix"][place(one), place(other)])


def panels(made: Exhibit) -> dict[str, Panel]:
    return {panel.title: panel for figure in made.figures for panel in figure.panels}


def table_of(made: Exhibit, name: str) -> ExhibitTable:
    return next(table for table in made.tables if table.name == name)


def raster_of(made: Exhibit, title: str) -> Raster:
    raster = panels(made)[title].raster
    assert raster is not None
    return raster


def test_maps_of_layers_are_means_over_pairs_of_different_seeds() -> None:
    results = measured()
    made = figure2.build(results)
    raster = raster_of(made, PRESETS["sigmoid"].label)
    for i, a in enumerate(LAYERS):
        for j, b in enumerate(LAYERS):
            own = [value_at(results, ("softmax", s, a), ("sigmoid", 1 - s, b)) for s in (0, 1)]
            assert raster.values[i][j] == pytest.approx(mean_of(own), rel=1e-5)
    control = raster_of(made, f"{PRESETS['softmax'].label}, another seed")
    own = [value_at(results, ("softmax", s, "block1"), ("softmax", 1 - s, "pooled")) for s in (0, 1)]
    assert control.values[0][2] == pytest.approx(mean_of(own), rel=1e-5)
    initial = raster_of(made, "At initialisation")
    own = [value_at(results, ("softmax", s, "block2"), ("", -1, "block1")) for s in (0, 1)]
    assert initial.values[1][0] == pytest.approx(mean_of(own), rel=1e-5)


def test_a_network_is_compared_with_itself_earlier() -> None:
    results = measured()
    made = figure_d3.build(results)
    assert results.arrays is not None
    arrays = results.arrays("similarity.glyphnet", "layer_cka")
    block = arrays["matrix"][-3:, :3]
    raster = raster_of(made, f"{PRESETS['softmax'].label}, seed 0: after epoch 4, and at the end")
    assert np.asarray(raster.values) == pytest.approx(block, rel=1e-5)
    assert np.asarray([[cell.value for cell in row.cells] for row in made.tables[0].rows]) == pytest.approx(
        block
    )
    assert f"{block[2, 2]:.2f} in pooled" in made.notes[0]
    without = dataclasses.replace(results, arrays=None)
    assert figure_d3.build(without).figures == ()
    assert "not measured" in figure_d3.build(without).notes[0]


def test_maps_of_objectives_are_symmetric_and_one_a_layer() -> None:
    results = measured()
    made = figure2.build(results)
    for number, layer in enumerate(LAYERS, 1):
        raster = raster_of(made, f"{number}: {layer}")
        assert raster.rows == raster.columns
        assert raster.row_marks == tuple(PRESETS)
        assert raster.values == tuple(zip(*raster.values, strict=True))
        own = [value_at(results, ("dropout", s, layer), ("logit_norm", 1 - s, layer)) for s in (0, 1)]
        assert raster.values[4][6] == pytest.approx(mean_of(own), rel=1e-5)


def test_tables_hold_corresponding_layers_with_their_standard_errors() -> None:
    results = measured()
    made = figure2.build(results)
    table = table_of(made, "figure2")
    assert [column.label for column in table.columns] == list(LAYERS)
    assert table.rows[0].label == "Softmax, another seed"
    assert (table.rows[-1].label, table.rows[-1].objective) == ("At initialisation", "")
    raster = raster_of(made, PRESETS["sigmoid"].label)
    row = next(row for row in table.rows if row.objective == "sigmoid")
    for index, cell in enumerate(row.cells):
        assert cell.value == raster.values[index][index]
        assert cell.error == pytest.approx(cell.value / 100, rel=1e-4)
    last = table_of(made, "figure2-last")
    assert [cell.value for cell in last.rows[2].cells] == list(raster_of(made, "3: pooled").values[2])
    sentence = next(note for note in made.notes if note.startswith("Ours:"))
    others = [row.cells[-1].value for row in table.rows[1:-1]]
    assert f"{mean_of(others):.2f} (at least {min(others):.2f}) in pooled" in sentence
    assert "two seeds of Softmax:" in sentence


def test_one_seed_has_no_control_and_says_how_to_get_it() -> None:
    results = measured((0,))
    made = figure2.build(results)
    assert not any("another seed" in title for title in panels(made))
    assert all(row[i] is None for i, row in enumerate(raster_of(made, "1: block1").values))
    own = value_at(results, ("softmax", 0, "block1"), ("sigmoid", 0, "pooled"))
    assert raster_of(made, PRESETS["sigmoid"].label).values[0][2] == pytest.approx(own, rel=1e-5)
    assert any("penultimate run quickstart --seeds 0,1" in note for note in made.notes)
    assert table_of(made, "figure2-last").rows[0].cells[0].detail == "needs two seeds"


def test_one_objective_is_compared_with_its_initialisation_only() -> None:
    made = figure2.build(measured((0,), objectives=("sigmoid",)))
    assert list(panels(made)) == ["The scale", "At initialisation"]
    assert [table.name for table in made.tables] == ["figure2"]
    assert any("one objective only" in note for note in made.notes)


def test_without_softmax_the_first_objective_is_the_reference() -> None:
    made = figure2.build(
        measured((0,), objectives=("sigmoid", "squared_error(kappa=9, scale=0.5, target=10)"))
    )
    assert "Sigmoid" in made.caption
    assert [row.label for row in made.tables[0].rows] == ["Squared error", "At initialisation"]


def test_a_constant_layer_is_said_and_leaves_its_cells_empty() -> None:
    results = measured((0,))
    assert results.arrays is not None
    spoilt = results.arrays("similarity.glyphnet", "layer_cka")
    for array in (spoilt["matrix"], spoilt["standard_error"]):
        array[4, :] = array[:, 4] = np.nan
    made = figure2.build(dataclasses.replace(results, arrays=lambda step, metric: spoilt))
    assert raster_of(made, PRESETS["label_smoothing"].label).values[0][1] is None
    assert "No CKA, being the same for all images: block2 of Label smoothing, seed 0." in made.notes
    assert "nan" not in render_exhibit_text(made).lower().replace("finance", "")
    assert "nan" not in points_csv(made)
    assert draw_panel(panels(made)[PRESETS["label_smoothing"].label], marks(list(PRESETS))).raw


def test_a_temperature_sweep_is_not_compared() -> None:
    sweep = [f"cosine_softmax(temperature={t}, scale={t})" for t in (0.03, 0.05, 0.07)]
    made = figure2.build(measured((0,), objectives=(*MEASURED, *sweep)))
    assert len(raster_of(made, "1: block1").rows) == 9


def test_figure_b1_is_of_the_second_architecture_and_says_how_to_have_one() -> None:
    results = measured((0,))
    second = raster_of(figure_b1.build(results), PRESETS["sigmoid"].label)
    assert second != raster_of(figure2.build(results), PRESETS["sigmoid"].label)
    swapped = dataclasses.replace(
        results, description={**results.description, "backbones": ["other", "glyphnet"]}
    )
    assert raster_of(figure2.build(swapped), PRESETS["sigmoid"].label) == second
    alone = figure_b1.build(measured((0,), backbones=("glyphnet",)))
    assert alone.tables == alone.figures == ()
    assert """penultimate run quickstart --set "backbones=('glyphnet', '""" in alone.notes[0]


def test_figure4_takes_the_papers_split_where_it_was_measured() -> None:
    results = measured((0, 1))
    for splits, words, lift in ((("train", "test"), "training images", 0.3), (("test",), "test images", 0.0)):
        made = figure4.build(measured((0, 1), splits=splits))
        assert words in made.caption
        table = table_of(made, "figure4")
        assert [column.label for column in table.columns] == ["block1", "block2", "Penultimate"]
        for place, row in enumerate(table.rows):
            expected = [0.1 * depth + 0.01 * place + 0.0005 + lift for depth in range(3)]
            assert [cell.value for cell in row.cells] == pytest.approx(expected)
    printed = {row.objective: row.cells[0].text for row in table_of(made, "figure4_published").rows}
    assert printed["squared_error"] == "0.845 ± 0.0002"
    sentence = next(note for note in figure4.build(results).notes if note.startswith("Ours"))
    assert "0.300 and 0.381 in block1, 0.500 and 0.581 in the penultimate features" in sentence


@pytest.mark.parametrize("name", list(BUILDERS))
def test_what_was_not_measured_is_said_and_not_drawn(name: str) -> None:
    made = BUILDERS[name](study())
    assert made.figures == ()
    assert all(table.source == "published" for table in made.tables)
    assert sum("not measured: " in note and "penultimate run" in note for note in made.notes) == 1
    assert any("The paper draws its Figure" in note for note in made.notes)


@pytest.mark.parametrize("name", list(BUILDERS))
def test_limited_studies_are_refused_unasked(name: str) -> None:
    limited = measured((0,), limited=True)
    with pytest.raises(RequestError, match="limited run"):
        BUILDERS[name](limited)
    assert BUILDERS[name](limited, allow_limited=True).limited


@pytest.mark.parametrize("name", list(BUILDERS))
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    results = measured()
    order = np.random.default_rng(0).permutation(len(results.table))
    shuffled = dataclasses.replace(results, table=Table(results.table[int(i)] for i in order))
    assert BUILDERS[name](shuffled) == BUILDERS[name](results)


def test_cells_are_drawn_with_what_they_say_and_in_the_pages_colours() -> None:
    panel = panels(figure2.build(measured((0,))))["1: block1"]
    drawing = draw_panel(panel, marks(list(PRESETS)))
    svg = drawing.styled("x")
    titles = [one.text or "" for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert panel.raster is not None
    assert len(titles) == 81
    assert f"Softmax and Sigmoid: {panel.raster.values[0][2]:.3f}" in titles
    assert "Softmax and Softmax: no number" in titles
    steps = {step_of(v, 0, 1) for row in panel.raster.values for v in row if v is not None}
    assert set(map(int, re.findall(r"var\(--heat-(\d+)\)", svg))) == steps
    alone = drawing.styled("x", page=False)
    assert "var(" not in alone
    assert "#0505" not in svg + alone
    assert all(palette.HEAT[0][step] in alone for step in steps)


def test_small_maps_have_their_numbers_written_in_and_large_ones_their_labels_thinned() -> None:
    small = Raster(("1", "2"), ("1", "2"), ((1.0, 0.934), (None, -0.02)))
    svg = draw_panel(Panel("p", "", "", "", labelled=False, size=raster_size(2, 2), raster=small), {}).styled(
        "x"
    )
    shown = [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"1", ".93", "–", "−.02"} <= set(shown)
    names = tuple(str(number) for number in range(1, 41))
    large = Raster(names, names, tuple((0.5,) * 40 for _ in names))
    panel = Panel("p", "", "", "", labelled=False, size=raster_size(40, 40), raster=large)
    svg = draw_panel(panel, {}).styled("x")
    shown = [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert len(shown) == 2 * 10


def test_cells_are_in_the_csv_and_the_scale_is_not() -> None:
    made = figure2.build(measured((0,)))
    lines = list(csv.DictReader(io.StringIO(points_csv(made))))
    assert len(lines) == 9 * 9 + 3 * 81
    line = next(one for one in lines if one["label"] == "Softmax and Sigmoid" and one["panel"].endswith("-3"))
    raster = raster_of(made, "3: pooled")
    assert (line["x"], line["y"], float(line["value"])) == ("3", "1", raster.values[0][2])


@pytest.mark.parametrize("theme", [0, 1], ids=["paper", "dark"])
def test_the_scale_runs_from_the_ground_to_the_ink_and_can_be_written_on(theme: int) -> None:
    scale = palette.HEAT[theme]
    lightness = [oklab(colour)[0] for colour in scale]
    steps = [b - a for a, b in itertools.pairwise(lightness)]
    assert all(step < 0 for step in steps) if theme == 0 else all(step > 0 for step in steps)
    assert max(map(abs, steps)) < 4 * min(map(abs, steps))
    assert contrast(scale[0], palette.PAPER[theme]) < 1.3
    assert contrast(scale[-1], palette.PAPER[theme]) > 12
    for step, colour in enumerate(scale):
        ground = palette.INK[theme] if step < HEAT_FLIP else palette.PAPER[theme]
        assert contrast(colour, ground) >= 4
    assert f"--heat-{HEAT_STEPS - 1}: {scale[-1]};" in mark_variables({}, dark=bool(theme))


def test_numbers_are_short() -> None:
    assert [short(value) for value in (0.004, 0.999, 0.5, -1, math.pi)] == ["0", "1", ".50", "−1", "3.14"]


def test_the_page_has_the_maps() -> None:
    page = render_report(measured((0,)))[""].decode()
    for name in ("figure2", "figureB1", "figure4"):
        assert f'<article class="exhibit" id="{name}">' in page
    assert page.count("var(--heat-20)") > 0
    assert "<dt>CKA</dt>" in page


@pytest.mark.parametrize("name", ["figure2", "figure4"])
def test_a_sweep_stands_in_no_table_of_layers_and_is_said(name: str) -> None:
    sweep = [f"cosine_softmax(scale={tau}, temperature={tau})" for tau in (0.03, 0.05, 0.07)]
    made = BUILDERS[name](measured(objectives=[*MEASURED, *sweep]))
    assert not any("temperature" in row.label for table in made.tables for row in table.rows)
    assert any("three further temperatures is compared in Table 4" in note for note in made.notes)
