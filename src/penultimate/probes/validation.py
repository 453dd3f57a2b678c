"""The validation examples that a probe splits off from its training set if none are given."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from penultimate.checks import real_number
from penultimate.metrics import UndefinedError


def split_off(codes: Int[np.ndarray, " n"], fraction: float = 0.2, seed: int = 0) -> Bool[np.ndarray, " n"]:
    """Return a mask of the validation examples: `fraction` of all, stratified by class, drawn from `seed`.

    The examples are shuffled within their classes and lined up class by class, and evenly spaced places of
    the line are taken. A class of m examples thus gives fraction * m, rounded down or up; a class's only
    example is never taken.

    `codes` [n] are class numbers. Raise RequestError for a fraction outside (0, 1); raise UndefinedError if
    every class has a single example.

    >>> split_off(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])).nonzero()[0].size
    2
    """
    real_number(fraction, "validation_fraction", above=0, below=1)
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(len(codes))
    line = shuffled[np.argsort(codes[shuffled], kind="stable")]
    line = line[np.bincount(codes)[codes[line]] > 1]
    if len(line) == 0:
        raise UndefinedError(
            "every class has a single example: none can be split off to validate on; give more examples, or"
            " some to validate on"
        )
    wanted = min(max(1, round(fraction * len(line))), len(line) - 1)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[line[((np.arange(wanted) + 0.5) * len(line) / wanted).astype(int)]] = True
    return chosen
