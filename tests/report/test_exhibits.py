"""Exhibits hold exactly the numbers of the rows, beside the paper's, or say what was not measured."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from penultimate import published, registry
from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.report import exhibit
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.measurements import admit
from penultimate.table import Row, Table
from tests.oracles.report import mean_of, spearman_rho, standard_error_of
from tests.report.synthetic import MEASURED, TARGETS, study

OURS = ("figure5", "figure1", "figureD1", "table1", "table3", "tableE1", "tableA2")
SWEEP = tuple(f"cosine_softmax(temperature={t}, scale={t})" for t in (0.03, 0.05, 0.07, 0.09))


def table_of(made: Exhibit, name: str) -> ExhibitTable:
    return next(table for table in made.tables if table.name == name)


def column_of(table: ExhibitTable, key: str) -> dict[str, float | None]:
    index = [column.key for column in table.columns].index(key)
    return {row.objective: row.cells[index].value for row in table.rows}


def values(results: StudyResults, objective: str, metric: str, target: str, split: str) -> list[float]:
    """The final values of an objective's runs, read row by row."""
    spec = resolve(next(text for text in MEASURED if text.startswith(objective))).canonical
    return [
        row.value
        for row in results.table
        if (row.objective, row.metric, row.target, row.split) == (spec, metric, target, split)
        and row.epoch is None
        and row.status == "done"
    ]


