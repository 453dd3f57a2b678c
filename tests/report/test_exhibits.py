"""Exhibits hold exactly the numbers of the rows, beside the paper's, or say what was not measured."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from scipy.stats import pearsonr

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.records.table import Row, Table
from penultimate.report import StudyResults, exhibit, read_reference
from penultimate.report.measurements import Measurements, admit
from penultimate.report.shapes.scatter import MOST_RUNS
from penultimate.report.spec import assemble
from tests.oracles.report import mean_of, spearman_rho, standard_error_of
from tests.report.planted import NINE
from tests.report.reading import TEMPERATURES, column_of, glyphs, panels, runs_of, shuffled, table_of
from tests.report.synthetic import MEASURED, TARGETS, study

OURS = (
    "figure5",
    "figure1",
    "figureD1",
    "table1",
    "table3",
    "table4",
    "tableC1",
    "tableE1",
    "tableE2",
    "tableA2",
)
SEPARATION = "class_separation"
COLUMNS: list[tuple[str, str, str, float, dict[str, Any]]] = [
    ("table1", "table1_linear", "top1_percent", 100, {"metric": "top1"}),
    ("table1", "table1_knn", "top5_percent", 100, {"metric": "top5"}),
    ("table1", "table1_linear", "maths_percent", 100, {"metric": "linear_top1", "target": "maths"}),
    ("table1", "table1_knn", "digits_percent", 100, {"metric": "knn_top1", "target": "digits"}),
    (
        "table1",
        "table1_linear",
        "newfaces_percent",
        100,
        {"metric": "linear_mean_per_class", "target": "newfaces"},
    ),
    ("table3", "table3", "test_top1_percent", 100, {"metric": "top1"}),
    ("table3", "table3", "class_separation_r2_train", 1, {"metric": SEPARATION, "split": "train"}),
    ("table3", "table3", "class_separation_r2_test", 1, {"metric": SEPARATION}),
    ("table4", "table4", "top1_percent", 100, {"metric": "top1"}),
    ("table4", "table4", "class_separation_r2", 1, {"metric": SEPARATION, "split": "train"}),
    ("table4", "table4", "georgian_percent", 100, {"metric": "linear_top1", "target": "georgian"}),
    ("tableC1", "tableC1", "train_top1_percent", 100, {"metric": "top1", "split": "train"}),
    ("tableC1", "tableC1", "train_top5_percent", 100, {"metric": "top5", "split": "train"}),
    ("tableC1", "tableC1", "test_top1_percent", 100, {"metric": "top1"}),
    ("tableC2", "tableC2", "test_percent", 100, {"metric": "top1"}),
    ("tableC2", "tableC2", "sketch_percent", 100, {"metric": "top1", "target": "glyphs_sketch"}),
    ("tableC3", "tableC3", "uncalibrated_nll_nats", 1, {"metric": "nll"}),
    ("tableC3", "tableC3", "uncalibrated_ece_fraction", 1, {"metric": "ece"}),
    ("tableC3", "tableC3", "temperature_scaled_nll_nats", 1, {"metric": "nll_scaled"}),
    ("tableC3", "tableC3", "temperature_scaled_ece_fraction", 1, {"metric": "ece_scaled"}),
    ("tableC3", "tableC3", "temperature", 1, {"metric": "temperature"}),
    ("tableE1", "tableE1", "cosine_r2", 1, {"metric": SEPARATION, "split": "train"}),
    (
        "tableE1",
        "tableE1",
        "cosine_mean_subtracted_r2",
        1,
        {"metric": "class_separation_cosine_centered", "split": "train"},
    ),
    ("tableE1", "tableE1", "euclidean_r2", 1, {"metric": "class_separation_euclidean", "split": "train"}),
    ("tableE2", "tableE2", "weight_norm_cv", 1, {"metric": "nc_weight_norm_cv", "split": "train"}),
    (
        "tableE2",
        "tableE2",
        "trace_sw_pinv_sb_over_c",
        1,
        {"metric": "nc_trace_sw_pinv_sb_over_c", "split": "train"},
    ),
    ("tableE2", "tableE2", "nc4_percent", 100, {"metric": "nc4", "split": "train"}),
    ("figure6", "figure6", "relearned_10_percent", 100, {"metric": "relearn_top1", "setting": "shots=10"}),
]
"""Exhibit, table, column, scale: and the columns of the rows that it holds, read off by hand."""


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    """Rows that steps wrote: nine objectives, five seeds, a sweep of three, a second architecture."""
    return glyphs()


@pytest.fixture(scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def results(request: pytest.FixtureRequest) -> StudyResults:
    return study(request.param)


# The reference run: rows that steps wrote.


@pytest.mark.parametrize(("name", "table", "key", "scale", "rows"), COLUMNS)
def test_a_column_holds_means_and_standard_errors_of_its_rows(
    name: str, table: str, key: str, scale: float, rows: dict[str, Any], reference: StudyResults
) -> None:
    column = column_of(table_of(exhibit(name, reference), table), key)
    expected = {"table4": 5, "tableC3": 8, "figure6": 9 + 5}.get(name, 9)
    assert len(column) == expected
    for shown, cell in column.items():
        measured = [scale * value for value in runs_of(reference, shown, **rows)]
        assert (
            cell.count
            == len(measured)
            == (3 if shown in TEMPERATURES or shown.startswith("cosine_softmax(") else 5)
        )
        assert cell.value == pytest.approx(mean_of(measured))
        assert cell.error == pytest.approx(standard_error_of(measured))


def test_the_mean_over_tasks_is_that_of_each_run(reference: StudyResults) -> None:
    for name, table in (("table1", "table1_linear"), ("table4", "table4")):
        for shown, cell in column_of(table_of(exhibit(name, reference), table), "mean_percent").items():
            per_task = [
                runs_of(reference, shown, metric=f"linear_{card(task).accuracy}", target=task)
                for task in TARGETS
            ]
            runs = [100 * mean_of(list(run)) for run in zip(*per_task, strict=True)]
            assert cell.value == pytest.approx(mean_of(runs))
            assert cell.error == pytest.approx(standard_error_of(runs))


def test_figures_hold_means_and_their_rank_correlation(reference: StudyResults) -> None:
    built = exhibit("figure5", reference)
    for name, count in (("figure5-ours", 9), ("figure5-temperature", 5)):
        means = [point for point in panels(built)[name].points if not point.faint]
        assert len(means) == count
        for point in means:
            shown = point.label if "τ" in point.label else point.objective
            separation = runs_of(reference, shown, metric=SEPARATION, split="train")
            up = [
                mean_of(runs_of(reference, shown, metric=f"linear_{card(task).accuracy}", target=task))
                for task in TARGETS
            ]
            assert (point.x, point.y) == pytest.approx((mean_of(separation), 100 * mean_of(up)))
        rho = spearman_rho([point.x for point in means], [point.y for point in means])
        assert f"ρ = {rho:.2f}".replace("-", "−") in panels(built)[name].finding
    assert len(panels(built)["figure5-temperature-published"].points) == 8
    assert "(3 to 5 runs per objective; whiskers" in built.caption
    assert not any("not measured" in note for note in built.notes)


def test_a_run_is_a_mark_of_the_figures_that_show_runs(reference: StudyResults) -> None:
    built = exhibit("figure1", reference)
    points = panels(built)["figure1-ours"].points
    assert len(points) == 9 * 5
    softmax = [point for point in points if point.objective == "softmax"]
    top1 = runs_of(reference, "softmax", metric="top1")
    assert sorted(point.x for point in softmax) == pytest.approx(sorted(100 * value for value in top1))
    assert "(means over runs)" in panels(built)["figure1-ours"].finding
    tasks = exhibit("figureD1", reference).figures[0].panels
    assert [panel.title for panel in tasks] == [card(target).title for target in TARGETS]
    assert all(len(panel.points) == 9 * 5 for panel in tasks)


def test_of_many_runs_the_first_are_drawn_and_all_are_in_the_means() -> None:
    results = study(range(MOST_RUNS + 2), objectives=("softmax", "sigmoid"), epochs=1)
    for name in ("figureD1", "figure1", "figure5"):
        built = exhibit(name, results)
        points = next(panel for panel in panels(built).values() if panel.source == "ours").points
        drawn = [point for point in points if "seed" in point.detail]
        assert len(drawn) == 2 * MOST_RUNS
        assert any(f"the first {MOST_RUNS} runs are drawn" in note for note in built.notes)
    means = [point for point in points if not point.faint]
    assert {point.objective for point in means} == {"softmax", "sigmoid"}
    assert all(f"mean of {MOST_RUNS + 2} runs" in point.detail for point in means)


def test_a_sweep_is_an_arm_of_its_own_and_said_to_be_elsewhere(reference: StudyResults) -> None:
    measurements = admit(reference)
    assert [objective.slug for objective in measurements.objectives] == list(NINE)
    sweep = measurements.in_arm("temperature")
    assert [value for value, _ in sweep.temperatures] == [0.02, 0.03, 0.04, 0.05, 0.08]
    said = "Cosine softmax at five further temperatures is compared in Table 4, not here."
    for name in ("table1", "table3", "figure1", "tableC3", "tableE2"):
        assert said in exhibit(name, reference).notes
    for name in ("figure5", "table4", "figure6", "tableA1", "tableA2", "figureD3", "plugins"):
        assert said not in exhibit(name, reference).notes


def test_the_last_column_of_table_e2_is_set_against_class_separation(reference: StudyResults) -> None:
    means = {
        metric: [mean_of(runs_of(reference, slug, metric=metric, split="train")) for slug in NINE]
        for metric in ("nc_trace_sw_pinv_sb_over_c", SEPARATION)
    }
    rho = f"{spearman_rho(*means.values()):.2f}".replace("-", "−")
    said = exhibit("tableE2", reference).finding
    assert (
        f"show no rank correlation beyond chance (ρ = {rho}, p = 0.059, nine objectives; with any two left"
        in said
    )
    assert "; in the paper ρ = −0.93, p = 0.0008)." in said


@pytest.mark.parametrize(
    ("name", "table", "source"),
    [
        ("table1", "table1_linear", "table1_linear"),
        ("table1", "table1_knn", "table1_knn"),
        ("table3", "table3", "neurips_table3_class_separation"),
        ("table4", "table4", "table4"),
        ("tableC1", "tableC1", "tableC1"),
        ("tableC2", "tableC2", "tableC2"),
        ("tableC3", "tableC3", "tableC3"),
        ("tableE1", "tableE1", "tableE1"),
        ("tableE2", "tableE2", "tableE2"),
    ],
)
def test_published_tables_are_printed_digit_for_digit(name: str, table: str, source: str) -> None:
    """Every printed value, with its standard error where the paper prints one."""
    shown = table_of(exhibit(name, study()), f"{table}_published")
    assert shown.source == "published"
    printed = published.printed(source)
    assert len(shown.rows) == len(printed)
    for row, cells in zip(shown.rows, printed, strict=True):
        assert row.objective == cells.get("objective", "")
        texts = {column.key: cell.text for column, cell in zip(shown.columns, row.cells, strict=True)}
        texts.pop("mean_percent", None)
        for key, text in texts.items():
            errors = [name for name in (f"{key}_se", f"{key.rpartition('_')[0]}_se") if name in cells]
            said = f"{cells[key]} ± {cells[errors[0]]}" if errors and cells[errors[0]] else cells[key]
            assert text == (said or "–")


def test_table_a2_is_the_cards_and_names_the_misprints(reference: StudyResults) -> None:
    built = exhibit("tableA2", reference)
    ours, printed, words = built.tables
    names = ("glyphs", *TARGETS, "glyphs_v2", "glyphs_a", "glyphs_r", "glyphs_sketch")
    assert (
        [row.label for row in ours.rows]
        == [row.label for row in words.rows]
        == [card(name).title for name in names]
    )
    roles = [row.cells[0].text for row in ours.rows]
    assert roles == ["pretraining", *["transfer"] * 8, *["shifted"] * 4]
    keys = [column.key for column in ours.columns]
    for row, licence, name in zip(ours.rows, words.rows, names, strict=True):
        shown = dict(zip(keys, row.cells, strict=True))
        assert shown["classes"].value == card(name).classes
        for split in ("train", "holdout", "test"):
            assert shown[f"{split}_images"].value == card(name).sizes.get(split)
        assert licence.cells[1].text == card(name).licence
    newfaces = dict(
        zip(keys, next(row for row in ours.rows if row.label == card("newfaces").title).cells, strict=True)
    )
    assert (newfaces["accuracy_measure"].text, newfaces["holdout_images"].text) == ("mean per class", "–")
    assert "Glyphs-A: the 1,280 images are those to choose from" in ours.notes[0]
    assert "robustness was measured" in built.caption
    cifar = next(row for row in printed.rows if row.label == "CIFAR-100")
    assert (cifar.cells[0].text, cifar.cells[0].detail) == ("100 ‡", "printed: 10")
    assert "misprint" in cifar.cells[-1].text


def test_table_a2_has_no_shifted_sets_where_robustness_is_not_measured() -> None:
    built = exhibit("tableA2", study())
    assert len(built.tables[0].rows) == 9
    assert built.tables[0].notes == ()
    assert "robustness" not in built.caption


def test_the_papers_correlation_is_recomputed_from_its_tables(reference: StudyResults) -> None:
    panel = panels(exhibit("figure5", reference))["figure5-published"]
    assert panel.source == "published"
    rho = spearman_rho([point.x for point in panel.points], [point.y for point in panel.points])
    assert rho == pytest.approx(-0.9333, abs=1e-4)
    assert "ρ = −0.93" in panel.finding


@pytest.fixture(scope="module")
def both_orders(reference: StudyResults) -> tuple[Measurements, Measurements]:
    """The same rows, as they are kept and shuffled."""
    return admit(reference), admit(shuffled(reference))


@pytest.mark.long
@pytest.mark.parametrize("name", registry.names("exhibit"))
def test_an_exhibit_is_a_pure_function_of_rows_in_any_order(
    name: str, both_orders: tuple[Measurements, Measurements]
) -> None:
    data = registry.entry("exhibit", name).resolve()
    built, again = (assemble(data, measurements) for measurements in both_orders)
    assert built == assemble(data, both_orders[0])
    assert built == again


# What no finished study shows: one seed, gaps, divergence.


@pytest.mark.parametrize("name", OURS)
def test_nothing_published_stands_among_ours(name: str) -> None:
    """Without a single row of ours, whatever is shown as ours holds no number but the cards' counts."""
    results = study(objectives=())
    assert len(results.table) == 0
    built = exhibit(name, results)
    for table in built.tables:
        assert table.name.endswith("_published") == (table.source == "published")
        assert table.source == "published" or name == "tableA2"
    assert {panel.source for figure in built.figures for panel in figure.panels} <= {"published"}


