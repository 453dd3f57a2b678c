"""The regularisation path: one certified optimum per lambda, from the largest to the smallest.

In descending order each optimum is predicted from the previous ones: W is nearly linear in log lambda (on
separable data |W| grows like log 1/lambda), so the secant through the last two optima predicts the next. The
paper's ascending order would start cold at the hardest problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from jaxtyping import Float

from penultimate.probes.arrays import Array, NumpyFloats, NumpyInts, beside, to_numpy
from penultimate.probes.certificate import Certifier
from penultimate.probes.descent import Descent
from penultimate.probes.logistic import LogisticProblem
from penultimate.probes.rows import Rows

MOST_PASSES = {"float32": 3000, "float64": 10000}
"""The limit on passes per lambda. If float32 needs more, it is stuck in rounding, and float64 takes over."""
FEWEST_PASSES = 40
"""The lowest that the limit on passes falls: each optimum that float64 cannot certify divides it by ten."""
STRIDE = 10.0
ROUGH = 0.01
"""The tolerance of the optima on the way to the first requested lambda."""
ATTEMPTS = 10
FLOAT32_ATTEMPTS = 3
LARGEST_FLOAT32 = 1e15
"""The largest lambda whose square, times gradients, does not overflow float32."""


@dataclass(frozen=True)
class Optimum:
    """The solution at one lambda: W [k p] and b [k] in float64, F, a bound on (F - F*)/F*, passes used."""

    penalty: float
    weight: NumpyFloats
    intercept: NumpyFloats
    objective: float
    gap: float
    passes: int = 0


class Solver:
    """A solver for one training set, which starts each optimum from the previous one."""

    def __init__(
        self,
        features: Rows,
        codes: NumpyInts,
        classes: int,
        tolerance: float,
        each_pass: Callable[[], object] = lambda: None,
    ) -> None:
        self.features, self.codes, self.classes, self.tolerance = features, codes, classes, tolerance
        self.problem = LogisticProblem(features, codes, classes, features.dtype, each_pass)
        self.certifier = Certifier(
            features, self.problem.codes, self.problem.mean, self.problem.radius, self.problem.blocks
        )
        self.descent: Descent | None = None
        self.penalty = math.inf
        self.trail: list[tuple[float, Array]] = []
        self.passes = 0
        self.share = 1.0

    def start_at(self, weight: NumpyFloats, intercept: NumpyFloats, penalty: float) -> None:
        """Begin from a known W and b (in the caller's coordinates) instead of from W = 0."""
        self._expect_range(penalty)
        home = self.features.home
        self._restart(beside(weight, home), beside(intercept, home), penalty)

    def solve(self, penalty: float) -> Optimum:
        """Return the optimum at lambda = `penalty`, certified to `tolerance` if float64 is precise enough.

        A certificate fails if the best b differs from the descent's b, or if float32 has rounded too much
        away. The descent then continues from the best b with a tighter goal; if float32 does not reach it,
        the rest of the path is solved in float64. If float64 does not reach it either (because one example is
        10^12 times as far away as the others, say), the next lambdas will not fare better, so they may take
        fewer passes until one is certified again.
        """
        descent = self._approach(penalty)
        goal = self.tolerance
        best: Optimum | None = None
        for attempt in range(ATTEMPTS):
            reached = descent.run(goal, self._most_passes())
            weight, intercept = self.problem.original(descent.theta)
            objective, intercept, gap = self.certifier.certify(weight, intercept, penalty, self.tolerance)
            if best is None or gap <= best.gap:
                best = Optimum(penalty, to_numpy(weight), to_numpy(intercept), objective, gap)
            if gap <= self.tolerance:
                break
            if self.problem.dtype == "float32" and (attempt >= FLOAT32_ATTEMPTS or not reached):
                self._change_to_float64()
                descent = self._restart(weight, intercept, penalty)
                goal = self.tolerance
            elif reached:
                descent.jump(self.problem.rotated(weight, intercept))
                goal *= 0.5
            else:
                break
        assert best is not None
        self.share = 1.0 if best.gap <= self.tolerance else self.share / 10
        self._arrive(descent)
        total, self.passes = self.passes + self.problem.passes, 0
        self.problem.passes = 0
        return replace(best, passes=total)

    def _most_passes(self) -> int:
        most = MOST_PASSES[self.problem.dtype]
        return min(most, max(FEWEST_PASSES, int(self.share * most)))

    def _approach(self, penalty: float) -> Descent:
        """Return the descent, moved to the new lambda and to the predicted optimum.

        At a small lambda a separable problem is flat in all directions around a cold start. So the path
        starts at lambda = |X - mu|^2, where W = 0 is nearly the optimum, and lambda never changes by more
        than a factor STRIDE at once.
        """
        if self.descent is None:
            self._expect_range(penalty)
            self.penalty = max(penalty, len(self.features) * self.problem.unit**2)
            self.descent = Descent(self.problem, self.problem.start(), self.problem.own_penalty(self.penalty))
        while self.penalty > 1.001 * STRIDE * penalty:
            self._advance(self.descent, self.penalty / STRIDE)
            self.descent.run(ROUGH, self._most_passes())
            self._arrive(self.descent)
        self._advance(self.descent, penalty)
        return self.descent

    def _advance(self, descent: Descent, penalty: float) -> None:
        """Change lambda and move along the secant, in log lambda, through the last two optima."""
        self.penalty = penalty
        descent.move(self.problem.own_penalty(penalty))
        if len(self.trail) == 2:
            (older, before), (newer, last) = self.trail
            reach = math.log(penalty / newer) / math.log(newer / older)
            descent.jump(last + reach * (last - before))

    def _arrive(self, descent: Descent) -> None:
        self.trail = [*self.trail[-1:], (self.penalty, descent.theta)]

    def _restart(self, weight: Float[Array, "k p"], intercept: Float[Array, " k"], penalty: float) -> Descent:
        self.trail = []
        self.penalty = penalty
        theta = self.problem.rotated(weight, intercept)
        self.descent = Descent(self.problem, theta, self.problem.own_penalty(penalty))
        return self.descent

    def _expect_range(self, penalty: float) -> None:
        """Change to float64 if lambda, in the unit of the features, is too large for float32."""
        if self.problem.dtype == "float32" and self.problem.own_penalty(penalty) > LARGEST_FLOAT32:
            self._change_to_float64()

    def _change_to_float64(self) -> None:
        self.passes += self.problem.passes
        each_pass = self.problem.each_pass
        self.problem = LogisticProblem(self.features, self.codes, self.classes, "float64", each_pass)


def trace(
    features: Float[Array, "n p"],
    codes: NumpyInts,
    classes: int,
    penalties: Iterable[float],
    tolerance: float = 1e-4,
) -> Iterator[Optimum]:
    """Yield the certified optima at `penalties`, from the largest to the smallest.

    `features` [n p] are float32 or float64, and the descent runs in their dtype. `codes` [n] are class
    numbers 0..classes-1, and every class occurs.

    >>> import numpy as np
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> [round(optimum.objective, 2) for optimum in trace(features, np.array([0, 0, 1, 1]), 2, [1e3, 1.0])]
    [2.77, 1.53]
    """
    solver = Solver(Rows(features), codes, classes, tolerance)
    for penalty in sorted(set(penalties), reverse=True):
        yield solver.solve(float(penalty))
