"""Multinomial logistic regression as an objective to minimise, in coordinates that make descent fast.

    F(W, b) = sum_i CE(W x_i + b, y_i) + lambda/2 |W|_F^2          (the intercept b is free)

Let mu be the mean of the features and X - mu = U diag(s) V'. Then

    z = W x + b = (W V) (V'(x - mu)) + (b + W mu),        |W V|_F = |W|_F:

centring and rotating are exact changes of variable that neither move the optimum nor change the penalty
(standardising would). In these coordinates the features are uncorrelated, so a diagonal preconditioner knows
their true scales. Dividing all features by a common unit, x = unit x', W' = unit W, lambda' = lambda/unit^2,
is exact as well, and it keeps the numbers within the range of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float, Int

from penultimate.errors import RequestError
from penultimate.probes.arrays import (
    Array,
    NumpyInts,
    beside,
    blocks,
    cast,
    counting,
    empty,
    library,
    on_host,
    to_numpy,
    zeros,
)
from penultimate.probes.rows import Rows, in_order, stored

SHORTEST, LONGEST = 1e-130, 1e150
"""The range of the features' size whose squares stay in float64."""
LEAST_ROWS = 1024
BLOCK_LOGITS = {"host": 1 << 17, "device": 1 << 26}
"""The number of logits computed at once: on the host they fit a core's cache. Blocks have at least LEAST_ROWS
rows, because the matrix product of fewer is slow.
"""
BLOCK_FEATURES = {"host": 1 << 23, "device": 1 << 28}
"""The number of feature values that are read at once, in float64."""


def residuals(logits: Float[Array, "k n"], codes: Int[Array, " n"]) -> Float[Array, " n"]:
    """Turn logits into softmax residuals q - t, in place; return the cross-entropies.

    CE = log(1 + sum_{k != y} e^{z_k - z_y}) is computed with log1p: an example that is correct by a wide
    margin has a CE far below the rounding error of logsumexp(z) - z_y, and at small lambda the objective
    consists entirely of such examples. With m = max_k z_k - z_y >= 0 and o = sum_{k != y} e^{z_k - max z},
    this is m + log1p(o + expm1(-m)), which cannot overflow. For the same reason the label's residual q_y - 1
    is computed as minus the sum of the other residuals.
    """
    ops = library(logits)
    examples = counting(logits.shape[1], logits)
    largest = ops.amax(logits, 0)
    shortfall = largest - logits[codes, examples]
    logits -= largest
    ops.exp(logits, out=logits)
    logits[codes, examples] = 0
    others = logits.sum(0)
    excess = others + ops.expm1(-shortfall)
    logits /= 1 + excess
    logits[codes, examples] = -others / (1 + excess)
    return shortfall + ops.log1p(excess)