@pytest.mark.long
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
    ("name", "options", "what", "measures_it"),
    [
        ("table1", {"probes": ("linear",)}, "Transfer by kNN classifiers", "nine"),
        ("table1", {"probes": ("knn",)}, "Transfer by linear classifiers", "nine"),
        ("table3", {"separation": False}, "Class separation", "nine"),
        ("tableE1", {"separation": False}, "Class separation by three distances", "nine"),
        ("tableE2", {}, "Simplex-ETF measures", "nine"),
        ("tableC3", {}, "Calibration", "nine"),
        ("figure1", {"probes": ()}, "Pretraining accuracy against linear transfer", "nine"),
        ("figure5", {"separation": False}, "Class separation against linear transfer", "quickstart"),
        ("figure5", {}, "The figure's right half, a sweep of cosine softmax over temperatures", "glyphs"),
        ("table4", {}, "Cosine softmax at three temperatures or more", "glyphs"),
        ("figureD1", {"targets": ()}, "Linear transfer", "nine"),
    ],
)
def test_what_was_not_measured_is_said_and_not_drawn_empty(
    name: str, options: dict[str, Any], what: str, measures_it: str
) -> None:
    built = exhibit(name, study(**options))
    (gap,) = [gap for gap in built.missing if gap.what == what]
    assert gap.command == f"penultimate run {measures_it}"
    assert str(gap) == f"{what}: not measured: run `{gap.command}`"
    assert str(gap) in built.notes
    assert all(panel.points for figure in built.figures for panel in figure.panels)
    assert all(figure.panels for figure in built.figures)
    assert all(table.rows for table in built.tables)


