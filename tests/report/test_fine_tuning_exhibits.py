"""Table 2 and Figure D.3 hold what the steps of fine-tuning have left, and say what was searched."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas
import pytest

from penultimate.paper import published
from penultimate.records.table import Row, Table
from penultimate.report import StudyResults, read_study
from penultimate.report.base import Built, Cell
from penultimate.report.measurements import admit
from penultimate.report.spec import assemble
from penultimate.statistics import bold
from tests.conftest import penultimate
from tests.oracles.report import mean_of
from tests.report.reading import described, glyphs, only, table_of, with_rows
from tests.report.test_contract import exhibit_of

TARGETS = ("syllabics_smoke", "digits_smoke")


@pytest.fixture
def finished(finished_smoke: Path) -> StudyResults:
    return read_study(finished_smoke / "runs", "smoke")


def exhibit(name: str, results: StudyResults) -> Built:
    return assemble(exhibit_of(name), admit(results, allow_limited=True))


def value(results: StudyResults, metric: str, target: str, **columns: object) -> float:
    found = results.table.where(metric=metric, target=target, **columns)
    (row,) = found
    return row.value


def several_seeds(results: StudyResults) -> StudyResults:
    """The study with two more seeds, whose accuracies differ from the first's."""
    random = np.random.default_rng(0)
    more = [
        dataclasses.replace(row, seed=seed, value=row.value + float(random.normal(0, 0.02)))
        for row in results.table
        for seed in (1, 2)
        if row.metric in ("fine_tuned_top1", "from_scratch_top1", "linear_top1")
    ]
    return with_rows(results, more)


def column(built: Built, table: str, key: str) -> dict[str, Cell]:
    shown = table_of(built, table)
    at = [head.key for head in shown.columns].index(key)
    return {row.objective or row.label: row.cells[at] for row in shown.rows}


def test_table_2_holds_every_task_their_mean_and_a_row_from_scratch(finished: StudyResults) -> None:
    results = several_seeds(finished)
    built = exhibit("table2", results)
    tuned_ones = set(results.table.where(metric="fine_tuned_top1").column("objective"))
    listed = results.description["objectives"]
    specs = {entry["slug"]: entry["spec"] for entry in listed if entry["spec"] in tuned_ones}
    of_tasks: dict[str, list[list[float]]] = {}
    for target in TARGETS:
        cells = column(built, "table2", f"{target}_percent")
        assert [*cells] == [*specs, "From scratch"]
        for slug, cell in cells.items():
            tuned = slug in specs
            rows = results.table.where(
                metric="fine_tuned_top1" if tuned else "from_scratch_top1",
                target=target,
                objective=specs.get(slug),
            )
            runs = [100 * row.value for row in sorted(rows, key=lambda row: row.seed or 0)]
            assert len(runs) == cell.count == 3
            assert cell.value == pytest.approx(mean_of(runs))
            of_tasks.setdefault(slug, []).append(runs)
    means = column(built, "table2", "mean_percent")
    for slug, runs in of_tasks.items():
        assert means[slug].value == pytest.approx(
            mean_of([mean_of(list(pair)) for pair in zip(*runs, strict=True)])
        )
    by_seed = {
        slug: dict(enumerate(mean_of(list(pair)) for pair in zip(*of_tasks[slug], strict=True)))
        for slug in specs
    }
    assert {slug for slug, cell in means.items() if cell.best} == bold(by_seed).entries
    starts = column(built, "table2_starts", "fine_tuned_mean_percent")
    assert {slug: cell.value for slug, cell in starts.items()} == {slug: means[slug].value for slug in specs}
    assert {slug for slug, cell in starts.items() if cell.best} == bold(by_seed).entries


def test_the_paper_s_table_2_is_printed_digit_for_digit() -> None:
    shown = table_of(exhibit("table2", glyphs()), "table2_published")
    for row, printed in zip(shown.rows, published.printed("table2"), strict=True):
        keys = ["avg_percent" if head.key == "mean_percent" else head.key for head in shown.columns]
        assert [cell.text for cell in row.cells] == [printed[key] for key in keys]


