"""A bound, in float64 and on the caller's own features, on how far F is from its minimum.

F is convex, and strongly so in W: with theta* the optimum and g = grad F(theta),

    F(theta*) >= F + <g_W, W* - W> + <g_b, b* - b> + lambda/2 |W* - W|^2,
    F - F*    <= |g_W|^2 / (2 lambda) + <g_b, b - b*>.                                                    (1)

Newton steps in b alone (K unknowns) make g_b vanish up to rounding; the rest is bounded, not ignored.
sum_k g_bk = 0, so <g_b, v> <= |g_b|_1 spread(v)/2, where spread(v) = max v - min v. And b* cannot be large:
let the features be centred and R be the length of the longest. A class k has an example i; its cross-entropy
is at most F* <= F and at least z_il - z_ik for any l; |W*|_F^2 <= 2 F/lambda; so

    b*_l - b*_k <= F + |w*_k - w*_l| |x_i| <= F + sqrt(2) |W*|_F R <= F + 2 R sqrt(F/lambda) =: B,
    F - F*      <= |g_W|^2 / (2 lambda) + |g_b|_1 (spread(b) + B)/2.                                      (2)

The certificate is (2) divided by the lower bound of F* that it gives.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from penultimate.probes.arrays import Array, NumpyFloats, beside, counting, empty, to_numpy, zeros
from penultimate.probes.logistic import residuals
from penultimate.probes.rows import Rows, in_order

INTERCEPT_STEPS = 12
INTERCEPT_SHARE = 0.02
"""The intercept is improved until its term in (2) is below this share of the tolerance."""


class Certificate(NamedTuple):
    """F at (W, b), the improved b, and a bound on (F - F*)/F*."""

    objective: float
    intercept: Float[Array, " k"]
    gap: float


class Certifier:
    """Certificates for one training set; keeps its logits [k n] in float64 while computing one."""

    def __init__(
        self,
        features: Rows,
        codes: Int[Array, " n"],
        mean: Float[Array, " p"],
        radius: float,
        blocks: list[slice],
    ) -> None:
        self.features, self.codes, self.mean, self.radius, self.blocks = features, codes, mean, radius, blocks
        self.logits = empty((0, len(features)), "float64", features.home)

    def certify(
        self, weight: Float[Array, "k p"], intercept: Float[Array, " k"], penalty: float, tolerance: float
    ) -> Certificate:
        """Return the bound at W and the best b; `tolerance` sets how small g_b is made, not the bound itself.

        The features are used as they are: z = W x + b, and sum_i r_i (x_i - mu) = sum_i r_i x_i - g_b mu.
        """
        if len(self.logits) != len(weight):
            self.logits = empty((len(weight), len(self.features)), "float64", weight)

        def logits(block: slice) -> None:
            self.logits[:, block] = weight @ self.features.float64(block).T

        for _ in in_order(logits, self.blocks, weight):
            pass
        ridge = 0.5 * penalty * float(weight.ravel() @ weight.ravel())
        drift = weight @ self.mean
        intercept = self._solve_intercept(intercept, drift, ridge, penalty, tolerance)

        loss = 0.0
        slope = penalty * weight
        intercept_slope = 0.0 * intercept

        def derivatives(block: slice) -> tuple[float, Float[Array, "k p"], Float[Array, " k"]]:
            part = self.logits[:, block] + intercept[:, None]
            of_block = float(residuals(part, self.codes[block]).sum())
            return of_block, part @ self.features.float64(block), part.sum(1)

        for part in in_order(derivatives, self.blocks, weight):
            loss += part[0]
            slope += part[1]
            intercept_slope += part[2]
        slope -= intercept_slope[:, None] * self.mean
        objective = loss + ridge
        remainder = self._remainder(
            to_numpy(intercept_slope), to_numpy(intercept + drift), objective, penalty
        )
        gap = float(slope.ravel() @ slope.ravel()) / (2 * penalty) + remainder
        return Certificate(objective, intercept, gap / (objective - gap) if gap < objective else math.inf)

    def _remainder(
        self, slope: NumpyFloats, centered: NumpyFloats, objective: float, penalty: float
    ) -> float:
        """Return the contribution of g_b != 0 to (2); `centered` is the intercept for centred features."""
        bound = objective + 2 * self.radius * math.sqrt(objective / penalty)
        return 0.5 * float(abs(slope).sum()) * (float(np.ptp(centered)) + bound)

    def _solve_intercept(
        self,
        intercept: Float[Array, " k"],
        drift: Float[Array, " k"],
        ridge: float,
        penalty: float,
        tolerance: float,
    ) -> Float[Array, " k"]:
        """Minimise over b by Newton's method with W fixed; a step that raises the loss is halved.

        Near the optimum the loss changes by less than its rounding error, so there the gradient decides
        whether a step is accepted. A step v multiplies the gradient there by about spread(v), so the last
        step need not be evaluated.
        """
        best, step = intercept, 0.0 * intercept
        best_loss = best_size = math.inf
        for _ in range(INTERCEPT_STEPS):
            loss, slope, hessian = self._intercept_derivatives(best + step)
            size = float(abs(slope).sum())
            if not (loss < best_loss or (loss <= best_loss * (1 + 1e-12) and size < best_size)):
                step = step / 2
                continue
            best, best_loss, best_size = best + step, loss, size
            allowed = INTERCEPT_SHARE * tolerance * (loss + ridge)
            remainder = self._remainder(slope, to_numpy(best + drift), loss + ridge, penalty)
            newton = _newton_step(slope, hessian)
            step = beside(newton, intercept)
            if remainder * min(1.0, float(np.ptp(newton))) <= allowed:
                return best + step if remainder > allowed else best
        return best

    def _intercept_derivatives(self, intercept: Float[Array, " k"]) -> tuple[float, NumpyFloats, NumpyFloats]:
        """Return the loss and its gradient and Hessian in b.

        H = diag(sum_i q_i) - sum_i q_i q_i' has zero row sums, and its off-diagonal terms are sums of
        products of probabilities. The diagonal is computed from these terms, which avoids the cancellation
        in 1 - q_y.
        """
        classes = len(intercept)
        loss = 0.0
        slope = zeros((classes,), "float64", intercept)
        products = zeros((classes, classes), "float64", intercept)

        def derivatives(block: slice) -> tuple[float, Float[Array, " k"], Float[Array, "k k"]]:
            part = self.logits[:, block] + intercept[:, None]
            codes = self.codes[block]
            of_block, of_intercept = float(residuals(part, codes).sum()), part.sum(1)
            part[codes, counting(len(codes), part)] += 1
            return of_block, of_intercept, part @ part.T

        for part in in_order(derivatives, self.blocks, intercept):
            loss += part[0]
            slope += part[1]
            products += part[2]
        hessian = -to_numpy(products)
        np.fill_diagonal(hessian, 0)
        np.fill_diagonal(hessian, -hessian.sum(1))
        return loss, to_numpy(slope), hessian


def _newton_step(slope: NumpyFloats, hessian: NumpyFloats) -> NumpyFloats:
    """Return the Newton step -H^+ g.

    H is scaled to a unit diagonal, and a rank-one term removes its null vector (a constant added to all of
    b). The step is zero if every probability is 0 or 1 up to rounding: H then holds no information, and
    -H^+ g is not finite.
    """
    diagonal = hessian.diagonal()
    scale = np.sqrt(np.maximum(diagonal, 1e-30 * diagonal.max() + 1e-300))
    null = scale / np.linalg.norm(scale)
    matrix: npt.NDArray[np.float64] = hessian / np.outer(scale, scale) + np.outer(null, null)
    with contextlib.suppress(np.linalg.LinAlgError), np.errstate(over="ignore"):
        step = np.asarray(-np.linalg.solve(matrix, slope / scale) / scale)
        if np.isfinite(step).all():
            return step
    return np.zeros_like(slope)
