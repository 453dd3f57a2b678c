"""Further scores of a task's features before any probe: collapse, ranks, intrinsic dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined, sample
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank

OF_CLASSES = {
    "cdnv": (
        "low",
        "CDNV",
        "CDNV: the variance within two classes beside the squared distance of their means, averaged over"
        " all pairs of classes.",
    ),
    "ncti_within": (
        "low",
        "NCTI's spread within classes",
        "The spread of predictions within classes, a term of NCTI: 0 where all images of a class are"
        " predicted alike.",
    ),
    "ncti_simplex": (
        "high",
        "NCTI's simplex",
        "How large the features are along the directions that tell classes apart, a term of NCTI.",
    ),
    "ncti_nearest": (
        "high",
        "NCTI's nearest centre",
        "How sure the nearest class centre is of the right class in the mean, a term of NCTI.",
    ),
}
OF_POINTS = {
    "rankme": (
        "dimensions",
        "RankMe",
        "RankMe: the exponential of the entropy of the shares of the singular values.",
    ),
    "stable_rank": (
        "dimensions",
        "stable rank",
        "The stable rank: the variance of the features beside that along their longest direction.",
    ),
    "alpha_req": (
        "ratio",
        "α-ReQ",
        "α-ReQ: how fast the variances along the features' directions fall, as a power of their rank.",
    ),
    "dimension_two_nn": (
        "dimensions",
        "intrinsic dimension (two-NN)",
        "The intrinsic dimension by the distances to the two nearest neighbours.",
    ),
    "dimension_mle": (
        "dimensions",
        "intrinsic dimension (MLE)",
        "The intrinsic dimension by maximum likelihood, from the 20 nearest neighbours.",
    ),
}
"""Yields by name: the unit, or which values promise transfer, what it is called, and its words."""


def _yields(before: str) -> tuple[Yield, ...]:
    return (
        *(
            Yield(f"{before}{name}", "ratio", better=better, words=words, called=called)  # type: ignore[arg-type]
            for name, (better, called, words) in OF_CLASSES.items()
        ),
        *(
            Yield(f"{before}{name}", unit, words=words, called=called, decimals=1 if unit != "ratio" else 2)
            for name, (unit, called, words) in OF_POINTS.items()
        ),
    )


PAPERS = (
    "Galanti et al., 2022; Wang et al., 2023; Garrido et al., 2023; Agrawal et al., 2022; Facco et al., 2017;"
    " Levina and Bickel, 2004"
)
RANGES = {
    "images": Interval(2, closed="left"),
    "points": Interval(5, closed="left"),
    "neighbours": Interval(2, closed="left"),
}


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"),),
    yields=_yields(""),
    ranges=RANGES,
    seconds=0.5,
    paper=PAPERS,
)
def compactness(
    inputs: Inputs, *, images: int = 20_000, points: int = 5000, neighbours: int = 20
) -> Iterator[Number | Undefined]:
    """CDNV, the terms of NCTI, RankMe, stable rank, α-ReQ and two intrinsic dimensions of a task's features.

    They are of the training images: NCTI of `images` of them at most, intrinsic dimensions of `points`,
    the same for all networks.
    """
    yield from _measured(inputs.features("train"), "", images, points, neighbours)


@register.measurement(
    version=1,
    per="network",
    needs=(Features("train"),),
    yields=_yields("source_"),
    ranges=RANGES,
    seconds=0.5,
    paper=PAPERS,
)
def source_compactness(
    inputs: Inputs, *, images: int = 20_000, points: int = 5000, neighbours: int = 20
) -> Iterator[Number | Undefined]:
    """The same as `compactness`, of the images that the network was trained on and their classes."""
    yield from _measured(inputs.features("train"), "source_", images, points, neighbours)


def _measured(
    bank: FeatureBank, before: str, images: int, points: int, neighbours: int
) -> Iterator[Number | Undefined]:
    from penultimate.metrics.dimension import intrinsic_dimension, spectrum_shape
    from penultimate.metrics.target_collapse import cdnv, ncti_terms

    def of_classes() -> dict[str, float | None]:
        chosen = sample(len(bank), images)
        terms = ncti_terms(bank.features[chosen], bank.labels[chosen])
        return {f"ncti_{name}": value for name, value in terms._asdict().items()}

    def of_spectrum() -> dict[str, float | None]:
        shape = spectrum_shape(bank.features)
        return {"rankme": shape.rankme, "stable_rank": shape.stable_rank, "alpha_req": shape.alpha}

    def of_neighbours() -> dict[str, float | None]:
        found = intrinsic_dimension(bank.features[sample(len(bank), points)], neighbours)
        return {"dimension_two_nn": found.two_nn, "dimension_mle": found.mle}

    units = dict.fromkeys(OF_CLASSES, "ratio") | {name: of[0] for name, of in OF_POINTS.items()}
    for names, measure in (
        ("CDNV", lambda: {"cdnv": cdnv(bank.features, bank.labels)}),
        ("NCTI", of_classes),
        ("ranks", of_spectrum),
        ("intrinsic dimensions", of_neighbours),
    ):
        try:
            values = measure()
        except UndefinedError as error:
            yield Undefined(f"{before.replace('_', ' ')}{names}: {error}")
            continue
        for name, value in values.items():
            if value is None:
                yield Undefined(f"{before.replace('_', ' ')}{name}: too few directions to fit a decay")
            else:
                yield Number(f"{before}{name}", value, units[name], "train")
