"""What the paper's claims speak of, in words and as quantities that a study measures."""

from __future__ import annotations

from typing import Literal, TypeAlias

from penultimate.report.quantity import SWEEP, Quantity, percent

Aspect: TypeAlias = Literal["accuracy", "separation", "linear", "knn", "relearned", "gap", "temperature"]
Among: TypeAlias = Literal["objectives", "temperatures"]
"""What a claim ranks: the objectives that are compared, or the temperatures of the sweep."""

MEASURED_BY = "glyphs"
"""The study of this package that measures everything the claims ask for."""
NAMES: dict[Aspect, str] = {
    "accuracy": "accuracy on the classes trained on",
    "separation": "class separation",
    "linear": "linear transfer",
    "knn": "kNN transfer",
    "relearned": "relearned heads",
    "gap": "relearned heads",
    "temperature": "cosine softmax at several temperatures",
}
QUANTITIES: dict[Aspect, Quantity] = {
    "accuracy": percent("top1"),
    "separation": Quantity("class_separation", "train"),
    "linear": percent("linear_{accuracy}", target="targets"),
    "knn": percent("knn_{accuracy}", target="targets"),
    "relearned": percent("relearn_top1", setting="shots"),
}
"""The rows that hold an aspect; the gap and the temperature follow from others."""
OF_THE_SWEEP: tuple[Aspect, ...] = ("accuracy", "separation", "linear")
"""What claims about temperatures read of the sweep."""


def read_by_claims() -> tuple[Quantity, ...]:
    """Every quantity that a verdict depends on."""
    return (
        *QUANTITIES.values(),
        *(QUANTITIES[aspect].of_arm(SWEEP) for aspect in OF_THE_SWEEP),
    )
