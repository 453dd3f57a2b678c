"""Table C.2: the numbers of the rows, the mean corruption error against the right reference, gaps said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from penultimate import published
from penultimate.data.corruptions import BENCHMARK
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.report.exhibits import table_c2
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, StudyResults
from penultimate.report.tables import render_exhibit_text, to_csv, to_latex
from penultimate.table import Row, Table
from tests.oracles import robustness as oracle
from tests.oracles.report import mean_of, standard_error_of
from tests.report.synthetic import MEASURED, study

SPECS = {text.partition("(")[0]: resolve(text).canonical for text in MEASURED}
SEEDS = (0, 1, 2)
SETS = {"v2": "glyphs_v2", "a": "glyphs_a", "r": "glyphs_r", "sketch": "glyphs_sketch"}


def robustness_rows(seeds: Sequence[int] = SEEDS) -> list[Row]:
    draw = np.random.default_rng(0)
    rows = []
    for spec in SPECS.values():
        for seed in seeds:
            about = {"objective": spec, "seed": seed, "backbone": "glyphnet", "source": "glyphs"}
            for target in SETS.values():
                rows.append(
                    Row(metric="top1", value=draw.uniform(0.2, 0.8), target=target, split="test", **about)
                )
            for name in BENCHMARK:
                for severity in range(1, 6):
                    own = {"target": "glyphs", "split": "test", "layer": f"{name} {severity}", **about}
                    rows.append(Row(metric="corruption_error", value=draw.uniform(0.1, 0.9), **own))
    return rows


@pytest.fixture(scope="module")
def results() -> StudyResults:
    found = study(SEEDS)
    return dataclasses.replace(found, table=Table([*found.table, *robustness_rows()]))


def only(results: StudyResults, keep: Callable[[Row], bool]) -> StudyResults:
    return dataclasses.replace(results, table=Table(row for row in results.table if keep(row)))


def errors(results: StudyResults, spec: str, seed: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in BENCHMARK}
    for name in BENCHMARK:
        for severity in range(1, 6):
            (row,) = results.table.where(
                metric="corruption_error", objective=spec, seed=seed, layer=f"{name} {severity}"
            )
            found[name].append(row.value)
    return found


def cell(table: ExhibitTable, objective: str, key: str) -> tuple[float | None, float | None]:
    place = [column.key for column in table.columns].index(key)
    found = next(row.cells[place] for row in table.rows if row.objective == objective)
    return found.value, found.error


def said(made: Exhibit) -> str:
    return " ".join(made.notes)


def test_temperatures_that_are_set_aside_are_not_counted_either() -> None:
    sweep = tuple(f"cosine_softmax(temperature={t}, scale={t})" for t in (0.03, 0.05, 0.07))
    rows = robustness_rows()
    cosine = SPECS["cosine_softmax"]
    copies = [
        dataclasses.replace(row, objective=resolve(text).canonical)
        for text in sweep
        for row in rows
        if row.objective == cosine
    ]
    found = study(SEEDS, objectives=(*MEASURED, *sweep))
    made = table_c2.build(dataclasses.replace(found, table=Table([*found.table, *rows, *copies])))
    assert "Of the 8 other objectives," in said(made)


def test_it_is_printed_saved_and_refused_when_limited(results: StudyResults) -> None:
    made = table_c2.build(results)
    assert made == table_c2.build(results)
    assert [table.name for table in made.tables] == ["tableC2", "tableC2_corruptions", "tableC2_published"]
    assert "Table C.2" in render_exhibit_text(made)
    assert "not measured" not in said(made)
    for table in made.tables:
        assert len(to_csv(table).splitlines()) == 10
        assert r"\toprule" in to_latex(table)
    limited = dataclasses.replace(results, description={**results.description, "limited": True})
    with pytest.raises(RequestError, match="limited run"):
        table_c2.build(limited)
    assert table_c2.build(limited, True).limited


def test_accuracies_are_those_of_each_set(results: StudyResults) -> None:
    table = table_c2.build(results).tables[0]
    for slug, spec in SPECS.items():
        for shift, target in {**SETS, "test": "glyphs"}.items():
            rows = results.table.where(metric="top1", target=target, split="test", objective=spec, epoch=None)
            own = [row.value for row in rows]
            assert cell(table, slug, f"{shift}_percent") == (
                pytest.approx(100 * mean_of(own)),
                pytest.approx(100 * standard_error_of(own)),
            )


def test_the_mean_corruption_error_is_taken_seed_by_seed(results: StudyResults) -> None:
    table = table_c2.build(results).tables[0]
    for slug, spec in SPECS.items():
        own = [
            oracle.mean_corruption_error(errors(results, spec, s), errors(results, SPECS["softmax"], s))
            for s in SEEDS
        ]
        if slug == "softmax":
            assert cell(table, slug, "mce") == (100.0, None)
            continue
        assert cell(table, slug, "mce") == (
            pytest.approx(100 * mean_of(own)),
            pytest.approx(100 * standard_error_of(own)),
        )


def test_errors_by_corruption_are_means_of_severities(results: StudyResults) -> None:
    table = table_c2.build(results).tables[1]
    for slug, spec in SPECS.items():
        for name in BENCHMARK:
            own = [mean_of(errors(results, spec, seed)[name]) for seed in SEEDS]
            assert cell(table, slug, f"{name}_error_percent")[0] == pytest.approx(100 * mean_of(own))


def test_the_finding_counts_objectives_below_softmax(results: StudyResults) -> None:
    table = table_c2.build(results).tables[0]
    place = [column.key for column in table.columns].index("mce")
    below = sum(row.cells[place].value < 100 for row in table.rows)
    assert (
        f"Of the 8 other objectives, {below} err less than softmax on corrupted images, in the mean of their"
        " runs; of the 8 in the paper's table, 8."
    ) in said(table_c2.build(results))


def test_the_papers_table_stands_digit_for_digit(results: StudyResults) -> None:
    table = table_c2.build(results).tables[-1]
    assert table.source == "published"
    rows = {row["objective"]: row for row in published.printed("tableC2_robustness")}
    for row in table.rows:
        for (key, error, *_), shown in zip(table_c2.PUBLISHED, row.cells, strict=True):
            assert shown.text == f"{rows[row.objective][key]} ± {rows[row.objective][error]}"


def test_what_was_not_measured_is_said(results: StudyResults) -> None:
    bare = table_c2.build(only(results, lambda row: row.metric.startswith("linear")))
    assert [table.source for table in bare.tables] == ["published"]
    for what in ("Corrupted images", "Shifted test sets"):
        assert f"{what}: not measured: run `penultimate run" in said(bare)
    no_errors = table_c2.build(only(results, lambda row: row.metric != "corruption_error"))
    assert "mce" not in [column.key for column in no_errors.tables[0].columns]
    assert len(no_errors.tables) == 2
    no_sets = table_c2.build(only(results, lambda row: row.target not in SETS.values()))
    assert [column.key for column in no_sets.tables[0].columns] == ["test_percent", "mce"]
    assert "Shifted test sets: not measured" in said(no_sets)


def test_without_softmax_there_is_no_mean_corruption_error(results: StudyResults) -> None:
    made = table_c2.build(
        only(results, lambda row: row.objective != SPECS["softmax"] or row.metric != "corruption_error")
    )
    assert "No mCE: its reference is the study's softmax network" in said(made)
    assert "mce" not in [column.key for column in made.tables[0].columns]
    assert "softmax" not in [row.objective for row in made.tables[1].rows]
    assert not any("nan" in cell.text for table in made.tables for row in table.rows for cell in row.cells)


def test_a_seed_without_softmax_is_left_out_and_named(results: StudyResults) -> None:
    gone = only(
        results,
        lambda row: (row.objective, row.seed, row.metric) != (SPECS["softmax"], 1, "corruption_error"),
    )
    made = table_c2.build(gone)
    assert "mCE without seed 1, of which there is no softmax network" in said(made)
    own = [
        oracle.mean_corruption_error(errors(gone, SPECS["sigmoid"], s), errors(gone, SPECS["softmax"], s))
        for s in (0, 2)
    ]
    assert cell(made.tables[0], "sigmoid", "mce")[0] == pytest.approx(100 * mean_of(own))


def test_a_flawless_reference_is_said_and_a_torn_run_left_out(results: StudyResults) -> None:
    flawless = Table(
        dataclasses.replace(row, value=0.0)
        if row.objective == SPECS["softmax"] and str(row.layer).startswith("fog")
        else row
        for row in results.table
    )
    made = table_c2.build(dataclasses.replace(results, table=flawless))
    assert "No mCE: fog: the reference makes no error" in said(made)
    torn = only(results, lambda row: row.objective != SPECS["sigmoid"] or row.layer != "snow 4")
    assert "sigmoid" not in [row.objective for row in table_c2.build(torn).tables[1].rows]


def test_diverged_runs_and_other_backbones_are_left_out(results: StudyResults) -> None:
    def spoilt(**columns: object) -> list[Row]:
        return [dataclasses.replace(row, value=0.0, **columns) for row in robustness_rows()]  # type: ignore[arg-type]

    for rows in (spoilt(status="diverged"), spoilt(backbone="other")):
        mixed = dataclasses.replace(results, table=Table([*results.table, *rows]))
        assert table_c2.build(mixed).tables == table_c2.build(results).tables