def test_a_column_without_a_value_says_so() -> None:
    results = study()
    kept = Table(row for row in results.table if (row.metric, row.split) != ("class_separation", "test"))
    table = table_of(exhibit("table3", dataclasses.replace(results, table=kept)), "table3")
    column = column_of(table, "class_separation_r2_test")
    assert len(column) == len(MEASURED)
    assert {(cell.text, cell.detail) for cell in column.values()} == {("–", "not measured")}


def test_one_missing_task_leaves_the_mean_out() -> None:
    results = study()
    rows = [row for row in results.table if not (row.objective == "sigmoid" and row.target == "maths")]
    table = table_of(exhibit("table1", dataclasses.replace(results, table=Table(rows))), "table1_linear")
    shown = {key: column_of(table, f"{key}_percent")["sigmoid"] for key in ("maths", "mean", "digits")}
    assert shown["maths"].text == shown["mean"].text == "–"
    assert shown["digits"].value is not None


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


def test_diverged_runs_are_named_once_and_left_out_of_means() -> None:
    name = "dropout(keep=0.9)"
    results = study((0, 1, 2), diverged=(name, 1))
    row = next(
        row
        for row in table_of(exhibit("table1", results), "table1_linear").rows
        if row.objective == "dropout"
    )
    assert all(cell.count == 2 for cell in row.cells)
    network = {"objective": name, "backbone": "glyphnet", "arm": "", "seed": 1, "draw": 1}
    provenance = {"diverged": {"train.x": "NaN"}, "diverged_networks": {"train.x": [network]}}
    stepless = Table(dataclasses.replace(row, step=None) for row in results.table)
    for table in (results.table, stepless):  # the rows of a kept study have no step
        told = dataclasses.replace(results, table=table, provenance=provenance)
        (said,) = [note for note in exhibit("table1", told).notes if "Diverged" in note]
        assert "Dropout, seed 1 after epoch 3 (NaN)" in said


