"""Averages over data sets, compared by a two-way analysis of variance (objective x data set)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.errors import RequestError
from penultimate.statistics.summary import summarise

Cells: TypeAlias = Mapping[str, Mapping[str, Iterable[float]]]
"""The runs of each objective (outer names) on each data set (inner names)."""


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

    Let m_ad be the mean of the n_ad runs of objective a on data set d, A and D the numbers of objectives and
    data sets, and N the number of runs. Then

        M_a = mean_d m_ad,    w_a = D^2 / sum_d (1/n_ad),    M = sum_a w_a M_a / sum_a w_a
        F = [ sum_a w_a (M_a - M)^2 / (A - 1) ] / [ sum_adr (y_adr - m_ad)^2 / (N - A D) ]

    which is the classical F if all cells have the same size, and its type III form otherwise. With one run in
    every cell the interaction of objective and data set is the error, and `error` is "interaction" instead of
    "within cells".

    Raise RequestError if an objective lacks a data set (the error names it), if there are fewer than two
    objectives, or if each objective has a single run on a single data set, which leaves no error term.

    >>> softmax = {"food": [1.0, 2.0], "cars": [5.0, 6.0]}
    >>> two_way_anova({"softmax": softmax, "sigmoid": {"food": [2.0, 3.0], "cars": [6.0, 7.0]}})
    Anova(f=4.0, degrees_of_freedom=1, error_degrees_of_freedom=4, p=0.116..., error='within cells')

    Kornblith et al., 2021, the averages of tables 1 and 2.
    """
    import numpy as np
    from scipy.special import fdtrc

    datasets = list(dict.fromkeys(name for row in cells.values() for name in row))
    runs = {name: {of: list(values) for of, values in row.items()} for name, row in cells.items()}
    for name, row in runs.items():
        for dataset in datasets:
            if not row.get(dataset):
                raise RequestError(
                    f"objective '{name}' has no run on '{dataset}': averages would compare unlike things"
                )
    if len(runs) < 2 or not datasets:
        raise RequestError(
            f"an analysis of variance compares two objectives or more; got {len(runs) or 'none'}"
        )
    table = [[summarise(row[dataset]) for dataset in datasets] for row in runs.values()]
    means = np.array([[cell.mean for cell in row] for row in table])
    sizes = np.array([[cell.n for cell in row] for row in table])
    averages, weights = means.mean(1), sizes.shape[1] ** 2 / (1 / sizes).sum(1)
    middle = np.average(averages, weights=weights)
    degrees = len(runs) - 1
    effect = float(weights @ (averages - middle) ** 2) / degrees
    error, error_degrees = "within cells", int(sizes.sum() - sizes.size)
    if error_degrees:
        squares = math.fsum(
            cell.standard_error**2 * cell.n * (cell.n - 1) for row in table for cell in row if cell.n > 1
        )
    else:
        error, error_degrees = "interaction", degrees * (len(datasets) - 1)
        squares = float(((means - averages[:, None] - means.mean(0) + middle) ** 2).sum())
    if not error_degrees:
        raise RequestError(
            "one run of each objective on one data set: nothing to measure a difference against"
        )
    if squares == 0:
        return Anova(math.inf if effect else 0.0, degrees, error_degrees, 0.0 if effect else 1.0, error)
    f = effect / (squares / error_degrees)
    return Anova(f, degrees, error_degrees, float(fdtrc(degrees, error_degrees, f)), error)
