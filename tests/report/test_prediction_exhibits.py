"""Exhibits of predictions: exactly the numbers of the rows, the paper's beside them, nothing drawn empty."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from penultimate import published
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.report.exhibits import (
    figure_c1,
    figure_c2,
    figure_c3,
    figure_c4,
    figure_c5,
    figure_c6,
    figure_c7,
    table_c1,
    table_c3,
)
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, Panel, StudyResults
from penultimate.report.exhibits.likeness import METRICS
from penultimate.report.figures import draw_panel
from penultimate.report.palette import marks
from penultimate.report.tables import points_csv, render_exhibit_text, to_csv, to_latex
from penultimate.table import Row, Table
from tests.oracles.agreement import average_linkage
from tests.oracles.report import mean_of, standard_error_of
from tests.report.synthetic import MEASURED, study

BUILDERS = {
    "tableC1": table_c1.build,
    "tableC3": table_c3.build,
    "figureC1": figure_c1.build,
    "figureC2": figure_c2.build,
    "figureC3": figure_c3.build,
    "figureC4": figure_c4.build,
    "figureC5": figure_c5.build,
    "figureC6": figure_c6.build,
    "figureC7": figure_c7.build,
}
PAIRED = ("figureC4", "figureC5", "figureC6", "figureC7")
SEEDS = (0, 1, 2, 3)
SPECS = {text.partition("(")[0]: resolve(text).canonical for text in MEASURED}
CALIBRATED = ("nll", "ece", "nll_scaled", "ece_scaled", "temperature")


def predictions_rows(seeds: Sequence[int] = SEEDS) -> list[Row]:
    """Rows of calibration, of pairs of models and of ensembles, with numbers drawn at random."""
    draw = np.random.default_rng(0)
    base = {"backbone": "glyphnet", "source": "glyphs", "target": "glyphs", "split": "test", "step": "s"}
    rows = []
    for spec in SPECS.values():
        if spec == SPECS["squared_error"]:
            continue
        for seed in seeds:
            about = {**base, "objective": spec, "seed": seed}
            rows += [Row(metric=metric, value=draw.uniform(0.1, 1.5), **about) for metric in CALIBRATED]
            for suffix, place in itertools.product(("", "_scaled"), (3, 14, 15)):
                layer = f"bin {place} of 15"
                for metric, value in (
                    ("share", {3: 0.001, 14: 0.3, 15: 0.699}[place]),
                    ("confidence", (place - 0.5) / 15),
                    ("accuracy", (place - 1) / 15 + 0.01 * seed),
                ):
                    named = f"reliability_{metric}{suffix}"
                    rows.append(Row(metric=named, value=value, layer=layer, **about))
    models = [(spec, seed) for spec in SPECS.values() for seed in seeds]
    for (spec, seed), (spec_b, seed_b) in itertools.combinations(models, 2):
        about = {**base, "objective": spec, "seed": seed, "objective_b": spec_b, "seed_b": seed_b}
        for metric in METRICS:
            near = 0.75 if spec == spec_b else 0.4
            rows.append(Row(metric=metric, value=near + draw.uniform(0, 0.2), **about))
    for spec, spec_b in itertools.combinations_with_replacement(SPECS.values(), 2):
        about = {**base, "objective": spec, "objective_b": spec_b, "layer": str(len(seeds))}
        rows.append(Row(metric="ensemble_top1", value=draw.uniform(0.7, 0.9), **about))
        if spec != spec_b:
            rows += [Row(metric=metric, value=draw.uniform(0.5, 0.9), **about) for metric in METRICS]
    return rows


@pytest.fixture(scope="module")
def paired() -> StudyResults:
    """Four seeds with every row that these exhibits read."""
    return with_rows(study(SEEDS), predictions_rows())


@pytest.fixture(scope="module")
def results(paired: StudyResults) -> StudyResults:
    """The same without rows of two models."""
    return only(paired, lambda row: row.objective_b is None)


def with_rows(results: StudyResults, rows: Sequence[Row]) -> StudyResults:
    return dataclasses.replace(results, table=Table([*results.table, *rows]))


def only(results: StudyResults, keep: Callable[[Row], bool]) -> StudyResults:
    return dataclasses.replace(results, table=Table(row for row in results.table if keep(row)))


def values(results: StudyResults, **columns: object) -> list[float]:
    """The rows with these columns, read one by one."""
    return [
        row.value
        for row in results.table
        if all(getattr(row, name) == value for name, value in columns.items())
    ]


def cell(table: ExhibitTable, objective: str, key: str) -> tuple[float | None, float | None]:
    place = [column.key for column in table.columns].index(key)
    found = next(row.cells[place] for row in table.rows if row.objective == objective)
    return found.value, found.error


def panel_of(made: Exhibit, name: str) -> Panel:
    return next(panel for figure in made.figures for panel in figure.panels if panel.name == name)


@pytest.mark.parametrize("name", BUILDERS)
def test_every_exhibit_is_printed_saved_drawn_and_refused_when_limited(
    name: str, results: StudyResults, paired: StudyResults
) -> None:
    results = paired if name in PAIRED else results
    made = BUILDERS[name](results)
    assert made == BUILDERS[name](results)
    assert made.name == name
    assert made.number in render_exhibit_text(made)
    assert not any("not measured" in note for note in made.notes)
    known = marks([one["slug"] for one in results.description["objectives"]])
    for table in made.tables:
        assert len(to_csv(table).splitlines()) == len(table.rows) + 1 == (8 if "C3" in table.name else 9) + 1
        assert r"\toprule" in to_latex(table)
    for figure in made.figures:
        assert points_csv(made)
        for panel in figure.panels:
            assert "<svg" in draw_panel(panel, known).styled(panel.name)
    limited = dataclasses.replace(results, description={**results.description, "limited": True})
    with pytest.raises(RequestError, match="limited run"):
        BUILDERS[name](limited)
    assert BUILDERS[name](limited, True).limited


@pytest.mark.parametrize("name", BUILDERS)
def test_what_was_not_measured_is_said_and_never_drawn_empty(name: str) -> None:
    bare = only(study(), lambda row: row.metric.startswith("linear"))
    made = BUILDERS[name](bare)
    assert any("not measured: run `penultimate run" in note for note in made.notes)
    assert all(table.source == "published" for table in made.tables)
    assert all(panel.source == "published" for figure in made.figures for panel in figure.panels)
    assert all(figure.panels for figure in made.figures)


def test_a_limited_row_of_a_pair_is_enough_to_refuse() -> None:
    rows = [dataclasses.replace(row, status="limited") for row in predictions_rows()]
    results = with_rows(study(SEEDS), [row for row in rows if row.objective_b])
    with pytest.raises(RequestError, match="limited run"):
        figure_c5.build(results)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("metric", ["top1", "top5"])
def test_table_c1_holds_means_and_errors_of_the_rows(results: StudyResults, split: str, metric: str) -> None:
    table = table_c1.build(results).tables[0]
    for slug, spec in SPECS.items():
        own = values(results, objective=spec, metric=metric, split=split, epoch=None, objective_b=None)
        assert cell(table, slug, f"{split}_{metric}_percent") == (
            pytest.approx(100 * mean_of(own)),
            pytest.approx(100 * standard_error_of(own)),
        )


def test_the_papers_tables_stand_digit_for_digit(results: StudyResults) -> None:
    for build, name in ((table_c1.build, "table_C1"), (table_c3.build, "table_C3")):
        table = build(results).tables[-1]
        assert table.source == "published"
        stored = f"{name.replace('_', '')}_{'train_accuracy' if 'C1' in name else 'calibration'}"
        rows = {row["objective"]: row for row in published.printed(stored)}
        for row in table.rows:
            for column, shown in zip(table.columns, row.cells, strict=True):
                printed = rows[row.objective]
                error = (
                    column.key.replace("_percent", "_se").replace("_nats", "_se").replace("_fraction", "_se")
                )
                assert shown.text == f"{printed[column.key]} ± {printed[error]}"


def test_table_c3_holds_the_rows_and_calls_the_lowest_best(results: StudyResults) -> None:
    table = table_c3.build(results).tables[0]
    for metric, key, *_ in table_c3.COLUMNS:
        own = {slug: values(results, objective=spec, metric=metric) for slug, spec in SPECS.items()}
        for slug, numbers in own.items():
            if slug != "squared_error":
                assert cell(table, slug, key)[0] == pytest.approx(mean_of(numbers))
        lowest = min((slug for slug in own if own[slug]), key=lambda slug: mean_of(own[slug]))
        place = [column.key for column in table.columns].index(key)
        assert next(row for row in table.rows if row.objective == lowest).cells[place].best
    assert "squared_error" not in {row.objective for row in table.rows}
    assert any("Squared error is left out" in note for note in table_c3.build(results).notes)


def test_the_reliability_diagram_pools_the_runs_and_leaves_out_rare_bins(results: StudyResults) -> None:
    panel = panel_of(table_c3.build(results), "tableC3-reliability")
    points = [point for point in panel.points if point.objective == "softmax"]
    assert [point.x for point in points] == pytest.approx([100 * 13.5 / 15, 100 * 14.5 / 15])
    for point, place in zip(points, (14, 15), strict=True):
        accuracies = [(place - 1) / 15 + 0.01 * seed for seed in SEEDS]
        assert point.y == pytest.approx(100 * (mean_of(accuracies) - (place - 0.5) / 15))


@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_figure_c1_draws_each_objectives_mean_over_its_runs(seeds: tuple[int, ...]) -> None:
    results = study(seeds)
    made = figure_c1.build(results)
    panel = panel_of(made, "figureC1-ours")
    assert [curve.objective for curve in panel.curves] == [point.objective for point in panel.points]
    assert len(panel.curves) == 9
    about = {"objective": SPECS["sigmoid"], "metric": "top1", "split": "holdout"}
    own = [[100 * value for value in values(results, epoch=epoch, **about)] for epoch in range(1, 21)]
    curve = next(curve for curve in panel.curves if curve.objective == "sigmoid")
    end = next(point for point in panel.points if point.objective == "sigmoid")
    assert curve.points == tuple((epoch, pytest.approx(mean_of(v))) for epoch, v in enumerate(own, 1))
    assert (end.x, end.y) == curve.points[-1]
    assert end.x_error is None
    error = pytest.approx(standard_error_of(own[-1])) if len(seeds) > 1 else None
    assert end.y_error == error
    said = "Each line is a run." if len(seeds) == 1 else "Each line is the mean of an objective's runs"
    assert said in made.caption
    assert panel.y_limits is not None
    assert panel.y_limits[1] > end.y + (end.y_error or 0)


def test_a_line_has_the_epochs_of_all_its_runs_and_runs_without_any_have_their_own() -> None:
    results = study((0, 1))
    spec = SPECS["softmax"]
    shorter = only(results, lambda row: (row.objective, row.seed) != (spec, 1) or (row.epoch or 0) <= 7)
    curves = panel_of(figure_c1.build(shorter), "figureC1-ours").curves
    assert [x for x, _ in curves[0].points] == list(range(1, 8))
    apart = only(
        results,
        lambda row: row.objective != spec or row.epoch is None or (row.epoch <= 7) == (row.seed == 1),
    )
    curves = panel_of(figure_c1.build(apart), "figureC1-ours").curves
    assert [[x for x, _ in curve.points] for curve in curves[:2]] == [list(range(8, 21)), list(range(1, 8))]


def test_figure_c2_falls_back_on_the_loss_and_says_so(results: StudyResults) -> None:
    assert panel_of(figure_c2.build(results), "figureC2-ours").y_label == "Top-1 accuracy, %"
    bare = only(results, lambda row: (row.metric, row.split, row.epoch is None) != ("top1", "train", False))
    facts = {"backbone": "glyphnet", "source": "glyphs", "target": "glyphs", "split": "train"}
    losses = [
        Row(objective=SPECS["sigmoid"], seed=0, epoch=epoch, metric="mean_loss", value=8 / epoch, **facts)
        for epoch in (1, 2, 4)
    ]
    made = figure_c2.build(with_rows(bare, losses))
    assert panel_of(made, "figureC2-ours").curves[0].points == ((1, 100), (2, 50), (4, 25))
    assert figure_c2.LOSS in made.notes


def test_figure_c3_joins_equal_epochs_and_ends_at_the_means(results: StudyResults) -> None:
    made = figure_c3.build(results)
    epochs = panel_of(made, "figureC3-epochs")
    assert all(len(curve.points) == 20 for curve in epochs.curves)
    assert len(epochs.curves) == 9
    about = {"objective": SPECS["softmax"], "metric": "top1", "epoch": 3}
    third = tuple(100 * mean_of(values(results, split=split, **about)) for split in ("train", "holdout"))
    assert epochs.curves[0].points[2] == pytest.approx(third)
    assert all(point.x_error and point.y_error for point in epochs.points)
    assert "Epoch by epoch: each line is the mean" in made.caption
    means = {point.objective: point for point in panel_of(made, "figureC3-ours").points if not point.faint}
    for slug, spec in SPECS.items():
        for split, at in (("train", means[slug].x), ("test", means[slug].y)):
            own = values(results, objective=spec, metric="top1", split=split, epoch=None, objective_b=None)
            assert at == pytest.approx(100 * mean_of(own))
    paper = {point.objective: point for point in panel_of(made, "figureC3-published").points}
    assert (paper["softmax"].x, paper["softmax"].y) == (93.61, 77.0)
    finished = only(results, lambda row: row.epoch is None)
    assert [panel.name for panel in figure_c3.build(finished).figures[0].panels] == [
        "figureC3-ours",
        "figureC3-published",
    ]


def pair_values(results: StudyResults, metric: str, one: str, other: str) -> list[float]:
    return [
        row.value
        for row in results.table
        if row.metric == metric
        and row.layer is None
        and row.seed != row.seed_b
        and {row.objective, row.objective_b} == {SPECS[one], SPECS[other]}
    ]


def test_likeness_tables_hold_the_means_over_pairs_of_different_seeds(paired: StudyResults) -> None:
    for table, metric in zip(figure_c5.build(paired).tables, METRICS, strict=True):
        for one, other in (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax")):
            expected = 100 * mean_of(pair_values(paired, metric, one, other))
            assert cell(table, one, f"{other}_percent")[0] == pytest.approx(expected)


def test_figure_c4_tells_own_pairs_from_others_and_repeats_no_table_of_c5(paired: StudyResults) -> None:
    made = figure_c4.build(paired)
    (table,) = made.tables
    own = {other: pair_values(paired, figure_c4.METRIC, "dropout", other) for other in SPECS}
    others = {other: shares for other, shares in own.items() if other != "dropout"}
    nearest = max(others, key=lambda other: mean_of(others[other]))
    for key, expected in (
        ("within_percent", mean_of(own["dropout"])),
        ("between_percent", mean_of([share for shares in others.values() for share in shares])),
        ("nearest_percent", mean_of(others[nearest])),
    ):
        assert cell(table, "dropout", key)[0] == pytest.approx(100 * expected)
    row = next(row for row in table.rows if row.objective == "dropout")
    assert row.cells[3].text == next(one.label for one in table.rows if one.objective == nearest)
    assert any("Ours: for 9 of 9 objectives" in note for note in made.notes)  # planted
    assert not {to_csv(one) for one in made.tables} & {to_csv(one) for one in figure_c5.build(paired).tables}


@pytest.mark.parametrize("seeds", [(0, 1), (0, 1, 2, 3, 4)])
def test_every_leaf_of_the_tree_has_room_for_its_mark(seeds: tuple[int, ...]) -> None:
    panel = panel_of(figure_c4.build(with_rows(study(seeds), predictions_rows(seeds))), "figureC4-tree")
    assert panel.y_limits is not None
    low, high = panel.y_limits
    assert low < 1
    assert high > 9 * len(seeds)
    assert (panel.size[1] - 64) / (high - low) > 12  # the height of a mark


@pytest.mark.parametrize("name", PAIRED)
def test_a_sweep_that_is_left_out_is_said(name: str) -> None:
    sweep = [f"cosine_softmax(scale={tau}, temperature={tau})" for tau in (0.03, 0.05, 0.07)]
    swept = with_rows(study((0, 1), objectives=[*MEASURED, *sweep]), predictions_rows((0, 1)))
    made = BUILDERS[name](swept)
    assert all(len(table.rows) == 9 for table in made.tables)
    assert any("three further temperatures is compared in Table 4" in note for note in made.notes)


def test_one_seed_leaves_the_diagonal_open_and_says_why() -> None:
    one_seed = with_rows(study((0,)), predictions_rows((0,)))
    table = figure_c5.build(one_seed).tables[1]
    row = next(row for row in table.rows if row.objective == "softmax")
    assert (row.cells[0].value, row.cells[0].detail) == (None, "needs two seeds")
    assert row.cells[1].value is not None
    assert panel_of(figure_c4.build(one_seed), "figureC4-tree").points


def test_the_tree_is_average_linkage_and_keeps_objectives_together(paired: StudyResults) -> None:
    panel = panel_of(figure_c4.build(paired), "figureC4-tree")
    assert [point.y for point in panel.points] == list(range(1, 9 * len(SEEDS) + 1))
    slugs = [point.objective for point in panel.points]
    assert len([slug for slug, _ in itertools.groupby(slugs)]) == 9  # planted: likest within an objective
    models = [(spec, seed) for spec in SPECS.values() for seed in SEEDS]
    shares = {
        frozenset({(row.objective, row.seed), (row.objective_b, row.seed_b)}): row.value
        for row in paired.table
        if row.metric == figure_c4.METRIC and row.layer is None
    }
    similarity = [[shares.get(frozenset({a, b}), 1.0) for b in models] for a in models]
    distances = [100 * distance for _, distance in average_linkage(similarity)]
    upright = [curve.points[0][0] for curve in panel.curves if curve.points[0][0] == curve.points[1][0]]
    assert sorted(upright) == pytest.approx(sorted(distances))


def test_without_a_number_for_every_pair_there_is_no_tree(paired: StudyResults) -> None:
    gone = next(row for row in paired.table if row.metric == figure_c4.METRIC)
    made = figure_c4.build(only(paired, lambda row: row != gone))
    assert made.figures == ()
    assert any("No tree is drawn" in note for note in made.notes)


def test_ensembles_hold_their_rows(paired: StudyResults) -> None:
    table = figure_c7.build(paired).tables[0]
    for one, other in (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax")):
        own = [
            row.value
            for row in paired.table
            if row.metric == "ensemble_top1"
            and {row.objective, row.objective_b} == {SPECS[one], SPECS[other]}
        ]
        assert cell(table, one, f"{other}_percent")[0] == pytest.approx(100 * mean_of(own))
    table = figure_c6.build(paired).tables[0]
    assert cell(table, "softmax", "softmax_percent")[0] is None
    assert "four models each" in figure_c6.build(paired).caption
    pure = [
        Row(**{**row_of(row), "layer": "5"}) for row in predictions_rows() if row.objective == row.objective_b
    ]
    larger = with_rows(paired, [row for row in pure if row.metric == "ensemble_top1"])
    assert figure_c7.build(larger).tables == figure_c7.build(paired).tables


def row_of(row: Row) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}


def test_two_values_of_one_pair_are_refused(paired: StudyResults) -> None:
    row = next(row for row in paired.table if row.metric == "agreement_same" and row.layer is None)
    turned = {"objective": row.objective_b, "seed": row.seed_b, "objective_b": row.objective}
    other = Row(**{**row_of(row), **turned, "seed_b": row.seed, "value": 0.123})
    with pytest.raises(RequestError, match="two values of agreement_same"):
        figure_c5.build(with_rows(paired, [other]))
