"""Calibration: whether a network's probabilities can be trusted, by likelihood, ECE and reliability diagram.

Examples are sorted into bins by their confidence, the largest probability. A bin is (lo, hi]: it contains
its upper edge, so a confidence of exactly 1 lies in the last bin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics.inputs import ArrayLike, Names, labelled_logits, listed_rows

BINS = 15
CACHED = {"cpu": 1 << 19, "cuda": 1 << 24}
"""The number of values that a core processes at once: 2 MiB of float32 fit its cache; a GPU needs more."""


class ReliabilityBin(NamedTuple):
    """A bin (lower, upper] of a reliability diagram: its number of examples, mean confidence and accuracy."""

    lower: float
    upper: float
    examples: int
    confidence: float
    accuracy: float


class Calibration(NamedTuple):
    """The NLL in nats, the ECE, and the bins that hold examples, from low to high confidence."""

    negative_log_likelihood: float
    expected_calibration_error: float
    reliability: tuple[ReliabilityBin, ...]


def expected_calibration_error(probabilities: ArrayLike, labels: Names, bins: int = BINS) -> float:
    """Return the expected calibration error: the mean gap between confidence and accuracy.

    ECE = sum_b (n_b/n) |accuracy_b - confidence_b|,    b(i) = the bin (lo, hi] of max_k p_ik

    `probabilities` [n k] are distributions and `labels` [n] class indices; `bins` of equal width cover [0,
    1]. The prediction is the most probable class, and among equals the smallest index, as in `argmax`. Edges
    are rounded to the dtype of the probabilities, so 0.2 in float32 lies on the edge 3/15.

    Raise RequestError for rows that are not distributions (it lists them), labels out of range, unequal
    lengths, no examples, or bins < 1.

    >>> expected_calibration_error([[0.05, 0.95], [1.0, 0.0]], [1, 1])  # both in the last bin: |1 - 1.95|/2
    0.475

    Guo et al., ICML 2017, eq. 3; Kornblith et al., 2021, table C.3 (15 bins).
    """
    return _measured(_of_probabilities(probabilities, labels), bins).expected_calibration_error


def negative_log_likelihood(probabilities: ArrayLike, labels: Names) -> float:
    """Return the mean of -log p of the right class in nats, which is infinite if any such p is 0.

    NLL = -(1/n) sum_i log p_iy,    y = y_i

    `probabilities` are [n k] and `labels` [n]. Probabilities below 1e-38 are 0 in float32;
    `calibration_of_logits` avoids this loss. Raise RequestError as `expected_calibration_error` does.

    >>> round(negative_log_likelihood([[0.25, 0.75], [0.5, 0.5]], [1, 0]), 4)
    0.4904

    Kornblith et al., 2021, table C.3.
    """
    return _measured(_of_probabilities(probabilities, labels), 1).negative_log_likelihood


def calibration_of_logits(
    logits: ArrayLike, labels: Names, temperature: float | Float[Tensor, " n"] = 1.0, bins: int = BINS
) -> Calibration:
    """Return the calibration of softmax(logits / temperature), from logits [n k] and labels [n].

    `objective.log_probabilities(z)` are logits too, and suit every objective, including the sigmoid. A class
    with the logit -inf has probability 0. `temperature` may differ between examples. Raise RequestError for
    NaN, +inf, or a temperature <= 0.

    >>> calibration_of_logits([[1000.0, 0.0], [0.0, 1000.0]], [1, 1]).reliability
    (ReliabilityBin(lower=0.933..., upper=1.0, examples=2, confidence=1.0, accuracy=0.5),)
    """
    if not isinstance(temperature, Tensor):
        temperature = real_number(temperature, "temperature", above=0)
    return _measured(_of_logits(logits, labels, temperature), bins)


Counted = tuple[Float[Tensor, " b"], Shaped[Tensor, " b"], Float[Tensor, " b"], torch.dtype]
"""The confidence, whether the prediction is right, and the loss of a block of examples; its dtype."""


def _of_probabilities(probabilities: ArrayLike, labels: Names) -> Iterator[Counted]:
    matrix, classes = labelled_logits(probabilities, labels, "probabilities")
    for start, block in blocks(matrix):
        expect_distributions(block, start, matrix.dtype)
        truth = classes[start : start + len(block)]
        yield block.amax(1), _argmax(block) == truth, -own_values(block, truth).double().log(), matrix.dtype


def _of_logits(
    logits: ArrayLike, labels: Names, temperature: float | Float[Tensor, " n"]
) -> Iterator[Counted]:
    matrix, classes = labelled_logits(logits, labels)
    for start, block in blocks(matrix):
        expect_softmax(block, start)
        rows = slice(start, start + len(block))
        divisor = temperature[rows, None].to(block) if isinstance(temperature, Tensor) else temperature
        log_probabilities = (block / divisor).log_softmax(1)
        confidence = log_probabilities.amax(1).double().exp().to(block.dtype)
        loss = -own_values(log_probabilities, classes[rows]).double()
        yield confidence, _argmax(block) == classes[rows], loss, block.dtype


def _measured(parts: Iterator[Counted], bins: int) -> Calibration:
    whole_number(bins, "bins", 1, 1 << 20)
    counts, hits = torch.zeros(2, bins, dtype=torch.int64)
    confidences, total = torch.zeros(bins, dtype=torch.float64), 0.0
    for confidence, right, loss, dtype in parts:
        inner = torch.arange(1, bins, dtype=torch.float64, device=confidence.device) / bins
        edges = inner.to(dtype).double() if dtype.is_floating_point else inner
        confidence = confidence.double()
        place = torch.bucketize(confidence, edges)
        counts += torch.bincount(place, minlength=bins).cpu()
        hits += torch.bincount(place[right], minlength=bins).cpu()
        confidences += torch.bincount(place, confidence, minlength=bins).cpu()
        total += float(loss.sum())
    examples = int(counts.sum())
    found = zip(counts.tolist(), confidences.tolist(), hits.tolist(), strict=True)
    reliability = tuple(
        ReliabilityBin(place / bins, (place + 1) / bins, count, confidence / count, right / count)
        for place, (count, confidence, right) in enumerate(found)
        if count
    )
    return Calibration(total / examples, float((hits - confidences).abs().sum()) / examples, reliability)


def blocks(matrix: Shaped[Tensor, "n k"]) -> Iterator[tuple[int, Float[Tensor, "b k"]]]:
    """Yield blocks of rows, each with the number of its first row, in float32 or, if need be, float64."""
    narrow = matrix.dtype.is_floating_point and matrix.dtype != torch.float64
    working = torch.float32 if narrow else torch.float64
    cores = torch.get_num_threads() if matrix.device.type == "cpu" else 1
    rows = max(1, CACHED[matrix.device.type] * cores // matrix.shape[1])
    return ((start, matrix[start : start + rows].to(working)) for start in range(0, len(matrix), rows))


def own_values(values: Float[Tensor, "b k"], labels: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
    """Return the value of each row in the column of its label."""
    return values.gather(1, labels[:, None])[:, 0]


def _argmax(values: Float[Tensor, "b k"]) -> Int[Tensor, " b"]:
    """Return the argmax over classes; on a CPU, NumPy takes a tenth of the time that torch takes."""
    if values.device.type == "cpu":
        return torch.from_numpy(values.numpy().argmax(1))
    return values.argmax(1)


def expect_softmax(logits: Float[Tensor, "b k"], start: int) -> None:
    """Raise RequestError for rows that hold NaN or +inf, or only -inf: the largest logit shows each case."""
    fine = logits.amax(1).isfinite()
    if not bool(fine.all()):
        raise RequestError(f"logits hold NaN or +inf, or only -inf, in {listed_rows(~fine, start)}")


def expect_distributions(rows: Float[Tensor, "b k"], start: int, dtype: torch.dtype) -> None:
    """Raise RequestError for rows with a negative entry or another sum than 1."""
    # Half-precision probabilities have been rounded to 3 digits before they are summed.
    tolerance = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-3
    wrong = ~((rows.sum(1) - 1).abs() <= tolerance) | ~(rows.amin(1) >= 0)
    if bool(wrong.any()):
        raise RequestError(
            "each row of probabilities must be a distribution (no negative entry, sum 1); not so in"
            f" {listed_rows(wrong, start)}. From logits: objective.probabilities(logits), or their softmax"
        )
