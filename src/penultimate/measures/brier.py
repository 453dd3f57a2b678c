"""Calibration, further: the Brier score with its parts, class-wise and adaptive errors; of probes too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penultimate.measures.calibration import SCALED, SUFFIXES, log_probabilities
from penultimate.measures.classifier import tempered
from penultimate.measures.declaration import ClassOrder, Features, Head, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank
    from penultimate.metrics.brier import BrierAccumulator
    from penultimate.probes.linear import LinearProbe

ERRORS = {
    "adaptive_ece": (
        "The mean distance between how sure a network is and how often it is right, in 15 bins of equally"
        " many images",
        "adaptive calibration error",
    ),
    "classwise_ece": (
        "The mean distance between a class's probability and how often images are of it, over all classes",
        "class-wise calibration error",
    ),
}
PARTS = {
    "brier": (
        "The squared distance of an image's probabilities from its class, 0 at best and 2 at worst",
        "Brier score",
    ),
    "brier_reliability": ("The part of the Brier score by which probabilities differ from frequencies", ""),
    "brier_resolution": ("The part that is gained because frequencies differ between probabilities", ""),
    "brier_uncertainty": ("The Brier score of naming every class as often as it occurs", ""),
    "brier_within": ("What of the Brier score lies within bins, and in none of its other parts", ""),
}


def _yields(prefix: str, of: str) -> tuple[Yield, ...]:
    """Return the quantities of a final layer or, under a prefix, of a probe."""
    return tuple(
        Yield(
            f"{prefix}{name}{suffix}",
            unit,
            better="high" if name == "brier_resolution" else "" if name == "brier_within" else "low",
            words=f"{words}{of}{how}.",
            called=f"{called}{SCALED[suffix]}",
        )
        for unit, group in (("fraction", ERRORS), ("ratio", PARTS))
        for name, (words, called) in group.items()
        for suffix, how in SUFFIXES.items()
    )


@register.measurement(
    version=1,
    per="network",
    needs=(LogProbabilities("test"), LogProbabilities("holdout", optional=True), Head(), ClassOrder()),
    yields=_yields("", ""),
    seconds=0.3,
    paper="Murphy, 1973; Kull et al., 2019; Nixon et al., 2019",
)
def brier(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Brier score with its parts, adaptive and class-wise ECE on the test images, before and after scaling.

    All have 15 bins: of equal width for the class-wise error and the parts, of equal mass for the adaptive
    error. The temperature is that of `classifier`: of the holdout or, without one, of the other half of the
    test images. If no temperature is best, the scaled numbers are missing.
    """
    bank = inputs.features("test")
    scores = log_probabilities(inputs, bank)
    yield from _numbers("", scores, bank.labels, [(slice(None), 1.0)], "")
    try:
        parts = tempered(inputs, scores, bank)
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    yield from _numbers("", scores, bank.labels, parts, "_scaled")


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=(
        *(
            Yield(
                f"probe_{name}{suffix}",
                unit,
                better="low",
                words=f"{words}, of a linear probe{how}.",
                called=f"{called}{SCALED[suffix]}",
            )
            for name, unit, words, called in (
                (
                    "nll",
                    "nats",
                    "The mean of minus the logarithm of the right class's probability",
                    "log loss",
                ),
                (
                    "ece",
                    "fraction",
                    "The mean distance between how sure it is and how often it is right",
                    "calibration error",
                ),
            )
            for suffix, how in SUFFIXES.items()
        ),
        *_yields("probe_", ", of a linear probe"),
        Yield(
            "probe_temperature",
            "ratio",
            words="The number that a linear probe's scores are divided by so that its probabilities suit"
            " held-out images best.",
            decimals=2,
        ),
    ),
    seconds=0.6,
    paper="Guo et al., 2017; Kornblith et al., 2021, section 3.1",
)
def probe_calibration(inputs: Inputs) -> Iterator[Number | Undefined]:
    """NLL, ECE, Brier score and its parts of the linear probe of each target, before and after temperature.

    The probe is that of `linear`. Its temperature comes from a second probe of the same strength, which is
    fitted without a fifth of the training images and scaled on these, so that no test image decides anything.
    If no temperature is best, the scaled numbers are missing.
    """
    from penultimate.probes.linear import LinearProbe

    train, test = inputs.features("train"), inputs.features("test")
    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(train.features, train.labels)
    scores, labels = _of_probe(probe, test)
    yield from _of_one(scores, labels, 1.0, "")
    try:
        temperature = _temperature(probe, train, inputs.seed)
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    yield Number("probe_temperature", temperature, "ratio", "test")
    yield from _of_one(scores, labels, temperature, "_scaled")


def _of_one(scores: Any, labels: Any, temperature: float, suffix: str) -> Iterator[Number]:
    from penultimate.metrics.calibration import CalibrationAccumulator

    seen = CalibrationAccumulator().update_logits(scores, labels, temperature)
    yield Number(f"probe_nll{suffix}", seen.negative_log_likelihood(), "nats", "test")
    yield Number(f"probe_ece{suffix}", seen.expected_calibration_error(), "fraction", "test")
    yield from _numbers("probe_", scores, labels, [(slice(None), temperature)], suffix)


def _numbers(
    prefix: str, scores: Any, labels: Any, parts: Sequence[tuple[Any, float]], suffix: str
) -> Iterator[Number]:
    """Yield the numbers of scores at the temperature of each part of them."""
    from penultimate.metrics.brier import BrierAccumulator

    seen: BrierAccumulator = BrierAccumulator()
    for part, temperature in parts:
        seen.update_logits(scores[part], labels[part], temperature)
    yield Number(f"{prefix}adaptive_ece{suffix}", seen.adaptive_error(), "fraction", "test")
    yield Number(f"{prefix}classwise_ece{suffix}", seen.classwise_error(), "fraction", "test")
    for name, value in zip(PARTS, seen.parts(), strict=True):
        yield Number(f"{prefix}{name}{suffix}", value, "ratio", "test")


def _of_probe(probe: LinearProbe, bank: FeatureBank) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return a probe's logits for the images of a bank whose classes it knows, and their places among these.

    Images of other classes, of which no image was trained on, are left out.
    """
    import numpy as np

    known = np.isin(bank.labels, probe.classes_)
    logits = probe.decision_function(bank.features[known])
    if logits.ndim == 1:  # two classes: the difference of their logits
        logits = np.stack([np.zeros(len(logits)), logits], 1)
    return logits, np.searchsorted(probe.classes_, bank.labels[known])


def _temperature(probe: LinearProbe, train: FeatureBank, seed: int) -> float:
    """Return the temperature of a probe of the same strength on images that it has not seen."""
    import dataclasses

    import numpy as np

    from penultimate.metrics.temperature import fit_temperature
    from penultimate.probes.linear import LinearProbe
    from penultimate.probes.validation import split_off

    codes = np.searchsorted(probe.classes_, train.labels)
    held = split_off(codes, seed=seed)
    without = LinearProbe([probe.lambda_], metric=probe.metric, seed=seed)
    without.fit(train.features[~held], train.labels[~held])
    rest = dataclasses.replace(
        train, features=train.features[held], labels=train.labels[held], logits=None, ids=None
    )
    return fit_temperature(*_of_probe(without, rest))
