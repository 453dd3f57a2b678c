"""Scores of features on a task that predict transfer without a classifier: LogME, H-score, TransRate.

Let F [n m] be the features, Y [n k] the indicators of the classes, and F = U S V'. LogME and the H-score need
only the squares of S and the projections U'Y. They come from the covariance [m m] or, if there are fewer
examples than dimensions, from the Gram matrix of the examples [n n]. TransRate also needs the eigenvalues of
each class's covariance. Everything is computed in float64 on features with their mean subtracted, because its
strong direction would cost digits. LogME is defined on uncentred features, so the mean is added back for it.
"""

from __future__ import annotations

import math
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.checks import real_number
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import ArrayLike, Bank, Names, float64_blocks, labelled_features
from penultimate.metrics.moments import EPS, expect_classes, rounding

EPSILON = 1e-4
"""The distortion of TransRate's coding rate, as in the authors' code listing."""
STEP = math.log(10) / 20
"""The step of the grid over log t on which LogME's maximum is located."""
BELOW, ABOVE = 1e-18, 1e8
"""The grid of t reaches from the smallest s^2 times the first number to the largest s^2 times the second."""
HALVINGS = 20
"""The number of bisections. They leave 1e-7 of log t, where the evidence is flat to its last bit."""


def logme(features: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return the log evidence per example of linear regression on class indicators, averaged over classes.

    LogME = mean_c max_{a, b} log p(y_c | F, a, b) / n,    y_c = F w + N(0, 1/b),  w ~ N(0, 1/a)

    `features` are [n m] and `labels` [n] class indices or names, or a feature bank holds both; a class
    without examples does not count. As in the authors' definition, the features are not centred and there is
    no intercept. We maximise over t = a/b on a grid and refine its best point, whereas the authors stop
    after a few steps of a fixed-point iteration. The score does not change if the features are
    scaled or rotated.

    Raise RequestError for NaN or infinity (it lists the rows), labels that are not class indices, and unequal
    lengths; raise UndefinedError for a single class, and for features of rank less than n that determine the
    indicators to within rounding, because the evidence is then unbounded.

    >>> corners = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]
    >>> round(logme(corners, [0, 0, 1, 1]), 4), round(logme(corners, [0, 1, 0, 1]), 4)
    (-0.2148, -1.0583)

    You et al., ICML 2021, eq. 2 and algorithm 1.
    """
    return FeatureScores(features, labels).logme()


def h_score(features: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return the H-score: between-class variance relative to the overall covariance, shrunk by Ledoit-Wolf.

    H = (1 - a) tr(S_a^-1 S_B),    S_a = (1 - a) S + a tr(S)/m I,    S_B = sum_c n_c/n (mu_c - mu)(mu_c - mu)'

    S is the covariance of the features [n m], and a is its optimal shrinkage; classes are weighted by their
    number of examples. The score lies in [0, k - 1], and it does not change if the features are translated,
    scaled or rotated.

    Raise RequestError as `logme` does; raise UndefinedError for a single class, and for features that vary by
    less than their rounding.

    >>> corners = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]
    >>> round(h_score(corners, [0, 0, 1, 1]), 4), round(h_score(corners, [0, 1, 0, 1]), 4)
    (0.9861, 0.5935)

    Ibrahim et al., 2021, "Newer is not always better", eq. 4, after Bao et al., ICIP 2019, definition 2.
    """
    return FeatureScores(features, labels).h_score()


def transrate(features: ArrayLike | Bank, labels: Names | None = None, epsilon: float = EPSILON) -> float:
    """Return how many nats are saved in coding the features to within `epsilon` if their classes are known.

    R(Z) - sum_c n_c/n R(Z_c),    R(Z) = log det(I + Z'Z / (n epsilon)) / 2,    Z = F - mean F

    `features` are [n m] and `labels` [n]; the score is never negative. The authors' code listing gives all
    classes equal weight, which is the same if they have equal sizes. As there, features are not scaled, so
    the score depends on their scale relative to `epsilon`.

    Raise RequestError as `logme` does, and for an `epsilon` that is not positive; raise UndefinedError for a
    single class.

    >>> corners = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]
    >>> round(transrate(corners, [0, 0, 1, 1]), 4), round(transrate(corners, [0, 1, 0, 1]), 4)
    (0.041, 0.0207)

    Huang et al., ICML 2022, eqs. 4 and 5.
    """
    return FeatureScores(features, labels).transrate(epsilon)


