"""Which entries of a column are bold: those not significantly worse than its best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penultimate.errors import RequestError
from penultimate.statistics.summary import Runs, summarise, unit_of

LEVEL = 0.05


@dataclass(frozen=True)
class TTest:
    """t, its degrees of freedom, and the two-sided p."""

    t: float
    degrees_of_freedom: float
    p: float


def welch(first: Runs, second: Runs) -> TTest:
    """Welch's t-test: do two sets of runs, whose variances may differ, have the same mean?

    t = (m_1 - m_2) / sqrt(e_1^2 + e_2^2),    df = (e_1^2 + e_2^2)^2 / (e_1^4/(n_1 - 1) + e_2^4/(n_2 - 1))

    with means m and standard errors e; p is two-sided. Runs that do not vary at all differ with p = 0 or
    agree with p = 1. Raises RequestError when either has only one run.

    >>> from penultimate.statistics import Summary
    >>> sigmoid, softmax = Summary(77.2, 0.04, 8), Summary(77.0, 0.06, 8)
    >>> round(welch(sigmoid, softmax).p, 3)
    0.017

    Welch, 1947. The paper only says "t-test"; Welch's assumes least about the variances.
    """
    a, b = summarise(first), summarise(second)
    if a.is_single or b.is_single:
        raise RequestError("a t-test needs two runs or more of each; got one")
    unit = unit_of((a.standard_error, b.standard_error))
    errors = a.standard_error / unit, b.standard_error / unit
    variance = errors[0] ** 2 + errors[1] ** 2
    if variance == 0:
        same = a.mean == b.mean
        return TTest(0.0 if same else math.copysign(math.inf, a.mean - b.mean), a.n + b.n - 2, float(same))
    from scipy.special import stdtr

    share_a, share_b = errors[0] ** 2 / variance, errors[1] ** 2 / variance
    degrees = 1 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    t = (a.mean - b.mean) / unit / math.sqrt(variance)
    return TTest(t, degrees, 2 * float(stdtr(degrees, -abs(t))))


@dataclass(frozen=True)
class BoldSet:
    """The best of a column, its bold entries, the p of tested entries against the best, and a remark.

    `note` is empty or says what could not be tested.
    """

    best: tuple[str, ...]
    bold: frozenset[str]
    p_values: dict[str, float]
    note: str = ""

    def __contains__(self, name: object) -> bool:
        return name in self.bold


def bold(column: Mapping[str, Runs], higher_is_better: bool = True, level: float = LEVEL) -> BoldSet:
    """The entries whose mean is not significantly worse than the column's best (Welch's t-test, p < level).

    `column` maps names to runs or summaries. An entry with a single run cannot be tested: it is bold only
    when it is the best. Raises RequestError for an empty column or a level outside (0, 1).

    >>> from penultimate.statistics import Summary
    >>> top1 = {"softmax": Summary(77.0, 0.06, 8), "sigmoid": Summary(77.9, 0.05, 8)}
    >>> top1["cosine_softmax"] = Summary(77.9, 0.02, 8)
    >>> sorted(bold(top1).bold)
    ['cosine_softmax', 'sigmoid']
    >>> bold({"softmax": [77.0], "sigmoid": [77.9]}).note
    'only the best is bold: one run cannot be tested (softmax, sigmoid)'

    Kornblith et al., 2021, table 1.
    """
    summaries = {name: summarise(runs) for name, runs in column.items()}
    single = [name for name, summary in summaries.items() if summary.is_single]

    def p_value(name: str, best: str) -> float | None:
        if name in single or best in single:
            return None
        return welch(summaries[name], summaries[best]).p

    means = {name: summary.mean for name, summary in summaries.items()}
    return against_best(means, p_value, higher_is_better, level, untested(single, len(summaries)))


def against_best(
    means: Mapping[str, float],
    p_value: Callable[[str, str], float | None],
    higher_is_better: bool,
    level: float,
    note: str,
) -> BoldSet:
    """The bold set by any test `p_value(name, best)`; None stands for "cannot be tested"."""
    if not means:
        raise RequestError("the best of an empty column: at least one entry is needed")
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise RequestError(f"the level of a test lies between 0 and 1; got {level!r}")
    top = (max if higher_is_better else min)(means.values())
    best = tuple(name for name, value in means.items() if value == top)
    p_values = {}
    for name in means:
        tested = [p for rival in best if name not in best and (p := p_value(name, rival)) is not None]
        if tested:
            p_values[name] = max(tested)
    kept = {name for name, p in p_values.items() if p >= level}
    return BoldSet(best, frozenset(kept | set(best)), p_values, note)


def untested(single: list[str], entries: int) -> str:
    """The remark about entries with a single run, out of `entries`; empty if there are none."""
    if not single or entries == 1:
        return ""
    lead = "only the best is bold: one" if len(single) == entries else "one"
    return f"{lead} run cannot be tested ({', '.join(single)})"
