"""Transfer by depth: layers chosen on validation, never on the test set; whom an earlier layer helps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from statistics import stdev

import pytest

from penultimate.objectives.presets import resolve
from penultimate.records.table import Row, Table
from penultimate.report import StudyResults, exhibit, read_study
from penultimate.report.base import Built
from tests.report.planted import planted
from tests.report.reading import cell, described, glyphs, only, panels, shuffled, table_of, with_rows

TASKS = {"syllabics": "top1", "newfaces": "mean_per_class"}
LAYERS = ("block1", "block2", "penultimate")
Truth = Mapping[str, Mapping[str, tuple[float, ...]]]
"""{objective: {task: an accuracy in per cent for each layer}}"""

TESTED: Truth = {
    "softmax": {"syllabics": (50, 70, 80), "newfaces": (30, 60, 70)},
    "sigmoid": {"syllabics": (50, 75, 60), "newfaces": (30, 58, 66)},
    "dropout": {"syllabics": (50, 74, 50), "newfaces": (30, 68, 48)},
    "squared_error": {"syllabics": (50, 72, 40), "newfaces": (30, 70, 30)},
}
VALIDATED: Truth = {
    "softmax": {"syllabics": (50, 70, 80), "newfaces": (30, 60, 70)},
    "sigmoid": {"syllabics": (50, 77, 61), "newfaces": (30, 66, 66)},  # equals: the later one
    "dropout": {"syllabics": (50, 60, 55), "newfaces": (90, 68, 48)},  # the worst one on the test set
    "squared_error": {"syllabics": (50, 72, 40), "newfaces": (30, 70, 30)},
}


def with_depth(
    tested: Truth = TESTED, validated: Truth = VALIDATED, seeds: tuple[int, ...] = (0, 1)
) -> StudyResults:
    """A planted study whose layers transfer like this by both probes, a point more with each seed."""
    truth = {name: {"linear_syllabics": 1.0} for name in tested}
    return with_rows(
        planted(truth, seeds, noise=0.0),
        [
            Row(
                objective=resolve(name).canonical,
                backbone="glyphnet",
                source="glyphs",
                target=task,
                seed=seed,
                draw=seed,
                split=split,
                layer=layer,
                metric=metric,
                value=(accuracy + seed) / 100,
                unit="fraction",
                status="done",
                step="depth.s",
            )
            for split, values in (("test", tested), ("train", validated))
            for name, of_tasks in values.items()
            for task, accuracies in of_tasks.items()
            for layer, accuracy in zip(LAYERS, accuracies, strict=True)
            for seed in seeds
            for metric in (
                (f"linear_{TASKS[task]}", f"knn_{TASKS[task]}")
                if split == "test"
                else ("linear_validation_accuracy", "knn_leave_one_out")
            )
        ],
    )


def number(built: Built, name: str, key: str) -> float | None:
    return cell(table_of(built, "depth_linear"), name, key)[0]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_layer_is_chosen_on_validation_and_scored_on_the_test_set(shuffle: bool) -> None:
    results = with_depth()
    built = exhibit("depth", shuffled(results) if shuffle else results)
    for probe in ("linear", "knn"):
        chosen = {
            row.objective: [one.text for one in row.cells]
            for row in table_of(built, f"depth_{probe}_layers").rows
        }
        assert chosen == {
            "softmax": ["last", "last"],
            "sigmoid": ["2", "last"],
            "dropout": ["2", "1"],
            "squared_error": ["2", "2"],
        }
        (note,) = table_of(built, f"depth_{probe}_layers").notes
        assert note.startswith("1 block1, 2 block2; last: the penultimate features.")
    # Means over two tasks and over the seeds 0 and 1, which add half a point.
    assert number(built, "dropout", "Penultimate_percent") == pytest.approx((50 + 48) / 2 + 0.5)
    assert number(built, "dropout", "block2_percent") == pytest.approx((74 + 68) / 2 + 0.5)
    assert number(built, "dropout", "own_percent") == pytest.approx((74 + 30) / 2 + 0.5)
    assert number(built, "dropout", "gain") == pytest.approx((74 + 30) / 2 - (50 + 48) / 2)


def test_the_share_of_softmaxs_lead_is_the_gain_over_the_lead() -> None:
    built = exhibit("depth", with_depth())
    assert number(built, "squared_error", "lead") == pytest.approx(75 - 35)
    assert number(built, "squared_error", "recovered_percent") == pytest.approx(100 * (71 - 35) / (75 - 35))
    assert number(built, "squared_error", "lead_at_best") == pytest.approx(75 - 71)
    assert number(built, "softmax", "lead") is None
    assert (
        "By linear probes three objectives at least a point behind softmax at the penultimate layer recover"
        " 12 % (Dropout) to 90 % (Squared error) of softmax's lead by their own best layers; softmax itself"
        " gains 0.0 points by its own." in built.notes
    )
    ahead = {**TESTED, "sigmoid": {"syllabics": (50, 75, 90), "newfaces": (30, 58, 90)}}
    shown = exhibit("depth", with_depth(ahead))
    assert number(shown, "sigmoid", "lead") == pytest.approx(75 - 90)
    assert number(shown, "sigmoid", "recovered_percent") is None
    alone = exhibit("depth", with_depth({**ahead, "dropout": ahead["sigmoid"]}))
    said = "By linear probes Squared error, the only objective at least a point behind softmax at the"
    said += " penultimate layer, recovers 90 % of softmax's lead by its own best layers; softmax"
    assert any(note.startswith(said) for note in alone.notes)


def test_it_says_how_far_objectives_lie_apart_at_either_place() -> None:
    """Without a correlation of gains with what they are counted from, which noise alone would make."""
    built = exhibit("depth", with_depth())
    gain = panels(built)["depth-linear-gain"]
    gains = {point.objective: (point.x, point.y) for point in gain.points}
    assert gains["dropout"] == pytest.approx((49.5, 3.0))
    assert "ρ" not in gain.finding
    last, own = [75.5, 63.5, 49.5, 35.5], [75.5, 71.0, 52.5, 71.5]
    ratio = stdev(own) / stdev(last)
    where = "35.5 to 75.5 % from the penultimate layer and 52.5 to 75.5 % from their own best layers, a "
    assert built.finding == (
        f"Ours: four objectives reach by linear probes {where}spread {ratio:.2f} times as large; by kNN"
        f" probes {where}spread {ratio:.2f} times as large (two runs each: a direction, no more)."
    )
    assert "no more" not in exhibit("depth", with_depth(seeds=(0, 1, 2))).finding
    level = {name: dict.fromkeys(TASKS, (10.0, 30.0, 40.0)) for name in TESTED}
    assert "spread" not in exhibit("depth", with_depth(level, level)).finding


def test_lines_go_from_the_first_block_to_the_penultimate_features() -> None:
    panel = panels(exhibit("depth", with_depth()))["depth-knn"]
    assert panel.x_label == "Layer: 1 block1, 2 block2, 3 Penultimate"
    lines = {curve.objective: curve.points for curve in panel.curves}
    assert [x for x, _ in lines["softmax"]] == [1, 2, 3]
    assert [y for _, y in lines["softmax"]] == pytest.approx([40.5, 65.5, 75.5])
    ends = {point.objective: (point.x, point.y) for point in panel.points}
    assert ends == {name: line[-1] for name, line in lines.items()}


def test_networks_of_other_depths_end_at_the_same_place() -> None:
    """A network that was given has layers of its own."""
    results = with_depth(seeds=(0,))
    given = [
        dataclasses.replace(row, objective="theirs", backbone=None, seed=None, draw=None)
        for row in results.table
        if row.layer in ("block2", "penultimate") and row.objective == "softmax"
    ]
    block = {"given": {"theirs": "timm:resnet18"}}
    blocks = [*results.description["networks"], block]
    built = exhibit("depth", with_rows(described(results, networks=blocks), given))
    lines = {curve.objective: curve.points for curve in panels(built)["depth-linear"].curves}
    assert [x for x, _ in lines["theirs"]] == [2, 3]
    called = {one.text for row in table_of(built, "depth_linear_layers").rows for one in row.cells}
    assert called == {"last", "block1", "block2"}
    assert panels(built)["depth-linear"].x_label == "Layer, from the first block to the penultimate features"


def test_of_given_networks_it_says_which_layer_to_use() -> None:
    """Two networks have no scatter; the best one comes first; the sentence is that of the tables."""
    results = with_depth(seeds=(0,))
    names = {"dropout": "second", "softmax": "first"}
    probed = [dataclasses.replace(row, layer=None) for row in results.table if row.layer == "penultimate"]
    given = [
        dataclasses.replace(row, objective=names[slug], backbone=None, seed=None, draw=None)
        for row in (*results.table, *probed)
        if row.layer or row.metric.startswith("linear_")
        for slug in [str(row.objective).partition("(")[0]]
        if slug in names
    ]
    given = list({dataclasses.replace(row, value=0): row for row in given}.values())
    block = {"given": dict.fromkeys(names.values(), "timm:resnet18")}
    described_so = described(results, networks=[block], objectives=[])
    built = exhibit("depth", dataclasses.replace(described_so, table=Table(given)))
    assert built.title == "Which layer should I use?"
    assert {*panels(built)} == {"depth-linear", "depth-knn"}
    table = table_of(built, "depth_linear_layers")
    chosen = [(row.label, [one.text for one in row.cells]) for row in table.rows]
    assert chosen == [("first", ["last", "last"]), ("second", ["2", "1"])]
    assert built.finding == (
        "For two of four combinations of network and task, validation chooses the penultimate features; an"
        " earlier layer gains most for second on Syllabics, layer block2: +24.0 points."
    )


def test_an_objective_without_all_tasks_is_left_out_until_it_has_them() -> None:
    results = with_depth()
    sigmoid = resolve("sigmoid").canonical
    rows = [row for row in results.table if (row.objective, row.target) != (sigmoid, "newfaces")]
    part = with_rows(dataclasses.replace(results, table=results.table.where(metric="none")), rows)
    assert [row.objective for row in table_of(exhibit("depth", part), "depth_linear").rows] == [
        "softmax",
        "dropout",
        "squared_error",
    ]


def test_an_objective_without_a_run_on_all_tasks_is_left_out_until_it_has_one() -> None:
    sigmoid = resolve("sigmoid").canonical
    gone = {(sigmoid, "newfaces", 0), (sigmoid, "syllabics", 1)}
    part = only(with_depth(), lambda row: (row.objective, row.target, row.seed) not in gone)
    assert [row.objective for row in table_of(exhibit("depth", part), "depth_linear").rows] == [
        "softmax",
        "dropout",
        "squared_error",
    ]


def test_a_study_that_did_not_ask_for_it_does_not_speak_of_it() -> None:
    built = exhibit("depth", glyphs())
    assert not built.wanted
    assert not built.tables
    assert built.missing[0].command == "penultimate run full"


def test_smokes_penultimate_numbers_are_those_of_table_1(finished_smoke: Path) -> None:
    results = read_study(finished_smoke / "runs")
    depth, table1 = (exhibit(name, results, allow_limited=True) for name in ("depth", "table1"))
    for probe in ("linear", "knn"):
        ours, theirs = table_of(depth, f"depth_{probe}"), table_of(table1, f"table1_{probe}")
        assert len(ours.rows) == 3
        for row in ours.rows:
            assert cell(ours, row.objective, "Penultimate_percent") == pytest.approx(
                cell(theirs, row.objective, "mean_percent")
            )
