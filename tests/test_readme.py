"""The README's Python runs as it stands, on small data under the names that it uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import penultimate
from penultimate import registry

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


class Net(nn.Module):
    """A classifier of torchvision's form, with a block, `avgpool` and `fc`."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(inplace=True))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.avgpool(self.features(images)).flatten(1))


def data(examples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random, labels = np.random.default_rng(seed), np.arange(examples) % 5
    return random.normal(size=(examples, 512)) + 0.1 * np.eye(5, 512)[labels], labels


@pytest.fixture
def names() -> dict[str, Any]:
    torch.manual_seed(0)
    (features, labels), (test_features, test_labels) = data(60, 0), data(20, 1)
    return {
        "__name__": "readme",
        "features": features,
        "labels": labels,
        "findings": np.stack([labels == 0, labels > 2], axis=1),
        "source_probabilities": np.random.default_rng(3).dirichlet(np.ones(7), 60),
        "source_predictions": labels % 3,
        "test_features": test_features,
        "test_labels": test_labels,
        "weight": np.random.default_rng(2).normal(size=(5, 512)),
        "network": Net(),
        "ours": Net(),
        "theirs": Net(),
        "body": nn.Sequential(nn.Flatten(), nn.Linear(243, 512), nn.ReLU()),
        "loader": [(torch.rand(20, 3, 9, 9), torch.arange(20) % 4) for _ in range(2)],
        "images": np.full((2, 32, 32, 3), 128, np.uint8),
        "targets": labels,
    }


def test_every_block_runs_after_those_before_it(names: dict[str, Any]) -> None:
    assert len(BLOCKS) == 4
    with torch.random.fork_rng():
        for block in BLOCKS:
            exec(compile(block, "README.md", "exec"), names)
    registry.forget("loss", "focal")
    assert (names["bank"].features.shape, names["bank"].logits.shape) == ((40, 8), (40, 10))
    assert names["logits"].shape == (60, 100)
    assert names["loss"].ndim == 0


def test_the_training_loop_moves_body_and_head(names: dict[str, Any]) -> None:
    """Without objective.parameters() among the optimiser's, the head would stay as it began."""
    (block,) = (block for block in BLOCKS if "optimizer" in block)
    setting_up, loop = block.split("for images, targets in loader:")
    names["pu"] = penultimate
    exec(setting_up, names)
    weights = [weight for part in ("body", "objective") for weight in names[part].parameters()]
    assert len(weights) == 4
    before = [weight.detach().clone() for weight in weights]
    first = names["objective"](names["body"](names["loader"][0][0])).detach()
    for _ in range(10):
        exec(f"for images, targets in loader:{loop}", names)
    assert not any(torch.equal(old, new) for old, new in zip(before, weights, strict=True))
    images, targets = names["loader"][0]
    with torch.no_grad():
        learned = names["objective"](names["body"](images))
    wrong, right = (nn.functional.cross_entropy(logits, targets) for logits in (first, learned))
    assert right < wrong / 2
