"""Table D.1: means of runs, intervals, policies, what is missing; and that other exhibits stay without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from penultimate.data.catalog import card
from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit
from tests.report.planted import planted
from tests.report.reading import table_of

AREAS = {"softmax": (0.9, 0.8), "sigmoid": (0.7, 0.85), "squared_error": (0.6, 0.6)}
"""Of two labels, on test images; on validation images a tenth more."""
LABELS = ("Ya", "Yab")
SEEDS = (0, 1, 2)
NOISE = np.random.default_rng(0).normal(scale=1e-3, size=(3, 3, 2))


def facts(name: str, seed: int, split: str, policy: str, label: str = "") -> dict[str, Any]:
    return {
        "step": "multilabel.0",
        "objective": resolve(name).canonical,
        "backbone": "glyphnet",
        "source": "glyphs",
        "seed": seed,
        "draw": seed,
        "target": "findings",
        "split": split,
        "unit": "fraction",
        "status": "done",
        "setting": f"label={label}, uncertain={policy}" if label else f"uncertain={policy}",
    }


def results(
    policies: Sequence[str] = ("zeros",), splits: Sequence[str] = ("test", "validation"), mean: bool = True
) -> StudyResults:
    """The planted study, and areas of findings that rise by a hundredth with every seed."""
    made = planted({name: {"linear": 80.0, "accuracy": 70.0} for name in AREAS}, SEEDS, noise=0.0)
    rows = []
    for name, areas in AREAS.items():
        for seed in SEEDS:
            for split in splits:
                for policy in policies:
                    shift = seed / 100 + 0.1 * (split == "validation") - 0.2 * (policy == "ones")
                    noise = NOISE[list(AREAS).index(name), seed]
                    for label, area in zip(LABELS, areas + noise, strict=True):
                        told = facts(name, seed, split, policy, label)
                        for part, off in (("", 0), ("_low", -0.05), ("_high", 0.04)):
                            rows.append(Row(metric=f"multilabel_auc{part}", value=area + shift + off, **told))
                    if mean:
                        value = sum(areas) / 2 + shift
                        told = facts(name, seed, split, policy)
                        rows.append(Row(metric="multilabel_mean_auc", value=value, **told))
    described = {**made.description, "targets": [*made.description["targets"], "findings"]}
    return dataclasses.replace(made, table=type(made.table)([*made.table, *rows]), description=described)


def test_every_cell_is_a_mean_over_runs_and_the_best_is_bold() -> None:
    built = exhibit("tableD1", results())
    assert not built.missing
    ours = [table.name for table in built.tables if table.source == "ours"]
    assert ours == [
        "tableD1_findings_validation",
        "tableD1_findings_validation_intervals",
        "tableD1_findings_test",
        "tableD1_findings_test_intervals",
    ]
    table = table_of(built, "tableD1_findings_test")
    assert [column.label for column in table.columns] == ["Ya", "Yab", "Mean"]
    assert [one.text for one in table.rows[0].cells] == ["91.0", "81.0", "86.0"]
    assert [row.cells[0].best for row in table.rows] == [True, False, False]
    assert [row.cells[1].best for row in table.rows] == [False, True, False]
    assert table_of(built, "tableD1_findings_validation").rows[0].cells[0].text == "101.0"
    intervals = table_of(built, "tableD1_findings_test_intervals")
    assert [one.text for one in intervals.rows[0].cells] == ["86.0 to 95.0", "76.0 to 85.0"]
    assert "Findings, test images: softmax has the highest mean AUC on one of two labels." in built.notes


def test_a_label_on_which_softmax_shares_the_first_place_is_said_to_be_tied() -> None:
    made = results()
    rows = [
        dataclasses.replace(row, value=1.0) if row.metric == "multilabel_auc" else row for row in made.table
    ]
    objectives = list(reversed(made.description["objectives"]))
    tied = dataclasses.replace(
        made, table=type(made.table)(rows), description={**made.description, "objectives": objectives}
    )
    said = "Findings, test images: softmax has the highest mean AUC on two of two labels (tied on two)."
    assert said in exhibit("tableD1", tied).notes


def test_the_paper_s_numbers_stand_beside_ours_digit_for_digit() -> None:
    built = exhibit("tableD1", results())
    for split, name in (("validation", "official"), ("test", "iid")):
        table = table_of(built, f"tableD1_{split}_published")
        rows = published.printed(f"neurips_tableD1_chexpert_{name}")
        assert [[one.text for one in row.cells] for row in table.rows] == [
            list(row.values())[1:] for row in rows
        ]


def test_each_policy_has_tables_of_its_own() -> None:
    built = exhibit("tableD1", results(("zeros", "ones"), ("test",)))
    ones = table_of(built, "tableD1_findings_test_ones")
    assert ones.title == "Findings, test images; uncertain labels counted as present: AUC, %"
    assert [one.value for one in ones.rows[0].cells] == pytest.approx([71.0, 61.0, 66.0], abs=0.2)
    usual = table_of(built, "tableD1_findings_test").rows[0].cells[0]
    assert usual.value == pytest.approx(91.0, abs=0.2)


def test_labels_without_a_value_are_said_and_leave_no_mean() -> None:
    why = "multilabel_auc (train): label 'Yabh': y holds one class only"
    made = results(mean=False)
    made = dataclasses.replace(made, provenance={"undefined": {"multilabel.0": why}})
    built = exhibit("tableD1", made)
    assert [column.label for column in table_of(built, "tableD1_findings_test").columns] == ["Ya", "Yab"]
    assert f"No value: {why}." in built.notes


def test_faint_letters_are_spoken_of_where_there_are_any() -> None:
    made = results()
    assert " a faint letter is uncertain" in exhibit("tableD1", made).caption
    rows = [
        dataclasses.replace(row, target="chests") if row.target == "findings" else row for row in made.table
    ]
    of_chests = {
        **made.description,
        "targets": ["chests"],
        "cards": [{**card("findings").described(), "name": "chests"}],
    }
    built = exhibit("tableD1", StudyResults(of_chests, type(made.table)(rows)))
    assert table_of(built, "tableD1_chests_test").rows
    assert built.caption.endswith("means over runs.")


def test_areas_over_thresholds_are_said_to_be() -> None:
    made, said = results(), "Areas are over 1,000 thresholds of the probability"
    asked = {**made.description, "measure": ["multilabel(thresholds=1000)"]}
    for study, there in ((made, False), (dataclasses.replace(made, description=asked), True)):
        assert any(note.startswith(said) for note in exhibit("tableD1", study).notes) == there


def test_what_was_not_measured_is_said_and_the_paper_s_stays() -> None:
    built = exhibit("tableD1", planted({"softmax": {"linear": 80.0}}))
    (missing,) = built.missing
    assert str(missing).endswith("not measured: run `penultimate run full`")
    assert {table.source for table in built.tables} == {"published"}


@pytest.mark.parametrize("name", ["table1", "figure1", "figureD1", "tableF1"])
def test_exhibits_of_one_class_each_are_as_they_are_without_it(name: str) -> None:
    with_it = results()
    without = planted({key: {"linear": 80.0, "accuracy": 70.0} for key in AREAS}, SEEDS, noise=0.0)
    ours, theirs = exhibit(name, with_it), exhibit(name, without)
    assert (ours.tables, ours.figures, ours.missing) == (theirs.tables, theirs.figures, theirs.missing)


def test_the_data_sets_table_lists_it_with_its_measure() -> None:
    table = table_of(exhibit("tableA2", results()), "tableA2")
    (row,) = (row for row in table.rows if row.label == "Findings")
    assert row.cells[-1].text == "AUC of each label"
    assert [one.text for one in row.cells[:2]] == ["transfer", "5"]
