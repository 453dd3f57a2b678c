"""How close class means and weights are to a simplex equiangular tight frame."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import ClassOrder, Head, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register

RATIOS = {
    "class_mean_norm_cv": "inequality of the class means' lengths",
    "weight_norm_cv": "inequality of the weights' lengths",
    "class_mean_cosine_std": "inequality of the angles between class means",
    "weight_cosine_std": "inequality of the angles between weights",
    "class_mean_etf_deviation": "distance of class means from a simplex",
    "weight_etf_deviation": "distance of weights from a simplex",
    "weight_class_mean_distance_sq": "distance of weights from class means",
    "trace_sw_pinv_sb_over_c": "spread within classes beside that between them (NC1)",
}
"""The fields of `neural_collapse`, one for each column of table E.2; their metrics begin with "nc_"."""


@register.measurement(
    version=2,
    per="network",
    needs=(Logits("train"), Head(on_features=True), ClassOrder()),
    yields=(
        *(Yield(f"nc_{name}", "ratio", called=called) for name, called in RATIOS.items()),
        Yield("nc4", "fraction", called="disagreement with the nearest class mean (NC4)"),
        Yield("nc_rank", "count"),
    ),
    seconds=0.22,
    paper="Kornblith et al., 2021, table E.2",
)
def collapse(inputs: Inputs) -> Iterator[Number]:
    """How close class means and weights are to a simplex ETF on the training images (neural collapse)."""
    from penultimate.metrics.collapse import neural_collapse

    bank = inputs.features("train")
    # The network's own predictions are used, because a cosine head's are not those of W x + b.
    found = neural_collapse(bank, weight=inputs.applied_weight, predictions=bank.predictions)
    for name in RATIOS:
        yield Number(f"nc_{name}", getattr(found, name), "ratio", "train")
    assert found.nc4 is not None  # because predictions were given
    yield Number("nc4", found.nc4, "fraction", "train")
    yield Number("nc_rank", found.rank, "count", "train")
