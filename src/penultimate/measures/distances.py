"""Cosine distances within and between classes."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register


@register.measurement(
    version=1,
    per="network",
    needs=(Features("train"),),
    yields=(
        Yield(
            "cosine_distance_within",
            "distance",
            words="The mean cosine distance between two images of one class.",
        ),
        Yield(
            "cosine_distance_between",
            "distance",
            words="The mean cosine distance between two images of different classes.",
        ),
        Yield(
            "cosine_distance_density",
            "points",
            dict.fromkeys(("points", "within", "between"), "number points"),
            words="How often each cosine distance occurs between images of one class and of two.",
        ),
    ),
    ranges={"count": Interval(2, closed="left"), "seed": Interval(0, 2**63, "left")},
    seconds=0.94,
    paper="Kornblith et al., 2021, figure E.3",
)
def distances(inputs: Inputs, *, count: int = 10_000, seed: int = 0) -> Iterator[Number | Arrays]:
    """The cosine distances between training images of the same class and of two classes: means, densities."""
    from penultimate.metrics.activations import cosine_distances

    bank = inputs.features("train")
    measured = cosine_distances(bank.features, bank.labels, count, seed)
    yield Number("cosine_distance_within", measured.mean_within, "distance", "train")
    yield Number("cosine_distance_between", measured.mean_between, "distance", "train")
    densities = {"points": measured.points, "within": measured.within, "between": measured.between}
    yield Arrays("cosine_distance_density", densities, "train")
