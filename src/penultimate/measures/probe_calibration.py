"""Calibration of the linear probes, before and after temperature scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.calibration import ECE, NLL, SCALED, SUFFIXES
from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe


@register.measurement(
    version=2,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=(
        *(
            Yield(
                f"probe_{name}{suffix}",
                unit,
                better="low",
                words=f"{words}{how}, of a linear probe.",
                called=f"{called}{SCALED[suffix]}",
            )
            for name, unit, words, called in (
                ("nll", "nats", NLL, "log loss"),
                ("ece", "fraction", ECE, "calibration error"),
            )
            for suffix, how in SUFFIXES.items()
        ),
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
    """NLL and ECE of the linear probe of each target, before and after temperature scaling.

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


def _of_one(
    scores: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], temperature: float, suffix: str
) -> Iterator[Number]:
    from penultimate.metrics.calibration import CalibrationAccumulator

    seen = CalibrationAccumulator().update_logits(scores, labels, temperature)
    yield Number(f"probe_nll{suffix}", seen.negative_log_likelihood(), "nats", "test")
    yield Number(f"probe_ece{suffix}", seen.expected_calibration_error(), "fraction", "test")


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
