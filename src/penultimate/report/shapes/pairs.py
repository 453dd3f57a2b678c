"""The similarity of the predictions of two networks or two ensembles: rows of pairs.

Such rows name a second network beside the first. Rows of two ensembles have no seeds, and their setting says
how many models vote in each ("models=5").
"""

from __future__ import annotations

from typing import TypeAlias

from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.report.measurements import LARGEST, Measurements, run_name
from penultimate.report.quantity import Quantity

MODELS = "models"
"""The setting that holds the number of models in an ensemble."""

Pairs: TypeAlias = dict[tuple[NetworkKey, NetworkKey], float]
"""The values of pairs of networks, or of ensembles, which are named by an objective without a seed."""


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
