"""Random generators derived from what is drawn, never from earlier draws."""

from __future__ import annotations

import hashlib
import random
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

Among: TypeAlias = tuple[int, Int[Tensor, " n"] | slice]
"""Of a batch of that many images, those at hand: what is drawn for one does not depend on which these are."""


def derived_generator(*parts: str | int) -> torch.Generator:
    """Return a CPU generator seeded by the sha256 of the parts: equal parts give equal numbers,
    in any order of use.

    >>> draws = [torch.rand(1, generator=derived_generator("glyphs", draw)).item() for draw in (0, 0, 1)]
    >>> draws[0] == draws[1], draws[0] == draws[2]
    (True, False)
    """
    text = "\x1f".join(map(str, parts))
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator().manual_seed(seed)


def seed_all(seed: int) -> None:
    """Seed every generator of random numbers that a user's code may draw from."""
    random.seed(seed)
    np.random.mtrand._rand.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)
