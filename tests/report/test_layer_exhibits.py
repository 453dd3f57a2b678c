"""Figures 2, 3, 4, B.1 and D.3, and the maps that some are drawn as: they hold what steps left of layers."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

from penultimate.objectives.presets import PRESETS
from penultimate.records.table import Row
from penultimate.report import exhibit, render_report
from penultimate.report.base import Built, Panel, Raster, StudyResults
from penultimate.report.drawing import palette
from penultimate.report.drawing.figures import draw_panel, mark_variables
from penultimate.report.drawing.palette import HEAT_FLIP, HEAT_STEPS, marks
from penultimate.report.drawing.rasters import raster_size, short, step_of
from penultimate.report.tables import points_csv
from penultimate.report.terminal import render_exhibit_text
from tests.oracles.report import contrast, mean_of, oklab
from tests.report.planted import NINE
from tests.report.reading import (
    Arrays,
    described,
    glyphs,
    objectives_of,
    only,
    part_of,
    table_of,
    values,
    with_rows,
    without_second,
)

NAMES = ("figure2", "figureB1", "figure3", "figure4")
MAPS = ("figure2", "figureB1")
LAYERS = ("block1", "block2", "bottleneck1", "bottleneck2", "penultimate")
SEEDS = (0, 1)
"""Those whose layers are compared."""


def matrix_of(
    results: StudyResults, backbone: str = "glyphnet", name: str = "matrix"
) -> Callable[..., float]:
    """The entry of two networks' layers, (objective's slug, seed, layer) each, of what the step has left."""
    row = next(row for row in results.table if (row.metric, row.backbone) == ("layer_cka", backbone))
    assert results.arrays is not None
    arrays = results.arrays(str(row.step), "layer_cka")
    named = ("objectives", "seeds", "layers", "epochs")
    places = {
        key: place for place, key in enumerate(zip(*(arrays[name].tolist() for name in named), strict=True))
    }
    specs = {**objectives_of(results), "": ""}

    def entry(first: tuple[str, int, str], second: tuple[str, int, str]) -> float:
        rows = [places[specs[slug], seed, layer, -1 if slug else 0] for slug, seed, layer in (first, second)]
        return float(arrays[name][rows[0], rows[1]])

    return entry


def with_arrays(results: StudyResults, change: Callable[[dict[str, np.ndarray]], Arrays]) -> StudyResults:
    """The study whose comparison of layers has left something else."""
    read = results.arrays
    assert read is not None
    changed = lambda step, metric: change({name: array.copy() for name, array in read(step, metric).items()})  # noqa: E731
    return dataclasses.replace(results, arrays=changed)


def titled(built: Built) -> dict[str, Panel]:
    return {panel.title: panel for figure in built.figures for panel in figure.panels}


def raster_of(built: Built, title: str) -> Raster:
    raster = titled(built)[title].raster
    assert raster is not None
    return raster


def test_maps_of_layers_are_means_over_pairs_of_different_seeds() -> None:
    built, entry = exhibit("figure2", glyphs()), matrix_of(glyphs())
    raster = raster_of(built, PRESETS["sigmoid"].label)
    for (i, a), (j, b) in itertools.product(enumerate(LAYERS), repeat=2):
        pairs = [entry(("softmax", seed, a), ("sigmoid", 1 - seed, b)) for seed in SEEDS]
        assert raster.values[i][j] == pytest.approx(mean_of(pairs), rel=1e-5)
    control = raster_of(built, f"{PRESETS['softmax'].label}, another seed")
    pairs = [entry(("softmax", seed, "block1"), ("softmax", 1 - seed, "penultimate")) for seed in SEEDS]
    assert control.values[0][4] == pytest.approx(mean_of(pairs), rel=1e-5)
    initial = raster_of(built, "At initialisation")
    pairs = [entry(("softmax", seed, "block2"), ("", -1, "block1")) for seed in SEEDS]
    assert initial.values[1][0] == pytest.approx(mean_of(pairs), rel=1e-5)


def test_maps_of_objectives_are_symmetric_and_one_a_layer() -> None:
    built, entry = exhibit("figure2", glyphs()), matrix_of(glyphs())
    slugs = list(objectives_of(glyphs()))
    for number, layer in enumerate(LAYERS, 1):
        raster = raster_of(built, f"{number}: {layer}")
        assert raster.rows == raster.columns
        assert list(raster.row_marks) == slugs
        assert raster.values == tuple(zip(*raster.values, strict=True))
        pairs = [entry(("dropout", seed, layer), ("logit_norm", 1 - seed, layer)) for seed in SEEDS]
        found = raster.values[slugs.index("dropout")][slugs.index("logit_norm")]
        assert found == pytest.approx(mean_of(pairs), rel=1e-5)


def test_tables_hold_corresponding_layers_with_their_standard_errors() -> None:
    built, error_at = exhibit("figure2", glyphs()), matrix_of(glyphs(), name="standard_error")
    table = table_of(built, "figure2")
    assert tuple(column.label for column in table.columns) == LAYERS
    assert table.rows[0].label == "Softmax, another seed"
    assert (table.rows[-1].label, table.rows[-1].objective) == ("At initialisation", "")
    raster = raster_of(built, PRESETS["sigmoid"].label)
    row = next(row for row in table.rows if row.objective == "sigmoid")
    for index, (cell, layer) in enumerate(zip(row.cells, LAYERS, strict=True)):
        assert cell.value == raster.values[index][index]
        errors = [error_at(("softmax", seed, layer), ("sigmoid", 1 - seed, layer)) for seed in SEEDS]
        assert cell.error == pytest.approx(mean_of(errors), rel=1e-5)
    last = table_of(built, "figure2-last")
    assert [cell.value for cell in last.rows[2].cells] == list(raster_of(built, "5: penultimate").values[2])
    sentence = next(note for note in built.notes if note.startswith("Ours:"))
    others = [row.cells[-1].value or 0 for row in table.rows[1:-1]]
    assert f"{mean_of(others):.2f} (at least {min(others):.2f}) in the penultimate features" in sentence
    assert "two seeds of Softmax:" in sentence
    assert "a network at initialisation:" in sentence


def test_one_seed_has_no_control_and_says_how_to_get_it() -> None:
    built, entry = exhibit("figure2", part_of(glyphs(), seeds=[0])), matrix_of(glyphs())
    assert not any("another seed" in title for title in titled(built))
    assert all(row[place] is None for place, row in enumerate(raster_of(built, "1: block1").values))
    pair = entry(("softmax", 0, "block1"), ("sigmoid", 0, "penultimate"))
    assert raster_of(built, PRESETS["sigmoid"].label).values[0][4] == pytest.approx(pair, rel=1e-5)
    assert any("penultimate run glyphs --seeds 0,1" in note for note in built.notes)
    results = part_of(glyphs(), seeds=[0])
    typed = {**results.description, "command": "penultimate run 'my studies/glyphs.py' --processes 1"}
    built = exhibit("figure2", dataclasses.replace(results, description=typed))
    assert any("penultimate run 'my studies/glyphs.py' --seeds 0,1" in note for note in built.notes)
    assert table_of(built, "figure2-last").rows[0].cells[0].detail == "needs two seeds"


def test_one_objective_is_compared_with_its_initialisation_only() -> None:
    built = exhibit("figure2", part_of(glyphs(), ["sigmoid"], [0]))
    assert list(titled(built)) == ["The scale", "At initialisation"]
    assert [table.name for table in built.tables] == ["figure2"]
    assert any("one objective only" in note for note in built.notes)


def test_without_softmax_the_first_objective_is_the_reference() -> None:
    built = exhibit("figure2", part_of(glyphs(), ["sigmoid", "squared_error"], [0]))
    assert "rows are layers of Sigmoid" in built.caption
    assert [row.label for row in built.tables[0].rows] == ["Squared error", "At initialisation"]


def test_a_constant_layer_is_said_and_leaves_its_cells_empty() -> None:
    def spoil(arrays: dict[str, np.ndarray]) -> Arrays:
        for values_ in (arrays["matrix"], arrays["standard_error"]):
            values_[6, :] = values_[:, 6] = values_[10, :] = values_[:, 10] = np.nan
        return arrays

    built = exhibit("figure2", with_arrays(part_of(glyphs(), seeds=[0]), spoil))
    assert raster_of(built, PRESETS["label_smoothing"].label).values[0][1] is None
    constant = "block2 of Label smoothing, seed 0 and block1 of Sigmoid, seed 0"
    assert f"No CKA, being the same for all images: {constant}." in built.notes
    assert not re.search(r"\bnan\b", render_exhibit_text(built).lower() + points_csv(built).lower())
    assert draw_panel(titled(built)[PRESETS["label_smoothing"].label], marks(list(NINE))).raw


def test_one_batch_has_no_standard_error_and_shows_its_numbers() -> None:
    def alone(arrays: dict[str, np.ndarray]) -> Arrays:
        return {**arrays, "standard_error": np.full_like(arrays["standard_error"], np.nan)}

    row = exhibit("figure2", with_arrays(glyphs(), alone)).tables[0].rows[0]
    assert all(cell.value is not None and cell.error is None and cell.detail == "" for cell in row.cells)


def given_beside(count: int) -> StudyResults:
    """The study with a network that was not trained here, of `count` layers, as `similarity` leaves it."""

    def join(arrays: dict[str, np.ndarray]) -> Arrays:
        grown = {
            name: np.pad(arrays[name], (0, count), constant_values=0.5)
            for name in ("matrix", "standard_error")
        }
        for place in range(count):
            grown["matrix"][-count + place, -count + place] = 1
        further = {"objectives": "ours", "seeds": -1, "epochs": -1}
        columns = {name: np.append(arrays[name], [value] * count) for name, value in further.items()}
        layers = np.append(arrays["layers"], [f"stage{place}" for place in range(count)])
        return {**arrays, **grown, **columns, "layers": layers}

    block = {"given": {"ours": "timm:resnet18"}, "classifies": False, "measure": None}
    networks = [*glyphs().description["networks"], block]
    listed = [*glyphs().description["objectives"], {"slug": "ours", "label": "ours", "spec": "ours"}]
    return with_arrays(described(glyphs(), networks=networks, objectives=listed), join)


@pytest.mark.parametrize("count", [5, 3])
def test_a_network_that_was_not_trained_here_stands_beside_the_others(count: int) -> None:
    built = exhibit("figure2", given_beside(count))
    raster = raster_of(built, "ours")
    assert (len(raster.rows), len(raster.columns)) == (5, count)
    row = next(row for row in table_of(built, "figure2").rows if row.objective == "ours")
    corner = table_of(built, "figure2-last").rows[-1].cells
    if count == 5:
        assert {cell.value for cell in row.cells} == {0.5}
        assert corner[0].value == 0.5
    else:
        assert {(cell.text, cell.detail) for cell in (*row.cells, *corner[:-1])} == {
            ("–", "it has another number of layers")
        }
    assert corner[-1].detail == "needs two seeds"
    assert render_exhibit_text(built)
    same = next(note for note in built.notes if note.startswith("Ours:"))
    assert (count == 5) == ("at least 0.50" in same)


def test_figure_b1_is_of_the_second_architecture() -> None:
    built, entry = exhibit("figureB1", glyphs()), matrix_of(glyphs(), "glyphplain")
    raster = raster_of(built, PRESETS["sigmoid"].label)
    pairs = [entry(("softmax", seed, "unit1"), ("sigmoid", 1 - seed, "unit2")) for seed in SEEDS]
    assert raster.values[0][1] == pytest.approx(mean_of(pairs), rel=1e-5)
    assert built.caption.startswith("The architecture: glyphplain. ")
    assert "The architecture here is glyphplain; all other exhibits show glyphnet." in built.notes


def test_figure_b1_says_how_to_have_a_second_architecture() -> None:
    built = exhibit("figureB1", without_second(glyphs()))
    assert built.tables == built.figures == ()
    command = """penultimate run glyphs --set "backbones=('glyphnet', 'glyphplain')\""""
    assert [gap.command for gap in built.missing] == [command]
    begun = only(glyphs(), lambda row: row.backbone != "glyphplain")
    assert [gap.command for gap in exhibit("figureB1", begun).missing] == ["penultimate run glyphs"]