def test_a_run_that_diverged_before_its_first_row_is_named_from_provenance() -> None:
    first, other = "cosine_softmax(scale=1, temperature=0.05)", "cosine_softmax(scale=1, temperature=0.01)"
    results = study((0,), objectives=("softmax", first, other))
    networks = {
        "train.c": [{"objective": "softmax", "backbone": "glyphnet", "arm": "hot", "seed": 1, "draw": 1}],
        "train.a": [{"objective": other, "backbone": "glyphnet", "arm": None, "seed": 0, "draw": 0}],
        "train.b": [{"objective": "softmax", "backbone": "glyphplain", "arm": None, "seed": 3, "draw": 3}],
    }
    provenance = {"diverged": dict.fromkeys(networks, "loss is NaN"), "diverged_networks": networks}
    notes = exhibit("table3", dataclasses.replace(results, provenance=provenance)).notes
    said = [note for note in notes if "Diverged" in note]
    assert len(said) == 3
    assert "Softmax, seed 1 in the arm 'hot' (loss is NaN)" in said[0]
    assert "temperature = 0.01), seed 0 (loss is NaN)" in said[1]
    assert "Softmax, seed 3 with glyphplain (loss is NaN)" in said[2]


def test_how_many_runs_stand_behind_a_mean_is_that_of_the_objectives_shown() -> None:
    results = study((0, 1, 2))
    rows = [row for row in results.table if row.objective != "sigmoid" or row.seed != 2]
    fewer = dataclasses.replace(results, table=Table(rows))
    for name in ("figure1", "figure5"):
        assert "(three runs per objective" in exhibit(name, results).caption
        assert "(2 to 3 runs per objective" in exhibit(name, fewer).caption


