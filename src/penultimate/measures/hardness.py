"""Angular visual hardness of the test images."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import ClassOrder, Features, Head, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.registry import register


@register.measurement(
    version=1,
    per="network",
    needs=(Features("test"), Head(on_features=True), ClassOrder()),
    yields=(
        Yield(
            "angular_visual_hardness",
            "ratio",
            words="The angle between an image's features and the weight of its class, as a share of"
            " the angles to all classes' weights.",
        ),
        Yield(
            "hardness_density",
            "points",
            {"points": "number points", "density": "number points"},
            words="How often each angular visual hardness occurs.",
        ),
    ),
    seconds=0.18,
    paper="Kornblith et al., 2021, figure E.1",
)
def hardness(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """The angle to the own class's weight as a share of the angles to all classes: its mean and density."""
    from penultimate.metrics.hardness import angular_visual_hardness, hardness_density

    bank = inputs.features("test")
    weight = inputs.head_weight
    scores = angular_visual_hardness(bank.features, bank.labels, weight)
    yield Number("angular_visual_hardness", float(scores.mean()), "ratio", "test")
    yield Arrays("hardness_density", hardness_density(scores, len(weight))._asdict(), "test")
