"""The similarity of the predictions of two networks or two ensembles: rows of pairs, read into tables.

Such rows name a second network beside the first. Rows of two ensembles have no seeds, and their setting says
how many models vote in each ("models=5").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Missing, TableRow
from penultimate.report.measurements import LARGEST, Measurements, run_name
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.spec import Piece
from penultimate.report.text import counted, fixed

SEEDS_APART = (
    "Networks of one seed share their initial weights, and so are not independent runs: where a study has"
    " several seeds, the cells hold pairs of different seeds only; with one seed they hold what there is."
)
NEEDS_TWO = "needs two seeds"
MODELS = "models"
"""The setting that holds the number of models in an ensemble."""

Pairs: TypeAlias = dict[tuple[NetworkKey, NetworkKey], float]
"""The values of pairs of networks, or of ensembles, which are named by an objective without a seed."""


@dataclass(frozen=True)
class PairTable:
    """A table of means over pairs, with objectives as rows and columns.

    The label of the one quantity is the table's title. Its setting is "models" for pairs of ensembles, and
    then the largest ensembles are shown. `alone` says why a cell on the diagonal is empty. The word {models}
    in the title is the number of models in an ensemble; {of_models} puts it in brackets in captions.
    """

    name: str
    quantities: tuple[Quantity, ...]
    missing: str
    alone: str = NEEDS_TWO

    def build(self, measurements: Measurements) -> Piece:
        (quantity,) = self.quantities
        pairs = pairs_of(measurements, quantity)
        grouped = by_objectives(pairs)
        if not pairs:
            return Piece(missing=(Missing(self.missing),), words={"of_models": ""})
        models = counted(ensemble_size(measurements, quantity), "model")

        def cell(row: StudyObjective, column: StudyObjective) -> Cell:
            return pair_cell(between(grouped, row, column), self.alone if row is column else "not measured")

        title, objectives = quantity.label.format(models=models), present(measurements, pairs)
        table = square_table(self.name, title, objectives, cell, "{}_percent", "%")
        return Piece((table,), words={"of_models": f" ({models} each)"})


def square_table(
    name: str,
    title: str,
    objectives: Sequence[StudyObjective],
    cell: Callable[[StudyObjective, StudyObjective], Cell],
    key: str,
    unit: str = "",
) -> ExhibitTable:
    """Return a table of objectives against objectives; `key` names its columns, with braces for the slug."""
    columns = tuple(Column(key.format(each.slug), each.label, unit=unit) for each in objectives)
    rows = [
        (each.label, tuple(cell(each, column) for column in objectives), each.slug) for each in objectives
    ]
    return ExhibitTable(name, title, "Objective", columns, tuple(TableRow(*row) for row in rows))


def pairs_of(measurements: Measurements, quantity: Quantity, layer: str | None = None) -> Pairs:
    """Return the values of a quantity by pair of networks, or of the largest ensembles, in the study's order.

    With a layer, the values are of that layer in both. Raises RequestError for two values of one pair.
    """
    setting = f"{MODELS}={ensemble_size(measurements, quantity)}" if quantity.setting else None
    place = {objective.spec: index for index, objective in enumerate(measurements.objectives)}
    pairs: Pairs = {}
    for row in measurements.rows(quantity.metric, quantity.split).where(
        setting=setting, layer=layer, layer_b=layer
    ):
        pair = [
            NetworkKey(str(row.objective), seed=row.seed),
            NetworkKey(str(row.objective_b), seed=row.seed_b),
        ]
        if not {network.objective for network in pair} <= {*place} or not abs(row.value) <= LARGEST:
            continue
        first, second = sorted(pair, key=lambda network: (place[network.objective], network.seed or 0))
        if pairs.setdefault((first, second), row.value) != row.value:
            named = " and ".join(f"'{key.objective}', {run_name(key.seed)}" for key in (first, second))
            raise RequestError(f"two values of {quantity.metric} of one pair: {named}")
    return pairs


def ensemble_size(measurements: Measurements, quantity: Quantity) -> int:
    """Return the number of models in the largest measured ensembles, or 0 if there are none.

    Ensembles of mixed objectives take precedence.
    """
    every = measurements.rows(quantity.metric, quantity.split)
    rows = [row for row in every if row.settings.get(MODELS, "").isdecimal()]
    mixed = [row for row in rows if row.objective != row.objective_b]
    return max((int(row.settings[MODELS]) for row in mixed or rows), default=0)


def by_objectives(pairs: Pairs) -> dict[frozenset[str], Pairs]:
    """Return pairs grouped by the objectives of their networks, for `between`."""
    grouped: dict[frozenset[str], Pairs] = {}
    for (a, b), value in pairs.items():
        grouped.setdefault(frozenset((a.objective, b.objective)), {})[a, b] = value
    return grouped


def between(
    grouped: Mapping[frozenset[str], Pairs], row: StudyObjective, column: StudyObjective
) -> list[float]:
    """Return the values of pairs of two objectives, only of different seeds if there are any.

    Networks of one seed share initial weights and training images, as two of one objective never do.
    """
    of_both = grouped.get(frozenset((row.spec, column.spec)), {})
    return [value for (a, b), value in of_both.items() if a.seed != b.seed] or list(of_both.values())


def pair_cell(values: Sequence[float], missing: str) -> Cell:
    """Return a cell of the mean of pairs' shares in per cent, or of the reason if there is none."""
    if not values:
        return Cell(MISSING, detail=missing)
    mean = 100 * math.fsum(values) / len(values)
    return Cell(fixed(mean, 1), mean, count=len(values), detail=f"mean of {counted(len(values), 'pair')}")


def present(
    measurements: Measurements, pairs: Iterable[tuple[NetworkKey, NetworkKey]]
) -> list[StudyObjective]:
    """Return the objectives that any pair with a number has, in the study's order."""
    specs = {network.objective for pair in pairs for network in pair}
    return [objective for objective in measurements.objectives if objective.spec in specs]
