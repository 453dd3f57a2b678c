"""Calibration: whether a network's probabilities can be trusted, by likelihood, ECE and reliability diagram.

Examples are sorted into bins by their confidence, the largest probability. A bin is (lo, hi]: it contains
its upper edge, so a confidence of exactly 1 lies in the last bin. Only three sums per bin and one for the
likelihood are kept, in float64, so any number of examples can be processed in O(bins) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import ArrayLike, Names, as_classes, as_matrix, listed_rows, numbered

BINS = 15
MOST_BINS = 1 << 20
BLOCK_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 24}
"""The number of values that a core processes at once: 2 MiB of float32 fit its cache; a GPU needs more."""


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
    return CalibrationAccumulator(bins).update(*_numbered(probabilities, labels)).expected_calibration_error()


def negative_log_likelihood(probabilities: ArrayLike, labels: Names) -> float:
    """Return the mean of -log p of the right class in nats, which is infinite if any such p is 0.

    NLL = -(1/n) sum_i log p_iy,    y = y_i

    `probabilities` are [n k] and `labels` [n]. Probabilities below 1e-38 are 0 in float32;
    `CalibrationAccumulator.update_logits` avoids this loss by computing from logits. Raise RequestError as
    `expected_calibration_error` does.

    >>> round(negative_log_likelihood([[0.25, 0.75], [0.5, 0.5]], [1, 0]), 4)
    0.4904

    Kornblith et al., 2021, table C.3.
    """
    return CalibrationAccumulator(1).update(*_numbered(probabilities, labels)).negative_log_likelihood()


def _numbered(probabilities: ArrayLike, labels: Names) -> tuple[ArrayLike, ArrayLike]:
    matrix = as_matrix(probabilities, "probabilities", "classes")
    (codes,) = numbered(labels, columns=matrix.shape[1])
    return matrix, codes


class ReliabilityBin(NamedTuple):
    """A bin (lower, upper] of a reliability diagram: its number of examples, mean confidence and accuracy."""

    lower: float
    upper: float
    examples: int
    confidence: float
    accuracy: float


class CalibrationAccumulator:
    """Calibration on examples that come in batches, in O(bins) memory.

    `update` adds a batch of probabilities and `update_logits` a batch of logits.

    >>> seen = CalibrationAccumulator().update([[0.05, 0.95]], [1]).update_logits([[1000.0, 0.0]], [1])
    >>> seen.expected_calibration_error()
    0.475
    >>> seen.reliability()
    (ReliabilityBin(lower=0.933..., upper=1.0, examples=2, confidence=0.975, accuracy=0.5),)
    """

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins = whole_number(bins, "bins", 1, MOST_BINS)
        self.counts: Int[Tensor, " bins"] = torch.zeros(bins, dtype=torch.int64)
        self.right: Int[Tensor, " bins"] = torch.zeros(bins, dtype=torch.int64)
        self.confidences: Float[Tensor, " bins"] = torch.zeros(bins, dtype=torch.float64)
        self.loss = 0.0

    @property
    def examples(self) -> int:
        """The number of examples so far."""
        return int(self.counts.sum())

    def update(self, probabilities: ArrayLike, labels: ArrayLike) -> CalibrationAccumulator:
        """Add a batch of distributions [n k] and their labels [n]."""
        matrix, classes = pair(probabilities, labels, "probabilities")
        for start, block in blocks(matrix):
            refuse_no_distribution(block, start, matrix.dtype)
            truth = classes[start : start + len(block)]
            confidence = block.amax(1)
            loss = -own_values(block, truth).double().log()
            self._count(confidence, _first_largest(block) == truth, loss, matrix.dtype)
        return self

    def update_logits(
        self, logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0
    ) -> CalibrationAccumulator:
        """Add a batch of probabilities softmax(logits / temperature), from logits [n k] and labels [n].

        `objective.log_probabilities(z)` are logits too, and suit every objective, including the sigmoid. A
        class with the logit -inf has probability 0. Raise RequestError for NaN, +inf, or a temperature <= 0.
        """
        temperature = real_number(temperature, "temperature", above=0)
        matrix, classes = pair(logits, labels, "logits")
        for start, block in blocks(matrix):
            refuse_unreal(block, start)
            truth = classes[start : start + len(block)]
            scaled = block if temperature == 1 else block / temperature
            log_probabilities = scaled.log_softmax(1)
            confidence = log_probabilities.amax(1).double().exp().to(block.dtype)
            loss = -own_values(log_probabilities, truth).double()
            self._count(confidence, _first_largest(block) == truth, loss, block.dtype)
        return self

    def expected_calibration_error(self) -> float:
        """Return the ECE of all examples so far; raise UndefinedError if there are none."""
        return float((self.right - self.confidences).abs().sum()) / self._some()

    def negative_log_likelihood(self) -> float:
        """Return the mean NLL of all examples so far, in nats; raise UndefinedError if there are none."""
        return self.loss / self._some()

    def accuracy(self) -> float:
        """Return the top-1 accuracy of all examples so far; raise UndefinedError if there are none."""
        return int(self.right.sum()) / self._some()

    def reliability(self) -> tuple[ReliabilityBin, ...]:
        """Return the reliability diagram: the bins that hold examples, from low to high confidence."""
        return tuple(
            ReliabilityBin(
                place / self.bins, (place + 1) / self.bins, examples, confidence / examples, right / examples
            )
            for place, (examples, confidence, right) in enumerate(
                zip(self.counts.tolist(), self.confidences.tolist(), self.right.tolist(), strict=True)
            )
            if examples
        )

    def _some(self) -> int:
        if self.examples == 0:
            raise UndefinedError("calibration of no examples: nothing was added")
        return self.examples

    def _count(
        self,
        confidence: Float[Tensor, " b"],
        right: Bool[Tensor, " b"],
        loss: Float[Tensor, " b"],
        dtype: torch.dtype,
    ) -> None:
        edges = inner_edges(self.bins, dtype, confidence.device)
        confidence = confidence.double()
        place = torch.bucketize(confidence, edges)
        self.counts += torch.bincount(place, minlength=self.bins).cpu()
        self.right += torch.bincount(place[right], minlength=self.bins).cpu()
        self.confidences += torch.bincount(place, confidence, minlength=self.bins).cpu()
        self.loss += float(loss.sum())


def inner_edges(bins: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " _"]:
    """Return the edges between bins of equal width, rounded to the dtype of the probabilities."""
    inner = torch.arange(1, bins, dtype=torch.float64, device=device) / bins
    return inner.to(dtype).double() if dtype.is_floating_point else inner


def pair(values: ArrayLike, labels: ArrayLike, what: str) -> tuple[Shaped[Tensor, "n k"], Int[Tensor, " n"]]:
    matrix = as_matrix(values, what, "classes")
    matrix = matrix if matrix.device.type in BLOCK_ELEMENTS else matrix.cpu()
    classes = as_classes(labels, "labels", len(matrix), matrix.shape[1], matrix.device)
    if len(classes) == 0:
        raise RequestError(f"calibration of no examples: {what} and labels are empty")
    return matrix, classes


def blocks(matrix: Shaped[Tensor, "n k"]) -> Iterator[tuple[int, Float[Tensor, "b k"]]]:
    """Yield blocks of consecutive rows, each with the number of its first row.

    Blocks are float32, or float64 if float32 cannot hold the dtype.
    """
    narrow = matrix.dtype.is_floating_point and matrix.dtype != torch.float64
    working = torch.float32 if narrow else torch.float64
    cores = torch.get_num_threads() if matrix.device.type == "cpu" else 1
    rows = max(1, BLOCK_ELEMENTS[matrix.device.type] * cores // matrix.shape[1])
    return ((start, matrix[start : start + rows].to(working)) for start in range(0, len(matrix), rows))


def own_values(values: Float[Tensor, "b k"], labels: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
    return values.gather(1, labels[:, None])[:, 0]


def _first_largest(values: Float[Tensor, "b k"]) -> Int[Tensor, " b"]:
    """Return the argmax over classes; on a CPU, NumPy takes a tenth of the time that torch takes."""
    if values.device.type == "cpu":
        return torch.from_numpy(values.numpy().argmax(1))
    return values.argmax(1)


def refuse_unreal(logits: Float[Tensor, "b k"], start: int) -> None:
    """Raise RequestError for rows that hold NaN or +inf, or only -inf: the largest logit shows each case."""
    fine = logits.amax(1).isfinite()
    if not bool(fine.all()):
        where = listed_rows(~fine, start)
        raise RequestError(f"logits hold NaN or +inf, or only -inf, in {where}; they have no softmax")


def refuse_no_distribution(rows: Float[Tensor, "b k"], start: int, dtype: torch.dtype) -> None:
    # Half-precision probabilities have been rounded to 3 digits before they are summed.
    tolerance = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-3
    sums = rows.sum(1)
    wrong = ~((sums - 1).abs() <= tolerance) | ~(rows.amin(1) >= 0)
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0, 0])
        raise RequestError(
            "each row of probabilities must be a distribution (no negative entry, sum 1); not so in"
            f" {listed_rows(wrong, start)} (the first sums to {float(sums[first]):g}, its smallest entry is"
            f" {float(rows[first].amin()):g}). From logits: objective.probabilities(logits), or their softmax"
        )
