"""A corruption's random numbers: a function of the seed, the corruption and the example alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Draws = Sequence[np.random.Generator]
"""One generator per image."""


def generators(seed: int, name: str, severity: int, indices: Sequence[int]) -> Draws:
    """Return a generator for each example: one Philox key, and 2^128 blocks of its counter for each index.

    >>> first, second = generators(0, "snow", 3, [7, 7])
    >>> first.random() == second.random()
    True
    """
    text = "\x1f".join(map(str, ("corruption", seed, name, severity)))
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
    return [np.random.Generator(np.random.Philox(key=key, counter=index << 128)) for index in indices]


def normal(draws: Draws, *shape: int) -> npt.NDArray[np.float32]:
    """Standard normal numbers [n *shape]."""
    return np.stack([draw.standard_normal(shape).astype(np.float32) for draw in draws])


def uniform(draws: Draws, low: float, high: float, *shape: int) -> npt.NDArray[np.float64]:
    """Uniform numbers [n *shape]."""
    return np.stack([draw.uniform(low, high, shape) for draw in draws])
