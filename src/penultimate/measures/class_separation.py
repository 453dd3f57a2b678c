"""Class separation R^2 of the penultimate features, by three distances."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

DISTANCES = {
    "cosine": "class_separation",
    "cosine_centered": "class_separation_cosine_centered",
    "euclidean": "class_separation_euclidean",
}
"""What R^2 is called by each distance."""


@register.measurement(
    version=1,
    per="network",
    needs=(Features("train"), Features("test")),
    yields=tuple(Yield(metric, "ratio") for metric in DISTANCES.values()),
    first=True,
    seconds=0.12,
    paper="Kornblith et al., 2021, eq. 11 and table E.1",
)
def class_separation(inputs: Inputs) -> Iterator[Number | Undefined]:
    """How far the classes lie apart in the penultimate features (R^2), by three distances."""
    from penultimate.metrics.separation import class_separation as measure

    for split in ("train", "test"):
        bank = inputs.features(split)
        for distance, metric in DISTANCES.items():
            try:
                yield Number(metric, measure(bank.features, bank.labels, distance=distance), "ratio", split)
            except UndefinedError as error:
                yield Undefined(f"{metric} ({split}): {error}")
