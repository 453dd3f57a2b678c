"""Linear CKA of representations, from the unbiased HSIC_1 of minibatches.

With A, B the Gram matrices of n examples, with their diagonals set to zero,

    HSIC_1 = [ tr(AB) + (1'A1)(1'B1) / ((n-1)(n-2)) - 2/(n-2) 1'AB1 ] / (n(n-3)) = <U(A), U(B)> / (n(n-3)),

where U subtracts m_i + m_j off the diagonal, m = A1/(n-2) - 1'A1 / (2(n-1)(n-2)), so that rows sum to zero.
HSIC_1 depends on a representation only through U(A). Its n(n-1)/2 numbers above the diagonal form a vector,
so all pairs of any number of representations take one product of a matrix with its transpose.

HSIC_1 is invariant to translation, so features are centred first: post-ReLU activations lie far from the
origin, and cancellation in their raw float32 Gram matrix would lose the differences between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import zip_longest

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.comparison import alignment
from penultimate.metrics.inputs import ArrayLike, as_matrix, items, listed_rows, resolution

FEWEST = 4
"""The fewest examples in a batch, since HSIC_1 divides by n - 3."""
PIECE_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 25}
"""The number of activations centred and multiplied at once: they fit a core's cache; a GPU needs more."""
SMALLEST_BLOCK = 64
"""The fewest rows of a block; splitting a symmetric product into smaller blocks no longer pays."""


def minibatch_cka(batches_x: Iterable[ArrayLike], batches_y: Iterable[ArrayLike]) -> float:
    """Return the linear CKA of two representations of the same examples, which come in the same batches.

    mean_i HSIC_1(A_i, B_i) / sqrt( mean_i HSIC_1(A_i, A_i) mean_i HSIC_1(B_i, B_i) )

    `batches_x` and `batches_y` are iterables of activations [n p] and [n q], in NumPy or torch; p and q may
    differ, but both batches of a pair have the same n. Batches are weighted by their number of examples (in
    the paper all have the same size). The result is not clamped: an unbiased estimate of a small similarity
    may be negative. Products are computed in the precision of the activations (at least float32) and summed
    in float64, and all further steps are in float64.

    Where the activations are penultimate features, they are those before the projector, if there is one.

    Raise RequestError if batches do not pair up, hold fewer than 4 examples or a number that is not finite
    (it names the batch and the rows); raise UndefinedError if one side is constant.

    >>> random = np.random.default_rng(0)
    >>> x = [random.normal(size=(8, 5)) for _ in range(3)]
    >>> round(minibatch_cka(x, [2 * batch[:, ::-1] + 7 for batch in x]), 12)
    1.0
    >>> minibatch_cka(x, [random.normal(size=(8, 5)) for _ in range(3)]) < 0.3
    True

    Nguyen, Raghu & Kornblith, 2021, eq. 3; Kornblith et al., 2021, eq. 10.
    """
    total, examples = np.zeros((2, 2)), 0
    for x, y in paired_batches(batches_x, batches_y):
        first, second = u_vector(x), u_vector(y)
        total += len(x) * products(torch.stack([first, second.to(first.device)]), len(x))
        examples += len(x)
    if examples == 0:
        raise RequestError("no batch to compare")
    if not total.diagonal().all():
        raise UndefinedError("CKA is undefined: a side is the same for all examples, to within its rounding")
    return float(alignment(total)[0, 1])


def paired_batches(
    batches_x: Iterable[ArrayLike], batches_y: Iterable[ArrayLike]
) -> Iterator[tuple[ArrayLike, ArrayLike]]:
    """Yield the batches of both sides."""
    for name, batches in (("batches_x", batches_x), ("batches_y", batches_y)):
        if getattr(batches, "ndim", 3) < 3:
            raise RequestError(f"{name} is an iterable of batches [n p]; for a single batch, pass [batch]")
    pairs = zip_longest(items(batches_x, "batches_x"), items(batches_y, "batches_y"))
    for number, (x, y) in enumerate(pairs):
        if x is None or y is None or len(x) != len(y):
            counts = " and ".join("none" if side is None else str(len(side)) for side in (x, y))
            raise RequestError(f"batch {number} holds {counts} examples: both sides must have the same")
        yield x, y


def u_vector(activations: ArrayLike) -> Float[Tensor, " pairs"]:
    """Return the part of activations [n p] that HSIC_1 needs: U(A) above its diagonal [n(n-1)/2], in float64.

    It is exactly zero if examples differ by no more than the rounding of their dtype. Raise RequestError for
    n < 4 and for activations that are not finite (it lists the rows).

    >>> u_vector(torch.eye(4)).shape
    torch.Size([6])
    """
    gram = centred_gram(activations)
    expect_enough(len(gram))
    return packed(u_centred(gram))


