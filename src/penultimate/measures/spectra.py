"""Singular values of activations, final weights and class centroids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penultimate.measures.declaration import Features, Head, Yield
from penultimate.measures.inputs import Arrays, Inputs
from penultimate.registry import register


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Head(on_features=True)),
    yields=(
        Yield(
            "singular_values",
            "points",
            {name: f"number {name}" for name in ("activations", "weights", "centroids")},
            words="The singular values of the activations, of the final weights and of the class centroids.",
        ),
    ),
    seconds=0.25,
    paper="Kornblith et al., 2021, figure E.2",
)
def spectra(inputs: Inputs) -> Iterator[Arrays]:
    """Singular values of the training images' activations, the final weights and the class centroids."""
    from penultimate.metrics.activations import class_centroids, singular_values

    bank = inputs.features("train")
    matrices: dict[str, Any] = {
        "activations": bank.features,
        "weights": inputs.applied_weight,
        "centroids": class_centroids(bank.features, bank.labels),
    }
    yield Arrays(
        "singular_values", {name: singular_values(matrix) for name, matrix in matrices.items()}, "train"
    )
