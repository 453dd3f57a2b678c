"""Why a number is what it is: the exhibit's own rows, and the steps behind them, nobody else's."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.records.stores import SOFTMAX, described, finished, prepared

from penultimate import registry
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.records.archive import reference
from penultimate.records.reading import StudyFolder
from penultimate.records.tracing import NothingError, explain
from penultimate.records.tuning import GridCell, Tuned, Tuning

OBJECTIVES = [{"slug": name, "label": name, "spec": name} for name in ("softmax", "sigmoid", "ours")]
SWEPT = "cosine_softmax(scale=0.05, temperature=0.05)"
NETWORKS = [
    {"objectives": ["softmax", "sigmoid"], "backbones": ["net", "plain"], "arm": ""},
    {"objectives": [SWEPT], "backbones": ["net"], "arm": "temperature"},
    {"given": {"ours": "timm:resnet18"}},
]


def why(folder: StudyFolder, exhibit: str, objective: str, target: str | None = None) -> str:
    return explain(folder, registry.entry("exhibit", exhibit).resolve(), objective, target)


def nothing(folder: StudyFolder, exhibit: str, objective: str, target: str | None = None) -> str:
    """What is said where there is no number."""
    with pytest.raises(NothingError) as said:
        why(folder, exhibit, objective, target)
    return str(said.value)


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
    assert "0.5  (done)" in shown["table3"]
    assert "layers.softmax" not in shown["table3"]
    assert "0.1 to 0.4  (done, 2 layers)" in shown["figure4"]
    assert "0.3  (done, epoch 3, the last of 3)" in shown["figureE4"]


def test_the_steps_behind_come_with_it_and_no_others(folder: StudyFolder) -> None:
    told = why(folder, "table1", "softmax")
    for part in ("accuracy.softmax-s0.0", "train.softmax-s0.0", "data.d0-glyphs.0", "d1ge57"):
        assert part in told
    assert "sigmoid" not in told
    assert "also on: digits" in told
    assert "linear.softmax" not in told
    assert "linear_top1" in why(folder, "table1", "softmax", "digits")


def test_each_architecture_has_its_exhibits(folder: StudyFolder) -> None:
    told = why(folder, "table1", "softmax")
    assert "net  seed 0  top1" in told
    assert "plain  seed 0" not in told


def test_a_sweep_is_named_where_it_is_shown(folder: StudyFolder) -> None:
    assert "temperature  seed 0  top1" in why(folder, "table4", SWEPT)
    assert "Nothing that table1 shows" in nothing(folder, "table1", SWEPT)


def test_a_network_that_was_given_has_no_seed(folder: StudyFolder) -> None:
    told = why(folder, "table1", "ours")
    assert "0.625" in told
    assert "seed" not in told.split("accuracy.ours.0")[0]


@pytest.mark.parametrize("objective", ["softmax", "sigmoid"])
def test_pairs_are_told_for_either_network(folder: StudyFolder, objective: str) -> None:
    told = why(folder, "figureC5", objective)
    assert (
        "0.25 to 0.5  (done, 2 pairs)" if objective == "softmax" else "0.25  (done, with softmax)"
    ) in told
    assert "agreement.all.0" in told
    assert ("\ntrain.sigmoid-s0.0" in told) == (objective == "sigmoid")


def test_layers_without_a_value_are_counted_and_do_not_hide_the_others(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    values = (("block1", None), ("block2", 0.25), ("block3", 0.5))
    rows = [{"metric": "class_separation", "split": "test", "layer": at, "value": of} for at, of in values]
    columns = {**SOFTMAX, "source": "glyphs", "target": "glyphs"}
    told = {}
    for name, order in (("first", rows), ("last", rows[::-1])):
        step = finished(store, f"layers.{name}.0", columns, order)
        told[name] = why(described(store, name, [step], networks=NETWORKS), "figure4", "softmax")
        assert "0.25 to 0.5  (done, 3 layers, 1 without a value)" in told[name]


def test_of_a_tuning_the_table_of_choices_shows_what_decided(tmp_path: Path) -> None:
    """Table A.1 names no quantities: of a search it shows the accuracy on the holdout, and nothing else."""
    store = prepared(tmp_path)
    curve = [{"metric": "top1", "split": "holdout", "epoch": epoch, "value": epoch / 8} for epoch in (1, 2)]
    loss = {"metric": "mean_loss", "split": "train", "epoch": 2, "value": 0.5}
    columns = {**SOFTMAX, "source": "glyphs", "target": "glyphs"}
    step = finished(store, "train.softmax-s0.0", columns, [*curve, loss])
    tuned = Tuned("softmax", "Softmax", "softmax", (), (GridCell("softmax", (), ()),))
    search = Tuning("made", "glyphs", "net", (0,), {}, False, ("softmax",), (tuned,), classes=8, held_out=99)
    told_as = {"tunes": "made", "search": dataclasses.asdict(search)}
    folder = described(store, "tune-made", [step], networks=NETWORKS, **told_as)
    told = why(folder, "tableA1", "softmax")
    assert "holdout  0.25  (done, epoch 2, the last of 2)" in told
    assert "mean_loss" not in told
    assert "softmax is chosen of 1 cell, by top-1 on the holdout alone, %\n       25.00  softmax" in told
    assert step in told


def test_where_there_is_nothing_it_is_said_where_there_is(folder: StudyFolder) -> None:
    assert nothing(folder, "table3", "softmax", "digits") == (
        "table3 shows nothing of softmax on digits; it does on: glyphs"
    )
    assert nothing(folder, "tableE2", "softmax").endswith(
        "; the study is complete: no further run would measure it"
    )
    more = [*folder.description["steps"], "collapse.softmax-s0.0"]
    unfinished = dataclasses.replace(folder, description={**folder.description, "steps": more})
    command = f"penultimate run made --out {folder.store.root}"
    assert nothing(unfinished, "tableE2", "softmax").endswith(f"measures is continued by: {command}")
    assert "is made of settings" in nothing(folder, "tableA2", "softmax")


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


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["table1", "softmax", "--out", "mine"], 2, "give one of them"),
        (["table1", "softmax", "--study", "ful"], 2, "Did you mean 'full'"),
        (["table1", "softmix"], 2, "Did you mean 'softmax'"),
        (["tableA2", "softmax"], 1, "it has none to be traced"),
    ],
)
def test_what_of_a_reference_run_cannot_be_traced(
    arguments: list[str], code: int, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", *arguments, "--reference"]) == code
    assert part in capsys.readouterr().err


def test_wrong_names_are_answered_with_the_nearest(folder: StudyFolder) -> None:
    with pytest.raises(RequestError, match="Did you mean 'softmax'"):
        why(folder, "table1", "sofmax")
    with pytest.raises(RequestError, match="Did you mean 'digits'"):
        why(folder, "table1", "softmax", "digist")


@pytest.mark.parametrize(
    ("objective", "target", "meant"),
    [
        ("soft", "digit", ("softmax", "digits")),
        ("Softmax", "handwritten digits", ("softmax", "digits")),
        ("swept", None, (SWEPT, None)),
        ("cosine_softmax", "GLYPHS", (SWEPT, "glyphs")),
        ("cosine_softmax(scale = 0.05, temperature=0.05)", None, (SWEPT, None)),
        ("cosine_softmax(temperature=0.05, scale=0.05)", None, (SWEPT, None)),
        ("cosine_softmax(temperature=0.05, scale=0.05) + softmax", None, (SWEPT, None)),
    ],
)
def test_a_name_may_be_a_title_or_the_beginning_of_one_thing(
    folder: StudyFolder, objective: str, target: str | None, meant: tuple[str, str | None]
) -> None:
    for shown in ("table1", "table4"):
        told = why if (shown == "table4") == (SWEPT in meant) else nothing
        assert told(folder, shown, objective, target) == told(folder, shown, *meant)


def test_a_beginning_of_several_things_is_refused_with_them(folder: StudyFolder) -> None:
    with pytest.raises(
        RequestError, match="several objectives called 's': is it 'softmax' or 'sigmoid' or 'c"
    ):
        why(folder, "table1", "s")
    assert "softmax on glyphs" in why(folder, "table1", "softmax")


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
