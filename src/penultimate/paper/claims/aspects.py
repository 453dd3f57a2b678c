"""The quantities that claims are about, with their names and the measurements that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from penultimate.data.catalog import SHARES, SHIFTS
from penultimate.paper import published
from penultimate.paper.arms import AUTOAUGMENT, COMBINATIONS, COSINE_DECAY, ONE_DRAW, SWEEP
from penultimate.report.quantity import Quantity

Aspect: TypeAlias = Literal[
    "accuracy",
    "train",
    "matched",
    "ece",
    "kinship",
    "separation",
    "separation_before",
    "fall",
    "linear",
    "knn",
    "shared",
    "relearned",
    "gap",
    "temperature",
    "fine_tuned",
    "robust",
    "likeness",
    "augmented",
    "combined",
    "active",
    "snapshots",
    "moved",
    "ensembles",
    "labels",
    "benchmarks",
    "few_labels",
]
Among: TypeAlias = Literal["objectives", "temperatures"]
"""What a claim ranks: the objectives that are compared, or the temperatures of the sweep."""

MEASURED_BY = "glyphs"
"""The study of this package that measures most of what the claims ask for."""
FRESH = "head=fresh"
"""The setting of fine-tuning that begins with a fresh final layer, as the paper's does."""
ELSEWHERE: dict[Aspect, str] = {
    "fine_tuned": "penultimate run evidence",
    "augmented": "penultimate run evidence",
    "combined": "penultimate run evidence",
    "snapshots": "penultimate run evidence",
    "moved": "penultimate run evidence",
    "labels": "penultimate run evidence",
    "benchmarks": "penultimate run evidence",
    "few_labels": "penultimate run few_labels",
}
"""The commands that measure the aspects that the study MEASURED_BY lacks."""
NAMES: dict[Aspect, str] = {
    "accuracy": "accuracy on the classes trained on",
    "train": "accuracy on the training images",
    "matched": "accuracy in the course of training",
    "ece": "calibration",
    "kinship": "agreement of predictions, over several seeds",
    "separation": "class separation",
    "separation_before": "class separation in the layers",
    "fall": "class separation in the course of training",
    "linear": "linear transfer",
    "knn": "kNN transfer",
    "shared": "linear transfer to classes of pretraining and to others",
    "relearned": "relearned heads",
    "gap": "relearned heads",
    "temperature": "cosine softmax at several temperatures",
    "fine_tuned": "fine-tuned networks",
    "robust": "accuracy on shifted test sets",
    "likeness": "likeness (CKA) of layers, two networks of each objective",
    "augmented": "accuracy and class separation under AutoAugment",
    "combined": "combinations of objectives",
    "active": "penultimate activations that are not zero",
    "snapshots": "linear transfer in the course of training",
    "moved": "likeness (CKA) of layers before and after fine-tuning",
    "ensembles": "ensembles of networks",
    "labels": "transfer to images of several labels",
    "benchmarks": "accuracy of further architectures",
    "few_labels": "transfer from five images a class",
}
QUANTITIES: dict[Aspect, Quantity] = {
    "accuracy": Quantity("top1"),
    "train": Quantity("top1", split="train"),
    "matched": Quantity("top1", over="epochs"),
    "ece": Quantity("ece", factor=1),
    "kinship": Quantity("agreement_same_when_both_wrong", or_arm=ONE_DRAW),
    "separation": Quantity("class_separation", "train"),
    "separation_before": Quantity("class_separation", over="layers"),
    "fall": Quantity("class_separation", "train", over="epochs"),
    "linear": Quantity("linear_{accuracy}", target="targets"),
    "knn": Quantity("knn_{accuracy}", target="targets"),
    "relearned": Quantity("relearn_top1", setting="shots"),
    "fine_tuned": Quantity("fine_tuned_{accuracy}", target="targets", setting=FRESH, optional=True),
    "robust": Quantity("top1", target="v2"),
    "likeness": Quantity("cka", over="layers", or_arm=ONE_DRAW),
    "combined": Quantity("top1", split="holdout", over="epochs"),
    "active": Quantity("nonzero_share", over="layers"),
    "snapshots": Quantity("linear_{accuracy}", target="targets", over="epochs", optional=True),
    "moved": Quantity("fine_tuned_cka", target="targets", setting=FRESH, over="layers", optional=True),
    "ensembles": Quantity("ensemble_top1", setting="models", or_arm=ONE_DRAW, optional=True),
    "labels": Quantity("multilabel_auc", target="targets", setting="label, uncertain", optional=True),
    "benchmarks": Quantity("top1", arm=COSINE_DECAY, optional=True),
    "few_labels": Quantity("few_ridge_{accuracy}", target="targets", setting="shots=5", optional=True),
}
"""The rows that hold an aspect, or from which it is computed; all other aspects follow from these."""
ORIGINAL = Quantity("relearn_original_top1", setting="shots", optional=True)
"""The accuracy of original heads on the images that score relearned ones, if these are other images."""
EDGES = Quantity("fine_tuned_edges", "train", target="targets", setting=FRESH, optional=True)
"""Whether the best cell of a grid of fine-tuning lies on the grid's edge, by objective and task."""
OF_SPLITS = {"test": "test ", "train": "training ", "holdout": "holdout "}
"""The words before an accuracy on a split of the pretraining data."""


