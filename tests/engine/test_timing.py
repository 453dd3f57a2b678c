"""What a study is expected to cost where nobody has run it: its trainings are timed."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.evaluation.pictures import split_folders
from tests.plugged import plugged

from penultimate.cli import main
from penultimate.data.images import ImageSet
from penultimate.engine.forecast.estimates import guessed_seconds
from penultimate.engine.forecast.timings import Timings
from penultimate.engine.machine import machine
from penultimate.engine.run import plan
from penultimate.files import write_sealed
from penultimate.measures.catalogue import measurement
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

FAILING = """
from torch import nn
from penultimate import register

@register.backbone(name="failing")
class Failing(nn.Module):
    num_features = 3

    def forward(self, images):
        raise ValueError("not yet")
"""


def train_seconds(study: Study, out: Path) -> float | None:
    return next(cost.seconds_each for cost in plan(study, out).costs if cost.name == "train")


@pytest.mark.long
def test_a_training_that_nobody_knows_is_timed(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    assert train_seconds(smoke, tmp_path) == smoke.expected_seconds["train"]
    short, long = (
        train_seconds(override(smoke, [f"recipe.epochs={epochs}"]), tmp_path) for epochs in (2, 200)
    )
    assert short is not None
    assert long is not None
    assert 25 < long / short < 400
    one = train_seconds(override(smoke, ["recipe.steps=1", "recipe.epochs=200"]), tmp_path)
    assert 0 < (one or 0) < short
    with plugged("bars"):
        own = override(smoke, ["source=bars", "recipe.batch_size=100000"])
        assert 0 < (train_seconds(own, tmp_path) or 0) < 60


def test_expected_seconds_are_of_the_first_grids_trainings_and_others_are_in_proportion(
    tmp_path: Path,
) -> None:
    """Beside smoke's networks as many again, trained three times as long: in the mean twice."""
    smoke = load_study("smoke")
    block = dataclasses.replace(smoke.runs[0], arm="")
    longer = dataclasses.replace(block.recipe, epochs=3 * block.recipe.epochs)
    both = (block, dataclasses.replace(block, recipe=longer, arm="long"))
    study = dataclasses.replace(smoke, networks=both)
    assert train_seconds(study, tmp_path) == pytest.approx(2 * smoke.expected_seconds["train"])


def test_a_further_training_costs_in_proportion_to_its_steps(tmp_path: Path) -> None:
    smoke = dataclasses.replace(load_study("smoke"), expected_seconds={"train": 0.1})
    kinds = ("scratch_cell", "scratch_choice", "from_scratch")

    def expected(measure: str) -> dict[str, float | None]:
        costs = plan(override(smoke, [f"measure={measure}"]), tmp_path).costs
        return {cost.name: cost.seconds_each for cost in costs if cost.name in kinds}

    usual = {name: measurement(name).seconds for name in kinds}
    assert expected("from_scratch") == usual
    assert expected("from_scratch(steps=2000)") == {
        "scratch_cell": pytest.approx(5 * (usual["scratch_cell"] or 0)),
        "scratch_choice": usual["scratch_choice"],
        "from_scratch": pytest.approx(5 * (usual["from_scratch"] or 0)),
    }


def test_only_what_a_training_depends_on_makes_its_cost_unknown() -> None:
    smoke = load_study("smoke")
    for same in ("title=x", "objectives=sigmoid", "seeds=1", "recipe.epochs=3", "measure=accuracy"):
        assert override(smoke, [same]).expected_seconds == smoke.expected_seconds
    for other in ("recipe.epochs=4", "source=glyphs", "backbones=glyphnet"):
        assert "train" not in override(smoke, [other]).expected_seconds
        assert override(smoke, [other, "expected_seconds={'train': 7}"]).expected_seconds == {"train": 7}


