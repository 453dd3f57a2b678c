"""Random generators derived from what is drawn, never from earlier draws."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterator
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


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed every generator of random numbers that a user's code may draw from in the block."""
    own, numpys, torchs = random.getstate(), np.random.mtrand._rand.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.mtrand._rand.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(own)
        np.random.mtrand._rand.set_state(numpys)
        torch.set_rng_state(torchs)