@pytest.mark.parametrize(
    ("name", "metric", "scale"), [("figure3", "nonzero_share", 100), ("figure4", "class_separation", 1)]
)
def test_every_layer_has_the_mean_of_its_rows(name: str, metric: str, scale: float) -> None:
    built = exhibit(name, glyphs())
    table, panel = table_of(built, name), titled(built)["Glyphs, test images"]
    assert [column.label for column in table.columns] == [*LAYERS[:-1], "Penultimate"]
    specs = objectives_of(glyphs())
    assert [row.objective for row in table.rows] == list(specs)
    for row, curve in zip(table.rows, panel.curves, strict=True):
        for cell, layer in zip(row.cells, LAYERS, strict=True):
            runs = values(glyphs(), objective=specs[row.objective], metric=metric, split="test", layer=layer)
            assert len(runs) == 5
            assert cell.value == pytest.approx(scale * mean_of(runs))
        assert curve.objective == row.objective
        assert curve.points == tuple((i, pytest.approx(cell.value)) for i, cell in enumerate(row.cells, 1))
    ends = [[row.cells[place].value or 0 for row in table.rows] for place in (0, -1)]
    digits, unit = (1, " %") if name == "figure3" else (3, "")
    for where, end in zip(("in block1 the ", "in the penultimate features the "), ends, strict=True):
        said = built.finding.partition(where)[2]
        low, high = (f" {value:.{digits}f} ± " for value in (min(end), max(end)))
        assert 0 < said.index(f" runs from{low}") < said.index(f"{unit} (") < said.index(f" to{high}")


