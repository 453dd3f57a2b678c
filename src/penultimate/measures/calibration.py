"""Calibration before and after temperature scaling on the holdout images."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.errors import RequestError
from penultimate.measures.declaration import ClassOrder, Head, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from torch import Tensor

    from penultimate.features.bank import FeatureBank
    from penultimate.metrics.calibration import CalibrationAccumulator

SUFFIXES = {"": "", "_scaled": ", at the temperature that suits held-out images"}
"""The suffixes of metrics before and after temperature scaling, and the words for them."""
SCALED = {"": "", "_scaled": " after temperature scaling"}
"""The same suffixes, and what stands behind the name of a metric within a sentence."""
BLOCK = 1024
"""The number of images whose probabilities are computed at once."""
OF_BINS = {
    "share": "The share of the images whose confidence falls into a bin",
    "confidence": "The mean confidence of the images in a bin",
    "accuracy": "The accuracy on the images in a bin of confidence",
}
NLL = "The mean of minus the logarithm of the probability that the right class is given"
ECE = (
    "Whether a network is right as often as it is sure: the expected calibration error is the mean"
    " distance between the two, 0 at best"
)
YIELDS = (
    *(
        Yield(f"nll{suffix}", "nats", better="low", words=f"{NLL}{how}.", called=f"log loss{SCALED[suffix]}")
        for suffix, how in SUFFIXES.items()
    ),
    *(
        Yield(
            f"ece{suffix}",
            "fraction",
            better="low",
            words=f"{ECE}{how}.",
            called=f"calibration error{SCALED[suffix]}",
        )
        for suffix, how in SUFFIXES.items()
    ),
    *(
        Yield(f"reliability_{name}{suffix}", "fraction", words=f"{what}{how}.")
        for name, what in OF_BINS.items()
        for suffix, how in SUFFIXES.items()
    ),
    Yield(
        "temperature",
        "ratio",
        words="The number that the scores are divided by so that the probabilities suit held-out"
        " images best.",
        decimals=2,
    ),
)


@register.measurement(
    version=1,
    per="network",
    needs=(LogProbabilities("test"), LogProbabilities("holdout"), Head(), ClassOrder()),
    yields=YIELDS,
    seconds=0.1,
    paper="Kornblith et al., 2021, table C.3",
)
def calibration(inputs: Inputs) -> Iterator[Number | Undefined]:
    """NLL, ECE and reliability on the test images: as trained, and at the temperature fitted on the holdout.

    If no temperature is best, the temperature-scaled numbers are missing.
    """
    from penultimate.metrics.temperature import fit_temperature

    test, holdout = inputs.features("test"), inputs.features("holdout")
    yield from measured(log_probabilities(inputs, test), test.labels, 1.0, "")
    try:
        temperature = fit_temperature(log_probabilities(inputs, holdout), holdout.labels)
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    yield Number("temperature", temperature, "ratio", "test")
    yield from measured(log_probabilities(inputs, test), test.labels, temperature, "_scaled")


def measured(scores: Any, labels: Any, temperature: float, suffix: str) -> Iterator[Number]:
    """Yield NLL, ECE and reliability of scores at a temperature."""
    from penultimate.metrics.calibration import CalibrationAccumulator

    yield from numbers_of(CalibrationAccumulator().update_logits(scores, labels, temperature), suffix)


def numbers_of(seen: CalibrationAccumulator, suffix: str) -> Iterator[Number]:
    """Yield NLL, ECE and reliability of the examples in an accumulator."""
    from penultimate.metrics.calibration import BINS

    yield Number(f"nll{suffix}", seen.negative_log_likelihood(), "nats", "test")
    yield Number(f"ece{suffix}", seen.expected_calibration_error(), "fraction", "test")
    for bar in seen.reliability():
        setting = {"bin": round(bar.upper * BINS), "bins": BINS}
        values = (bar.examples / seen.examples, bar.confidence, bar.accuracy)
        for name, value in zip(OF_BINS, values, strict=True):
            yield Number(f"reliability_{name}{suffix}", value, "fraction", "test", setting=setting)


def log_probabilities(inputs: Inputs, bank: FeatureBank) -> Tensor:
    """Return the network's log-probabilities for a bank's logits, in float64.

    They are computed by the network's objective, because the logits of a sigmoid are not softmax logits. They
    are kept in a nameless, memory-mapped file, so only a block is in memory, however many there are. The
    whole file is written before it is mapped, because a full disk under a mapping raises no error but kills
    the process.
    """
    import numpy as np
    import torch

    logits, network = bank.logits, inputs.network
    if logits is None:
        raise RequestError("probabilities come from logits; this bank holds features only")
    with tempfile.TemporaryFile(dir=inputs.folder) as file:
        for start in range(0, len(logits), BLOCK):
            block = torch.from_numpy(logits[start : start + BLOCK].astype(np.float64))
            file.write(network.log_probabilities(block).cpu().numpy().tobytes())
        file.flush()
        return torch.from_numpy(np.memmap(file, np.float64, "r+", shape=logits.shape))