def test_it_says_what_fine_tuning_gains_and_how_far_objectives_are_apart(finished: StudyResults) -> None:
    built = exhibit("table2", finished)
    means = [cell.value or 0 for cell in column(built, "table2", "mean_percent").values()]
    *tuned, scratch = means
    said = " ".join(built.notes).replace("−", "-")
    assert (
        f"is {max(tuned) - min(tuned):.1f} points above the lowest in fine-tuned transfer and "
        in built.finding
    )
    assert "; in the paper 1.3 and " in built.finding
    gains = f"{min(tuned) - scratch:.1f} to {max(tuned) - scratch:.1f} points".replace("-0.0", "0.0")
    assert f"raining from scratch reaches {scratch:.1f} % in the mean over tasks; " in said
    assert f"; fine-tuning gains {gains} on it" in said
    assert "four steps of 16 images" in said
    assert "two learning rates × two decays" in said


def with_choices(
    results: StudyResults, edges: float, cells: float, scratch: float = 0, of_scratch: float = 4
) -> StudyResults:
    new = {
        "fine_tuned_edges": edges,
        "fine_tuned_cells": cells,
        "from_scratch_edges": scratch,
        "from_scratch_cells": of_scratch,
    }
    rows = [dataclasses.replace(row, value=new.get(row.metric, row.value)) for row in results.table]
    return with_rows(only(results, lambda row: False), rows)


@pytest.mark.parametrize(
    ("edges", "cells", "scratch", "said"),
    [
        (
            1,
            4,
            0,
            "lie six of six best cells (one for each objective and task) and none of two from scratch. To",
        ),
        (0, 4, 2, "none of six best cells (one for each objective and task) and two of two from scratch. To"),
        (0, 4, 0, ""),
        (0, 1, 0, "One learning rate and decay only: nothing was chosen."),
        (0, 1, 2, "lie two of two best cells from scratch. To widen"),
    ],
)
def test_a_best_cell_on_the_edge_of_the_grid_is_said(
    finished: StudyResults, edges: int, cells: int, scratch: int, said: str
) -> None:
    notes = " ".join(exhibit("table2", with_choices(finished, edges, cells, scratch)).notes)
    assert said in notes
    assert ("edge of the grid" in notes, "nothing was chosen" in notes) == (edges + scratch > 0, cells == 1)


def test_of_one_cell_from_scratch_nothing_was_chosen(finished: StudyResults) -> None:
    notes = exhibit("table2", with_choices(finished, 1, 4, 0, of_scratch=1)).notes
    assert "One learning rate and decay only, from scratch: nothing was chosen." in notes
    (edge,) = (note for note in notes if "edge of the grid" in note)
    assert "lie six of six best cells (one for each objective and task). To widen" in edge


def test_classes_without_a_validation_image_are_named(finished: StudyResults) -> None:
    lacking = {"digits_smoke": ["seven", "nine"]}
    provenance = {**finished.provenance, "classes_not_validated": lacking}
    notes = exhibit("table2", dataclasses.replace(finished, provenance=provenance)).notes
    assert (
        "No validation image of 'Digits (smoke)' is of seven, nine: they had no say in the choice." in notes
    )


def test_the_papers_test_of_averages_is_that_of_statsmodels(finished: StudyResults) -> None:
    """Softmax ahead of one objective by far more than chance, and of another by less."""
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    results = several_seeds(finished)
    tuned = results.table.where(metric="fine_tuned_top1")
    specs = sorted({str(row.objective) for row in tuned})
    noise = iter(np.random.default_rng(3).normal(0, 0.01, len(tuned)))
    values = {
        row: {"softmax": 0.8, specs[0] if specs[0] != "softmax" else specs[1]: 0.6}.get(
            str(row.objective), 0.795
        )
        + float(next(noise))
        for row in tuned
    }
    rows = [dataclasses.replace(row, value=values.get(row, row.value)) for row in results.table]
    planted = with_rows(only(results, lambda row: False), rows)

    def p_of(among: Collection[str]) -> tuple[float, float]:
        kept = [row for row in planted.table.where(metric="fine_tuned_top1") if row.objective in among]
        frame = pandas.DataFrame(
            [{"objective": row.objective, "task": row.target, "value": row.value} for row in kept]
        )
        found = anova_lm(ols("value ~ C(objective) * C(task)", frame).fit(), typ=2).loc["C(objective)"]
        return float(found["F"]), float(found["PR(>F)"])

    f, p = p_of(specs)
    (said,) = (note for note in exhibit("table2", planted).notes if "analysis of variance" in note)
    assert f"= {f:.2f}, " in said
    assert p < 0.05
    assert "the objectives differ beyond chance" in said
    labels = {each.spec: each.label for each in admit(planted, allow_limited=True).objectives}
    worse = {labels[spec] for spec in specs if spec != "softmax" and p_of(("softmax", spec))[1] < 0.05}
    assert 0 < len(worse) < len(specs) - 1
    told = said.partition("worse than the best of them, Softmax: ")[2].partition(". ")[0]
    assert set(re.split(", | and ", told)) == worse