def test_layers_that_the_study_does_not_list_stand_in_the_order_of_their_numbers() -> None:
    names = {"block1": "block10", "block2": "block9", "bottleneck1": "block8", "bottleneck2": "block1"}
    rows = [
        dataclasses.replace(row, layer=names.get(row.layer or "", row.layer))
        for row in glyphs().table
        if row.metric == "nonzero_share"
    ]
    renamed = with_rows(only(described(glyphs(), layers=[]), lambda row: row.metric != "nonzero_share"), rows)
    table = table_of(exhibit("figure3", renamed), "figure3")
    assert [column.label for column in table.columns] == [
        "block1",
        "block8",
        "block9",
        "block10",
        "Penultimate",
    ]


def test_figure4_takes_the_papers_split_where_it_was_measured() -> None:
    def lifted(row: Row) -> Row:
        return dataclasses.replace(row, split="train", value=row.value + 0.125)

    layered = [
        row for row in glyphs().table if row.metric == "class_separation" and row.layer and not row.arm
    ]
    both = with_rows(glyphs(), map(lifted, layered))
    for results, words, lift in ((glyphs(), "test images", 0), (both, "training images", 0.125)):
        built = exhibit("figure4", results)
        assert words in built.caption
        assert words in table_of(built, "figure4").title
        runs = values(glyphs(), objective="softmax", metric="class_separation", split="test", layer="block2")
        assert table_of(built, "figure4").rows[0].cells[1].value == pytest.approx(mean_of(runs) + lift)
    printed = {row.objective: row.cells[0].text for row in table_of(built, "figure4_published").rows}
    assert printed["squared_error"] == "0.845 ± 0.0002"


