"""The loop: it learns, it repeats itself, it survives a kill to the same bits, it says when it diverges."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError
from penultimate.networks.trained import load_network, snapshots
from penultimate.objectives.presets import PRESETS
from penultimate.training import Recipe, train
from penultimate.training.checkpoints import Checkpoints
from penultimate.training.run import Run
from tests.engine.processes import wait_for
from tests.oracles.data import mixed
from tests.plugged import plugged
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=3, batch_size=16, learning_rate=0.2, augmentation=Augmentation(shift=1))
CHECKPOINTS = ("checkpoint-0", "checkpoint-1")
HERE = {**os.environ, "PYTHONPATH": "src:."}
OBJECTIVES = [
    "softmax",
    "sigmoid",
    "dropout(keep=0.8)",
    "cosine_softmax",
    "logit_norm",
    "label_smoothing + logit_penalty",
]


def run(folder: Path, recipe: Recipe = RECIPE, objective: str = "softmax", **more):  # type: ignore[no-untyped-def]
    folder.mkdir(exist_ok=True)
    return train(objective, TINY, squares(256, 0), squares(64, 1), recipe, 5, folder, **more)


def weights(folder: Path) -> bytes:
    return (folder / "network.safetensors").read_bytes()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_learns_and_repeats_itself(tmp_path: Path, objective: str) -> None:
    result = run(tmp_path / "a", objective=objective)
    curve = [point["value"] for point in result.curves if point["metric"] == "mean_loss"]
    assert (result.status, len(curve)) == ("done", 3)
    assert curve[-1] < curve[0]
    run(tmp_path / "b", objective=objective)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


def test_another_seed_is_another_network(tmp_path: Path) -> None:
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        train(
            "softmax",
            TINY,
            squares(64, 0),
            squares(8, 1),
            replace(RECIPE, epochs=1),
            seed,
            tmp_path / str(seed),
        )
    assert weights(tmp_path / "0") != weights(tmp_path / "1")


MIXED = replace(RECIPE, augmentation=Augmentation(shift=1, autoaugment=True, mixup=0.3))


@pytest.mark.parametrize(
    ("objective", "recipe"),
    [
        pytest.param("softmax", RECIPE, marks=pytest.mark.long),
        pytest.param("softmax", replace(RECIPE, head_decay=0.01), marks=pytest.mark.long),
        ("projector(depth=2, width=24) + koleo + center_loss", RECIPE),
        pytest.param("simplex_etf + dropout(keep=0.8) + entropy", RECIPE, marks=pytest.mark.long),
        pytest.param("dropout(keep=0.8)", RECIPE, marks=pytest.mark.long),
        ("dropout(keep=0.8)", MIXED),
    ],
)
def test_a_run_broken_off_at_any_step_ends_in_the_same_bits(
    tmp_path: Path, objective: str, recipe: Recipe
) -> None:
    whole = run(tmp_path / "whole", recipe, objective)
    for steps in (1, 15, 16, 17, 40):
        folder = tmp_path / str(steps)
        folder.mkdir()
        broken = Run(objective, TINY, squares(256, 0), squares(64, 1), recipe, 5, folder, "cpu")
        left = steps
        while left:
            for batch in broken.batches():
                broken.advance(batch)
                left -= 1
                if not left:
                    break
            else:
                broken.close_epoch()
        broken.save()
        again = run(folder, recipe, objective, progress=lambda news: None)
        assert weights(folder) == weights(tmp_path / "whole")
        assert again.curves == whole.curves


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:squared_error:UserWarning")
@pytest.mark.parametrize("objective", PRESETS)
def test_every_objective_is_trained_on_batches_mixed_as_the_equation_says(
    tmp_path: Path, objective: str
) -> None:
    recipe = replace(MIXED, learning_rate=0.002)
    begun = Run(objective, TINY, squares(256, 0), squares(64, 1), recipe, 5, tmp_path, "cpu")
    plain = Run(
        objective,
        TINY,
        squares(256, 0),
        squares(64, 1),
        replace(recipe, augmentation=replace(MIXED.augmentation, mixup=0.0)),
        5,
        tmp_path,
        "cpu",
    )
    shares = set()
    for place, (batch, (images, labels)) in enumerate(zip(begun.batches(), plain.batches(), strict=True)):
        generator = derived_generator("mixup", 5, 0, place)
        order = torch.randperm(len(labels), generator=generator)
        seed = int(torch.randint(2**63 - 1, (1,), generator=generator))
        share = np.random.default_rng(seed).beta(0.3, 0.3)
        classes = begun.card["num_classes"]
        expected = mixed(images.numpy(), labels.tolist(), classes, share, order.tolist())
        for ours, theirs in zip(batch, expected, strict=True):
            torch.testing.assert_close(ours, torch.from_numpy(theirs).float())
        begun.advance(batch)
        shares.add(share)
    assert len(shares) == begun.step == 16
    assert torch.isfinite(begun.loss_sum)
    assert begun.seen == 256


@pytest.mark.long
def test_a_killed_process_ends_in_the_same_bits(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import torch; torch.set_num_threads(1)\n"
        "from penultimate.training import train; from tests.training.test_loop import RECIPE\n"
        "from tests.training.worlds import TINY, squares; from dataclasses import replace\n"
        "train('dropout(keep=0.8)', TINY, squares(256, 0), squares(64, 1), replace(RECIPE, epochs=40), 5,"
        " Path(sys.argv[1]), checkpoint_seconds=0.0)"
    )

    def start(folder: Path) -> subprocess.Popen[bytes]:
        folder.mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], env={**os.environ, "PYTHONPATH": "."}
        )

    assert start(tmp_path / "whole").wait() == 0
    for delay in (0.0, 0.1, 0.3, 0.7):
        folder = tmp_path / str(delay)
        process = start(folder)
        wait_for(lambda folder=folder: list(folder.glob("checkpoint*")))
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert start(folder).wait() == 0
        assert weights(folder) == weights(tmp_path / "whole")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to, with its last two checkpoints."""
    folder = tmp_path_factory.mktemp("loop") / "whole"
    run(folder, checkpoint_seconds=0.0)
    return folder


