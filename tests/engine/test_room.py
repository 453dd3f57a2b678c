"""A study that has no room is refused before it starts; what steps leave and hold is what was reckoned."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from collections import Counter, namedtuple
from pathlib import Path

import pytest
import torch
from tests.conftest import penultimate

from penultimate import registry
from penultimate.backbones.size import Size, size_of
from penultimate.engine.execute import execute
from penultimate.engine.forecast import room
from penultimate.engine.forecast.room import PROCESS, ROTATED, expect_room, held, held_on_gpu
from penultimate.engine.forecast.sizes import bytes_of
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.graph import Resources, Step
from penultimate.memory import Memory
from penultimate.networks.trained import build
from penultimate.probes.rows import LARGEST_IN_MEMORY
from penultimate.store import Store
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.variables import ANYWAY

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The bytes that every disk has free, under "free"."""
    found = Counter(free=10**15)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, found["free"]))
    return found


def steps_of(study: Study) -> list[Step]:
    return list(unfold(study).steps.values())


def on_cpu(name: str, **changes: object) -> Study:
    study = dataclasses.replace(load_study(name), gpus=0.0)
    return study.with_runs(
        lambda block: dataclasses.replace(block, recipe=dataclasses.replace(block.recipe, **changes))  # type: ignore[arg-type]
    )


def test_a_study_that_the_disk_has_no_room_for_is_refused(disk: Counter[str], tmp_path: Path) -> None:
    study = on_cpu("imagenet64")
    left = steps_of(study)
    expect_room(study, left, tmp_path, 1)
    disk["free"] = 40 * 10**9
    told = r"'imagenet64' has about 69\.8 GB still to write, and 40\.0 GB are free on the disk of '.*/deep'"
    with pytest.raises(
        RequestError, match=rf"{told}.* --out .*--seeds\): of 27 about 1[3-6] fit\. {ANYWAY}=1"
    ):
        expect_room(study, left, tmp_path / "no" / "deep", 1)
    few = [step for step in left if step.name == "data"]
    expect_room(study, few, tmp_path, 1)


def test_what_an_interrupted_step_has_written_is_not_needed_again(disk: Counter[str], tmp_path: Path) -> None:
    study = on_cpu("imagenet64")
    (bank,) = [step for step in steps_of(study) if step.name == "extract"][:1]
    size = bytes_of(bank, study) or 0
    disk["free"] = size - 1000
    with pytest.raises(RequestError, match="still to write"):
        expect_room(study, [bank], tmp_path, 1)
    (tmp_path / "partial" / bank.id).mkdir(parents=True)
    (tmp_path / "partial" / bank.id / "features.npy").write_bytes(bytes(2000))
    expect_room(study, [bank], tmp_path, 1)