def is_ratio(aspect: Aspect) -> bool:
    """Return whether an aspect lies between 0 and 1; all others are in per cent."""
    if aspect not in QUANTITIES:
        return aspect == "shared"
    return QUANTITIES[aspect].declared.unit == "ratio"


def unit_of(aspect: Aspect) -> str:
    """Return the unit in which a difference in an aspect is counted.

    >>> unit_of("train"), unit_of("linear"), unit_of("separation"), unit_of("shared")
    ('points of training accuracy', 'points of linear transfer', 'of R²', 'of ρ')
    """
    if aspect not in QUANTITIES:
        return "of ρ" if aspect == "shared" else "points"
    quantity = QUANTITIES[aspect]
    if is_ratio(aspect):
        return f"of {quantity.declared.called}"
    of_split = OF_SPLITS[quantity.split] if quantity.declared.metric == "top1" else ""
    return f"points of {of_split}{quantity.declared.called}"


SHARED: Mapping[str, float] = MappingProxyType(
    {
        "newfaces": 1.0,
        **SHARES,
        **{
            row["dataset"]: int(row["semantic_class_overlap_classes"]) / int(row["classes"])
            for row in published.printed("neurips_tableF1_class_overlap")
        },
    }
)
"""The share of a task's classes that are classes of pretraining; 0 for a task that is not listed.

Those of the paper's data sets are the paper's own, of its Table F.1: Pets 25 of 37, CIFAR-10 9 of 10."""
OF_THE_SWEEP: tuple[Aspect, ...] = ("accuracy", "separation", "linear")
"""The aspects that claims about temperatures take from the sweep."""
UNDER_AUGMENTATION: tuple[Aspect, ...] = ("accuracy", "separation")
"""The aspects that the claim about augmentation takes from its arm."""


def read_by_claims() -> tuple[Quantity, ...]:
    """Return every quantity that a verdict depends on."""
    return (
        *QUANTITIES.values(),
        ORIGINAL,
        Quantity("top1", split="train", over="epochs"),
        *(QUANTITIES[aspect].of_arm(SWEEP) for aspect in OF_THE_SWEEP),
        *(replace(QUANTITIES[aspect].of_arm(AUTOAUGMENT), optional=True) for aspect in UNDER_AUGMENTATION),
        *(Quantity("top1", target=shift) for shift in SHIFTS),
        replace(QUANTITIES["combined"].of_arm(COMBINATIONS), optional=True),
        EDGES,
    )
