"""Ghost batches against batch normalisation of each part, and in the loop."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from penultimate import RequestError
from penultimate.backbones import build
from penultimate.data.images import ImageSet
from penultimate.networks.trained import load_network
from penultimate.objectives.projectors import projector
from penultimate.training.ghost import GhostBatchNorm1d, GhostBatchNorm2d, by_ghost_batches
from penultimate.training.loop import train
from penultimate.training.recipe import Recipe


def layer(channels: int = 3) -> nn.BatchNorm2d:
    made = nn.BatchNorm2d(channels).double()
    nn.init.normal_(made.weight)
    nn.init.normal_(made.bias)
    return made


@pytest.mark.parametrize("images", [12, 10, 5])
def test_parts_are_normalised_apart_and_moments_averaged(images: int) -> None:
    torch.manual_seed(0)
    plain = layer()
    ghost = GhostBatchNorm2d.of(copy.deepcopy(plain), 4)
    x = torch.randn(images, 3, 2, 5, dtype=torch.float64).mul_(3).add_(torch.arange(images).view(-1, 1, 1, 1))
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    output = ghost(ours)
    parts, means, variances = [], 0.0, 0.0
    for part in theirs.split(4):
        alone = copy.deepcopy(plain)
        alone.momentum = 1.0
        alone.weight, alone.bias = plain.weight, plain.bias
        parts.append(alone(part))
        means = means + alone.running_mean * len(part) / images
        variances = variances + alone.running_var * len(part) / images
    expected = torch.cat(parts)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(ghost.running_mean, 0.1 * means)
    torch.testing.assert_close(ghost.running_var, 0.9 + 0.1 * variances)
    weighting = torch.randn_like(output)
    (output * weighting).sum().backward()
    (expected * weighting).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(ghost.weight.grad, plain.weight.grad)
    assert ghost.num_batches_tracked == 1


def test_vectors_have_ghost_batches_too() -> None:
    layers = projector(3, depth=1, width=4).double()
    by_ghost_batches(layers, 5)
    assert type(layers[1]) is GhostBatchNorm1d
    x = torch.randn(12, 3, dtype=torch.float64)
    parts = [part @ layers[0].weight.T for part in x.split(5)]
    expected = [(part - part.mean(0)) / (part.var(0, unbiased=False) + 1e-5).sqrt() for part in parts]
    torch.testing.assert_close(layers(x), torch.cat(expected).relu())


def test_one_part_and_evaluation_are_batch_normalisation() -> None:
    plain = layer()
    ghost = GhostBatchNorm2d.of(copy.deepcopy(plain), 8)
    x = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    assert torch.equal(ghost(x), plain(x))
    x = torch.randn(20, 3, 4, 4, dtype=torch.float64)
    assert torch.equal(ghost.eval()(x), plain.eval()(x))


def test_a_network_keeps_its_weights_and_their_names() -> None:
    network = build("glyphnet(width=4, features=16)")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    by_ghost_batches(network, 8)
    after = network.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    kinds = {type(module) for module in network.modules() if isinstance(module, nn.BatchNorm2d)}
    assert kinds == {GhostBatchNorm2d}


def test_batch_normalisation_of_another_kind_is_refused() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm3d(4))
    with pytest.raises(RequestError, match=r"has a BatchNorm3d \('1'\); give ghost_batch=None"):
        by_ghost_batches(network, 8)


def images(number: int = 32) -> ImageSet:
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 256, (number, 24, 24, 3), dtype=np.uint8)
    return ImageSet(pixels, np.arange(number) % 4, np.arange(number), tuple("abcd"))


def weights(folder: Path, **settings: object) -> dict[str, torch.Tensor]:
    recipe = Recipe(epochs=2, batch_size=16, **settings)  # type: ignore[arg-type]
    train("softmax", "glyphnet(width=4, features=16)", images(), None, recipe, 0, folder)
    return load_network(folder).body.state_dict()


def test_a_recipe_trains_by_ghost_batches(tmp_path: Path) -> None:
    plain, whole, parts = (weights(tmp_path / str(size), ghost_batch=size) for size in (None, 16, 4))
    assert all(torch.equal(plain[name], whole[name]) for name in plain)
    assert not torch.equal(plain["stem.convolution.weight"], parts["stem.convolution.weight"])
    assert torch.equal(
        plain["stem.normalisation.num_batches_tracked"], parts["stem.normalisation.num_batches_tracked"]
    )


@pytest.mark.parametrize("size", [0, 1, 2.0, 24, 32])
def test_a_batch_consists_of_whole_ghost_batches(size: object) -> None:
    with pytest.raises(RequestError, match="recipe: ghost_batch is"):
        Recipe(batch_size=16, ghost_batch=size)  # type: ignore[arg-type]


@pytest.mark.parametrize("at_once", [4, 8, 12])
def test_a_batch_in_parts_is_the_same_step(tmp_path: Path, at_once: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 12, 12, 3), np.uint8)
    images = ImageSet(pixels, np.arange(64) % 5, np.arange(64), tuple("abcde"))
    recipe = Recipe(epochs=2, batch_size=16, ghost_batch=4, learning_rate=0.1)
    networks = []
    for name, changed in (("whole", recipe), ("parts", replace(recipe, at_once=at_once))):
        result = train(
            "logit_penalty", "glyphnet(width=4, features=8)", images, None, changed, 0, tmp_path / name
        )
        networks.append((load_network(tmp_path / name).body.state_dict(), result.curves))
    (whole, of_whole), (parts, of_parts) = networks
    for name, value in whole.items():
        if "running" in name:
            assert torch.allclose(parts[name], value, rtol=0.1, atol=0.02), name
        elif "tracked" not in name:
            assert torch.allclose(parts[name], value, rtol=1e-4, atol=1e-5), name
    assert [point["value"] for point in of_parts] == pytest.approx(
        [point["value"] for point in of_whole], rel=1e-4
    )


@pytest.mark.parametrize("at_once", [0, 6, 1, 4.0])
def test_parts_consist_of_whole_ghost_batches(at_once: object) -> None:
    with pytest.raises(RequestError, match="at_once is a multiple of ghost_batch=4"):
        Recipe(batch_size=16, ghost_batch=4, at_once=at_once)  # type: ignore[arg-type]


def test_parts_that_a_small_batch_does_not_have_slow_no_moments(tmp_path: Path) -> None:
    recipe = Recipe(epochs=2, batch_size=64)
    networks = []
    for at_once in (None, 16):
        folder = tmp_path / str(at_once)
        asked = replace(recipe, at_once=at_once)
        train("softmax", "glyphnet(width=4, features=8)", images(16), None, asked, 0, folder)
        networks.append(load_network(folder).body.state_dict())
    assert all(torch.equal(networks[0][name], networks[1][name]) for name in networks[0])