@pytest.fixture(scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def results(request: pytest.FixtureRequest) -> StudyResults:
    return study(request.param)


def test_table1_holds_the_means_of_the_rows_in_per_cent(results: StudyResults) -> None:
    for probe in ("linear", "knn"):
        table = table_of(exhibit("table1", results), f"table1_{probe}")
        for objective in (text.partition("(")[0] for text in MEASURED):
            means = []
            for target in TARGETS:
                own = values(results, objective, f"{probe}_{card(target).accuracy}", target, "test")
                means.append(mean_of(own))
                shown = column_of(table, f"{target}_percent")[objective]
                assert shown == pytest.approx(100 * means[-1])
            assert column_of(table, "mean_percent")[objective] == pytest.approx(100 * mean_of(means))
            for metric in ("top1", "top5"):
                own = values(results, objective, metric, "glyphs", "test")
                assert column_of(table, f"{metric}_percent")[objective] == pytest.approx(100 * mean_of(own))


def test_table1_takes_the_accuracy_that_the_card_calls_official() -> None:
    results = study()
    wrong = [
        dataclasses.replace(row, metric="linear_top1", value=0.999)
        for row in results.table
        if row.metric == "linear_mean_per_class"
    ]
    assert card("newfaces").accuracy == "mean_per_class"
    assert wrong
    both = dataclasses.replace(results, table=Table([*results.table, *wrong]))
    assert exhibit("table1", both).tables == exhibit("table1", results).tables


@pytest.mark.parametrize(
    ("name", "metric", "split", "key"),
    [
        ("table3", "class_separation", "train", "class_separation_r2_train"),
        ("table3", "class_separation", "test", "class_separation_r2_test"),
        ("tableE1", "class_separation", "train", "cosine_r2"),
        ("tableE1", "class_separation_cosine_centered", "train", "cosine_mean_subtracted_r2"),
        ("tableE1", "class_separation_euclidean", "train", "euclidean_r2"),
    ],
)
def test_separation_tables_hold_mean_and_standard_error(
    results: StudyResults, name: str, metric: str, split: str, key: str
) -> None:
    table = table_of(exhibit(name, results), name)
    index = [column.key for column in table.columns].index(key)
    for row in table.rows:
        own = values(results, row.objective, metric, "glyphs", split)
        cell = row.cells[index]
        assert cell.value == pytest.approx(mean_of(own))
        assert cell.count == len(own)
        assert cell.error == (pytest.approx(standard_error_of(own)) if len(own) > 1 else None)
        assert ("±" in cell.text) == (len(own) > 1)


def test_figures_hold_the_runs_and_their_rank_correlation(results: StudyResults) -> None:
    panel = exhibit("figure5", results).figures[0].panels[0]
    assert panel.source == "ours"
    means = [point for point in panel.points if not point.faint]
    assert len(means) == 9
    for point in means:
        across = values(results, point.objective, "class_separation", "glyphs", "train")
        up = [
            mean_of(values(results, point.objective, f"linear_{card(target).accuracy}", target, "test"))
            for target in TARGETS
        ]
        assert point.x == pytest.approx(mean_of(across))
        assert point.y == pytest.approx(100 * mean_of(up))
    rho = spearman_rho([point.x for point in means], [point.y for point in means])
    assert f"ρ = {rho:.2f}".replace("-", "−") in panel.finding

    seeds = len(admit(results).seeds)
    assert len(exhibit("figure1", results).figures[0].panels[0].points) == 9 * seeds
    tasks = exhibit("figureD1", results).figures[0].panels
    assert [panel.title for panel in tasks] == [card(target).title for target in TARGETS]
    assert all(len(panel.points) == 9 * seeds for panel in tasks)


def test_table_a2_is_the_cards_and_names_the_misprints() -> None:
    made = exhibit("tableA2", study())
    ours, printed = made.tables[:2]
    newfaces = next(row for row in ours.rows if row.label == card("newfaces").title)
    shown = dict(zip([column.key for column in ours.columns], newfaces.cells, strict=True))
    assert shown["classes"].value == card("newfaces").classes
    assert shown["test_images"].value == card("newfaces").sizes["test"]
    assert (shown["role"].text, shown["accuracy_measure"].text) == ("transfer", "mean per class")
    assert shown["holdout_images"].text == "–"
    words = table_of(made, "tableA2_licences")
    assert all(
        row.cells[1].text == card(name).licence
        for row, name in zip(words.rows, ("glyphs", *TARGETS), strict=True)
    )
    cifar = next(row for row in printed.rows if row.label == "CIFAR-100")
    assert (cifar.cells[0].text, cifar.cells[0].detail) == ("100 ‡", "printed: 10")
    assert "misprint" in cifar.cells[-1].text


def test_table_a2_ends_with_the_shifted_sets_where_robustness_is_measured() -> None:
    plain, found = study(), study()
    found = dataclasses.replace(found, description={**found.description, "instruments": ["robustness"]})
    before, made = exhibit("tableA2", plain), exhibit("tableA2", found)
    assert "robustness" not in before.caption
    assert "robustness was measured" in made.caption
    names = ["glyphs_v2", "glyphs_a", "glyphs_r", "glyphs_sketch"]
    for table in ("tableA2", "tableA2_licences"):
        old, new = table_of(before, table).rows, table_of(made, table).rows
        assert new[: len(old)] == old
        assert [row.label for row in new[len(old) :]] == [card(name).title for name in names]
    ours = table_of(made, "tableA2")
    for row, name in zip(ours.rows[-4:], names, strict=True):
        shown = dict(zip([column.key for column in ours.columns], row.cells, strict=True))
        assert (shown["role"].text, shown["train_images"].text) == ("shifted", "–")
        assert (shown["classes"].value, shown["test_images"].value) == (128, card(name).images)
    assert "Glyphs-A: the 1,280 images are those to choose from" in ours.notes[0]
    assert table_of(before, "tableA2").notes == ()


def test_published_tables_are_printed_digit_for_digit() -> None:
    table = table_of(exhibit("table1", study()), "table1_linear_published")
    for row, printed in zip(table.rows, published.printed("table1_linear"), strict=True):
        shown = {column.key: cell.text for column, cell in zip(table.columns, row.cells, strict=True)}
        assert row.objective == printed["objective"]
        assert {key: shown[key] for key in printed if key != "objective"} == {
            key: text for key, text in printed.items() if key != "objective"
        }


@pytest.mark.parametrize("name", OURS)
def test_nothing_published_stands_among_ours(name: str) -> None:
    """Without a single row of ours, whatever is shown as ours holds no number but the cards' counts."""
    results = study(objectives=())
    assert len(results.table) == 0
    made = exhibit(name, results)
    for table in made.tables:
        assert table.name.endswith("_published") == (table.source == "published")
        if table.source == "ours":
            assert name == "tableA2"
    for figure in made.figures:
        assert all(panel.source == "published" for panel in figure.panels)


@pytest.mark.parametrize("name", registry.names("exhibit"))
def test_a_limited_study_is_refused_unless_asked_for_and_then_marked(name: str) -> None:
    results = study(limited=True)
    with pytest.raises(RequestError, match=r"limited.*--allow-limited"):
        exhibit(name, results)
    assert exhibit(name, results, allow_limited=True).limited
    assert not exhibit(name, study(), allow_limited=True).limited


def test_a_single_limited_row_makes_the_study_limited() -> None:
    results = study()
    first, *others = results.table
    mixed = dataclasses.replace(results, table=Table([dataclasses.replace(first, status="limited"), *others]))
    with pytest.raises(RequestError, match="limited"):
        exhibit("table1", mixed)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        (
            "table1",
            {"probes": ("linear",)},
            "kNN classifiers: not measured: run `penultimate run quickstart`",
        ),
        ("table1", {"probes": ("knn",)}, "linear classifiers: not measured"),
        ("table3", {"separation": False}, "Class separation: not measured"),
        ("tableE1", {"separation": False}, "squared': not measured"),
        ("figure1", {"probes": ()}, "linear transfer: not measured"),
        ("figure5", {"separation": False}, "linear transfer: not measured"),
        ("figure5", {}, "temperatures: not measured"),
        ("figureD1", {"targets": ()}, "Linear transfer: not measured"),
    ],
)
def test_what_was_not_measured_is_said_and_not_drawn_empty(
    name: str, options: dict[str, object], expected: str
) -> None:
    made = exhibit(name, study(**options))  # type: ignore[arg-type]
    assert any(expected in note for note in made.notes)
    assert all(panel.points for figure in made.figures for panel in figure.panels)
    assert all(figure.panels for figure in made.figures)
    assert all(table.rows for table in made.tables)


