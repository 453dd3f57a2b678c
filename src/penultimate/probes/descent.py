"""Minimising F along a path of lambdas: L-BFGS whose memory survives the change of lambda.

The data term does not depend on lambda. So when lambda changes by d, everything measured so far carries over
to the new objective exactly and at no cost: F += d/2 |W|^2, its gradient += d W, and each remembered pair
(step s, change of gradient y) becomes (s, y + d s_W). The thousands of passes of a cold start become a
handful per lambda.
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
"""A step must achieve at least this share of the decrease that the slope predicts (Armijo's condition)."""
ROUNDING = {"float32": 1e-6, "float64": 1e-13}
"""Changes of F smaller than this share of F are rounding: they neither accept nor reject a step."""
PATIENCE = 200
"""After this many steps that lower neither F nor its gradient, only rounding is assumed to be left."""
LEAST_COSINE = 1e-6
TINY = 1e-30
"""A pair with a smaller inner product has underflowed in float32 and is dropped."""
SHORTEST = 1e-10
MARGIN = 0.9
"""The descent aims for this share of the tolerance, because the certificate is computed in other coordinates
and in float64 and may come out slightly larger.
"""


class CurvaturePair(NamedTuple):
    """A step, the change of gradient along it, and their inner product."""

    step: Float[Array, " d"]
    change: Float[Array, " d"]
    product: float


class Descent:
    """The state of a minimisation: a point, F and its gradient there, and the curvature observed so far."""

    def __init__(self, problem: LogisticProblem, theta: Float[Array, " d"], penalty: float) -> None:
        self.problem, self.theta, self.penalty = problem, theta, penalty
        self.value, self.gradient = problem.evaluate(theta, penalty)
        self.pairs: deque[CurvaturePair] = deque(maxlen=MEMORY)

    def move(self, penalty: float) -> None:
        """Change lambda and keep the current point."""
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
        """Move to a predicted point unless F is higher there; remember the observed curvature either way."""
        value, gradient = self.problem.evaluate(theta, self.penalty)
        self._remember(theta - self.theta, gradient - self.gradient)
        if value <= self.value * (1 + ROUNDING[self.problem.dtype]):
            self.theta, self.value, self.gradient = theta, value, gradient

    def run(self, tolerance: float, most_passes: int) -> bool:
        """Descend until the bound on (F - F*)/F* is within `tolerance`; return whether that succeeded."""
        last = self.problem.passes + most_passes
        inverse = self.problem.preconditioner(self.penalty)
        best_value = smallest = math.inf
        idle = 0
        while not self._within(MARGIN * tolerance, inverse):
            if not self._advance(self._direction(inverse), last):
                if not self.pairs:
                    return False
                self.pairs.clear()  # rounding has spoilt the memory: start again from here
                continue
            inverse = self.problem.preconditioner(self.penalty)
            slope, _ = self.problem.split(self.gradient)
            lower = self.value < best_value * (1 - ROUNDING[self.problem.dtype])
            idle = 0 if lower or _square(slope) < 0.9 * smallest else idle + 1
            if idle > PATIENCE:
                return False
            best_value, smallest = min(self.value, best_value), min(_square(slope), smallest)
        return True

    def _within(self, tolerance: float, inverse: Float[Array, " d"]) -> bool:
        """Return whether the bound on (F - F*)/F* is within the tolerance.

        F - F* <= |g_W|^2/(2 lambda) if g_b = 0; the contribution of g_b is only estimated here, for speed.
        """
        slope, intercept_slope = self.problem.split(self.gradient)
        _, intercept_inverse = self.problem.split(inverse)
        gap = _square(slope) / (2 * self.penalty)
        intercept_gap = 0.5 * float(intercept_slope @ (intercept_slope * intercept_inverse))
        return gap <= tolerance * (self.value - gap) and intercept_gap <= 0.01 * tolerance * self.value

    def _direction(self, inverse: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return -H^-1 g by the two-loop recursion of L-BFGS (Nocedal, 1980), started at the preconditioner.

        The preconditioner is scaled to fit the newest pair, because a diagonal made of mean curvatures has
        the shape of the inverse Hessian but not its size.
        """
        direction = -self.gradient
        coefficients = []
        for step, change, product in reversed(self.pairs):
            coefficient = step @ direction / product
            coefficients.append(coefficient)
            direction -= coefficient * change
        direction = self.problem.balanced(inverse * direction)
        if self.pairs:
            _, change, product = self.pairs[-1]
            direction *= product / float(change @ self.problem.balanced(inverse * change))
        for (step, change, product), coefficient in zip(self.pairs, reversed(coefficients), strict=True):
            direction += (coefficient - change @ direction / product) * step
        return direction

    def _advance(self, direction: Float[Array, " d"], last_pass: int) -> bool:
        """Take one step along `direction`, shortened until it is good enough; return False if none is.

        F must fall by a share of what its slope predicts. If F is level up to rounding, the slope at the new
        point decides: F is convex, so it has fallen if the slope is still negative (the approximate Wolfe
        condition of Hager & Zhang, 2005).
        """
        slope = float(self.gradient @ direction)
        length = 1.0
        while slope < 0 and self.problem.passes < last_pass and length > SHORTEST:
            theta = self.theta + length * direction
            value, gradient = self.problem.evaluate(theta, self.penalty)
            rise = value - self.value
            new_slope = float(gradient @ direction)
            level = rise <= ROUNDING[self.problem.dtype] * self.value
            if rise <= SUFFICIENT * length * slope or (level and new_slope <= -0.9 * slope):
                self._remember(theta - self.theta, gradient - self.gradient)
                self.theta, self.value, self.gradient = theta, value, gradient
                return True
            if level:
                shrunk = slope / (slope - new_slope)
            else:
                shrunk = -0.5 * slope * length / (rise - slope * length) if math.isfinite(rise) else 0.1
            length *= min(0.5, max(0.1, shrunk))
        return False

    def _remember(self, step: Float[Array, " d"], change: Float[Array, " d"]) -> None:
        """Keep the pair unless step and change are almost orthogonal: its curvature is then mere rounding."""
        product = float(step @ change)
        scale = math.sqrt(float(step @ step) * float(change @ change))
        if product > max(LEAST_COSINE * scale, TINY):
            self.pairs.append(CurvaturePair(step, change, product))


def _square(weight: Float[Array, "k r"]) -> float:
    flat = cast(weight, "float64").ravel()
    return float(flat @ flat)
