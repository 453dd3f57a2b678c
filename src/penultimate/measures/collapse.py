"""How close class means and weights are to a simplex equiangular tight frame."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import ClassOrder, Head, Logits, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.registry import register

RATIOS = {
    "class_mean_norm_cv": (
        "How unequal the lengths of the class means are: their deviation beside their mean."
    ),
    "weight_norm_cv": (
        "How unequal the lengths of the classes' weights are: their deviation beside their mean."
    ),
    "class_mean_cosine_std": (
        "How unequal the angles between class means are: the deviation of their cosines."
    ),
    "weight_cosine_std": "How unequal the angles between weights are: the deviation of their cosines.",
    "class_mean_etf_deviation": (
        "How far the cosines of class means are from those of a simplex, in the mean."
    ),
    "weight_etf_deviation": "How far the cosines of weights are from those of a simplex, in the mean.",
    "weight_class_mean_distance_sq": "How far the weights are from the class means, both scaled alike.",
    "trace_sw_pinv_sb_over_c": "The spread within classes beside that between them (NC1).",
}
"""The fields of `neural_collapse`, one for each column of table E.2; their metrics begin with "nc_"."""
CALLED = {
    "class_mean_norm_cv": "inequality of the class means' lengths",
    "weight_norm_cv": "inequality of the weights' lengths",
    "class_mean_cosine_std": "inequality of the angles between class means",
    "weight_cosine_std": "inequality of the angles between weights",
    "class_mean_etf_deviation": "distance of class means from a simplex",
    "weight_etf_deviation": "distance of weights from a simplex",
    "weight_class_mean_distance_sq": "distance of weights from class means",
    "trace_sw_pinv_sb_over_c": "spread within classes beside that between them (NC1)",
}
"""What the fields are called in a sentence."""


@register.measurement(
    version=2,
    per="network",
    needs=(Logits("train"), Head(on_features=True), ClassOrder()),
    yields=(
        *(Yield(f"nc_{name}", "ratio", words=words, called=CALLED[name]) for name, words in RATIOS.items()),
        Yield(
            "nc4",
            "fraction",
            words="The share of images to which the nearest class mean and the network give"
            " different classes.",
            called="disagreement with the nearest class mean (NC4)",
        ),
        Yield(
            "nc_rank",
            "count",
            words="The rank of the spread between the class means, which NC1 is divided by.",
        ),
    ),
    seconds=0.22,
    paper="Kornblith et al., 2021, table E.2",
)
def collapse(inputs: Inputs) -> Iterator[Number | Undefined]:
    """How close class means and weights are to a simplex ETF on the training images (neural collapse)."""
    from penultimate.metrics.collapse import neural_collapse

    bank = inputs.features("train")
    # The network's own predictions are used, because a cosine head's are not those of W x + b.
    measured = neural_collapse(
        bank.features, bank.labels, inputs.applied_weight, predictions=bank.predictions
    )
    for name in RATIOS:
        yield Number(f"nc_{name}", getattr(measured, name), "ratio", "train")
    assert measured.nc4 is not None  # because predictions were given
    yield Number("nc4", measured.nc4, "fraction", "train")
    yield Number("nc_rank", measured.rank, "count", "train")
