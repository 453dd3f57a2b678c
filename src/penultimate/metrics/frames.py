"""How close a set of vectors is to a simplex equiangular tight frame: equal lengths, equal angles."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.metrics.blocks import directions

PAIR_ELEMENTS = 1 << 22


class PairwiseCosines(NamedTuple):
    """The population Std of sim and Avg |sim + 1/(C-1)|, over ordered pairs of different vectors."""

    std: float
    etf_deviation: float


def length_variation(vectors: Float[Tensor, "c m"]) -> float:
    """Return the coefficient of variation of the lengths, Std_c |v_c| / Avg_c |v_c| (the population's Std).

    >>> length_variation(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    0.5
    """
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    return float(lengths.std(correction=0) / lengths.mean())


def pairwise_cosines(vectors: Float[Tensor, "c m"]) -> PairwiseCosines:
    """Return the spread of the cosines between C vectors, and their deviation from a simplex ETF's -1/(C-1).

    A zero vector has similarity 0 to all. The C x C cosines are computed a few rows at a time, in O(C m)
    memory.

    >>> pairwise_cosines(torch.eye(3))
    PairwiseCosines(std=0.0, etf_deviation=0.5)
    """
    units = directions(vectors)
    count = len(units)
    pairs = count * (count - 1)
    mean = float(units.sum(0).square().sum() - units.square().sum()) / pairs
    ideal = -1 / (count - 1)
    squares = deviations = 0.0
    rows = max(1, PAIR_ELEMENTS // count)
    for start in range(0, count, rows):
        cosines = units[start : start + rows] @ units.T
        # A vector does not pair with itself, so that cosine is replaced by the value that adds nothing.
        itself = torch.arange(len(cosines), device=cosines.device)
        cosines[itself, start + itself] = mean
        squares += float((cosines - mean).square_().sum())
        cosines[itself, start + itself] = ideal
        deviations += float((cosines - ideal).abs_().sum())
    return PairwiseCosines((squares / pairs) ** 0.5, deviations / pairs)