def test_one_missing_task_leaves_the_mean_out() -> None:
    results = study()
    rows = [row for row in results.table if not (row.objective == "sigmoid" and row.target == "maths")]
    table = table_of(exhibit("table1", dataclasses.replace(results, table=Table(rows))), "table1_linear")
    sigmoid = next(row for row in table.rows if row.objective == "sigmoid")
    shown = dict(zip([column.key for column in table.columns], sigmoid.cells, strict=True))
    assert shown["maths_percent"].text == shown["mean_percent"].text == "–"
    assert shown["digits_percent"].value is not None


def test_diverged_runs_are_named_and_left_out_of_means() -> None:
    name = "dropout(keep=0.9)"
    results = study((0, 1, 2), diverged=(name, 1))
    made = exhibit("table1", results)
    assert any("Diverged" in note and "Dropout, seed 1 after epoch 3" in note for note in made.notes)
    row = next(row for row in table_of(made, "table1_linear").rows if row.objective == "dropout")
    assert all(cell.count == 2 for cell in row.cells)


def test_a_run_that_diverged_before_its_first_row_is_named_from_provenance() -> None:
    results = study((0,), objectives=("softmax", "sigmoid"))
    provenance = {
        "diverged": {"train.label_smoothing-s3.00ff": "loss is NaN at step 7", "train.sigmoid-s2.11": "NaN"}
    }
    made = exhibit("table3", dataclasses.replace(results, provenance=provenance))
    said = " ".join(made.notes)
    assert "label_smoothing, seed 3 (loss is NaN at step 7)" in said
    assert "Sigmoid, seed 2 (NaN)" in said


def test_of_several_objectives_of_one_preset_the_one_that_diverged_is_named() -> None:
    first, other = "cosine_softmax(scale=1, temperature=0.05)", "cosine_softmax(scale=1, temperature=0.01)"
    results = study((0,), objectives=("softmax", first, other))
    step = "train.cosine_softmax-s0.00ff"
    provenance = {"diverged": {step: "NaN"}, "diverged_runs": {step: [other, 0]}}
    notes = exhibit("table3", dataclasses.replace(results, provenance=provenance)).notes
    (said,) = [note for note in notes if "Diverged" in note]
    assert "temperature = 0.01), seed 0 (NaN)" in said


def test_a_kept_run_that_diverged_is_named_once_with_its_reason() -> None:
    """The rows of a kept study have no step, by which a reason would find its run."""
    name = "dropout(keep=0.9)"
    results = study((0, 1, 2), diverged=(name, 1))
    step = "train.dropout-s1.00ff"
    provenance = {"diverged": {step: "NaN"}, "diverged_runs": {step: [name, 1]}}
    rows = Table(dataclasses.replace(row, step=None) for row in results.table)
    notes = exhibit("table1", dataclasses.replace(results, table=rows, provenance=provenance)).notes
    (said,) = [note for note in notes if "Diverged" in note]
    assert "Dropout, seed 1 after epoch 3 (NaN)" in said


def test_how_many_runs_stand_behind_a_mean_is_that_of_the_objectives_shown() -> None:
    results = study((0, 1, 2))
    rows = [row for row in results.table if row.objective != "sigmoid" or row.seed != 2]
    fewer = dataclasses.replace(results, table=Table(rows))
    for name in ("figure1", "figure5"):
        assert "(three runs per objective" in exhibit(name, results).caption
        assert "(2 to 3 runs per objective" in exhibit(name, fewer).caption


def test_a_sweep_of_fewer_seeds_is_counted_where_it_is_drawn() -> None:
    sweep = tuple(f"cosine_softmax(scale={t}, temperature={t})" for t in (0.03, 0.05, 0.1))
    results = study((0, 1, 2), objectives=(*MEASURED, *sweep))
    rows = [row for row in results.table if row.objective not in sweep or row.seed == 0]
    fewer = dataclasses.replace(results, table=Table(rows))
    assert "(three runs per objective" in exhibit("figure1", fewer).caption
    assert "(1 to 3 runs per objective" in exhibit("figure5", fewer).caption


def test_a_value_that_is_no_number_is_not_shown() -> None:
    results = study((0,), objectives=("softmax", "sigmoid"))
    rows = [
        dataclasses.replace(row, value=math.nan)
        if row.metric == "top1" and row.objective == "sigmoid"
        else row
        for row in results.table
    ]
    table = table_of(exhibit("table1", dataclasses.replace(results, table=Table(rows))), "table1_linear")
    assert column_of(table, "top1_percent")["sigmoid"] is None


