"""Minimising F along a path of lambdas: L-BFGS whose memory survives the change of lambda.

The data term does not know lambda. So when lambda changes by d, everything already measured is brought to
the new objective exactly and at no cost: F += d/2 |W|^2, its gradient += d W, and each remembered pair
(step s, change of gradient y) becomes (s, y + d s_W). Thousands of passes of a cold start become a handful
per lambda.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from jaxtyping import Float

from penultimate.probes.arrays import Array, cast
from penultimate.probes.logistic import LogisticProblem

MEMORY = 20
SUFFICIENT = 1e-4
"""Of the decrease that the slope promises, the share that a step must deliver (Armijo)."""
ROUNDING = {"float32": 1e-6, "float64": 1e-13}
"""Changes of F below this share of it are rounding: they neither accept nor refuse a step."""
MARGIN = 0.9
"""The certificate is taken in other coordinates and in float64; a tenth is left to the difference."""


class Pair(NamedTuple):
    """A step, the change of gradient along it, and their inner product."""

    step: Float[Array, " d"]
    change: Float[Array, " d"]
    product: float


class Descent:
    """Where a minimisation stands: the point, F and its gradient there, and the curvature met on the way."""

    def __init__(self, problem: LogisticProblem, theta: Float[Array, " d"], penalty: float) -> None:
        self.problem, self.theta, self.penalty = problem, theta, penalty
        self.value, self.gradient = problem.evaluate(theta, penalty)
        self.pairs: deque[Pair] = deque(maxlen=MEMORY)

    def move(self, penalty: float) -> None:
        """Change lambda at the present point."""
        change, self.penalty = penalty - self.penalty, penalty
        weight, _ = self.problem.split(self.theta)
        slope, _ = self.problem.split(self.gradient)
        self.value += 0.5 * change * _square(weight)
        slope += change * weight
        kept = list(self.pairs)
        self.pairs.clear()
        for pair in kept:
            step_weight, _ = self.problem.split(pair.step)
            change_weight, _ = self.problem.split(pair.change)
            change_weight += change * step_weight
            self._remember(pair.step, pair.change)

    def jump(self, theta: Float[Array, " d"]) -> None:
        """Look at a predicted point: go there if F is lower; either way the curvature in between is known."""
        value, gradient = self.problem.evaluate(theta, self.penalty)
        self._remember(theta - self.theta, gradient - self.gradient)
        if value < self.value:
            self.theta, self.value, self.gradient = theta, value, gradient

    def run(self, tolerance: float, most_passes: int) -> bool:
        """Descend until the bound on (F - F*)/F* is within `tolerance`; False when it cannot be reached."""
        last = self.problem.passes + most_passes
        inverse = self.problem.preconditioner(self.penalty)
        while not self._within(MARGIN * tolerance, inverse):
            if not self._advance(self._direction(inverse), last):
                return False
            inverse = self.problem.preconditioner(self.penalty)
        return True

    def _within(self, tolerance: float, inverse: Float[Array, " d"]) -> bool:
        """F - F* <= |g_W|^2/(2 lambda) if g_b = 0; what g_b adds is only estimated here, for speed."""
        slope, intercept_slope = self.problem.split(self.gradient)
        _, intercept_inverse = self.problem.split(inverse)
        gap = _square(slope) / (2 * self.penalty)
        intercept_gap = 0.5 * float(intercept_slope @ (intercept_slope * intercept_inverse))
        return gap <= tolerance * (self.value - gap) and intercept_gap <= 0.01 * tolerance * self.value

    def _direction(self, inverse: Float[Array, " d"]) -> Float[Array, " d"]:
        """-H^-1 g by the two loops of L-BFGS (Nocedal, 1980); its first guess is the preconditioner.

        The guess is scaled to fit the newest pair: a diagonal from mean curvatures has the shape of the
        inverse Hessian, not its size.
        """
        direction = -self.gradient
        coefficients = []
        for step, change, product in reversed(self.pairs):
            coefficient = step @ direction / product
            coefficients.append(coefficient)
            direction -= coefficient * change
        direction *= inverse
        if self.pairs:
            _, change, product = self.pairs[-1]
            direction *= product / (change @ (inverse * change))
        for (step, change, product), coefficient in zip(self.pairs, reversed(coefficients), strict=True):
            direction += (coefficient - change @ direction / product) * step
        return direction

    def _advance(self, direction: Float[Array, " d"], last_pass: int) -> bool:
        """One step along `direction`, shortened until F decreases enough; False when no step does."""
        slope = float(self.gradient @ direction)
        length = 1.0
        while slope < 0 and self.problem.passes < last_pass:
            theta = self.theta + length * direction
            value, gradient = self.problem.evaluate(theta, self.penalty)
            rise = value - self.value
            if rise <= SUFFICIENT * length * slope + ROUNDING[self.problem.dtype] * self.value:
                self._remember(theta - self.theta, gradient - self.gradient)
                self.theta, self.value, self.gradient = theta, value, gradient
                return True
            shrunk = -0.5 * slope * length / (rise - slope * length) if math.isfinite(rise) else 0.1
            length *= min(0.5, max(0.1, shrunk))
            if length < 1e-10:
                break
        return False

    def _remember(self, step: Float[Array, " d"], change: Float[Array, " d"]) -> None:
        """Keep a pair unless rounding has destroyed its curvature, which convexity makes positive."""
        product = float(step @ change)
        scale = math.sqrt(float(step @ step) * float(change @ change))
        if product > ROUNDING[self.problem.dtype] * scale:
            self.pairs.append(Pair(step, change, product))


def _square(weight: Float[Array, "k r"]) -> float:
    flat = cast(weight, "float64").ravel()
    return float(flat @ flat)
