"""Tiny images and networks on disk, of which nothing was learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penultimate.data.images import ChannelStatistics, ImageSet, save_images
from penultimate.networks.trained import build, save_network

BACKBONE = "glyphnet(features=8, width=2)"
STATISTICS = ChannelStatistics((0.5,) * 3, (0.3,) * 3)


def world(root: Path) -> Path:
    """Images of noise in four classes: 24 to train on, 40 to test on."""
    random = np.random.default_rng(0)
    for split, n in (("train", 24), ("test", 40)):
        pixels = random.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
        save_images(root / "data", split, ImageSet(pixels, np.arange(n) % 4, np.arange(n), tuple("abcd")))
    return root / "data"


def network(root: Path, spec: str, seed: int = 0, dead: bool = False) -> Path:
    """A network with the initial weights of a seed; in a `dead` one the first block says nothing."""
    body, head = build(spec, BACKBONE, 4, seed)
    if dead:
        for norm in (body.block1.second.normalisation, body.block1.shortcut.normalisation):  # type: ignore[union-attr]
            norm.weight.data.zero_()  # type: ignore[union-attr]
            norm.bias.data.fill_(-1.0)  # type: ignore[union-attr]
    card = {"objective": spec, "backbone": BACKBONE, "num_classes": 4, "class_names": list("abcd")}
    folder = root / f"train.{spec}-{seed}"
    save_network(folder, body, head, STATISTICS, card)
    return folder
