"""Class separation R^2 of the penultimate features, with three distances."""

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
"""The name of R^2 with each distance."""
UNBIASED = "class_separation_unbiased"
"""The name of R^2 with the cosine distance, without the pairs of an image with itself."""
MEANING = (
    "How much of the spread of the features lies between classes, not within them: 0 when classes"
    " lie on top of each other, 1 when each class is a single point"
)
SEPARATION = Yield(
    DISTANCES["cosine"],
    "ratio",
    words=f"{MEANING}. μ is the mean over a class of the features scaled to length one.",
    called="R²",
)
OTHER_DISTANCES = (
    Yield(
        DISTANCES["cosine_centered"],
        "ratio",
        words=f"{MEANING}; the features are centred before they are scaled to length one.",
        called="R² of centred features",
    ),
    Yield(
        DISTANCES["euclidean"],
        "ratio",
        words=f"{MEANING}; distances are Euclidean, and the features keep their lengths.",
        called="R² of Euclidean distances",
    ),
)
UNBIASED_SEPARATION = Yield(
    UNBIASED,
    "ratio",
    words=f"{MEANING}; it does not depend on how many images a class has.",
    called="unbiased R²",
)


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Features("test")),
    yields=(SEPARATION, *OTHER_DISTANCES, UNBIASED_SEPARATION),
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

    asked = [(distance, metric, False) for distance, metric in DISTANCES.items()]
    for split in ("train", "test"):
        bank = inputs.features(split)
        for distance, metric, unbiased in (*asked, ("cosine", UNBIASED, True)):
            try:
                value = measure(bank.features, bank.labels, distance, unbiased=unbiased)
            except UndefinedError as error:
                yield Undefined(f"{metric} ({split}): {error}")
            else:
                yield Number(metric, value, "ratio", split)
