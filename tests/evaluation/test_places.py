"""Where an evaluation and a tuning are carried out: by which engine, and on which share of a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.evaluation.pictures import class_folders
from torch import Tensor, nn

import penultimate as pu
from penultimate.cli import main
from penultimate.engine.observer import Observer, Summary
from penultimate.errors import RequestError
from penultimate.evaluation.request import Request
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.unfold import unfold

EVALUATE = ["evaluate", "--model", "net=timm:test_vit(pretrained=False)", "--data", "digits_smoke"]
TUNE = ["tune", "softmax", "--study", "smoke", "--seeds", "0"]
ON_CPU = {"data", "confusions", "probed", "transferability", "few_labels", "compactness"}
"""Steps of an evaluation that run no network."""
SEEING = """
import os, pathlib, torch
from torch import nn

class Seeing(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.last = nn.Conv2d(3, 4, 5, stride=4), nn.Linear(4, 3)

    def forward(self, images):
        with open(pathlib.Path(__file__).with_name("seen.txt"), "a") as seen:
            print(os.environ.get("CUDA_VISIBLE_DEVICES"), file=seen)
        return self.last(self.convolution(images).relu().mean((2, 3)))
"""


class Noting:
    """An engine that does nothing, and notes what it was asked to do."""

    asked: tuple[int | None, Graph] | None = None

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        Noting.asked = self.processes, graph
        return Summary(total=len(graph.steps))


NOTING = f"{__name__}:Noting"


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU, which is its processor under another name."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first")
    monkeypatch.setenv("PENULTIMATE_DEVICE", "cpu")


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "share", "on_gpu"),
    [
        (EVALUATE, "0.1", {"extract", "layers", "depth"}),
        (EVALUATE, "1", {"extract", "layers", "depth"}),
        (EVALUATE, "0", set()),
        (TUNE, "1", {"train"}),
        (TUNE, "0", set()),
    ],
)
def test_an_engine_is_given_steps_that_take_their_share(
    tmp_path: Path, arguments: list[str], share: str, on_gpu: set[str]
) -> None:
    main([*arguments, "--gpus", share, "--on", NOTING, "--processes", "3", "--out", str(tmp_path / "some")])
    assert Noting.asked is not None
    processes, graph = Noting.asked
    assert processes == 3
    assert {float(share)} | {0.0} == {step.resources.gpus for step in graph.steps.values()} | {0.0}
    assert on_gpu <= {step.name for step in graph.steps.values() if step.resources.gpus}
    assert not ON_CPU & {step.name for step in graph.steps.values() if step.resources.gpus}
    main([*arguments, "--on", NOTING, "--out", str(tmp_path / "other")])
    assert list(Noting.asked[1].steps) == list(graph.steps), "where a step is done is no part of what it is"
    assert not any(step.resources.gpus for step in Noting.asked[1].steps.values())


def test_python_takes_the_same_words_as_the_command(tmp_path: Path) -> None:
    engine = Noting(None)
    networks, data = {"net": EVALUATE[2].removeprefix("net=")}, {"digits_smoke": ""}
    pu.evaluate(networks, data, on=engine, gpus=0.25, out=tmp_path)
    assert Noting.asked is not None
    assert {step.resources.gpus for step in Noting.asked[1].steps.values()} == {0.0, 0.25}
    assert [*Noting.asked[1].steps] == [*unfold(Request(networks, data).study()).steps]


@pytest.mark.parametrize("arguments", [EVALUATE, TUNE])
@pytest.mark.parametrize(
    ("options", "visible", "said"),
    [
        (["--gpus", "1"], "-1", "--gpus 0 runs them on the CPU"),
        (["--gpus", "1.5"], "first", "gpus is a share of one GPU"),
        (["--gpus", "-1"], "first", "gpus is a share of one GPU"),
        (["--gpus", "nan"], "first", "gpus must be a number, not nan"),
        (["--gpus", "many"], "first", "argument --gpus: invalid float value"),
        (["--on", "rai"], "first", "unknown engine 'rai'. Did you mean 'ray'?"),
        (["--on", f"{__name__}:Nothing"], "first", "there is no engine at"),
    ],
)
def test_what_cannot_be_done_there_is_refused_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    options: list[str],
    visible: str,
    said: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert main([*arguments, *options, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not any((tmp_path / "steps").glob("*"))


def test_gpus_share_a_training_of_a_tuning_only_where_they_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What no number of GPUs can share is refused before anything is trained."""
    grid = ["--grid", "recipe.batch_size=64,66", "--gpus", "4", "--on", NOTING, "--out", str(tmp_path)]
    assert main([*TUNE, *grid]) == 2
    assert "4 GPUs cannot share 66 images" in capsys.readouterr().err


@pytest.mark.long
def test_networks_run_in_a_process_that_sees_its_gpu_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seeing.py").write_text(SEEING)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first,second")
    few = class_folders(tmp_path / "few", ("a", "b"), 6)
    arguments = ["evaluate", f"--model=own={tmp_path / 'seeing.py'}:Seeing", f"--data=few={few}", "--size=32"]
    assert main([*arguments, "--gpus=1", "--processes=1", f"--out={tmp_path / 'runs'}"]) == 0
    seen = (tmp_path / "seen.txt").read_text().split()
    assert {*seen} == {"first,second", "first"}, "that of the command, which builds it, and of its process"


class Live(nn.Module):
    """A module of this session that notes how it was run."""

    seen: list[tuple[str | None, bool]]

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.last = nn.Conv2d(3, 4, 5, stride=4), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        how = os.environ.get("CUBLAS_WORKSPACE_CONFIG"), torch.are_deterministic_algorithms_enabled()
        Live.seen.append(how)
        made: Tensor = self.last(self.convolution(images).relu().mean((2, 3)))
        return made


@pytest.mark.long
def test_a_module_of_this_session_runs_on_the_gpu_of_this_session(tmp_path: Path) -> None:
    few, before = class_folders(tmp_path / "few", ("a", "b"), 6), dict(os.environ)
    Live.seen = []
    done = pu.evaluate({"own": Live()}, {"few": few}, size=32, gpus=1, out=tmp_path / "runs")
    assert done.summary.complete
    assert (":4096:8", True) in Live.seen
    assert dict(os.environ) == before
    assert not torch.are_deterministic_algorithms_enabled()
    again = pu.evaluate({"own": Live()}, {"few": few}, size=32, out=tmp_path / "runs")
    assert again.summary.computed == 0


def test_a_module_of_this_session_is_refused_a_gpu_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few: Any = class_folders(tmp_path / "few", ("a", "b"), 6)
    Live.seen = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(RequestError, match="--gpus 0 runs them on the CPU"):
        pu.evaluate({"own": Live()}, {"few": few}, size=32, gpus=1, out=tmp_path / "runs")
    monkeypatch.setenv("PENULTIMATE_DEVICE", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first")
    if not torch.cuda.is_available():
        with pytest.raises(RequestError, match="cannot use GPU 'first'; --gpus 0 runs the study on the CPU"):
            pu.evaluate({"own": Live()}, {"few": few}, size=32, gpus=1, out=tmp_path / "runs")
