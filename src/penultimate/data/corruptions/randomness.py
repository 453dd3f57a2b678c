"""Random numbers of a corruption: a function of the seed, the corruption and the example, of nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Draws = Sequence[np.random.Generator]
"""One generator an image."""


def generators(seed: int, name: str, severity: int, indices: Sequence[int]) -> Draws:
    """A generator for each example: one Philox key, and a stretch of 2^128 blocks of its counter an index.

    >>> one, again = generators(0, "snow", 3, [7, 7])
    >>> one.random() == again.random()
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