def test_a_run_is_refused_before_anything_is_computed(
    disk: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk["free"] = 10**6
    with pytest.raises(
        RequestError, match=r"'smoke' has about \d+\.\d MB still to write, and 1\.0 MB are free"
    ):
        run("smoke", tmp_path)
    assert not list((tmp_path / "steps").iterdir())
    monkeypatch.setenv(ANYWAY, "1")
    expect_room(load_study("smoke"), steps_of(load_study("smoke")), tmp_path, 1)


@pytest.mark.parametrize(
    ("total", "changes", "told"),
    [
        (6e9, {}, r"8 steps of 'imagenet64' side by side .* has 6\.0 GB of memory; give --processes 2\."),
        (2.3e9, {}, r"a step 'train' .* 2\.6 GB, .*; give --gpus 1, or --set recipe\.at_once=32: "),
        (1e9, {"at_once": 32}, "use a machine with more"),
        (3e9, {"at_once": 32, "resident": True}, r"--set recipe\.resident=False"),
    ],
)
def test_a_study_that_memory_has_no_room_for_is_told_what_would_fit(
    total: float,
    changes: dict[str, object],
    told: str,
    disk: Counter[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "memory", lambda: Memory(int(total), int(total)))
    study = on_cpu("imagenet64", **changes)
    with pytest.raises(RequestError, match=told):
        expect_room(study, steps_of(study), tmp_path, 8)
    expect_room(study, steps_of(study), tmp_path, 0)


def test_steps_on_a_gpu_stand_side_by_side_as_there_are_gpus(
    disk: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first")
    study = dataclasses.replace(on_cpu("imagenet64", resident=True), gpus=1.0)
    trainings = [step for step in steps_of(study) if step.name == "train"]
    most = sum(held(trainings[0], study).values())
    monkeypatch.setattr(room, "memory", lambda: Memory(most + 1000, most))
    expect_room(study, trainings, tmp_path, 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first,second")
    with pytest.raises(RequestError, match=r"2 steps .* give --processes 1"):
        expect_room(study, trainings, tmp_path, 8)


@pytest.mark.parametrize(
    ("total", "gpus", "changes", "told"),
    [
        (
            8e9,
            1.0,
            {},
            r"a step 'train' of 'imagenet_resnet50' holds about 2\d\.\d GB on its GPU, and a GPU here"
            r" has 8\.0 GB of memory; give --set recipe\.at_once=64: ",
        ),
        (6e9, 0.5, {"at_once": 64}, r"'train' .* has 0\.5 of a GPU of 6\.0 GB of memory; give --gpus 1\."),
        (8e9, 1.0, {"at_once": 64, "resident": True}, r"give --set recipe\.resident=False"),
        (4e8, 1.0, {"at_once": 32}, "use a GPU with more"),
    ],
)
def test_a_training_that_a_gpu_has_no_room_for_is_told_what_would_fit(
    total: float,
    gpus: float,
    changes: dict[str, object],
    told: str,
    disk: Counter[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first")
    monkeypatch.setattr(room, "memory", lambda: Memory(10**15, 10**15))
    study = dataclasses.replace(on_cpu("imagenet_resnet50", **changes), gpus=gpus)
    trainings = [step for step in steps_of(study) if step.name == "train"]
    monkeypatch.setattr(room, "gpu_memory", lambda: None)
    expect_room(study, trainings, tmp_path, 1)
    monkeypatch.setattr(room, "gpu_memory", lambda: int(total))
    with pytest.raises(RequestError, match=told):
        expect_room(study, trainings, tmp_path, 1)
    expect_room(study, trainings, tmp_path, 0)
    monkeypatch.setattr(room, "gpu_memory", lambda: 10**12)
    expect_room(study, trainings, tmp_path, 1)


def test_gpus_that_share_a_training_hold_a_part_of_its_batch_each() -> None:
    study = dataclasses.replace(on_cpu("imagenet_resnet50"), gpus=1.0)
    one = next(step for step in steps_of(study) if step.name == "train")
    four = dataclasses.replace(one, resources=Resources(8, 4.0))
    assert held_on_gpu(one, study)["batch"] == 4 * held_on_gpu(four, study)["batch"] > 0
    assert held_on_gpu(dataclasses.replace(one, resources=Resources(8)), study) == {}
    host = {name: size for name, size in held(one, study).items() if name in ("batch", "weights")}
    assert host == {}


def test_the_plan_says_what_the_run_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    told = penultimate("plan", "smoke", "--set", "gpus=1", "--out", "runs", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "It would not start here: " in told.stdout


PEAK = """
import re, sys
from pathlib import Path
from penultimate.engine.execute import execute
from penultimate.store import Store
from penultimate.study.unfold import unfold
from tests.engine.test_room import briefly
store = Store(sys.argv[1])
(step,) = [step for step in unfold(briefly()).steps.values() if step.name == "train"]
execute(store, step, lambda news: None)
print(int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024)
"""


def briefly() -> Study:
    """The smoke study with one network of which the numbers are known, and a batch as large as its data."""
    changes = (
        "objectives=softmax",
        "backbones=glyphnet",
        "measure=class_separation,linear",
        "recipe.epochs=1",
    )
    study = override(load_study("smoke"), changes)
    blocks = [dataclasses.replace(block, measure=None) for block in study.runs[:1]]
    return dataclasses.replace(study, networks=tuple(blocks))


@pytest.mark.long
def test_estimates_are_of_the_size_of_what_is_left_and_held(tmp_path: Path) -> None:
    """Files within a tenth; memory from a third of the process's peak to all of it: libraries are shared."""
    study, store = briefly(), Store(tmp_path)
    store.prepare()
    graph = unfold(study)
    told: Counter[str] = Counter()
    real: Counter[str] = Counter()
    for step in graph.steps.values():
        if step.name in ("data", "train", "extract"):
            execute(store, step, lambda news: None)
            meta = json.loads((store.folder(step.id) / "meta.json").read_text())
            real[step.name] += sum(facts["bytes"] for facts in meta["files"].values())
            told[step.name] += bytes_of(step, study) or 0
    assert dict(told) == {name: pytest.approx(size, rel=0.1) for name, size in real.items()}
    (train,) = [step for step in graph.steps.values() if step.name == "train"]
    store.set_aside(train.id)
    command = [sys.executable, "-c", PEAK, str(tmp_path)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert peak / 3 <= sum(held(train, study).values()) <= peak


def kept_by(backbone: str) -> int:
    size = size_of(backbone)
    assert size is not None
    return size.kept


@pytest.mark.parametrize("name", [*registry.names("backbone"), "glyphnet(features=1024, width=32)"])
def test_what_is_kept_for_the_way_back_is_what_autograd_keeps(name: str) -> None:
    side = {"resnet50": 64, "inception_v3": 149, "allcnnc": 32, "wrn16_8": 32}.get(name, 24)
    body, _ = build("softmax", name, 10, 0)
    own = {value.untyped_storage().data_ptr() for value in body.state_dict().values()}
    kept: dict[int, int] = {}

    def note(value: torch.Tensor) -> torch.Tensor:
        if value.untyped_storage().data_ptr() not in own:
            kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    images = torch.zeros(2, 3, side, side).contiguous(memory_format=torch.channels_last)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
        body.train()(images)
    assert sum(kept.values()) / 2 / side**2 / 4 == pytest.approx(kept_by(name), rel=0.2)


def test_a_probe_writes_a_file_from_the_size_that_is_reckoned_with() -> None:
    assert ROTATED == LARGEST_IN_MEMORY
    assert PROCESS < 2**30


def test_fine_tuning_on_images_on_disk_is_reckoned_with_its_batch() -> None:
    study = override(restrict(on_cpu("imagenet_transfer"), ("softmax",), (0,)), ("targets=pets",))
    cell = next(step for step in steps_of(study) if step.name == "fine_tune_cell")
    assert held(cell, study)["batch"] == 256 * 224**2 * kept_by("resnet50") * 2
    on_gpu = dataclasses.replace(cell, resources=Resources(8, 1.0))
    assert "batch" not in held(on_gpu, study)
    assert held_on_gpu(on_gpu, study)["batch"] == held(cell, study)["batch"]


def test_training_from_scratch_is_reckoned_with_its_batch_and_weights_as_fine_tuning_is() -> None:
    measure = "measure=fine_tuning,from_scratch"
    steps = {step.name: step for step in steps_of(override(briefly(), (measure, "targets=digits")))}
    study = override(briefly(), (measure, "targets=digits"))
    for cell, whole in (("fine_tune_cell", "scratch_cell"), ("fine_tuning", "from_scratch")):
        tuned, fresh = (held(steps[name], study) for name in (cell, whole))
        assert fresh["batch"] == tuned["batch"] > 0
        assert fresh["weights"] == tuned["weights"] > 0


@pytest.mark.parametrize("name", ["linear", "probed", "depth", "transfer_dynamics"])
def test_every_linear_probe_is_reckoned_with_its_temporary_file(
    name: str, disk: Counter[str], tmp_path: Path
) -> None:
    study = override(on_cpu("imagenet_transfer"), ("targets=birdsnap", "objectives=softmax", "seeds=0"))
    runs = [dataclasses.replace(study.runs[0], measure=(name,))]
    runs[0] = dataclasses.replace(runs[0], recipe=dataclasses.replace(runs[0].recipe, snapshot_every=10))
    study = dataclasses.replace(study, networks=tuple(runs))
    probe = next(step for step in steps_of(study) if step.name == name)
    disk["free"] = 4 * 2048 * study.card("birdsnap").sizes["train"] - 1
    with pytest.raises(RequestError, match="still to write"):
        expect_room(study, [probe], tmp_path, 1)
    disk["free"] += 1
    expect_room(study, [probe], tmp_path, 1)


def test_an_architecture_of_ones_own_states_its_size(tmp_path: Path) -> None:
    stated = Size(900, 16, kept=30, layers=2)
    registry.register.backbone(name="own_net", size=stated)(lambda: None)
    try:
        assert (size_of("own_net"), size_of("own_net(width=2)"), size_of("nobodys")) == (stated, None, None)
    finally:
        registry.forget("backbone", "own_net")
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        registry.register.loss(name="own_loss", size=stated)
