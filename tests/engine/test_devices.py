"""Steps on GPUs: who gets a share of which, on a machine whose "GPUs" are the CPU under other names."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.conftest import penultimate
from tests.engine.chores import PLUGIN, Notes, chore, graph_of, rows_in
from tests.plugged import plugged

from penultimate.engine import load_engine
from penultimate.engine.devices import ASKED, gpus
from penultimate.engine.observer import Summary
from penultimate.engine.process import prepare
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.graph import Resources, Step
from penultimate.store import Store
from penultimate.study.blocks import Runs
from penultimate.study.selection import load_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training import Recipe


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first,second")
    monkeypatch.setenv("PENULTIMATE_DEVICE", "cpu")


def carried_out(
    root: Path, *steps: Step, processes: int, notes: Notes | None = None
) -> tuple[Summary, Notes]:
    store, notes = Store(root), notes or Notes()
    store.prepare()
    plugin = root / "chores.py"
    plugin.write_text(PLUGIN)
    with plugged(plugin):
        return load_engine("local", processes).run(graph_of(*steps), store, notes), notes


def places(root: Path) -> dict[str, tuple[str, str, float, float]]:
    """Of each step, by its label: the GPU it saw, the device it was told, when it began and ended."""
    found = (root / "steps").glob("*/place.json")
    return {path.parent.name.split(".")[1]: json.loads(path.read_text()) for path in found}


def test_gpus_are_those_that_may_be_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for visible, found in ((" 0, GPU-1b ,,", ("0", "GPU-1b")), ("-1", ()), ("1,-1,2", ("1",))):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpus() == found
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == ()
    driver = tmp_path / ASKED[0]
    for script, found in (("echo GPU-aa; echo GPU-bb", ("GPU-aa", "GPU-bb")), ("echo none; exit 6", ())):
        driver.write_text(f"#!/bin/sh\n{script}\n")
        driver.chmod(0o755)
        assert gpus() == found


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_is_shared_by_no_more_than_it_has_shares(tmp_path: Path) -> None:
    on_gpus = [chore(f"gpu{number}", gpus=0.5, number=number, deed="stays") for number in range(8)]
    others = [chore(f"cpu{number}", number=10 + number, deed="stays") for number in range(3)]
    summary, _ = carried_out(tmp_path, *on_gpus, *others, processes=5)
    found = places(tmp_path)
    assert summary.computed == len(found) == 11
    used = {label: place for label, place in found.items() if label.startswith("gpu")}
    assert {gpu for gpu, *_ in used.values()} == {"first", "second"}
    for gpu in ("first", "second"):
        times = [(began, ended) for name, _, began, ended in used.values() if name == gpu]
        assert max(sum(a <= began < b for a, b in times) for began, _ in times) <= 2


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_on_a_gpu_a_step_computes_the_same_each_time(tmp_path: Path) -> None:
    """One process does one after the other: what is asked of the one is not asked of the next."""
    first = chore("gpu", gpus=1.0, number=1)
    steps = [first, chore("cpu", first, number=2), chore("again", first, gpus=1.0, number=3)]
    summary, _ = carried_out(tmp_path, *steps, processes=1)
    assert summary.complete
    steady = {
        step.label: row["value"]
        for step in steps
        for row in map(json.loads, rows_in(tmp_path)[step.id].splitlines())
        if row["metric"] == "reproducible"
    }
    assert steady == {"gpu": 1, "cpu": 0, "again": 1}
    prepare(Resources(1))
    assert not torch.are_deterministic_algorithms_enabled()


def test_where_there_is_no_gpu_the_study_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(RequestError, match="--gpus 0 runs them on the CPU"):
        carried_out(tmp_path, chore("one", gpus=1.0), processes=1)
    told = penultimate("run", "smoke", "--gpus", "0.5", "--out", "runs", cwd=tmp_path)
    assert told.returncode == 2
    assert "this machine has none" in told.stderr


@pytest.mark.long
def test_a_gpu_that_pytorch_cannot_use_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(RequestError, match="cannot use GPU '7'"):
        carried_out(tmp_path, chore("one", gpus=1.0), processes=1)


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_after_an_error_of_the_gpu_another_process_takes_the_place(tmp_path: Path) -> None:
    steps = chore("lost", gpus=1.0, deed="loses its GPU once"), chore("next", gpus=1.0, number=1)
    summary, notes = carried_out(tmp_path, *steps, processes=1)
    assert summary.complete
    assert any("lost its GPU (CUDA error" in notice for notice in notes.notices)


@pytest.mark.usefixtures("two_gpus")
def test_a_study_with_shares_of_gpus_is_the_same_study(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    shared = dataclasses.replace(smoke, gpus=0.25)
    steps, plain = unfold(shared).steps, unfold(smoke).steps
    assert list(steps) == list(plain)
    on_gpus = {step.name for step in steps.values() if step.resources.gpus}
    assert {"train", "extract", "similarity", "robustness"} <= on_gpus
    assert not {"data", "linear", "knn", "collapse"} & on_gpus
    assert not any(step.resources.gpus for step in plain.values())


SHARED = Recipe(epochs=2, batch_size=32, ghost_batch=8, learning_rate=0.02)
"""Its batches are in parts that up to four can share."""


def short(gpus: float = 2) -> Study:
    """One network, and nothing else that takes time."""
    return dataclasses.replace(
        load_study("smoke"),
        name="short",
        targets=(),
        networks=(Runs(("dropout(keep=0.9)",), SHARED),),
        measure=("accuracy",),
        gpus=gpus,
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the network is trained by one process."""
    root = tmp_path_factory.mktemp("alone")
    assert run(short(0), root).complete
    return root


def untrained(alone: Path, root: Path) -> Path:
    """The same store before the training."""
    for step in (alone / "steps").glob("data.*"):
        shutil.copytree(step, root / "steps" / step.name)
    return root


def curves(root: Path) -> list[float]:
    (step,) = (root / "steps").glob("train.*")
    return [json.loads(line)["value"] for line in (step / "rows.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_two_gpus_share_a_training(alone: Path, tmp_path: Path) -> None:
    assert run(short(), untrained(alone, tmp_path)).complete
    of_two, of_one = (sorted(path.name for path in (root / "steps").iterdir()) for root in (tmp_path, alone))
    assert of_two == of_one
    assert curves(tmp_path) == pytest.approx(curves(alone), rel=1e-4)
    (step,) = (tmp_path / "steps").glob("train.*")
    assert json.loads((step / "meta.json").read_text())["gpus"] == 2


@pytest.mark.usefixtures("two_gpus")
def test_too_few_gpus_or_batches_that_they_cannot_share_are_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="shared by 4 GPUs, and this machine has 2"):
        run(short(4), tmp_path)
    with pytest.raises(RequestError, match="3 GPUs cannot share 32 images"):
        run(short(3), tmp_path)
    assert not any((tmp_path / "steps").glob("*"))
