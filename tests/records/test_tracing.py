"""Why a number is what it is: the exhibit's own rows, and the steps behind them, nobody else's."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.records.stores import SOFTMAX, described, finished, prepared

from penultimate import registry
from penultimate.cli import main
from penultimate.records.archive import reference
from penultimate.records.reading import StudyFolder
from penultimate.records.tracing import NothingError, explain
from penultimate.results.rows import Run

OBJECTIVES = [{"slug": name, "label": name, "spec": name} for name in ("softmax", "sigmoid", "ours")]
SWEPT = "cosine_softmax(scale=0.05, temperature=0.05)"
NETWORKS = [
    {"objectives": ["softmax", "sigmoid"], "backbones": ["net", "plain"], "arm": "", "recipe": {}},
    {"objectives": [SWEPT], "backbones": ["net"], "arm": "temperature", "recipe": {}},
    {"given": {"ours": "timm:resnet18"}},
]


def why(folder: StudyFolder, exhibit: str, objective: str, target: str | None = None) -> str:
    run = Run(folder.table().frame(), folder.described(), arrays=folder.arrays, log=[])
    registry.entry("exhibit", exhibit).resolve()(run, allow_limited=True)
    assert run.log is not None
    return explain(folder, exhibit, pd.concat([run.frame[:0], *run.log]), objective, target)


def nothing(folder: StudyFolder, exhibit: str, objective: str, target: str | None = None) -> str:
    """What is said where there is no number."""
    with pytest.raises(NothingError) as said:
        why(folder, exhibit, objective, target)
    return str(said.value)


def lines(told: str) -> list[str]:
    """The rows that are listed, with one space between cells."""
    return [" ".join(line.split()) for line in told.split("\n\n")[1].splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """Two architectures, a sweep and a network that was given, with rows that different exhibits show."""
    store = prepared(tmp_path)
    data = finished(store, "data.d0-glyphs.0", {"draw": 0, "target": "glyphs"}, content_digest="d1ge57")

    def measured(
        step: str, columns: dict[str, Any], *rows: dict[str, Any], parents: tuple[str, ...] = ()
    ) -> str:
        columns = {"source": "glyphs", "target": "glyphs", **columns}
        return finished(store, step, columns, [{"split": "test", **row} for row in rows], parents)

    train = measured("train.softmax-s0.0", SOFTMAX, parents=(data,))
    rival = measured("train.sigmoid-s0.0", {**SOFTMAX, "objective": "sigmoid"}, parents=(data,))
    top1 = {"metric": "top1", "value": 0.75}
    separation = [
        {"metric": "class_separation", "value": value, "layer": layer}
        for value, layer in ((0.5, None), (0.1, "block1"), (0.4, "penultimate"))
    ]
    over_epochs = [{"metric": "class_separation", "value": epoch / 10, "epoch": epoch} for epoch in (1, 2, 3)]
    pairs = [
        {**SOFTMAX, "metric": "agreement_same", "value": value, "objective_b": other, "seed_b": 0}
        for value, other in ((0.25, "sigmoid"), (0.5, "ours"))
    ]
    steps = [
        data,
        train,
        rival,
        measured("accuracy.softmax-s0.0", SOFTMAX, top1, {"metric": "top5", "value": 0.9}, parents=(train,)),
        measured("accuracy.softmax-s0.1", {**SOFTMAX, "backbone": "plain"}, {**top1, "value": 0.5}),
        measured("accuracy.sweep-s0.0", {**SOFTMAX, "objective": SWEPT}, top1),
        measured("accuracy.ours.0", {"objective": "ours"}, {**top1, "value": 0.625}),
        measured("layers.softmax-s0.0", SOFTMAX, *separation[1:], parents=(train,)),
        measured("class_separation.softmax-s0.0", SOFTMAX, separation[0], parents=(train,)),
        measured("dynamics.softmax-s0.0", SOFTMAX, *over_epochs, parents=(train,)),
        measured(
            "linear.softmax-s0.0", {**SOFTMAX, "target": "digits"}, {"metric": "linear_top1", "value": 0.8}
        ),
        measured("agreement.all.0", {}, *pairs, parents=(train, rival)),
    ]
    objectives = [*OBJECTIVES, {"slug": SWEPT, "label": "Swept", "spec": SWEPT}]
    settings = {"networks": NETWORKS, "objectives": objectives, "targets": ["digits"]}
    return described(store, "made", steps, arms={"accuracy.sweep-s0.0": ["temperature"]}, **settings)


def test_only_the_rows_that_an_exhibit_shows_are_named(folder: StudyFolder) -> None:
    """Class separation stands in Table 3 at the end, in Figure 4 by layer, in Figure E.4 over epochs."""
    shown = {name: why(folder, name, "softmax") for name in ("table1", "table3", "figure4", "figureE4")}
    assert "top1" in shown["table1"]
    assert "top5" in shown["table1"]
    assert "class_separation" not in shown["table1"]
    separation = "0.5 net seed 0 class_separation test"
    assert lines(shown["table3"]) == ["0.75 net seed 0 top1 test", separation]
    assert lines(shown["figure4"]) == [
        "0.1 net seed 0 class_separation test block1",
        "0.4 net seed 0 class_separation test penultimate",
    ]
    assert lines(shown["figureE4"])[-1] == "0.3 net seed 0 class_separation test epoch 3"


def test_the_steps_behind_come_with_it_and_no_others(folder: StudyFolder) -> None:
    told = why(folder, "table1", "softmax")
    for part in ("accuracy.softmax-s0.0", "train.softmax-s0.0", "data.d0-glyphs.0", "d1ge57"):
        assert part in told
    assert "sigmoid" not in told
    assert "also on: digits" in told
    assert "linear.softmax" not in told
    assert "linear_top1" in why(folder, "table1", "softmax", "digits")


@pytest.mark.parametrize("objective", ["softmax", "sigmoid"])
def test_pairs_are_told_for_either_network(folder: StudyFolder, objective: str) -> None:
    told = why(folder, "figureC5", objective)
    others = {"softmax": ["with sigmoid", "with ours"], "sigmoid": ["with softmax"]}[objective]
    values = ["0.25", "0.5"]
    assert lines(told) == [
        f"{value} net seed 0 agreement_same test {other}"
        for value, other in zip(values, others, strict=False)
    ]
    assert "agreement.all.0" in told
    assert ("\ntrain.sigmoid-s0.0" in told) == (objective == "sigmoid")


def test_where_there_is_nothing_it_is_said_where_there_is(folder: StudyFolder) -> None:
    assert nothing(folder, "table3", "softmax", "digits") == (
        "table3 shows nothing of softmax on digits in study made; it does on: glyphs"
    )
    assert nothing(folder, "tableE2", "softmax").endswith("in study made")
    more = [*folder.description["steps"], "collapse.softmax-s0.0"]
    unfinished = dataclasses.replace(folder, description={**folder.description, "steps": more})
    command = f"penultimate run made --out {folder.store.root}"
    assert nothing(unfinished, "tableE2", "softmax").endswith(f"the study is continued by: {command}")


def test_a_reference_run_is_traced_to_what_is_kept_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "table1", "label_smoothing", "digits", "--reference", "--study", "full"]) == 0
    told = capsys.readouterr().out
    assert "table1: label_smoothing on digits, study full" in told
    kept = reference("full")
    values = [
        row.value
        for row in kept.table
        if (row.metric, row.target, row.seed, row.split) == ("linear_top1", "digits", 0, "test")
        and str(row.objective).startswith("label_smoothing")
    ]
    assert any(f" {value:.6g} " in told for value in values)
    for part in (kept.digest, kept.provenance["commit"][0][:12], kept.provenance["command"]):
        assert part in told
    assert main(["why", "table1", "softmax", "--reference"]) == 0
    assert "study evidence" in capsys.readouterr().out


def test_every_number_of_smoke_has_its_steps(
    finished_smoke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What steps wrote themselves: exhibits of each kind name rows of it and end in its data."""
    for exhibit in ("table1", "figure2", "figure4", "figureC5", "figureE1", "figureE4", "tableC2", "tableC5"):
        assert main(["why", exhibit, "softmax", "--out", str(finished_smoke / "runs")]) == 0
        answer = capsys.readouterr().out
        assert "train.softmax-s0" in answer
        assert "data.d0-glyphs_smoke" in answer
        assert "train.squared_error" not in answer.replace("from     train.squared_error", "")