def digested(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + content


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a checkpoint's state, and give it the digest of the new one."""
    state = torch.load(io.BytesIO(path.read_bytes()[64:]), weights_only=True)
    change(state)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    path.write_bytes(digested(buffer.getvalue()))


class Hostile:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("run-by-a-pickle",)


def make_folder_of(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("in the way")


def save_hostile(path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"step": 10**6, "identity": Hostile()}, buffer)
    path.write_bytes(digested(buffer.getvalue()))


def other_momentum(state: dict[str, Any]) -> None:
    state["optimiser"]["state"][0]["momentum_buffer"] = torch.zeros(3)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


UNUSABLE = {
    "bit": (flip, "is not what was written (its sha256 differs)"),
    "folder": (make_folder_of, "is no file"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "is no file"),
    "hostile": (save_hostile, "is nothing that a training has saved"),
    "bare pickle": (
        lambda path: path.write_bytes(digested(pickle.dumps(Hostile()))),
        "is nothing that a training has saved",
    ),
    "truncated": (
        lambda path: path.write_bytes(digested(path.read_bytes()[64:-4000])),
        "is nothing that a training has saved",
    ),
    "empty": (lambda path: path.write_bytes(digested(b"")), "is nothing that a training has saved"),
    "no state": (lambda path: changed(path, dict.clear), "is not the state of a training"),
    "shape": (
        lambda path: changed(
            path, lambda state: state.update(network=state["average"] | {"more": torch.ones(1)})
        ),
        "does not fit this run",
    ),
    "lacking": (lambda path: changed(path, lambda state: state.pop("average")), "does not fit this run"),
    "momentum": (lambda path: changed(path, other_momentum), "does not fit this run"),
    "another run": (
        lambda path: changed(path, lambda state: state.update(identity="[]")),
        "is of another run",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "both"),
    [*((kind, False) for kind in UNUSABLE), ("bit", True), ("hostile", True), ("shape", True)],
)
def test_a_checkpoint_that_cannot_be_used_is_set_aside_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, kind: str, both: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil, reason = UNUSABLE[kind]
    folder, news = tmp_path / "a", list[dict[str, Any]]()
    shutil.copytree(whole, folder)
    (folder / "network.safetensors").unlink()
    steps = {name: torch.load(io.BytesIO((folder / name).read_bytes()[64:]))["step"] for name in CHECKPOINTS}
    newest, older = sorted(CHECKPOINTS, key=lambda name: -steps[name])
    spoilt = [newest, older] if both else [newest]
    for name in spoilt:
        spoil(folder / name)
    result = run(folder, progress=news.append)
    assert weights(folder) == weights(whole)
    assert sorted(result.damaged) == sorted(f"{name} {reason}" for name in spoilt)
    place = "begins again" if both else f"goes on from step {steps[older]}"
    told = [item["notice"] for item in news if "notice" in item]
    assert told == [f"{reason}; it was set aside, and the training {place}" for reason in result.damaged]
    aside = [path.name for path in folder.glob("checkpoint-damaged-*/*")]
    assert sorted(aside) == sorted(spoilt)
    assert not (tmp_path / "run-by-a-pickle").exists()
    assert run(folder).damaged == []


def test_a_loss_that_is_no_number_ends_the_run_as_diverged(tmp_path: Path) -> None:
    result = run(tmp_path / "a", replace(RECIPE, learning_rate=1e30), objective="squared_error(target=60)")
    assert result.status == "diverged"
    assert "no longer a number" in result.reason
    assert not (tmp_path / "a" / "network.safetensors").exists()


def test_features_that_are_no_numbers_end_the_run_as_diverged_where_its_losses_are_some(
    tmp_path: Path,
) -> None:
    result = run(tmp_path / "a", replace(RECIPE, learning_rate=1e18, warmup=0.0, epochs=1, steps=1))
    assert all(np.isfinite(point["value"]) for point in result.curves if point["metric"] == "mean_loss")
    assert (result.status, "features were no longer numbers" in result.reason) == ("diverged", True)
    assert not (tmp_path / "a" / "network.safetensors").exists()


def test_the_best_epoch_on_the_holdout_is_kept_and_patience_ends_it(tmp_path: Path) -> None:
    recipe = replace(RECIPE, epochs=8, stopping="best", patience=2, averaging_window=0.0, learning_rate=0.5)
    result = run(tmp_path / "a", recipe)
    scores = {point["epoch"]: point["value"] for point in result.curves if point["metric"] == "top1"}
    best = min(epoch for epoch, score in scores.items() if score == max(scores.values()))
    assert result.epoch == best
    assert len(scores) == min(8, best + 2)
    network = load_network(str(tmp_path / "a"))
    holdout = squares(64, 1)
    logits = network.logits(network.features(torch.from_numpy(holdout.images)))
    accuracy = float((logits.argmax(1) == torch.from_numpy(holdout.labels)).float().mean())
    assert accuracy == pytest.approx(max(scores.values()), abs=0.05)
    assert network.card["epoch"] == best


def test_what_is_evaluated_every_so_often_and_at_the_end_are_the_averaged_weights(tmp_path: Path) -> None:
    of_class_3 = squares(64, 1).subset(slice(3, None, 4))
    recipe = replace(RECIPE, epochs=5, evaluate_every=2)
    begun = Run("softmax", TINY, squares(256, 0), of_class_3, recipe, 5, tmp_path, "cpu")
    with torch.no_grad():
        for module, answer in ((begun.network, 0), (begun.average.module, 3)):
            module.objective.head.weight.zero_()
            module.objective.head.bias[answer] = 1
    for _ in range(5):
        begun.close_epoch()
    assert {point["epoch"]: point["value"] for point in begun.curves if point["metric"] == "top1"} == {
        2: 1.0,
        4: 1.0,
        5: 1.0,
    }


def test_float32_and_bfloat16_learn_alike(tmp_path: Path) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        result = run(tmp_path / precision, replace(RECIPE, precision=precision))
        losses[precision] = result.curves[0]["value"]
    assert losses["float32"] == pytest.approx(losses["bfloat16"], rel=0.05)
    assert losses["float32"] != losses["bfloat16"]


def test_progress_is_told_each_epoch(tmp_path: Path) -> None:
    news: list[dict[str, object]] = []
    run(tmp_path / "a", progress=news.append)
    assert [item["epoch"] for item in news] == [1, 2, 3]
    assert all({"loss", "top1", "images_per_second", "seconds_left"} <= item.keys() for item in news)


def test_snapshots_are_the_networks_of_their_epochs(tmp_path: Path) -> None:
    steady = replace(RECIPE, schedule="constant", warmup=0.0, averaging_momentum=0.9, snapshot_every=1)
    run(tmp_path / "long", steady)
    assert list(snapshots(tmp_path / "long")) == [1, 2]
    for epoch, folder in snapshots(tmp_path / "long").items():
        run(tmp_path / f"short{epoch}", replace(steady, epochs=epoch, snapshot_every=0))
        assert weights(folder) == weights(tmp_path / f"short{epoch}")
        assert load_network(folder).card["epoch"] == epoch


def test_snapshots_change_nothing_else(tmp_path: Path) -> None:
    run(tmp_path / "with", replace(RECIPE, snapshot_every=2))
    run(tmp_path / "without")
    assert weights(tmp_path / "with") == weights(tmp_path / "without")
    assert snapshots(tmp_path / "without") == {}


def test_a_run_broken_off_before_its_last_epoch_is_closed_goes_on(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    folder = tmp_path / "broken"
    folder.mkdir()
    broken = Run("softmax", TINY, squares(256, 0), squares(64, 1), RECIPE, 5, folder, "cpu")
    while broken.step < broken.steps:
        for batch in broken.batches():
            broken.advance(batch)
        if broken.step < broken.steps:
            broken.close_epoch()
    broken.save()
    assert run(folder).curves == whole.curves
    assert weights(folder) == weights(tmp_path / "whole")


def test_a_run_of_so_many_steps_ends_within_an_epoch(tmp_path: Path) -> None:
    """The rate is that of the steps that there are; 16 make an epoch."""
    by_steps = replace(RECIPE, epochs=100, schedule="cosine", final_fraction=0.0)
    result = run(tmp_path / "a", replace(by_steps, steps=40))
    assert [point["epoch"] for point in result.curves if point["metric"] == "mean_loss"] == [1, 2, 3]
    assert result.epoch == 3
    run(tmp_path / "two epochs", replace(by_steps, steps=32))
    run(tmp_path / "by epochs", replace(by_steps, epochs=2))
    assert weights(tmp_path / "two epochs") == weights(tmp_path / "by epochs") != weights(tmp_path / "a")


def test_without_images_held_out_the_last_weights_are_kept(tmp_path: Path) -> None:
    run(tmp_path / "with")
    (tmp_path / "without").mkdir()
    result = train("softmax", TINY, squares(256, 0), None, RECIPE, 5, tmp_path / "without")
    assert weights(tmp_path / "without") == weights(tmp_path / "with")
    assert {point["metric"] for point in result.curves} == {"mean_loss"}
    with pytest.raises(RequestError, match="stops at the best, or with patience, needs images held out"):
        train("softmax", TINY, squares(64, 0), None, replace(RECIPE, stopping="best"), 5, tmp_path)


def test_float16_is_trained_with_a_scaled_loss_and_resumed(tmp_path: Path) -> None:
    half = replace(RECIPE, precision="float16")
    losses = {
        recipe.precision: run(tmp_path / recipe.precision, recipe).curves[-2]["value"]
        for recipe in (half, RECIPE)
    }
    assert losses["float16"] == pytest.approx(losses["float32"], rel=0.1)
    folder = tmp_path / "broken"
    folder.mkdir()
    broken = Run("softmax", TINY, squares(256, 0), squares(64, 1), half, 5, folder, "cpu")
    assert broken.scaler.get_scale() == 2**16
    batches = broken.batches()
    broken.advance(next(batches))
    broken.scaler.update(2.0**40)  # of which gradients overflow: the step is left out, the scale halved
    before = [parameter.clone() for parameter in broken.network.parameters()]
    broken.advance(next(batches))
    assert all(map(torch.equal, before, broken.network.parameters()))
    assert broken.scaler.get_scale() == 2.0**39
    broken.save()
    again = Run("softmax", TINY, squares(256, 0), squares(64, 1), half, 5, folder, "cpu")
    assert again.resume()
    assert again.scaler.get_scale() == 2.0**39


@pytest.mark.long
def test_a_compiled_backbone_takes_the_same_steps(tmp_path: Path) -> None:
    """In a process of its own: the types that tests check cannot be compiled."""
    code = (
        "import itertools, sys; from dataclasses import replace; from pathlib import Path\n"
        "from penultimate.training.run import Run; from tests.training.test_loop import RECIPE\n"
        "from tests.training.worlds import TINY, squares\n"
        "recipe = replace(RECIPE, compile=sys.argv[1] == 'compiled')\n"
        "run = Run('softmax', TINY, squares(256, 0), squares(64, 1), recipe, 5, Path(sys.argv[2]), 'cpu')\n"
        "for batch in itertools.islice(run.batches(), 3):\n    run.advance(batch)\n"
        "assert not any('_orig_mod' in name for name in run.network.state_dict())\n"
        "print(float(run.loss_sum))"
    )
    losses = [
        float(subprocess.check_output([sys.executable, "-c", code, form, str(tmp_path)], env=HERE))
        for form in ("compiled", "plain")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_checkpoint_written_while_the_run_goes_on_is_of_its_step(tmp_path: Path) -> None:
    later, now = (tmp_path / name for name in ("later", "now"))
    for folder, wait in ((later, False), (now, True)):
        folder.mkdir()
        begun = Run("softmax", TINY, squares(256, 0), squares(64, 1), RECIPE, 5, folder, "cpu")
        for batch in itertools.islice(begun.batches(), 3):
            begun.advance(batch)
        begun.save(wait)
        for batch in itertools.islice(begun.batches(), 2):
            begun.advance(batch)
        begun.checkpoints.close()
    states: list[Any] = [Checkpoints(folder).load() for folder in (later, now)]
    for state in states:
        assert state is not None
        assert state["step"] == 3
        assert all(map(torch.equal, state["network"].values(), states[0]["network"].values()))
        assert torch.equal(state["loss_sum"], states[0]["loss_sum"])


DROPPING = """
from torch import nn
from penultimate import register
from penultimate.backbones.backbone import Backbone

@register.backbone
class Dropping(Backbone):
    num_features = 8

    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Dropout(0.5))

    def forward(self, images):
        return self.inside(images).mean((2, 3))
"""


def test_what_a_backbone_draws_follows_from_the_place_in_the_run(tmp_path: Path) -> None:
    plugin = tmp_path / "dropping.py"
    plugin.write_text(DROPPING)
    with plugged(plugin):
        for name in ("once", "again"):
            (tmp_path / name).mkdir()
            train("softmax", "Dropping", squares(64, 0), None, RECIPE, 5, tmp_path / name)
    assert weights(tmp_path / "once") == weights(tmp_path / "again")
