"""What is asked of a network is what those that were trained here and those that were given can do."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.networks import GivenNetwork, Network, NetworkKey, TrainedNetwork
from penultimate.networks.trained import build

STATISTICS = ChannelStatistics((0.5,) * 3, (0.25,) * 3)
WORDS = ("a", "b", "c")


def trained(objective: str = "cosine_softmax") -> TrainedNetwork:
    body, head = build(objective, "glyphnet(features=8, width=2)", 3, seed=0)
    return TrainedNetwork(body.eval(), head.eval(), STATISTICS, WORDS, {})


def given() -> GivenNetwork:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    preparation = Preparation(14, 12, "bilinear", STATISTICS)
    return GivenNetwork(body.eval(), nn.Linear(8, 3), preparation, WORDS)


@pytest.mark.parametrize("network", [trained(), given()], ids=["trained", "given"])
def test_images_become_features_become_logits_become_probabilities(network: Network) -> None:
    assert isinstance(network, Network)
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8))
    features = network.features(images)
    assert (features.shape, features.dtype) == ((4, 8), torch.float32)
    torch.testing.assert_close(network.body(network.prepared(images)).flatten(1), features)
    logits = network.logits(features)
    assert logits.shape == (4, len(network.class_names))
    torch.testing.assert_close(network.log_probabilities(logits).exp().sum(-1), torch.ones(4))
    assert network.head_weight is not None
    assert network.head_weight.shape == (3, 8)
    assert not network.head_weight.requires_grad


def test_of_sigmoids_the_scores_are_read_as_sigmoids() -> None:
    logits = torch.tensor([[0.0, 1.0, -2.0]])
    shares = logits.sigmoid() / logits.sigmoid().sum()
    torch.testing.assert_close(trained("sigmoid").log_probabilities(logits).exp(), shares)


def test_a_key_names_the_columns_of_a_row() -> None:
    key = NetworkKey("softmax", "glyphnet", "long", 3, 0)
    assert key.columns() == asdict(key)
    assert (str(key), key.is_given) == ("softmax | glyphnet | long | seed 3, draw 0", False)
    assert str(NetworkKey("softmax", "glyphnet", seed=3)) == "softmax | glyphnet | seed 3"
    assert (str(NetworkKey("ours")), NetworkKey("ours").is_given) == ("ours", True)
