"""Scores that predict transfer, from features and predictions on a target's training images."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.calibration import log_probabilities
from penultimate.measures.declaration import Features, Head, Logits, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined, measured
from penultimate.registry import register


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"),),
    yields=(
        Yield("logme", "nats", called="LogME"),
        Yield("h_score", "ratio", called="H-score"),
        Yield("transrate", "nats", called="TransRate"),
        Yield("target_nc1", "ratio", called="NC1"),
        Yield("target_separation", "ratio", called="R² of a task's classes"),
    ),
    seconds=0.3,
    paper="You et al., 2021; Ibrahim et al., 2021; Huang et al., 2022; Papyan, Han and Donoho, 2020",
)
def transferability(inputs: Inputs) -> Iterator[Number | Undefined]:
    """LogME, regularised H-score, TransRate, NC1 and class separation of the target's training images."""
    from penultimate.metrics.collapse import variability_collapse
    from penultimate.metrics.separation import class_separation
    from penultimate.metrics.transferability import FeatureScores

    bank = inputs.features("train")
    scores = FeatureScores(bank)
    yield measured("logme", "nats", "train", scores.logme)
    yield measured("h_score", "ratio", "train", scores.h_score)
    yield measured("transrate", "nats", "train", scores.transrate)
    yield measured("target_nc1", "ratio", "train", variability_collapse, bank)
    yield measured("target_separation", "ratio", "train", class_separation, bank)


@register.measurement(
    version=2,
    per="target",
    needs=(Features("train"),),
    yields=(
        Yield("cdnv", "ratio", called="CDNV"),
        Yield("rankme", "dimensions", called="RankMe", decimals=1),
        Yield("stable_rank", "dimensions", called="stable rank", decimals=1),
    ),
    seconds=0.3,
    paper="Galanti et al., 2022; Garrido et al., 2023; Rudelson and Vershynin, 2007",
)
def compactness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """CDNV, RankMe and the stable rank of the features of a task's training images."""
    from penultimate.metrics.activations import rankme, stable_rank
    from penultimate.metrics.collapse import cdnv

    bank = inputs.features("train")
    yield measured("cdnv", "ratio", "train", cdnv, bank)
    yield measured("rankme", "dimensions", "train", rankme, bank)
    yield measured("stable_rank", "dimensions", "train", stable_rank, bank)


@register.measurement(
    version=1,
    per="target",
    needs=(Logits("train"),),
    yields=(Yield("nce", "nats", called="NCE"),),
    seconds=0.01,
    paper="Tran et al., ICCV 2019",
)
def nce(inputs: Inputs) -> Iterator[Number]:
    """NCE of the source classes that the network predicts for the target's training images."""
    from penultimate.metrics import source_classes

    bank = inputs.features("train")
    yield Number("nce", source_classes.nce(bank.predictions, bank.labels), "nats", "train")


@register.measurement(
    version=1,
    per="target",
    needs=(LogProbabilities("train"), Head()),
    yields=(Yield("leep", "nats", called="LEEP"),),
    seconds=0.02,
    paper="Nguyen et al., ICML 2020",
)
def leep(inputs: Inputs) -> Iterator[Number]:
    """LEEP of the source classes' probabilities on the target's training images, if the network has them."""
    from penultimate.metrics import source_classes

    bank = inputs.features("train")
    probabilities = log_probabilities(inputs, bank).exp_()
    yield Number("leep", source_classes.leep(probabilities, bank.labels), "nats", "train")