class LogisticProblem:
    """The objective F on one training set, in one dtype; its parameters are one flat vector, W by rows and b.

    `features` [n p] belong to the caller. A rotated copy [n r], r = min(n, p), is kept in a file if it is
    large. Everything else takes O(K r + block of logits) memory, and a pass costs 4 n r K flop.
    """

    def __init__(
        self,
        features: Rows,
        codes: NumpyInts,
        classes: int,
        dtype: str,
        each_pass: Callable[[], object] = lambda: None,
    ) -> None:
        self.examples, self.classes, self.dtype = len(features), classes, dtype
        home = features.home
        self.codes = beside(codes, home)
        place = "host" if on_host(home) else "device"
        rows = min(BLOCK_LOGITS[place] // classes, BLOCK_FEATURES[place] // features.shape[1])
        self.blocks = list(blocks(self.examples, max(LEAST_ROWS, rows)))
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean, self.rotation, variances = self._principal(features)
        self.rank = self.rotation.shape[1]
        self.unit: float = float(variances.max() / self.examples) ** 0.5
        _expect_squares(self.unit)
        self.variances = variances / self.unit**2
        self.longest_square = 0.0
        self.features = stored(self._rotated(features), (self.examples, self.rank), dtype, home)
        self.radius = self.longest_square**0.5
        self.passes, self.each_pass = 0, each_pass

    def _principal(
        self, features: Rows
    ) -> tuple[Float[Array, " p"], Float[Array, "p r"], Float[Array, " r"]]:
        """Return the mean, the principal axes, and the sum of squares along each axis, in float64."""
        ops = library(features.home)
        mean = sum(features.float64(block).sum(0) for block in self.blocks) / self.examples
        _expect_squares(float(abs(mean).max()), least=0)
        if self.examples <= features.shape[1]:
            # The row space is small and contains the optimum: a component of W outside it only adds cost.
            centered = features.float64(slice(0, self.examples)) - mean
            _, singular, axes = ops.linalg.svd(centered, full_matrices=False)
            return mean, axes.T, singular**2
        gram = zeros((features.shape[1], features.shape[1]), "float64", features.home)
        for block in self.blocks:
            centered = features.float64(block) - mean
            gram += centered.T @ centered
        _expect_squares(math.sqrt(float(gram.diagonal().max())))
        squares, rotation = ops.linalg.eigh(gram)
        return mean, rotation, ops.clip(squares, 0, None)

    def _rotated(self, features: Rows) -> Iterator[Float[Array, "_ r"]]:
        """Yield the features in the coordinates of the descent, block by block, and track the longest."""

        def work(block: slice) -> tuple[Float[Array, "_ r"], float]:
            with np.errstate(over="ignore", invalid="ignore"):
                rotated = (features.float64(block) - self.mean) @ self.rotation
                return cast(rotated / self.unit, self.dtype), float((rotated**2).sum(1).max())

        for rotated, square in in_order(work, self.blocks, features.home):
            self.longest_square = max(self.longest_square, square)
            yield rotated

    def split(self, theta: Float[Array, " d"]) -> tuple[Float[Array, "k r"], Float[Array, " k"]]:
        """Return W [k r] and b [k] as views of a flat vector."""
        weights = self.classes * self.rank
        return theta[:weights].reshape(self.classes, self.rank), theta[weights:]

    def start(self) -> Float[Array, " d"]:
        """Return the optimum at lambda = infinity: W = 0, b = the logarithms of the class frequencies."""
        theta = zeros((self.classes * (self.rank + 1),), "float64", self.mean)
        _, intercept = self.split(theta)
        counts = np.bincount(to_numpy(self.codes), minlength=self.classes)
        logs = np.log(counts / self.examples)
        intercept[:] = beside(logs - logs.mean(), self.mean)
        return cast(theta, self.dtype)

    def own_penalty(self, penalty: float) -> float:
        """Return lambda' = lambda/unit^2, the penalty for the features in the unit used here."""
        return float(penalty) / self.unit**2  # a NumPy scalar would raise float32 to float64

    def evaluate(self, theta: Float[Array, " d"], penalty: float) -> tuple[float, Float[Array, " d"]]:
        """Return F and its gradient at lambda' = `penalty` in one pass, and set `curvature` to the loss's."""
        self.passes += 1
        self.each_pass()
        ops = library(theta)
        weight, intercept = self.split(theta)
        gradient = ops.empty_like(theta)
        slope, intercept_slope = self.split(gradient)
        slope[:] = penalty * weight
        intercept_slope[:] = 0
        loss = 0.5 * penalty * float(cast(weight, "float64").ravel() @ cast(weight, "float64").ravel())
        curvature = ops.zeros_like(intercept)
        for part in in_order(lambda block: self._of_block(weight, intercept, block), self.blocks, theta):
            loss += part[0]
            slope += part[1]
            intercept_slope += part[2]
            curvature += part[3]
        self.curvature = curvature
        return loss, gradient

    def _of_block(
        self, weight: Float[Array, "k r"], intercept: Float[Array, " k"], block: slice
    ) -> tuple[float, Float[Array, "k r"], Float[Array, " k"], Float[Array, " k"]]:
        """Return a block's loss, its gradients in W and b, and its contribution to the curvature."""
        features = self.features[block]
        with np.errstate(over="ignore", invalid="ignore"):
            logits = weight @ features.T
            logits += intercept[:, None]
            loss = float(cast(residuals(logits, self.codes[block]), "float64").sum())
            size = abs(logits)
            return loss, logits @ features, logits.sum(1), (size * (1 - size)).sum(1)

    def preconditioner(self, penalty: float) -> Float[Array, " d"]:
        """Return the preconditioner: 1/(c_k s_j^2 + lambda) for W and 1/(n c_k) for b.

        Here c_k = mean_i q_ik (1 - q_ik) at the last evaluation. This would be the inverse diagonal of the
        Hessian if q(1 - q) were the same for all examples.
        """
        ops = library(self.mean)
        inverse = empty((self.classes * (self.rank + 1),), self.dtype, self.mean)
        weight, intercept = self.split(inverse)
        curvature = ops.clip(self.curvature, 1e-30, None)
        weight[:] = 1 / (curvature[:, None] * cast(self.variances, self.dtype) / self.examples + penalty)
        intercept[:] = 1 / curvature
        return inverse

    def balanced(self, theta: Float[Array, " d"]) -> Float[Array, " d"]:
        """Subtract the mean over classes from W and from b in place, and return the vector.

        That mean changes no probability. Nothing in F constrains the mean of b, so it would drift until the
        logits had no digits left. The mean of W is 0 at the optimum, and gradients have mean 0.
        """
        weight, intercept = self.split(theta)
        weight -= weight.mean(0)
        intercept -= intercept.mean()
        return theta

    def original(self, theta: Float[Array, " d"]) -> tuple[Float[Array, "k p"], Float[Array, " k"]]:
        """Return W and b in the caller's coordinates, in float64."""
        weight, intercept = self.split(self.balanced(cast(theta, "float64") + 0.0))
        weight = weight @ self.rotation.T / self.unit
        return weight, intercept - weight @ self.mean

    def rotated(self, weight: Float[Array, "k p"], intercept: Float[Array, " k"]) -> Float[Array, " d"]:
        """Return the flat vector of W and b from the caller's coordinates, projected on the row space."""
        theta = empty((self.classes * (self.rank + 1),), "float64", self.mean)
        weight_part, intercept_part = self.split(theta)
        weight_part[:] = weight @ self.rotation * self.unit
        intercept_part[:] = intercept + weight @ self.mean
        return cast(theta, self.dtype)


def _expect_squares(size: float, least: float = SHORTEST) -> None:
    """Raise RequestError if squares of features of this size overflow or underflow float64."""
    if not least <= size <= LONGEST:
        raise RequestError(
            f"X holds numbers whose squares leave float64 (their size is {size:g}, beyond {SHORTEST:g} to"
            f" {LONGEST:g}): scale it"
        )
