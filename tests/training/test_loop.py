"""The loop: it learns, it repeats itself, it survives a kill to the same bits, it says when it diverges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from penultimate.data.augmentation import Augmentation
from penultimate.errors import DamagedFileError, RequestError
from penultimate.networks.trained import load_network, snapshots
from penultimate.training import Recipe, train
from penultimate.training.loop import _Run
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=3, batch_size=16, learning_rate=0.2, augmentation=Augmentation(shift=1))
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


@pytest.mark.parametrize("objective", ["softmax", "dropout(keep=0.8)"])
def test_a_run_broken_off_at_any_step_ends_in_the_same_bits(tmp_path: Path, objective: str) -> None:
    whole = run(tmp_path / "whole", objective=objective)
    for steps in (1, 15, 16, 17, 40):
        folder = tmp_path / str(steps)
        folder.mkdir()
        broken = _Run(objective, TINY, squares(256, 0), squares(64, 1), RECIPE, 5, folder, "cpu")
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
        again = run(folder, objective=objective, progress=lambda news: None)
        assert weights(folder) == weights(tmp_path / "whole")
        assert again.curves == whole.curves


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
        while not list(folder.glob("checkpoint*")):
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert start(folder).wait() == 0
        assert weights(folder) == weights(tmp_path / "whole")


def test_the_checkpoints_of_another_run_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "a", checkpoint_seconds=0.0)
    with pytest.raises(RequestError, match="another run"):
        run(tmp_path / "a", replace(RECIPE, learning_rate=0.1))


def test_a_loss_that_is_no_number_ends_the_run_as_diverged(tmp_path: Path) -> None:
    result = run(tmp_path / "a", replace(RECIPE, learning_rate=1e30), objective="squared_error")
    assert result.status == "diverged"
    assert "no longer a number" in result.reason
    assert not (tmp_path / "a" / "network.safetensors").exists()


def test_the_best_epoch_on_the_holdout_is_kept_and_patience_ends_it(tmp_path: Path) -> None:
    recipe = replace(RECIPE, epochs=8, stopping="best", patience=2, averaging_window=0.0, learning_rate=0.5)
    result = run(tmp_path / "a", recipe)
    scores = {point["epoch"]: point["value"] for point in result.curves if point["metric"] == "top1"}
    best = min(epoch for epoch, score in scores.items() if score == max(scores.values()))
    assert result.epoch == best
    assert len(scores) == min(8, best + 2)
    network = load_network(tmp_path / "a")
    holdout = squares(64, 1)
    logits = network.logits(network.features(torch.from_numpy(holdout.images)))
    accuracy = float((logits.argmax(1) == torch.from_numpy(holdout.labels)).float().mean())
    assert accuracy == pytest.approx(max(scores.values()), abs=0.05)
    assert network.card["epoch"] == best


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


@pytest.mark.parametrize("damage", ["weights", "card", "missing"])
def test_a_damaged_network_is_named(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "a"
    run(folder, replace(RECIPE, epochs=1))
    if damage == "weights":
        (folder / "network.safetensors").write_bytes(weights(folder)[:-40])
    elif damage == "card":
        (folder / "network.json").write_text("{}")
    else:
        (folder / "network.safetensors").unlink()
    expected = RequestError if damage == "missing" else DamagedFileError
    with pytest.raises(expected, match="network"):
        load_network(folder)


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