def test_figure3_holds_what_the_paper_prints_in_its_text() -> None:
    table = table_of(exhibit("figure3", glyphs()), "figure3_published")
    printed = {row.objective: (row.cells[0].text, row.cells[0].value) for row in table.rows}
    assert set(printed) == set(NINE)
    assert printed["softmax"] == ("92.8", 92.8)
    assert printed["squared_error"] == ("< 25", None)
    assert printed["sigmoid"] == ("–", None)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_measured_is_said_and_not_drawn(name: str) -> None:
    bare = only(glyphs(), lambda row: row.layer is None and row.metric != "layer_cka")
    built = exhibit(name, bare)
    assert built.figures == ()
    assert all(table.source == "published" for table in built.tables)
    assert len(built.missing) == 1
    assert str(built.missing[0]) == built.notes[0]
    assert any("The paper" in note for note in built.notes)
    if name in MAPS:
        assert exhibit(name, dataclasses.replace(glyphs(), arrays=None)).missing == built.missing


@pytest.mark.parametrize("name", ["figure2", "figure3", "figure4"])
def test_a_sweep_stands_in_no_table_of_layers_and_is_said(name: str) -> None:
    built = exhibit(name, glyphs())
    assert not any("τ" in row.label for table in built.tables for row in table.rows)
    assert built.notes[-1] == "Cosine softmax at five further temperatures is compared in Table 4, not here."


def test_cells_are_drawn_with_what_they_say_and_in_the_pages_colours() -> None:
    panel = titled(exhibit("figure2", part_of(glyphs(), seeds=[0])))["1: block1"]
    drawing = draw_panel(panel, marks(list(NINE)))
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


@pytest.mark.long
def test_small_maps_have_their_numbers_written_in_and_large_ones_their_labels_thinned() -> None:
    small = Raster(("1", "2"), ("1", "2"), ((1.0, 0.934), (None, -0.02)))
    panel = Panel("p", "", "", "", labelled=False, size=raster_size(2, 2), raster=small)
    svg = draw_panel(panel, {}).styled("x")
    shown = [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"1", ".93", "–", "−.02"} <= set(shown)
    names = tuple(str(number) for number in range(1, 41))
    large = Raster(names, names, tuple((0.5,) * 40 for _ in names))
    panel = Panel("p", "", "", "", labelled=False, size=raster_size(40, 40), raster=large)
    svg = draw_panel(panel, {}).styled("x")
    shown = [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert len(shown) == 2 * 10


def test_cells_are_in_the_csv_and_the_scale_is_not() -> None:
    built = exhibit("figure2", part_of(glyphs(), seeds=[0]))
    lines = list(csv.DictReader(io.StringIO(points_csv(built))))
    assert len(lines) == 9 * 25 + 5 * 81
    line = next(one for one in lines if one["label"] == "Softmax and Sigmoid" and one["panel"].endswith("-3"))
    raster = raster_of(built, "3: bottleneck1")
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


@pytest.mark.long
def test_the_page_has_the_maps() -> None:
    measured = only(
        part_of(glyphs(), ["softmax", "sigmoid"], [0]), lambda row: bool(row.layer) or not row.objective
    )
    page = render_report(measured)[""].decode()
    for name in ("figure2", "figureB1", "figure4"):
        assert f'<article class="exhibit" id="{name}">' in page
    assert page.count("var(--heat-20)") > 0
    assert "<dt>CKA</dt>" in page