def test_a_wider_grid_is_a_command(finished: StudyResults) -> None:
    """Of a joined study that which runs it; also of what only some networks are asked for."""
    edged = with_choices(finished, 1, 4)
    joined = described(edged, command="penultimate join smoke a b")
    joined = dataclasses.replace(joined, provenance={**joined.provenance, "networks": [3, 3]})
    everywhere = list(edged.description["measure"])
    own = [text for text in everywhere if text.startswith("fine_tuning(")]
    networks = [{**block, "measure": own} for block in edged.description["networks"]]
    of_some = described(edged, measure=[text for text in everywhere if text not in own], networks=networks)
    commands = set()
    for results in (edged, joined, of_some):
        (note,) = (text for text in exhibit("table2", results).notes if "edge of the grid" in text)
        commands.add(note.partition("`")[2].rstrip("`"))
    (command,) = commands
    program, *words = shlex.split(command)
    assert (program, words[:3]) == ("penultimate", ["run", "smoke", "--set"])
    assert words[3].startswith("fine_tuning.")


def cells_of(store: Path, step: str) -> set[tuple[float, float]]:
    """The learning rates and decays of all cells that a store holds."""
    configs = [json.loads(meta.read_text())["config"] for meta in store.glob(f"steps/{step}.*/meta.json")]
    return {(config["learning_rate"], config["decay"]) for config in configs}


@pytest.mark.long
def test_the_command_that_widens_the_grids_trains_the_new_cells_only(smoke: Path) -> None:
    notes = exhibit("table2", read_study(smoke / "runs", "smoke")).notes
    (note,) = (text for text in notes if "edge of the grid" in text)
    kinds = {"fine_tuned": "fine_tune_cell", "from_scratch": "scratch_cell"}
    before = {kind: cells_of(smoke / "runs", kind) for kind in kinds.values()}
    steps = {path.name for path in (smoke / "runs/steps").iterdir()}
    program, *words = shlex.split(note.partition("`")[2].rstrip("`"))
    assert (program, words[:2]) == ("penultimate", ["run", "smoke"])
    answer = penultimate(*words, cwd=smoke)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    new = {path.name for path in (smoke / "runs/steps").iterdir()} - steps
    of_fine_tuning = {"fine_tune_cell", "fine_tune_choice", "fine_tuning"}
    from_scratch = {"scratch_cell", "scratch_choice", "from_scratch"}
    assert {name.partition(".")[0] for name in new} == of_fine_tuning | from_scratch
    wider = next(path for path in (smoke / "runs/studies").iterdir() if path.name != "smoke")
    table = read_study(smoke / "runs", wider.name).table
    for metric, kind in kinds.items():
        cells = cells_of(smoke / "runs", kind)
        assert cells > before[kind]
        assert {row.value for row in table.where(metric=f"{metric}_cells")} == {len(cells)}
        configs = [
            json.loads((smoke / "runs/steps" / name / "meta.json").read_text())["config"]
            for name in new
            if name.startswith(f"{kind}.")
        ]
        assert {(config["learning_rate"], config["decay"]) for config in configs} == cells - before[kind]
    again = exhibit("table2", read_study(smoke / "runs", wider.name))
    assert column(again, "table2_starts", "linear_mean_percent")


def test_a_final_layer_that_was_trained_first_stands_beside_the_fresh_one(finished: StudyResults) -> None:
    probed = [
        dataclasses.replace(row, setting="head=probe", value=row.value + 0.25)
        for row in finished.table.where(metric="fine_tuned_top1")
    ]
    built = exhibit("table2", with_rows(finished, probed))
    fresh, probe = (column(built, "table2_starts", f"{key}fine_tuned_mean_percent") for key in ("", "probe_"))
    for slug, cell in probe.items():
        assert cell.value == pytest.approx((fresh[slug].value or 0) + 25)
    assert len(table_of(built, "table2_starts").columns) == 3
    by_task = table_of(built, "table2_probe")
    assert by_task.folded
    of_fresh = table_of(built, "table2")
    for row, other in zip(by_task.rows, of_fresh.rows[:-1], strict=True):
        assert (row.label, *(cell.value for cell in row.cells)) == (
            other.label,
            *(pytest.approx((cell.value or 0) + 25) for cell in other.cells),
        )


