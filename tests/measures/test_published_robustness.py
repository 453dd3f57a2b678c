"""Accuracy on ImageNet's published test sets, in their true layouts: each number is of the images it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data import published
from tests.measures.steps import Parents, measured

from penultimate.data.corruptions import BENCHMARK, SEVERITIES
from penultimate.data.disk.listed import leave_listing, listed_images
from penultimate.data.images import ImageSet
from penultimate.data.readers.located import located
from penultimate.features.extraction import extract
from penultimate.networks.trained import load_network
from penultimate.study.spec import CORRUPTED
from penultimate.training import Recipe, train

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network for a thousand classes, and -A and -C in their layouts, with what data steps leave."""
    root = tmp_path_factory.mktemp("sets")
    published.imagenet_a(root / "data")
    published.imagenet_c(root / "data")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), np.uint8)
    images = ImageSet(pixels, np.arange(8), np.arange(8), tuple(map(str, range(1000))))
    train("softmax", "glyphnet(width=2, features=4)", images, None, Recipe(epochs=1), 0, root / "network")
    for name, splits in (("imagenet_a", ("test",)), ("imagenet_c", CORRUPTED)):
        (root / name).mkdir()
        leave_listing(located(name, str(root / "data"), splits), root / name, 0, lambda news: None)
    return root


def test_each_set_is_scored_among_its_classes(root: Path) -> None:
    parents = Parents(root / "step", "imagenet").network(root / "network")
    for name in ("imagenet_a", "imagenet_c"):
        parents.images("test", root / name, name)
    outcome = measured("published_robustness", parents)
    network = load_network(root / "network")
    found = {(row.metric, row.target, row.setting): row.value for row in outcome.rows}
    assert len(found) == 1 + len(BENCHMARK) * len(SEVERITIES)
    for name, split, key in (
        ("imagenet_a", "test", ("top1", "imagenet_a", None)),
        ("imagenet_c", "fog/3", ("corruption_error", "imagenet", "corruption=fog, severity=3")),
    ):
        bank = extract(network, listed_images(root / name, split, network.preparation))
        present = np.unique(bank.labels)
        assert len(present) < bank.logits.shape[1]
        among = present if name == "imagenet_a" else np.arange(bank.logits.shape[1])  # the rest of -C lacks
        value = float((among[bank.logits[:, among].argmax(1)] == bank.labels).mean())
        assert found[key] == pytest.approx(value if key[0] == "top1" else 1 - value)
    assert outcome.facts["undefined"] == "no imagenet_v2, no imagenet_r, no imagenet_sketch"


def test_without_any_set_there_is_no_value(root: Path) -> None:
    parents = Parents(root / "none", "imagenet").network(root / "network")
    assert "none of imagenet_v2, imagenet_a" in measured("published_robustness", parents).facts["undefined"]