class FeatureScores:
    """LogME, H-score and TransRate for the same features [n m] and labels [n], sharing most of their work.

    Errors are those of the functions `logme`, `h_score` and `transrate`.

    >>> scores = FeatureScores([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]], [0, 0, 1, 1])
    >>> round(scores.logme(), 4), round(scores.h_score(), 4)
    (-0.2148, 0.9861)
    """

    def __init__(self, features: ArrayLike | Bank, labels: Names | None = None) -> None:
        self._matrix, given = labelled_features(features, labels)
        present, self._classes, counts = torch.unique(given, return_inverse=True, return_counts=True)
        expect_classes(present.tolist(), "a score of features for a task")
        self._counts = counts.double()
        self._n, self._m = self._matrix.shape
        total = self._counts.new_zeros(self._m)
        longest = 0.0
        for _, block in float64_blocks(self._matrix):
            longest = max(longest, float(torch.linalg.vector_norm(block, dim=1).amax()))
            total += block.sum(0)
        self._scale = longest or 1.0
        self._mean = total / (self._n * self._scale)
        self._products, self._sums = self._moments()

    def logme(self) -> float:
        """Return the maximum log evidence per example of the regression on each class, averaged over classes.

        If noise and prior have the ratio t, then y ~ N(0, (FF' + t I)/a), and the best a is n over the misfit
        y'(FF' + t I)^-1 y. The only unknown left is t, and the evidence may have several maxima in it.
        """
        squares, projections = self._spectrum(self._mean)
        rank = projections.shape[1]
        squares, free = squares[len(squares) - rank :], self._n - rank
        explained = projections.square()
        left = (self._counts - explained.sum(1)).clamp_min(0) if free else 0 * self._counts
        if free and bool((left <= 64 * max(self._n, self._m) * EPS * self._counts).any()):
            raise UndefinedError(
                "LogME is undefined: the labels follow from the features to within rounding, and the evidence"
                " of regression without noise has no bound"
            )
        squares = squares / squares.amax() if rank else squares
        return float(_maximal_evidence(squares, explained, left, free).mean())

    def h_score(self) -> float:
        """Return the regularised H-score."""
        squares, projections = self._centred
        squares = squares[len(squares) - projections.shape[1] :]
        n, m = self._n, self._m
        variance = float(squares.sum()) / n
        length = variance + float(self._mean.square().sum())
        if variance <= rounding(self._matrix.dtype) * length:
            raise UndefinedError(
                f"the H-score is undefined: all {n} examples are equal to within the features' rounding"
            )
        overall = float(squares.square().sum()) / n**2
        apart = overall - variance**2 / m
        wavering = (self._fourth_moment() - overall) / n
        shrinkage = min(max(wavering / apart, 0.0), 1.0) if apart > 8 * EPS * overall else 0.0
        between = squares * (projections.square() / self._counts[:, None]).sum(0) / n
        shrunk = (1 - shrinkage) * squares / n + shrinkage * variance / m
        return (1 - shrinkage) * float((between / shrunk).sum())

    def transrate(self, epsilon: float = EPSILON) -> float:
        """Return TransRate with the distortion `epsilon`."""
        epsilon = real_number(epsilon, "epsilon", above=0)
        rate = self._coding_rate(self._centred[0], self._n, epsilon)
        order = self._classes.argsort(stable=True)
        for rows in order.split([int(count) for count in self._counts.tolist()]):
            points = self._matrix[rows].double() / self._scale - self._mean
            gram = points @ points.T if len(points) <= self._m else points.T @ points
            squares = torch.linalg.eigvalsh(gram)
            rate -= len(points) / self._n * self._coding_rate(squares, len(points), epsilon)
        return max(rate, 0.0)  # log det is concave, so a negative value is rounding

    def _coding_rate(self, squares: Float[Tensor, " r"], count: int, epsilon: float) -> float:
        """Return log det(I + Z'Z / (count epsilon)) / 2 from eigenvalues, by logarithms to avoid overflow."""
        logs = squares.clamp_min(0).log() + 2 * math.log(self._scale) - math.log(count) - math.log(epsilon)
        return float(torch.logaddexp(logs, torch.zeros_like(logs)).sum()) / 2

    def _moments(self) -> tuple[Tensor, Tensor | None]:
        """Return the centred points [n m], and None for the sums.

        If there are more points than dimensions, return their products [m m] and the sums of classes [k m].
        """
        if self._n <= self._m:
            return self._matrix.double() / self._scale - self._mean, None
        products = self._mean.new_zeros(self._m, self._m)
        sums = self._mean.new_zeros(len(self._counts), self._m)
        for start, block in float64_blocks(self._matrix):
            points = block.div_(self._scale).sub_(self._mean)
            products.addmm_(points.T, points)
            sums.index_add_(0, self._classes[start : start + len(points)], points)
        return products, sums

    def _fourth_moment(self) -> float:
        """Return the mean of |x - mu|^4."""
        total = 0.0
        for _, block in float64_blocks(self._matrix):
            total += float(block.div_(self._scale).sub_(self._mean).square_().sum(1).square_().sum())
        return total / self._n

    @cached_property
    def _centred(self) -> tuple[Tensor, Tensor]:
        return self._spectrum(torch.zeros_like(self._mean))

    def _spectrum(self, origin: Float[Tensor, " m"]) -> tuple[Tensor, Tensor]:
        """Return the squares of S in ascending order, and U'Y [k r] for the last r, which are above rounding.

        Both are those of the centred points, translated by `origin`.
        """
        if self._sums is None:
            points = self._products + origin
            squares, vectors = torch.linalg.eigh(points @ points.T)
            projections = vectors.new_zeros(len(self._counts), self._n).index_add_(0, self._classes, vectors)
        else:
            gram = torch.addr(self._products, origin, origin, alpha=self._n)
            squares, vectors = torch.linalg.eigh(gram)
            sums = torch.addr(self._sums, self._counts, origin)
            projections = sums @ vectors / squares.clamp_min(torch.finfo(torch.float64).tiny).sqrt()
        kept = squares > 8 * max(self._n, self._m) * EPS * squares.amax()
        return squares, projections[:, kept]