def test_two_values_of_one_quantity_are_an_error() -> None:
    results = study()
    again = dataclasses.replace(next(iter(results.table)), value=0.123)
    with pytest.raises(RequestError, match="two values of one quantity: top1"):
        exhibit("table1", dataclasses.replace(results, table=Table([*results.table, again])))


def test_with_one_seed_only_the_best_is_bold_and_that_is_said() -> None:
    made = exhibit("table1", study((0,)))
    table = table_of(made, "table1_linear")
    for index in range(len(table.columns)):
        column = [row.cells[index] for row in table.rows]
        best = [cell for cell in column if cell.best]
        assert [cell.value for cell in best] == [max(cell.value or 0 for cell in column)]
    assert any("only the best is bold" in note for note in made.notes)
    assert any("t-test" in note for note in exhibit("table1", study((0, 1, 2))).notes)


def test_bold_is_what_the_test_says() -> None:
    rows = []
    for objective, accuracies in {
        "softmax": (0.90, 0.91, 0.92),
        "sigmoid": (0.89, 0.90, 0.915),
        "dropout(keep=0.9)": (0.5, 0.51, 0.52),
    }.items():
        for seed, value in enumerate(accuracies):
            about = {
                "objective": objective,
                "seed": seed,
                "source": "glyphs",
                "target": "glyphs",
                "split": "test",
            }
            rows.append(Row(metric="top1", value=value, **about))
            rows.append(Row(metric="class_separation", value=0.3, **{**about, "split": "train"}))
    description = study(objectives=("softmax", "sigmoid", "dropout(keep=0.9)")).description
    table = table_of(exhibit("table3", StudyResults(description, Table(rows))), "table3")
    assert [row.cells[0].best for row in table.rows] == [True, True, False]


def test_a_temperature_sweep_is_drawn_apart_from_the_comparison() -> None:
    objectives = (*MEASURED, *SWEEP)
    results = study((0,), objectives=objectives)
    measurements = admit(results)
    assert [temperature for temperature, _ in measurements.temperature_sweep] == [0.03, 0.05, 0.07, 0.09]
    assert len(measurements.compared) == 9
    made = exhibit("figure5", results)
    panels = {panel.name: panel for panel in made.figures[0].panels}
    assert len([p for p in panels["figure5-ours"].points if not p.faint]) == 9
    assert [p.label for p in panels["figure5-temperature"].points] == [
        f"τ = {t}" for t in (0.03, 0.05, 0.07, 0.09)
    ]
    assert panels["figure5-temperature-published"].source == "published"
    assert len(panels["figure5-temperature-published"].points) == 8
    assert not any("not measured" in note for note in made.notes)
    labels = [objective.label for objective in measurements.objectives]
    assert len(set(labels)) == len(labels)
    assert labels[7] == "Cosine softmax"
    assert labels[9] == "Cosine softmax (scale = 0.03, temperature = 0.03)"


def test_a_sweep_that_says_its_temperatures_is_not_told_them_twice() -> None:
    results = study((0,), objectives=(*MEASURED, *SWEEP))
    listed = [dict(one) for one in results.description["objectives"]]
    for one, temperature in zip(listed[9:], (0.03, 0.05, 0.07, 0.09), strict=True):
        one["label"] = f"Cosine softmax (τ = {temperature})"
    told = dataclasses.replace(results, description={**results.description, "objectives": listed})
    labels = [objective.label for objective in admit(told).objectives]
    assert labels[9:] == [f"Cosine softmax (τ = {t})" for t in (0.03, 0.05, 0.07, 0.09)]


def test_the_papers_correlation_is_recomputed_from_its_tables() -> None:
    panel = exhibit("figure5", study()).figures[0].panels[1]
    assert panel.source == "published"
    rho = spearman_rho([p.x for p in panel.points], [p.y for p in panel.points])
    assert rho == pytest.approx(-0.9333, abs=1e-4)
    assert "ρ = −0.93" in panel.finding


def test_exhibits_are_pure_functions(results: StudyResults) -> None:
    for name in OURS:
        assert exhibit(name, results) == exhibit(name, results)


def test_an_unknown_exhibit_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError, match=r"unknown exhibit 'tabel1'. Did you mean 'table1'\?"):
        exhibit("tabel1", study())


def test_the_order_of_rows_does_not_matter() -> None:
    results = study((0, 1))
    order = np.random.default_rng(0).permutation(len(results.table))
    shuffled = dataclasses.replace(results, table=Table([results.table[int(i)] for i in order]))
    for name in OURS:
        assert exhibit(name, shuffled) == exhibit(name, results)
