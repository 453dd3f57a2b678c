"""How sure a network is of an image, from its logits alone: four scores, each higher for surer images.

They rank images, for two purposes: to leave out those that the network may get wrong (`metrics.selective`),
and those that are of none of its classes (`metrics.outside`). All are computed in float64, in blocks of rows.
The softmax is that of the logits as they are, whatever objective trained them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.checks import real_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import float64_blocks
from penultimate.metrics.inputs import ArrayLike, as_matrix, listed_rows

NORM = 4.0
"""The p of the norm that divides a normalised logit, where no images choose it."""


def log_max_probability(logits: ArrayLike) -> Float[np.ndarray, " n"]:
    """Return the logarithm of the largest softmax probability of each row.

    log max_k p_k = -log(1 + sum_{j != k*} exp(z_j - z_k*)),    k* = argmax_k z_k

    It ranks as the maximum softmax probability does, but keeps its digits where that rounds to 1. `logits`
    are [n k], and the result is in nats. Raise RequestError for NaN or infinity (it lists the rows), and
    UndefinedError for a single class.

    >>> log_max_probability([[0.0, 0.0], [50.0, 0.0]]).tolist()
    [-0.693..., -1.92...e-22]

    Hendrycks and Gimpel, ICLR 2017 (maximum softmax probability, MSP).
    """

    def surest(block: Float[Tensor, "b k"]) -> Float[Tensor, " b"]:
        top, place = block.max(1, keepdim=True)
        others = (block - top).exp_().scatter_(1, place, 0.0)
        return -torch.log1p(others.sum(1))

    return _by_row(logits, surest)


def max_logit(logits: ArrayLike) -> Float[np.ndarray, " n"]:
    """Return the largest logit of each row, max_k z_k.

    `logits` are [n k]; errors are those of `log_max_probability`.

    >>> max_logit([[1.0, 3.0], [0.5, -2.0]]).tolist()
    [3.0, 0.5]

    Hendrycks et al., ICML 2022.
    """
    return _by_row(logits, lambda block: block.amax(1))


def negative_energy(logits: ArrayLike, temperature: float = 1.0) -> Float[np.ndarray, " n"]:
    """Return minus the energy of each row, T log sum_k exp(z_k / T).

    `logits` are [n k]; errors are those of `log_max_probability`, and RequestError for a `temperature` that
    is not positive.

    >>> negative_energy([[0.0, 0.0]]).tolist()
    [0.693...]

    Liu et al., NeurIPS 2020.
    """
    scale = real_number(temperature, "temperature", above=0)
    return _by_row(logits, lambda block: scale * torch.logsumexp(block / scale, 1))


def normalised_logit(logits: ArrayLike, p: float = NORM) -> Float[np.ndarray, " n"]:
    """Return the largest of each row's centred logits, divided by their p-norm.

    max_k z'_k / |z'|_p,    z' = z - mean_k z_k,    0 for a row of equal logits

    It depends on how far the largest logit stands out from the others, and not on the scale of all of them.
    `logits` are [n k]. Errors are those of `log_max_probability`; RequestError for a `p` below 1, and
    UndefinedError for two classes, of which every row has the same value.

    >>> normalised_logit([[3.0, 0.0, 0.0], [30.0, 0.0, 0.0], [2.0, 2.0, 2.0]], p=2).round(4).tolist()
    [0.8165, 0.8165, 0.0]

    Cattelan and Silva, UAI 2024 (MaxLogit-pNorm), which Xia et al., ICLR 2025, use.
    """
    power = real_number(p, "p", above=0)
    if power < 1:
        raise RequestError(f"p of a norm is 1 or more; got {p!r}")

    def standing_out(block: Float[Tensor, "b k"]) -> Float[Tensor, " b"]:
        if block.shape[1] == 2:
            raise UndefinedError("the normalised logit of two classes is the same for every image")
        centred = block - block.mean(1, keepdim=True)
        centred /= centred.abs().amax(1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        length = torch.linalg.vector_norm(centred, power, dim=1)
        return torch.where(length > 0, centred.amax(1) / length, 0.0)

    return _by_row(logits, standing_out)


CONFIDENCES: Mapping[str, Callable[[ArrayLike], Float[np.ndarray, " n"]]] = {
    "msp": log_max_probability,
    "max_logit": max_logit,
    "energy": negative_energy,
    "normalised_logit": normalised_logit,
}
"""The scores by name; `normalised_logit` also takes the p of its norm."""


def _by_row(
    logits: ArrayLike, score: Callable[[Float[Tensor, "b k"]], Float[Tensor, " b"]]
) -> Float[np.ndarray, " n"]:
    """Return the scores of all rows; raise RequestError for rows that are not finite."""
    matrix = as_matrix(logits, "logits", "classes").cpu()
    if matrix.shape[1] < 2:
        raise UndefinedError("with one class a network is as sure of every image")
    found = []
    for start, block in float64_blocks(matrix):
        wrong = ~block.isfinite().all(1)
        if bool(wrong.any()):
            raise RequestError(f"logits hold NaN or infinity in {listed_rows(wrong, start)}")
        found.append(score(block).clone())
    return torch.cat(found).numpy() if found else np.zeros(0)
