"""Class separation R^2 of the penultimate features, with three distances."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined, measured
from penultimate.registry import register

SEPARATION = Yield("class_separation", "ratio", called="R²")
UNBIASED = Yield("class_separation_unbiased", "ratio", called="unbiased R²")
DISTANCES = {
    "cosine": SEPARATION,
    "cosine_centered": Yield("class_separation_cosine_centered", "ratio", called="R² of centred features"),
    "euclidean": Yield("class_separation_euclidean", "ratio", called="R² of Euclidean distances"),
}


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Features("test")),
    yields=(*DISTANCES.values(), UNBIASED),
    first=True,
    seconds=0.12,
    paper="Kornblith et al., 2021, eq. 11 and table E.1",
)
def class_separation(inputs: Inputs) -> Iterator[Number | Undefined]:
    """How far apart the classes lie in the penultimate features (R^2), with three distances.

    For the cosine distance R^2 is also measured without bias, to compare splits that have different numbers
    of images per class.
    """
    from penultimate.metrics.separation import class_separation as measure

    for split in ("train", "test"):
        bank = inputs.features(split)
        for distance, each in DISTANCES.items():
            yield measured(each.metric, "ratio", split, measure, bank, distance=distance)
        yield measured(UNBIASED.metric, "ratio", split, measure, bank, unbiased=True)