def test_a_value_that_is_no_number_is_not_shown() -> None:
    results = study((0,), objectives=("softmax", "sigmoid"))
    rows = [
        dataclasses.replace(row, value=math.nan)
        if row.metric == "top1" and row.objective == "sigmoid"
        else row
        for row in results.table
    ]
    table = table_of(exhibit("table1", dataclasses.replace(results, table=Table(rows))), "table1_linear")
    assert column_of(table, "top1_percent")["sigmoid"].value is None


def test_two_values_of_one_quantity_are_an_error() -> None:
    results = study()
    again = dataclasses.replace(next(iter(results.table)), value=0.123)
    with pytest.raises(RequestError, match="two values of one quantity: top1"):
        exhibit("tableC1", dataclasses.replace(results, table=Table([*results.table, again])))


def test_with_one_seed_nothing_is_bold_and_that_is_said() -> None:
    for seeds, said in (
        ((0,), "one seed cannot show which is best"),
        ((0, 1), "two seeds cannot show"),
    ):
        built = exhibit("table1", study(seeds))
        assert not any(cell.best for table in built.tables for row in table.rows for cell in row.cells)
        assert any(said in note for note in built.notes)
    assert any("paired t-test" in note for note in exhibit("table1", study((0, 1, 2))).notes)


def test_bold_is_what_the_test_says() -> None:
    accuracies = {
        "softmax": (0.90, 0.91, 0.92),
        "sigmoid": (0.89, 0.90, 0.915),
        "dropout(keep=0.9)": (0.5, 0.51, 0.52),
    }
    results = study((0, 1, 2), objectives=tuple(accuracies))
    rows = [
        dataclasses.replace(row, value=accuracies[str(row.objective)][int(row.seed or 0)])
        if (row.metric, row.split, row.epoch) == ("top1", "test", None)
        else row
        for row in results.table
    ]
    table = table_of(exhibit("table3", dataclasses.replace(results, table=Table(rows))), "table3")
    assert [row.cells[0].best for row in table.rows] == [True, True, False]


