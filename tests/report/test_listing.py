"""What `list exhibits` says: which study measures an exhibit, and how far those of a folder have come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penultimate.errors import DamagedFileError
from penultimate.records.reading import StudyFolder
from penultimate.report.listing import ANY_STUDY, NOT_MEASURED, ON_ITS_PAGE, lines, states
from penultimate.report.spec import all_exhibits
from tests.records.stores import SOFTMAX, described, finished, prepared

ENSEMBLES = {"figureC6", "figureC7"}
OF_THE_SWEEP = {"figure5", "table4", "figure6", "iclr_figure5", "claims"}
OF_ARMS = {"tableC6"}
"""What smoke has nothing of, for it is of other arms alone."""
BESIDE_ARMS = {"tableC4", "tableC5", "tableE3", "projectors"}
"""What smoke has the main arm of."""
OF_CERTAINTY = {"outside", "selective", "probe_calibration"}
SETTINGS_ALONE = {"tableA1", "iclr_tableA2", "tableA2", "plugins"}
NETWORKS = [{"objectives": ["softmax"], "backbones": ["net", "plain"], "arm": ""}]


def made(
    root: Path, steps: Sequence[tuple[str, Sequence[dict[str, Any]] | None]], **settings: Any
) -> StudyFolder:
    """A study of steps, each with its rows, or with None where it is not done."""
    store = prepared(root)
    for step_id, rows in steps:
        if rows is not None:
            columns = {**SOFTMAX, "source": "glyphs", "target": "glyphs"}
            finished(store, step_id, columns, [{"value": 0.5, "split": "test", **row} for row in rows])
    return described(store, "made", [step_id for step_id, _ in steps], **{"networks": NETWORKS, **settings})


def test_without_a_study_nothing_is_measured(tmp_path: Path) -> None:
    known = states(tmp_path)
    assert list(known) == [exhibit.name for exhibit in all_exhibits()]
    assert {name for name, state in known.items() if state == ANY_STUDY} == SETTINGS_ALONE
    assert {known[name] for name in set(known) - SETTINGS_ALONE} == {NOT_MEASURED, ON_ITS_PAGE}
    own = {exhibit.name for exhibit in all_exhibits() if exhibit.measured_by in ("evaluate", "portrait")}
    assert {name for name, state in known.items() if state == ON_ITS_PAGE} == own
    assert {"ranking", "comparisons", "confusions", "basis"} < own


def test_what_smoke_has_measured_is_told_as_such(finished_smoke: Path) -> None:
    """It has one seed, one architecture and no sweep, and fine-tunes from fresh final layers only."""
    known = states(finished_smoke / "runs")
    lacking = {name for name, state in known.items() if state == NOT_MEASURED}
    own = {"doses", *OF_CERTAINTY, "few_labels"}
    assert lacking == {*own, "table4", "tableB1", "figureB1", *ENSEMBLES, *OF_ARMS}
    partly = {name for name, state in known.items() if state.startswith("partly (smoke, limited")}
    # Near chance a temperature may have no value, by the machine: Table C.3 is then not whole.
    assert partly - {"tableC3"} == (OF_THE_SWEEP | BESIDE_ARMS) - {"table4"} | {"table2"}
    assert {known[name] for name in set(known) - lacking - partly - SETTINGS_ALONE} == {
        "measured (smoke, limited)",
        ON_ITS_PAGE,
    }


def test_finished_steps_are_counted(tmp_path: Path) -> None:
    """Of those that yield what an exhibit names, done or not: Table C.1 needs no kNN."""
    accuracy = [{"metric": f"top{k}", "split": split} for k in (1, 5) for split in ("train", "test")]
    made(
        tmp_path,
        [("accuracy.a.0", accuracy), ("accuracy.b.0", None), ("knn.a.0", None), ("linear.a.0", None)],
    )
    known = states(tmp_path)
    assert known["tableC1"] == "partly (made: 1 of 2 steps)"
    assert known["table1"] == "partly (made: 1 of 4 steps)"
    assert known["table3"] == "partly (made: 1 of 2 steps)"
    assert known["tableE1"] == NOT_MEASURED


def test_the_study_that_has_most_is_named(tmp_path: Path) -> None:
    rows = [
        {"metric": f"class_separation{name}", "split": split}
        for name in ("", "_cosine_centered", "_euclidean")
        for split in ("train", "test")
    ]
    folder = made(tmp_path, [("class_separation.a.0", rows), ("class_separation.b.0", None)])
    assert states(tmp_path)["tableE1"] == "partly (made: 1 of 2 steps)"
    described(folder.store, "whole", ["class_separation.a.0"], networks=NETWORKS)
    described(folder.store, "small", ["class_separation.a.0"], networks=NETWORKS, limited=True)
    assert states(tmp_path)["tableE1"] == "measured (whole)"


def test_rows_that_were_changed_tell_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path, [("knn.a.0", [{"metric": "knn_top1"}])])
    file = folder.file("knn.a.0", "rows.jsonl")
    file.write_text(file.read_text().replace("knn_top1", "knn_top5"))
    with pytest.raises(DamagedFileError, match=r"rows\.jsonl is not what was written.*penultimate run made"):
        states(tmp_path)


@pytest.mark.parametrize(
    ("row", "arm", "measured"),
    [
        ({"layer": "block1"}, "", "figure4"),
        ({"epoch": 3}, "", "figureE4"),
        ({}, "temperature", None),
    ],
)
def test_layers_epochs_and_arms_are_told_apart(
    tmp_path: Path, row: dict[str, Any], arm: str, measured: str | None
) -> None:
    """The same metric in a layer, after an epoch, and of a sweep; Table E.1 shows none of these."""
    rows = [{"metric": "class_separation", "split": split, **row} for split in ("train", "test")]
    made(tmp_path, [("some.a.0", rows)], arms={"some.a.0": [arm]} if arm else {})
    known = states(tmp_path)
    whole = {name for name, state in known.items() if state == "measured (made)"}
    assert whole == ({measured} if measured else set())
    assert known["tableE1"] == NOT_MEASURED
    assert known["figure5"].startswith("partly") == bool(arm)


@pytest.mark.parametrize(("backbone", "measured"), [("net", {"figure2"}), ("plain", {"figureB1"})])
def test_architectures_are_told_apart(tmp_path: Path, backbone: str, measured: set[str]) -> None:
    made(tmp_path, [("similarity.all.0", [{"metric": "layer_cka", "backbone": backbone, "objective": None}])])
    assert {name for name, state in states(tmp_path).items() if state == "measured (made)"} == measured


def test_every_line_names_exhibit_study_state_and_what_it_is(tmp_path: Path) -> None:
    head, *listed = lines(tmp_path)
    assert head.split("  ")[0] == "exhibit"
    for line, exhibit in zip(listed, all_exhibits(), strict=True):
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        assert cells == [exhibit.name, exhibit.study, states(tmp_path)[exhibit.name], exhibit.summary]