def test_a_final_layer_that_was_always_trained_first_is_the_table(finished: StudyResults) -> None:
    rows = [
        dataclasses.replace(row, setting=(row.setting or "").replace("fresh", "probe") or None)
        for row in finished.table
        if row.setting != "head=probe"
    ]
    built = exhibit("table2", dataclasses.replace(finished, table=Table(rows)))
    assert not built.missing
    assert [table.name for table in built.tables if table.source != "published"] == [
        "table2_probe",
        "table2_starts",
    ]
    fresh = table_of(exhibit("table2", finished), "table2")
    shown = table_of(built, "table2_probe")
    assert not shown.folded
    assert [(row.label, *row.cells) for row in shown.rows] == [(row.label, *row.cells) for row in fresh.rows]


def test_why_nothing_was_fine_tuned_is_said_where_that_was_tried(finished: StudyResults) -> None:
    untuned = [row for row in finished.table if not row.metric.startswith(("fine_tuned", "from_scratch"))]
    why = "all of 4 learning rates and decays diverged"
    step = "fine_tuning.softmax-s0-digits_smoke-headfresh.0123"
    provenance = {**finished.provenance, "undefined": {step: why, "dynamics.x.0": "of something else"}}
    built = exhibit("table2", dataclasses.replace(finished, table=Table(untuned), provenance=provenance))
    assert not built.missing
    assert built.notes[0] == f"Fine-tuned networks: no value: {why}."


def test_another_length_from_scratch_is_told(finished: StudyResults) -> None:
    longer = ["fine_tuning(steps=50)", "from_scratch(steps=70)"]
    notes = exhibit("table2", described(finished, measure=longer)).notes
    (method,) = (note for note in notes if note.startswith("Ours: 50 steps of 64 images"))
    assert method.endswith("From scratch: 70 steps of 64 images; four learning rates × three decays.")
    same = exhibit("table2", described(finished, measure=["fine_tuning(steps=50)", "from_scratch(steps=50)"]))
    assert not any("From scratch: " in note for note in same.notes)
    assert any(note.startswith("In the same 50 steps training from scratch reaches ") for note in same.notes)
    assert any(note.startswith("Training from scratch reaches ") for note in notes)


def test_what_is_not_measured_is_said() -> None:
    for name, what in (
        ("table2", "Fine-tuned networks"),
        ("figureD3", "CKA of a network's layers before and after fine-tuning"),
    ):
        built = exhibit(name, glyphs())
        assert [gap.what for gap in built.missing] == [what]
        assert {table.source for table in built.tables} <= {"published"}


def test_figure_d3_is_the_mean_map_of_softmax_a_task_each(finished: StudyResults) -> None:
    built = exhibit("figureD3", finished)
    panels = {panel.title: panel.raster for figure in built.figures for panel in figure.panels}
    assert list(panels) == ["The scale", "Syllabics (smoke)", "Digits (smoke)"]
    assert finished.arrays is not None
    for target, title in zip(TARGETS, list(panels)[1:], strict=True):
        (pointing,) = finished.table.where(metric="fine_tuned_layers", target=target, objective="softmax")
        matrix = finished.arrays(str(pointing.step), "fine_tuned_layers")["matrix"]
        raster = panels[title]
        assert raster is not None
        assert np.asarray(raster.values, float) == pytest.approx(matrix, rel=1e-5)
        (row,) = (row for row in built.tables[0].rows if row.label == title)
        assert [cell.value for cell in row.cells] == pytest.approx(matrix.diagonal(), rel=1e-5)
        for layer, one in zip(built.tables[0].columns, matrix.diagonal(), strict=True):
            assert value(finished, "fine_tuned_cka", target, layer=layer.label, objective="softmax") == one
    assert "softmax" not in exhibit("figureD3", _without(finished, "softmax")).tables[0].title.lower().split(
        ":"
    )


def _without(results: StudyResults, slug: str) -> StudyResults:
    def keep(row: Row) -> bool:
        return row.objective != slug

    return only(results, keep)