def test_the_lowest_is_best_where_less_is_better(reference: StudyResults) -> None:
    column = column_of(table_of(exhibit("tableC3", reference), "tableC3"), "uncalibrated_nll_nats")
    lowest = min(column, key=lambda name: column[name].value or math.inf)
    assert column[lowest].best
    assert not column[max(column, key=lambda name: column[name].value or 0)].best


def test_objectives_of_one_label_are_told_apart() -> None:
    pair = ("cosine_softmax(scale=1, temperature=0.05)", "cosine_softmax(scale=1, temperature=0.01)")
    labels = [objective.label for objective in admit(study((0,), objectives=("softmax", *pair))).objectives]
    assert labels == ["Softmax", *(f"Cosine softmax (scale = 1, temperature = {t})" for t in (0.05, 0.01))]


def test_a_network_that_was_not_trained_here_stands_beside_those_that_were() -> None:
    """It has no architecture, seed or draw; its one run is a row and a mark."""
    results = study((0, 1))
    own = resolve("softmax").canonical
    given = [
        dataclasses.replace(row, objective="theirs", backbone=None, seed=None, draw=None)
        for row in results.table
        if row.objective == own and row.seed == 0 and row.epoch is None
    ]
    description = {
        **results.description,
        "networks": [
            *results.description["networks"],
            {"given": {"theirs": "timm:resnet18"}, "measure": None},
        ],
        "objectives": [
            *results.description["objectives"],
            {"slug": "theirs", "label": "theirs", "spec": "theirs"},
        ],
    }
    both = dataclasses.replace(results, description=description, table=Table([*results.table, *given]))
    column = column_of(table_of(exhibit("table1", both), "table1_linear"), "mean_percent")
    assert len(column) == len(MEASURED) + 1
    assert column["theirs"].count == 1
    points = panels(exhibit("figure1", both))["figure1-ours"].points
    (mark,) = [point for point in points if point.objective == "theirs"]
    assert mark.detail.startswith("not trained here: ")
    for name in registry.names("exhibit"):
        assert exhibit(name, both).name == name


def test_an_unknown_exhibit_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError, match=r"unknown exhibit 'tabel1'. Did you mean 'table1'\?"):
        exhibit("tabel1", study())


def test_a_row_without_a_place_of_its_own_is_on_the_source() -> None:
    """Rows of a study that does not say so are those of its source's test images."""
    results = study((0,), objectives=("softmax",))
    rows = [dataclasses.replace(row, target=None) if row.target == "glyphs" else row for row in results.table]
    assert exhibit("table3", dataclasses.replace(results, table=Table(rows))) == exhibit("table3", results)
    assert isinstance(rows[0], Row)


def test_a_line_that_one_objective_decides_is_said_to_be_such(reference: StudyResults) -> None:
    """By scipy's r of the nine of the kept run; without one objective that decides, nothing is said."""
    built = exhibit("figure5", read_reference("glyphs"))
    points = {point.label: (point.x, point.y) for point in panels(built)["figure5-ours"].points}
    whole = pearsonr(*zip(*points.values(), strict=True))
    without = pearsonr(*zip(*(at for label, at in points.items() if label != "Squared error"), strict=True))
    assert whole.statistic < 0 < without.statistic
    sizes = [
        f"{of.statistic:+.2f} ({'p = ' if of.pvalue >= 1e-4 else 'p < '}".replace("-", "−")
        for of in (whole, without)
    ]
    (said,) = (note for note in built.notes if note.startswith("In a straight line one objective decides"))
    assert f"Pearson's r is {sizes[0]}" in said
    assert f"and without Squared error {sizes[1]}" in said
    assert not any("In a straight line" in note for note in exhibit("figure5", study((0, 1, 2))).notes)
