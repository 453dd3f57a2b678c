"""Distributions within the features: angles to the weights, cosine distances, singular values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penultimate.measures.declaration import ClassOrder, Features, Head, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

MATRICES = ("activations", "weights", "centroids")


@register.measurement(
    version=1,
    per="network",
    needs=(Features("test"), Head(on_features=True), ClassOrder()),
    yields=(
        Yield("angular_visual_hardness", "ratio"),
        Yield("hardness_density", "points", ("points", "density")),
    ),
    seconds=0.18,
    paper="Kornblith et al., 2021, figure E.1",
)
def hardness(inputs: Inputs) -> Iterator[Number | Arrays]:
    """The angle to the own class's weight as a share of the angles to all classes: its mean and density."""
    from penultimate.metrics.hardness import angular_visual_hardness, hardness_density

    bank, weight = inputs.features("test"), inputs.head_weight
    scores = angular_visual_hardness(bank.features, bank.labels, weight)
    yield Number("angular_visual_hardness", float(scores.mean()), "ratio", "test")
    yield Arrays("hardness_density", hardness_density(scores, len(weight))._asdict(), "test")


@register.measurement(
    version=1,
    per="network",
    needs=(Features("train"),),
    yields=(
        Yield("cosine_distance_within", "distance"),
        Yield("cosine_distance_between", "distance"),
        Yield("cosine_distance_density", "points", ("points", "within", "between")),
    ),
    ranges={"count": Interval(2, closed="left"), "seed": Interval(0, 2**63, "left")},
    seconds=0.94,
    paper="Kornblith et al., 2021, figure E.3",
)
def distances(inputs: Inputs, *, count: int = 10_000, seed: int = 0) -> Iterator[Number | Arrays]:
    """The cosine distances between training images of the same class and of two classes: means, densities."""
    from penultimate.metrics.activations import cosine_distances

    found = cosine_distances(inputs.features("train"), None, count, seed)
    yield Number("cosine_distance_within", found.mean_within, "distance", "train")
    yield Number("cosine_distance_between", found.mean_between, "distance", "train")
    densities = {"points": found.points, "within": found.within, "between": found.between}
    yield Arrays("cosine_distance_density", densities, "train")


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Head(on_features=True)),
    yields=(Yield("singular_values", "points", MATRICES),),
    seconds=0.25,
    paper="Kornblith et al., 2021, figure E.2",
)
def spectra(inputs: Inputs) -> Iterator[Arrays]:
    """Singular values of the training images' activations, the final weights and the class centroids."""
    from penultimate.metrics.activations import class_centroids, singular_values

    bank = inputs.features("train")
    matrices: tuple[Any, ...] = (bank.features, inputs.applied_weight, class_centroids(bank))
    values = {name: singular_values(each) for name, each in zip(MATRICES, matrices, strict=True)}
    yield Arrays("singular_values", values, "train")
