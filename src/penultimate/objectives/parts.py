"""The parts of an objective that no preset sets: a projector, a fixed head, regularisers (no tensor library).

Each is a function of its name that fills one slot; its hyperparameters are data here, with their ranges.
"""

from __future__ import annotations

from dataclasses import dataclass

from penultimate.objectives.hyperparameters import Hyperparameter, Interval

DEEPEST = 3
"""The most hidden layers of a projector."""


@dataclass(frozen=True)
class ObjectivePart:
    """A built-in function that fills one slot of an objective, under its own name in a spec string.

    `module` is where it is defined within `penultimate.objectives`; `paper` is where it comes from.
    """

    kind: str
    name: str
    label: str
    summary: str
    module: str
    paper: str
    hyperparameters: tuple[Hyperparameter, ...] = ()

    @property
    def location(self) -> str:
        return f"penultimate.objectives.{self.module}:{self.name}"


_NOT_NEGATIVE = Interval(low=0, closed="left")


def _weight(default: float) -> Hyperparameter:
    return Hyperparameter("weight", default, "what the regulariser is multiplied by", "weight", _NOT_NEGATIVE)


PARTS: dict[str, ObjectivePart] = {
    part.name: part
    for part in (
        ObjectivePart(
            "projector",
            "projector",
            "Projector",
            "Hidden layers between the penultimate features and the head, dropped after training.",
            "projectors",
            "Wang et al., CVPR 2022; Sariyildiz et al., ICLR 2023",
            (
                Hyperparameter(
                    "depth", 2, "how many hidden layers", "depth", Interval(0, DEEPEST, "both"), "integer"
                ),
                Hyperparameter("width", 512, "units of each", "width", Interval(1, closed="left"), "integer"),
            ),
        ),
        ObjectivePart(
            "fixed_head",
            "simplex_etf",
            "Simplex ETF",
            "A final layer that is not trained: a simplex equiangular tight frame, logits W x.",
            "fixed_heads",
            "Zhu et al., NeurIPS 2021",
            (Hyperparameter("scale", 1, "the length of each class's weight", "scale", Interval(low=0)),),
        ),
        ObjectivePart(
            "regulariser",
            "center_loss",
            "Center loss",
            "Half the squared distance of the features to their class's centre, which is learnt.",
            "regularisers",
            "Wen et al., ECCV 2016",
            (_weight(0.01),),
        ),
        ObjectivePart(
            "regulariser",
            "koleo",
            "KoLeo",
            "Minus the logarithm of the distance to the nearest other features, on the unit sphere.",
            "regularisers",
            "Sablayrolles et al., ICLR 2019",
            (_weight(0.1),),
        ),
        ObjectivePart(
            "regulariser",
            "entropy",
            "Entropy",
            "Minus the entropy of the features, estimated from distances to nearest neighbours.",
            "regularisers",
            "Harun et al., ICML 2025",
            (_weight(0.05),),
        ),
    )
}
"""The parts in the order in which features meet them."""
