"""How alike the predictions of two models, or of two ensembles, are: rows of pairs, read into tables.

Rows of two models have `objective`, `seed`, `objective_b`, `seed_b` and a metric of `METRICS`, split "test".
Rows of two ensembles have no seeds, and in the column `layer` how many models vote in each, as text: "8".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penultimate.errors import RequestError
from penultimate.report.exhibits.base import MISSING, Cell, Column, ExhibitTable, StudyResults, TableRow
from penultimate.report.exhibits.measurements import Measurements, Objective, admit_compared
from penultimate.report.text import counted, fixed
from penultimate.table import Row, Table

SEEDS_APART = (
    "Networks of one seed share their first weights and training images. So where a study has several seeds,"
    " the cells hold pairs of different seeds only; with one seed they hold what there is."
)
METRICS = {
    "agreement_same_when_both_wrong": "Same prediction, of the images that both get wrong, %",
    "agreement_same": "Same prediction, of all images, %",
    "agreement_both_right_or_wrong": "Both right or both wrong, of all images, %",
}
"""The three ways in which the paper compares predictions, the one of its figure C.4 first."""


class Model(NamedTuple):
    """A trained network; of an ensemble, whose models are of one objective, the seed is None."""

    spec: str
    seed: int | None


Pairs = dict[tuple[Model, Model], float]


@dataclasses.dataclass(frozen=True)
class Likeness:
    """A study's rows of pairs, and the measurements without them."""

    measurements: Measurements
    rows: tuple[Row, ...]

    def pairs(self, metric: str, layer: str | None = None) -> Pairs:
        """The values of a metric by pair of models, or of ensembles of `layer` models, in the study's order.

        Raises RequestError for two values of one pair.
        """
        place = {objective.spec: index for index, objective in enumerate(self.measurements.objectives)}
        found: Pairs = {}
        for row in self.rows:
            if row.metric != metric or row.layer != layer or not math.isfinite(row.value):
                continue
            if (layer is None) != (row.seed is not None and row.seed_b is not None):
                continue
            models = [Model(str(row.objective), row.seed), Model(str(row.objective_b), row.seed_b)]
            models.sort(key=lambda model: (place[model.spec], model.seed or 0))
            if found.setdefault((models[0], models[1]), row.value) != row.value:
                raise RequestError(f"two values of {metric} of one pair of models: {models[0]}, {models[1]}")
        return found

    def sizes(self, metric: str) -> list[int]:
        """How many models vote in the ensembles that were measured, the most last."""
        found = {row.layer for row in self.rows if row.metric == metric and row.layer}
        return sorted(int(layer) for layer in found if layer.isdecimal())


def admit_likeness(results: StudyResults, allow_limited: bool = False) -> Likeness:
    """The rows of pairs, and apart from them all others, admitted; raises RequestError as `admit` does.

    Of a temperature sweep none is kept but what `compared` keeps, and the rest is said in the notes.
    """
    pairs = [row for row in results.table if row.objective_b is not None]
    others = Table(row for row in results.table if row.objective_b is None)
    limited = bool(results.description.get("limited")) or any(row.status == "limited" for row in pairs)
    description = {**results.description, "limited": limited}
    without = dataclasses.replace(results, description=description, table=others)
    measurements = admit_compared(without, allow_limited)
    known = {objective.spec for objective in measurements.objectives}
    kept = (
        row
        for row in pairs
        if row.split == "test"
        and row.status != "diverged"
        and {row.objective, row.objective_b} <= known
        and measurements.shows(row)
    )
    return Likeness(measurements, tuple(kept))


def mean_table(
    likeness: Likeness, pairs: Mapping[tuple[Model, Model], float], name: str, title: str, single: str
) -> ExhibitTable:
    """Objective by objective, the mean over pairs in per cent; `single` says why a diagonal cell is empty.

    Networks of one seed share their first weights and their training images, as two of one objective never
    do; so where there are pairs of different seeds, only those count.
    """
    objectives = present(likeness, pairs)
    columns = tuple(Column(f"{one.slug}_percent", one.label, unit="%") for one in objectives)
    rows = tuple(
        TableRow(one.label, tuple(_cell(pairs, one, other, single) for other in objectives), one.slug)
        for one in objectives
    )
    return ExhibitTable(name, title, "Objective", columns, rows)


def between(pairs: Mapping[tuple[Model, Model], float], one: Objective, other: Objective) -> list[float]:
    """The values of pairs of two objectives; where there are pairs of different seeds, of those only."""
    wanted = {one.spec, other.spec}
    own = {(a, b): value for (a, b), value in pairs.items() if {a.spec, b.spec} == wanted}
    return [value for (a, b), value in own.items() if a.seed != b.seed] or list(own.values())


def mean_cell(values: Sequence[float], missing: str) -> Cell:
    """The mean of pairs' shares in per cent; of none, why there is none."""
    if not values:
        return Cell(MISSING, detail=missing)
    mean = 100 * math.fsum(values) / len(values)
    return Cell(fixed(mean, 1), mean, count=len(values), detail=f"mean of {counted(len(values), 'pair')}")


def _cell(pairs: Mapping[tuple[Model, Model], float], one: Objective, other: Objective, single: str) -> Cell:
    return mean_cell(between(pairs, one, other), single if one is other else "not measured")


def present(likeness: Likeness, pairs: Mapping[tuple[Model, Model], float]) -> list[Objective]:
    """The objectives of which any pair has a number, in the study's order."""
    specs = {model.spec for pair in pairs for model in pair}
    return [one for one in likeness.measurements.objectives if one.spec in specs]