def test_what_is_unknown_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with plugged("instruments"):
        assert main(["plan", "smoke", "--out", str(tmp_path), "--set", "measure=feature_scale"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" processes, and 5 steps of unknown cost")


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that are timed, each said to take a second; none was timed before."""
    monkeypatch.setenv("PENULTIMATE_CACHE", str(tmp_path / "cache"))
    found: list[str] = []

    def seconds_per_step(objective: str, backbone: str, images: ImageSet, recipe: Recipe) -> float:
        found.append(backbone)
        return 1.0

    monkeypatch.setattr("penultimate.training.pace.seconds_per_step", seconds_per_step)
    return found


def test_what_is_timed_is_said_and_kept(
    tmp_path: Path, taken: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A study on images on disk, of which nobody says where they lie."""
    command = ["plan", "imagenet_resnet50", "--out", str(tmp_path / "runs")]
    assert main([*command, "--no-timing"]) == 0
    said = capsys.readouterr()
    assert (taken, said.err) == ([], "")
    assert re.search(r"train +0 +72 +unknown +unknown", said.out)
    assert "Without --no-timing, the unknown costs are timed on this machine." in said.out
    assert main(command) == 0
    first = capsys.readouterr()
    assert taken == ["resnet50"]
    assert "penultimate: timing a batch of resnet50, trained on 4 images of 224 pixels" in first.err
    assert re.search(r"train +0 +72 +~\d", first.out)
    for again in (command, [*command, "--no-timing"]):
        assert main(again) == 0
        assert capsys.readouterr() == (first.out, "")
    assert taken == ["resnet50"]
    assert main([*command, "--gpus", "0"]) == 0
    assert "It would not start here: the study's networks run on GPUs" not in capsys.readouterr().out


def smoke_without_seconds() -> Study:
    return override(load_study("smoke"), ["backbones=glyphnet"])


@pytest.mark.long
def test_a_time_is_kept_for_what_was_timed_and_where(
    tmp_path: Path, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = smoke_without_seconds()

    def is_timed(changed: Study = study) -> bool:
        before = len(taken)
        assert train_seconds(changed, tmp_path) is not None
        return len(taken) > before

    assert [is_timed(), is_timed()] == [True, False]
    for setting in ("recipe.batch_size=48", "backbones=glyphplain", "objectives=sigmoid", "threads=2"):
        assert [is_timed(override(study, [setting])) for _ in range(2)] == [True, False]
    assert not is_timed(override(study, ["measure=accuracy"]))
    with plugged("bars"):  # another file of plug-ins may change any of it
        assert [is_timed(), is_timed()] == [True, False]
    here = machine()
    packages = {**here["packages"], "torch": "9.0"}
    for other in ({"processor": "another"}, {"packages": packages}):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(
                "penultimate.engine.forecast.timings.machine", lambda other=other: {**here, **other}
            )
            assert [is_timed(), is_timed()] == [True, False]
    now = time.time()
    for days, expected in ((29, False), (31, True)):
        monkeypatch.setattr("time.time", lambda days=days: now + days * 24 * 3600)
        assert is_timed() == expected


@pytest.mark.parametrize("damage", ["text", "cut", "folder", "other form"])
def test_a_file_of_times_that_cannot_be_read_or_written_is_as_none(
    tmp_path: Path, taken: list[str], damage: str
) -> None:
    file = tmp_path / "cache/timings.json"
    study = smoke_without_seconds()
    train_seconds(study, tmp_path)
    once, content = len(taken), file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "other form":
        write_sealed(file, {"times": 3}, 99)
    else:
        file.write_bytes(b"no json" if damage == "text" else content[:-9])
    for _ in range(2):
        assert train_seconds(study, tmp_path) is not None
    assert len(taken) == (3 if damage == "folder" else 2) * once


def test_a_plan_of_given_networks_times_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network of a library; what a file builds is timed each time, for the file may have changed."""
    monkeypatch.setenv("PENULTIMATE_CACHE", str(tmp_path / "cache"))
    split_folders(tmp_path / "photos", ("ape", "bee"), 4, 3)
    (tmp_path / "net.py").write_text("def build(): ...\n", "utf-8")
    taken: list[str] = []

    def measured(built: str) -> tuple[float, int, int]:
        taken.append(built)
        return 0.01, 512, 9

    monkeypatch.setattr("penultimate.engine.forecast.timing._measured", measured)
    command = ["evaluate", "--plan", "--out", str(tmp_path / "runs"), "--data", f"t={tmp_path / 'photos'}"]
    command += ["--model", "a=timm:resnet18", "--model", f"b={tmp_path / 'net.py'}:build"]
    assert main([*command, "--no-timing"]) == 0
    said = capsys.readouterr()
    assert (taken, said.err) == ([], "")
    assert re.search(r"extract +0 +4 +unknown", said.out)
    for _ in range(2):
        assert main(command) == 0
        assert re.search(r"extract +0 +4 +~", capsys.readouterr().out)
    assert taken.count("timm:resnet18(pretrained=False)") == 1
    assert len(taken) == 3


@pytest.mark.long
def test_a_plugin_that_cannot_be_trained_is_told_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    answer = penultimate("plan", "smoke", "--plugin", "mine.py", "--set", "backbones=failing", cwd=tmp_path)
    assert answer.returncode == 2
    assert "cannot be trained: the plug-in 'mine.py', line 10: ValueError: not yet" in answer.stderr


def test_every_probe_of_features_on_disk_is_told_by_its_operations() -> None:
    """`probed` fits what `linear` and `knn` fit, and `depth` in each of the network's layers."""
    study = restrict(load_study("imagenet_transfer"), ("softmax",), (0,))
    runs = dataclasses.replace(study.runs[0], measure=("linear", "knn", "probed", "depth"))
    graph = unfold(dataclasses.replace(study, networks=(runs,), targets=("pets",), counterparts={}))
    timings = Timings()
    timings.of = lambda what, key, take: 0.04  # type: ignore[method-assign,assignment]
    guessed = guessed_seconds(graph, {}, timings)
    seconds = {step.name: guessed.get(step.id) or 0 for step in graph.steps.values()}
    both = seconds["linear"] + seconds["knn"]
    assert both > 10
    assert seconds["probed"] == pytest.approx(both)
    assert seconds["depth"] > 16 * both
