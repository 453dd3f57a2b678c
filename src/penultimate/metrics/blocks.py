"""Features in blocks: float64 copies of a few rows at a time, rather than of all rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics.inputs import ArrayLike, as_matrix, listed_rows

SHORTEST, LONGEST = 1e-130, 1e150
"""The range of row lengths whose squares, and the squares of rounding-size differences, stay in float64."""
ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 26}
"""The number of values in a block: enough rows for a matrix product to run at full speed."""


def as_features(features: ArrayLike) -> Shaped[Tensor, "n m"]:
    """Return features [n m] on the CPU or a CUDA device, since not every other device computes in float64."""
    matrix = as_matrix(features, "features", "dimensions")
    return matrix if matrix.device.type in ELEMENTS else matrix.cpu()


def as_weight(weight: ArrayLike | None, dimensions: int, device: torch.device) -> Float[Tensor, "k m"]:
    """Return the weights of a head, one row per class, as float64 on `device`.

    Raise RequestError if they do not fit features of `dimensions` or are not finite (it lists the rows).
    """
    matrix = weight_rows(weight).to(device, torch.float64)
    if matrix.shape[1] != dimensions:
        raise RequestError(
            f"weight is [classes, dimensions]; got {list(matrix.shape)} for features of {dimensions}"
            f" dimensions{', which its transpose would fit' if len(matrix) == dimensions else ''}"
        )
    expect_lengths(matrix, "weight")
    return matrix


def weight_rows(weight: ArrayLike | None) -> Shaped[Tensor, "k m"]:
    """Return the weights of a head in their own dtype; raise RequestError if there are none."""
    if weight is None:
        raise RequestError("the weight of the final layer is missing: weight=..., [classes, dimensions]")
    return as_matrix(weight, "weight", "dimensions")


def float64_blocks(
    matrix: Shaped[Tensor, "n m"], columns_beside: int = 0, rows: int | None = None
) -> Iterator[tuple[int, Float[Tensor, "b m"]]]:
    """Yield float64 copies of blocks of consecutive rows, each with the number of its first row.

    Each block overwrites the previous one.
    `columns_beside` is the number of values that the caller computes for each row, so that they fit as well;
    `rows` sets the size of a block.

    >>> [(start, block.tolist()) for start, block in float64_blocks(torch.tensor([[1], [2]]))]
    [(0, [[1.0], [2.0]])]
    """
    rows = rows or max(1, ELEMENTS[matrix.device.type] // (matrix.shape[1] + columns_beside))
    buffer = torch.empty(min(rows, len(matrix)), matrix.shape[1], dtype=torch.float64, device=matrix.device)
    for start in range(0, len(matrix), rows):
        block = matrix[start : start + rows]
        yield start, buffer[: len(block)].copy_(block)


def expect_lengths(matrix: Shaped[Tensor, "n m"], what: str = "features") -> None:
    """Raise RequestError, which lists the rows, unless `lengths` accepts them; this takes a separate pass."""
    for start, block in float64_blocks(matrix):
        lengths(block, start, what)


def lengths(block: Float[Tensor, "b m"], start: int = 0, what: str = "features") -> Float[Tensor, " b"]:
    """Return the lengths of rows; each is 0 or lies between SHORTEST and LONGEST.

    Raise RequestError for NaN, infinity, and numbers whose squares overflow or underflow float64; it lists
    the rows, numbered from `start`.
    """
    found: Tensor = torch.linalg.vector_norm(block, dim=1)
    if not len(found) or (bool(found.amin() >= SHORTEST) and bool(found.amax() <= LONGEST)):
        return found
    long = ~(found <= LONGEST)
    if bool(long.any()):
        where = listed_rows(long, start)
        raise RequestError(f"{what} hold NaN, infinity or numbers beyond {LONGEST:g} in {where}")
    short = found < SHORTEST
    short[short.clone()] = block[short].any(1)  # a row of zeros is valid
    if bool(short.any()):
        where = listed_rows(short, start)
        raise RequestError(f"{what} are not 0 but shorter than {SHORTEST:g} in {where}: scale them up")
    return found


def directions(vectors: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Return each vector divided by its length; a zero vector stays zero and so has similarity 0 to all."""
    lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return torch.div(vectors, lengths.masked_fill(lengths == 0, 1))
