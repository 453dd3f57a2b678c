"""How near class means and weights are to a simplex equiangular tight frame."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Head, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register

RATIOS = (
    "class_mean_norm_cv",
    "weight_norm_cv",
    "class_mean_cosine_std",
    "weight_cosine_std",
    "class_mean_etf_deviation",
    "weight_etf_deviation",
    "weight_class_mean_distance_sq",
    "trace_sw_pinv_sb_over_c",
)
"""Fields of `neural_collapse`, one a column of table E.2; their metrics begin with "nc_"."""


@register.measurement(
    version=2,
    per="network",
    needs=(Logits("train"), Head()),
    yields=(
        *(Yield(f"nc_{name}", "ratio") for name in RATIOS),
        Yield("nc4", "fraction"),
        Yield("nc_rank", "count"),
    ),
    seconds=0.22,
    paper="Kornblith et al., 2021, table E.2",
)
def collapse(inputs: Inputs) -> Iterator[Number]:
    """How near class means and weights of the training images are to a simplex ETF (neural collapse)."""
    from penultimate.metrics.collapse import neural_collapse

    bank = inputs.features("train")
    # The network's own predictions: a cosine head's are not those of W x + b.
    measured = neural_collapse(
        bank.features, bank.labels, inputs.applied_weight, predictions=bank.predictions
    )
    for name in RATIOS:
        yield Number(f"nc_{name}", getattr(measured, name), "ratio", "train")
    assert measured.nc4 is not None  # which it is where there are predictions
    yield Number("nc4", measured.nc4, "fraction", "train")
    yield Number("nc_rank", measured.rank, "count", "train")
