"""Further scores of features before any probe: the collapse of classes, and the ranks of the features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank

PAPER = "Galanti et al., 2022; Garrido et al., 2023; Rudelson and Vershynin, 2007"


def _yields(before: str) -> tuple[Yield, ...]:
    return (
        Yield(
            f"{before}cdnv",
            "ratio",
            better="low",
            words="CDNV: the variance within two classes beside the squared distance of their means, averaged"
            " over all pairs of classes.",
            called="CDNV",
        ),
        Yield(
            f"{before}rankme",
            "dimensions",
            words="RankMe: the exponential of the entropy of the shares of the singular values.",
            called="RankMe",
            decimals=1,
        ),
        Yield(
            f"{before}stable_rank",
            "dimensions",
            words="The stable rank: the variance of the features beside that along their longest direction.",
            called="stable rank",
            decimals=1,
        ),
    )


@register.measurement(
    version=2, per="target", needs=(Features("train"),), yields=_yields(""), seconds=0.3, paper=PAPER
)
def compactness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """CDNV, RankMe and the stable rank of the features of a task's training images."""
    yield from _measured(inputs.features("train"), "")


@register.measurement(
    version=2, per="network", needs=(Features("train"),), yields=_yields("source_"), seconds=0.3, paper=PAPER
)
def source_compactness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """The same as `compactness`, of the images that the network was trained on and their classes."""
    yield from _measured(inputs.features("train"), "source_")


def _measured(bank: FeatureBank, before: str) -> Iterator[Number | Undefined]:
    from penultimate.metrics.dimension import rankme, stable_rank
    from penultimate.metrics.target_collapse import cdnv

    measures: dict[str, tuple[str, Callable[[], float]]] = {
        "cdnv": ("ratio", lambda: cdnv(bank.features, bank.labels)),
        "rankme": ("dimensions", lambda: rankme(bank.features)),
        "stable_rank": ("dimensions", lambda: stable_rank(bank.features)),
    }
    for name, (unit, measure) in measures.items():
        try:
            yield Number(f"{before}{name}", measure(), unit, "train")
        except UndefinedError as error:
            yield Undefined(f"{before}{name}: {error}")
