"""A network that is wrapped in DistributedDataParallel is the network within."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import penultimate as pu

IMAGES = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
BATCHES = [(IMAGES[:5], torch.arange(5) % 2), (IMAGES[5:], torch.arange(3) % 2)]
Pair = tuple[nn.Module, DistributedDataParallel]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A network as it is, and an equal one in a process group of one process."""
    torch.distributed.init_process_group("gloo", f"file://{tmp_path}/group", rank=0, world_size=1)

    def network() -> nn.Module:
        torch.manual_seed(0)
        body = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*body, nn.Linear(6, 4))

    try:
        yield network(), DistributedDataParallel(network())
    finally:
        torch.distributed.destroy_process_group()


def test_its_features_are_those_of_the_bare_network(pair: Pair) -> None:
    bare, replicated = pair
    replicated(IMAGES).sum().backward()  # as in the middle of a training
    bare(IMAGES)
    for settings in ({}, {"layer": "3"}, {"layer": "output"}):
        banks = [pu.extract(network, BATCHES, **settings) for network in pair]  # type: ignore[arg-type]
        assert np.array_equal(banks[0].features, banks[1].features)
        banks = [pu.extract(pu.Model(network, size=16, **settings), BATCHES) for network in pair]
        assert np.array_equal(banks[0].features, banks[1].features)
    logits = [pu.extract(network, BATCHES).logits for network in pair]
    assert np.array_equal(*logits)  # type: ignore[arg-type]
    assert all(part.training for part in replicated.modules())
    shares = [[layer.nonzero_share for layer in pu.profile_layers(network, BATCHES)] for network in pair]
    assert shares[0] == shares[1]


def test_a_head_is_replaced_within_it_and_it_is_wrapped_again(pair: Pair) -> None:
    objective = pu.objective("softmax", num_features=6, num_classes=2)
    network = DistributedDataParallel(pu.replace_head(pu.Model(pair[1], size=16), objective))
    network(IMAGES, torch.arange(8) % 2).mean().backward()
    pair[0](IMAGES)
    assert objective.head.weight.grad is not None
    features = pu.extract(network, BATCHES).features
    assert np.array_equal(features, pu.extract(pair[0], BATCHES).features)
