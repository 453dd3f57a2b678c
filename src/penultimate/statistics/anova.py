"""Averages over data sets, compared by a two-way analysis of variance (objective x data set)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.errors import RequestError
from penultimate.statistics.summary import numbers, summarise, unit_of

Cells: TypeAlias = Mapping[str, Mapping[str, Iterable[float]]]
"""The runs of each objective (outer names) on each data set (inner names)."""

EPSILON = 2**-52


@dataclass(frozen=True)
class Anova:
    """The main effect of the objective: F, its degrees of freedom, p, and the source of its error term."""

    f: float
    degrees_of_freedom: int
    error_degrees_of_freedom: int
    p: float
    error: str


def two_way_anova(cells: Cells) -> Anova:
    """Test whether the objectives differ in their average over the data sets.

    Let y_adr be run r of objective a on data set d, n_ad the number of runs in a cell, m_ad the cell means, A
    and D the numbers of objectives and data sets, and N the number of runs. Then

        M_a = mean_d m_ad,    w_a = D^2 / sum_d (1/n_ad),    M = sum_a w_a M_a / sum_a w_a
        F = [ sum_a w_a (M_a - M)^2 / (A - 1) ] / [ sum_adr (y_adr - m_ad)^2 / (N - A D) ]

    which is the classical F if all cells have the same size, and its type III form otherwise (every data set
    has equal weight). With one run in every cell there is no variation within cells; the interaction of
    objective and data set then takes its place, and `error` is "interaction" instead of "within cells".

    Raise RequestError if an objective lacks a data set (the error names it), if there are fewer than two
    objectives, or if each objective has a single run on a single data set, which leaves no error term.

    >>> softmax = {"food": [1.0, 2.0], "cars": [5.0, 6.0]}
    >>> two_way_anova({"softmax": softmax, "sigmoid": {"food": [2.0, 3.0], "cars": [6.0, 7.0]}})
    Anova(f=4.0, degrees_of_freedom=1, error_degrees_of_freedom=4, p=0.116..., error='within cells')

    Kornblith et al., 2021, the averages of tables 1 and 2.
    """
    runs = _runs(cells)
    objectives, datasets = list(runs), list(next(iter(runs.values())))
    A, D = len(objectives), len(datasets)
    if A < 2:
        raise RequestError(f"an analysis of variance compares two objectives or more; got {A}")
    # F does not depend on the unit of the values; in this unit their squares stay within the range of floats.
    middle = summarise([value for row in runs.values() for cell in row.values() for value in cell]).mean
    apart = [value - middle for row in runs.values() for cell in row.values() for value in cell]
    unit = unit_of([*apart, EPSILON * middle])
    runs = {a: {d: [value / unit for value in runs[a][d]] for d in datasets} for a in objectives}
    means = {a: {d: summarise(runs[a][d]).mean for d in datasets} for a in objectives}
    average = {a: math.fsum(means[a].values()) / D for a in objectives}
    weight = {a: D**2 / math.fsum(1 / len(runs[a][d]) for d in datasets) for a in objectives}
    grand = math.fsum(weight[a] * average[a] for a in objectives) / math.fsum(weight.values())
    effect = math.fsum(weight[a] * (average[a] - grand) ** 2 for a in objectives) / (A - 1)

    values = [(a, d, value) for a in objectives for d in datasets for value in runs[a][d]]
    error_degrees = len(values) - A * D
    if error_degrees:
        error = "within cells"
        squares = math.fsum((value - means[a][d]) ** 2 for a, d, value in values)
    else:
        error, error_degrees = "interaction", (A - 1) * (D - 1)
        column = {d: math.fsum(means[a][d] for a in objectives) / A for d in datasets}
        squares = math.fsum((value - average[a] - column[d] + grand) ** 2 for a, d, value in values)
    if not error_degrees:
        raise RequestError(
            "one run of each objective on one data set: nothing to measure a difference against"
        )
    if squares == 0:
        f, p = (math.inf, 0.0) if effect else (0.0, 1.0)
    else:
        from scipy.special import fdtrc

        f = effect / (squares / error_degrees)
        p = float(fdtrc(A - 1, error_degrees, f))
    return Anova(f, A - 1, error_degrees, p, error)


def _runs(cells: Cells) -> dict[str, dict[str, list[float]]]:
    """Return the cells as lists; raise RequestError unless every objective has runs on every data set."""
    runs = {
        a: {d: numbers(values, f"runs of '{a}' on '{d}'") for d, values in row.items()}
        for a, row in cells.items()
    }
    if not runs or not next(iter(runs.values())):
        raise RequestError("an average over data sets needs an objective and a data set; got none")
    datasets = list(dict.fromkeys(d for row in runs.values() for d in row))
    for a, row in runs.items():
        for d in datasets:
            if not row.get(d):
                raise RequestError(
                    f"objective '{a}' has no run on '{d}': averages would compare unlike things"
                )
    return runs
