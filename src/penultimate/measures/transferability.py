"""Scores that predict transfer, from features and predictions on a target's training images."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penultimate.measures.calibration import log_probabilities
from penultimate.measures.declaration import Features, Head, Logits, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"),),
    yields=(
        Yield(
            "logme",
            "nats",
            better="high",
            words="LogME: the evidence, per image, that the features give for the task's labels.",
            called="LogME",
        ),
        Yield(
            "h_score",
            "ratio",
            better="high",
            words="The regularised H-score: how much of the features' spread the class means explain.",
            called="H-score",
        ),
        Yield(
            "transrate",
            "nats",
            better="high",
            words="TransRate: how much shorter a code of the features becomes when the classes are known.",
            called="TransRate",
        ),
        Yield(
            "target_nc1",
            "ratio",
            better="low",
            words="The spread of a task's features within classes beside that between them (NC1).",
            called="NC1",
        ),
        Yield(
            "target_separation",
            "ratio",
            better="high",
            words="How much of the spread of a task's features lies between its classes (R²).",
            called="R² of a task's classes",
        ),
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
    scores = FeatureScores(bank.features, bank.labels)
    yield _defined("logme", "nats", scores.logme)
    yield _defined("h_score", "ratio", scores.h_score)
    yield _defined("transrate", "nats", scores.transrate)
    yield _defined("target_nc1", "ratio", lambda: variability_collapse(bank.features, bank.labels))
    yield _defined("target_separation", "ratio", lambda: class_separation(bank.features, bank.labels))


@register.measurement(
    version=1,
    per="target",
    needs=(Logits("train"),),
    yields=(
        Yield(
            "nce",
            "nats",
            better="high",
            words="NCE: minus the entropy of the labels of a task given the pretraining classes that"
            " the network predicts.",
            called="NCE",
        ),
    ),
    seconds=0.01,
    paper="Tran et al., ICCV 2019",
)
def nce(inputs: Inputs) -> Iterator[Number]:
    """NCE of the source classes that the network predicts for the target's training images."""
    from penultimate.metrics.source_classes import nce as measured

    bank = inputs.features("train")
    yield Number("nce", measured(bank.predictions, bank.labels), "nats", "train")


@register.measurement(
    version=1,
    per="target",
    needs=(LogProbabilities("train"), Head()),
    yields=(
        Yield(
            "leep",
            "nats",
            better="high",
            words="LEEP: the mean log-probability of the labels of a task by way of the"
            " probabilities of the pretraining classes.",
            called="LEEP",
        ),
    ),
    seconds=0.02,
    paper="Nguyen et al., ICML 2020",
)
def leep(inputs: Inputs) -> Iterator[Number]:
    """LEEP of the source classes' probabilities on the target's training images, if the network has them."""
    from penultimate.metrics.source_classes import leep as measured

    bank = inputs.features("train")
    probabilities = log_probabilities(inputs, bank).exp_()
    yield Number("leep", measured(probabilities, bank.labels), "nats", "train")


def _defined(metric: str, unit: str, value: Callable[[], float]) -> Number | Undefined:
    """Return a number, or the reason why it is undefined."""
    try:
        return Number(metric, value(), unit, "train")
    except UndefinedError as error:
        return Undefined(f"{metric}: {error}")