def products(vectors: Float[Tensor, "l pairs"], examples: int) -> np.ndarray:
    """Return HSIC_1 of every pair of representations [l l] in float64, from their `u_vector`s for one batch.

    >>> vectors = torch.stack([u_vector(torch.eye(5)), u_vector(torch.arange(5.0)[:, None])])
    >>> products(vectors, 5).shape
    (2, 2)
    """
    below = torch.tril(vectors @ vectors.T).mul_(2 / (examples * (examples - 3))).cpu().numpy()
    return np.asarray(below + np.tril(below, -1).T)


def u_centred(gram: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """Turn a symmetric float64 matrix A into U(A), in place, with a zero diagonal and rows that sum to zero.

    >>> round(float(u_centred(torch.ones(5, 5, dtype=torch.float64)).abs().max()), 12)
    0.0
    """
    n = len(gram)
    gram.fill_diagonal_(0)
    m = gram.sum(0).div_(n - 2)
    m -= m.sum() / (2 * (n - 1))
    gram.sub_(m).sub_(m[:, None])
    return gram.fill_diagonal_(0)


def packed(gram: Float[Tensor, "n n"]) -> Float[Tensor, " pairs"]:
    """Return the numbers above the diagonal of a matrix, row by row."""
    return gram.take(_above_diagonal(len(gram), gram.device))


def centred_gram(activations: ArrayLike) -> Float[Tensor, "n n"]:
    """Return the centred Gram matrix (x_i - mean) . (x_j - mean) of activations [n p].

    Products are computed in the precision of the activations and summed in float64.
    """
    # Columns are centred in pieces that fit the cache. Only the blocks on and above the diagonal of their
    # symmetric product are computed, and the pieces are summed in float64.
    matrix = as_matrix(activations, "activations", "dimensions")
    matrix = matrix if matrix.device.type in PIECE_ELEMENTS else matrix.cpu()
    n, p = matrix.shape
    dtype = torch.promote_types(matrix.dtype, torch.float32)
    width = max(1, PIECE_ELEMENTS[matrix.device.type] // max(n, 1))
    rows = max(SMALLEST_BLOCK, -(-n // 4))
    gram = torch.zeros(n, n, dtype=torch.float64, device=matrix.device)
    offset = torch.zeros((), dtype=torch.float64, device=matrix.device)
    with torch.no_grad(), _ieee_products(matrix.device):
        share = torch.full((n,), 1 / max(n, 1), dtype=dtype, device=matrix.device)
        buffer = torch.empty(n, min(width, p), dtype=dtype, device=matrix.device)
        for first in range(0, p, width):
            piece = matrix[:, first : first + width].to(dtype)
            mean = torch.mv(piece.T, share)
            piece = torch.sub(piece, mean, out=buffer[:, : piece.shape[1]])
            offset += torch.dot(mean, mean)
            for top in range(0, n, rows):
                gram[top : top + rows, top:] += piece[top : top + rows] @ piece[top:].T
    gram.triu_()
    gram += gram.triu(1).T
    size = float(torch.linalg.matrix_norm(gram))
    if not math.isfinite(size):
        wrong = ~matrix.isfinite().all(1)
        if bool(wrong.any()):
            raise RequestError(f"activations hold NaN or infinity in {listed_rows(wrong)}")
        raise RequestError(f"activations are too large for the products of {matrix.dtype}: scale them")
    # Centring equal rows leaves rounding errors of about eps |x|, which are not variation; those of the mean
    # of many rows are larger, so that rows which are exactly equal are recognised by themselves.
    eps, scale = resolution(matrix.dtype), float(gram.trace() + n * offset)
    noise = (2 * eps) ** 2 * scale
    if noise < size <= (n * eps) ** 2 * scale and bool((matrix == matrix[:1]).all()):
        noise = size
    centred: Tensor = gram * (size > noise)
    return centred


@contextmanager
def _ieee_products(device: torch.device) -> Iterator[None]:
    """Compute products in the precision of the dtype: no TF32 or bfloat16 for float32, and no autocast."""
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@lru_cache(maxsize=4)
def _above_diagonal(n: int, device: torch.device) -> Int[Tensor, " pairs"]:
    rows, columns = torch.triu_indices(n, n, 1, device=device)
    positions: Tensor = rows * n + columns
    return positions


def expect_enough(n: int) -> None:
    """Raise RequestError if a batch of n examples is too small for HSIC_1."""
    if n < FEWEST:
        raise RequestError(
            f"HSIC_1 needs batches of at least {FEWEST} examples; one holds {n}: choose another batch size,"
            " or drop the last batch"
        )
