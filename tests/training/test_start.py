"""A run that starts from a network: the loop in plain PyTorch, killed and resumed, and what does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError
from penultimate.networks.given import GivenNetwork
from penultimate.networks.store import fetch, load_given
from penultimate.networks.trained import TrainedNetwork, build, load_network
from penultimate.training import Recipe, Start, train
from penultimate.training.run import Run
from tests.oracles.training import fine_tuned
from tests.training.worlds import TINY, squares

RECIPE = Recipe(
    steps=21,
    batch_size=16,
    learning_rate=0.05,
    warmup=0.0,
    schedule="cosine",
    final_fraction=0.0,
    nesterov=False,
    weight_decay=2e-3,
    averaging_window=0.0,
    augmentation=Augmentation(shift=1),
)


def given(backbone: str = TINY, seed: int = 7) -> TrainedNetwork:
    """A network of another set of classes, with moments that are not those of a fresh one."""
    body, head = build("sigmoid", backbone, 6, seed)
    body(torch.rand(32, 3, 24, 24, generator=torch.Generator().manual_seed(seed)))
    return TrainedNetwork(
        body.eval(), head.eval(), ChannelStatistics((0.4,) * 3, (0.2,) * 3), (), {"backbone": backbone}
    )


def head(classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(classes, 32, generator=generator), torch.randn(classes, generator=generator)


@pytest.mark.parametrize("start", [Start(given()), Start(given(), head())], ids=["fresh head", "given head"])
def test_the_loop_in_plain_pytorch_ends_in_the_same_weights(tmp_path: Path, start: Start) -> None:
    images = squares(128, 0)
    run = Run("softmax", TINY, images, None, RECIPE, 5, tmp_path, "cpu", start)
    batches = []
    for run.epoch in range(3):
        run.step = 8 * run.epoch
        batches += list(run.batches())
    assert len(batches) == 21

    network = given().backbone
    final = torch.nn.Linear(32, 4)
    weight, bias = start.head or build("softmax", TINY, 4, 5)[1].head.state_dict().values()
    final.load_state_dict({"weight": weight, "bias": bias})
    fine_tuned(network, final, batches, rate=0.05, decay=2e-3)

    assert train("softmax", TINY, images, None, RECIPE, 5, tmp_path, start=start).status == "done"
    ours = load_network(tmp_path)
    for name, value in network.state_dict().items():
        torch.testing.assert_close(ours.backbone.state_dict()[name], value, rtol=1e-5, atol=1e-6)
    for name, value in final.state_dict().items():
        torch.testing.assert_close(ours.objective.head.state_dict()[name], value, rtol=1e-5, atol=1e-6)
    assert ours.statistics == start.network.statistics


def test_broken_off_at_any_step_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    start, images = Start(given(), head()), squares(128, 0)
    (tmp_path / "whole").mkdir()
    train("softmax", TINY, images, None, RECIPE, 5, tmp_path / "whole", start=start)
    for steps in (1, 8, 11, 20, 21):
        folder = tmp_path / str(steps)
        folder.mkdir()
        broken = Run("softmax", TINY, images, None, RECIPE, 5, folder, "cpu", start)
        while broken.step < steps:
            for batch in broken.batches():
                broken.advance(batch)
                if broken.step == steps:
                    break
            else:
                broken.close_epoch()
        broken.save()
        train("softmax", TINY, images, None, RECIPE, 5, folder, start=start)
        name = "network.safetensors"
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_checkpoint_of_a_run_that_started_elsewhere_is_set_aside(tmp_path: Path) -> None:
    images, brief = squares(64, 0), replace(RECIPE, steps=4)
    train("softmax", TINY, images, None, brief, 5, tmp_path, None, 0.0, start=Start(given()))
    result = train("softmax", TINY, images, None, brief, 5, tmp_path, start=Start(given(seed=8)))
    assert {reason.partition(" ")[2] for reason in result.damaged} == {"is of another run"}


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (
            Start(given("glyphnet(width=4, features=32)")),
            r"the network to start from is a glyphnet\(width=4, features=32\), and a"
            r" glyphnet\(width=8, features=32\) is asked for: stem.convolution.weight is \[4, 3, 3, 3\] there"
            r" and \[8, 3, 3, 3\] here \(and \d+ more differ\)",
        ),
        (Start(given("glyphplain(width=8, features=32)")), "is missing there and|there and missing here"),
        (
            Start(given(), head(3)),
            r"final layer .* weight is \[3, 32\] there and \[4, 32\] here \(and 1 more",
        ),
    ],
    ids=["width", "architecture", "classes"],
)
def test_what_differs_in_a_network_that_does_not_fit_is_named(
    tmp_path: Path, start: Start, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        train("softmax", TINY, squares(64, 0), None, RECIPE, 5, tmp_path, start=start)


AS_THEY_ARE = replace(RECIPE, augmentation=Augmentation(shift=0))


def stranger(folder: Path) -> GivenNetwork:
    """A network of a user's file that drops features at random in training."""
    (folder / "fetched").mkdir()
    (folder / "net.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    layers = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5),\n"
        "    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))\n"
    )
    fetch(f"{folder / 'net.py'}:build(crop=24)", (), folder / "fetched")
    return load_given(folder / "fetched")


def test_a_network_from_elsewhere_goes_on_in_its_own_body(tmp_path: Path) -> None:
    images, start = squares(64, 0), Start(stranger(tmp_path), (torch.ones(4, 8), torch.zeros(4)))
    before = {name: value.clone() for name, value in start.network.body.state_dict().items()}
    state = torch.get_rng_state()
    assert train("softmax", "", images, None, AS_THEY_ARE, 0, tmp_path / "run", start=start).status == "done"
    assert torch.equal(torch.get_rng_state(), state)
    tuned = load_network(tmp_path / "run", start.body())
    pixels = torch.from_numpy(images.images)
    assert tuned.features(pixels).shape == (64, 8)
    assert tuned.logits(tuned.features(pixels)).shape == (64, 4)
    after = tuned.backbone.state_dict()
    assert not torch.equal(after["body.0.weight"], before["0.weight"])
    assert not torch.equal(after["body.1.running_mean"], before["1.running_mean"])
    for name, value in start.network.body.state_dict().items():
        assert torch.equal(value, before[name]), "the network itself stays as it was"


def test_what_it_drops_at_random_follows_from_the_place_in_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, start = squares(64, 0), Start(stranger(tmp_path))

    def ends(name: str, seed: int) -> bytes:
        (tmp_path / name).mkdir(exist_ok=True)
        train("softmax", "", images, None, AS_THEY_ARE, seed, tmp_path / name, None, 0.0, start=start)
        return (tmp_path / name / "network.safetensors").read_bytes()

    whole = ends("whole", 0)
    advance, steps = Run.advance, []

    def killed(run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        steps.append(run.step)
        if len(steps) == 11:
            raise KeyboardInterrupt
        advance(run, batch)

    monkeypatch.setattr(Run, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        ends("resumed", 0)
    torch.manual_seed(99)
    assert ends("resumed", 0) == whole
    assert steps[11] == 10
    assert ends("other", 1) != whole