def _maximal_evidence(
    squares: Float[Tensor, " r"], explained: Float[Tensor, "k r"], left: Float[Tensor, " k"], free: int
) -> Float[Tensor, " k"]:
    """Return the largest log evidence per example of each class over x = log t.

    e(x) = log N(y; 0, (FF' + t I)/a) / n at the best a = n / M,    M = y'(FF' + t I)^-1 y
         = -(log(2 pi M / n) + 1 + log det(FF' + t I) / n) / 2

    The best place of a grid and the slope there give the step of the grid that holds the maximum, which is
    then bisected. The slope is half the difference between -d log M / dx and d log det / dx / n.
    """
    examples = len(squares) + free

    def evidence(misfit: Tensor, log_det: Tensor) -> Tensor:
        return -((2 * math.pi * misfit / examples).log() + 1 + log_det / examples) / 2

    # In the limit of infinite t the weights vanish; with as many directions as examples, t = 0 is one too.
    best = evidence(explained.sum(1) + left, left.new_zeros(()))
    if not free:
        best = torch.maximum(best, evidence((explained / squares).sum(1), squares.log().sum()))
    if not len(squares):
        return best
    low, high = math.log(BELOW * float(squares.amin())), math.log(ABOVE)
    grid = torch.arange(low, high, STEP, dtype=torch.float64, device=squares.device)
    t = grid.exp()
    inverse = (squares[:, None] + t).reciprocal()
    noise = left[:, None] / t
    misfit = explained @ inverse + noise
    falling = t * (explained @ inverse.square()) + noise
    slopes = falling / misfit - (t * inverse.sum(0) + free) / examples
    top = evidence(misfit, free * grid - inverse.log().sum(0)).argmax(1)
    rising = slopes.gather(1, top[:, None])[:, 0] > 0
    first = torch.where(rising, top, top - 1).clamp(0, len(grid) - 2)

    def at(x: Float[Tensor, " k"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Return the value and the slope of each class at its own x."""
        t = x.exp()
        inverse = (squares + t[:, None]).reciprocal()
        weighted = explained * inverse
        noise = left / t
        misfit = weighted.sum(1) + noise
        falling = t * torch.linalg.vecdot(weighted, inverse) + noise
        log_det = free * x - inverse.log().sum(1)
        return evidence(misfit, log_det), falling / misfit - (t * inverse.sum(1) + free) / examples

    starts, ends = grid[first], grid[first + 1]
    for _ in range(HALVINGS):
        middle = (starts + ends) / 2
        rises = at(middle)[1] > 0
        starts, ends = torch.where(rises, middle, starts), torch.where(rises, ends, middle)
    return torch.maximum(best, at((starts + ends) / 2)[0])
