"""Calibration of networks and of linear probes, before and after temperature scaling."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.errors import RequestError
from penultimate.measures.accuracy import ACCURACIES
from penultimate.measures.declaration import ClassOrder, Features, Head, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined, sample
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from penultimate.features.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

SUFFIXES = {"": "", "_scaled": " after temperature scaling"}
"""The suffixes of metrics before and after temperature scaling, and of their names within a sentence."""
BLOCK = 1024
"""The number of images whose probabilities are computed at once."""
BIN = ("share", "confidence", "accuracy")
"""The numbers of a bin of a reliability diagram."""


def _scores(stem: str = "") -> tuple[Yield, ...]:
    found = {"nll": ("nats", "log loss"), "ece": ("fraction", "calibration error")}
    return (
        *(
            Yield(f"{stem}{name}{suffix}", unit, called=f"{called}{how}")
            for name, (unit, called) in found.items()
            for suffix, how in SUFFIXES.items()
        ),
        Yield(f"{stem}temperature", "ratio", decimals=2),
    )


BINS = tuple(Yield(f"reliability_{name}{suffix}", "fraction") for name in BIN for suffix in SUFFIXES)
YIELDS = (*_scores(), *BINS)


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
    scores = log_probabilities(inputs, test)
    yield from _measured(scores, test.labels, 1.0, "")
    try:
        temperature = fit_temperature(log_probabilities(inputs, holdout), holdout.labels)
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    yield Number("temperature", temperature, "ratio", "test")
    yield from _measured(scores, test.labels, temperature, "_scaled")


@register.measurement(
    version=3,
    per="network",
    needs=(LogProbabilities("test"), LogProbabilities("holdout", optional=True), Head(), ClassOrder()),
    yields=(*ACCURACIES, *YIELDS),
    seconds=0.3,
    paper="Guo et al., 2017, section 4.2; Kornblith et al., 2021, table C.3",
)
def classifier(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Accuracy, NLL, ECE and reliability on the source's test images, also after temperature scaling.

    The temperature is fitted on the holdout. Without a holdout, each half of the test images is scaled by
    the temperature fitted on the other half, never on itself; the reported temperature is the geometric mean
    of the two. If no temperature is best, the scaled numbers are missing.
    """
    import numpy as np
    import torch

    from penultimate.metrics.accuracy import top_k

    bank = inputs.features("test")
    for k in (1, 5):
        yield Number(f"top{k}", top_k(bank, k=k), "fraction", "test")
    scores = log_probabilities(inputs, bank)
    yield from _measured(scores, bank.labels, 1.0, "")
    try:
        parts = _fitted_elsewhere(inputs, scores, bank)
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    temperature = torch.empty(len(bank), dtype=torch.float64)
    for rows, fitted in parts:
        temperature[rows] = fitted
    yield Number("temperature", float(np.exp(np.mean(np.log([each for _, each in parts])))), "ratio", "test")
    yield from _measured(scores, bank.labels, temperature, "_scaled")


@register.measurement(
    version=2,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=_scores("probe_"),
    seconds=0.6,
    paper="Guo et al., 2017; Kornblith et al., 2021, section 3.1",
)
def probe_calibration(inputs: Inputs) -> Iterator[Number | Undefined]:
    """NLL and ECE of the linear probe of each target, before and after temperature scaling.

    The probe is that of `linear`. Its temperature comes from a second probe of the same strength, which is
    fitted without a fifth of the training images and scaled on these, so that no test image decides anything.
    If no temperature is best, the scaled numbers are missing.
    """
    import numpy as np

    from penultimate.metrics.temperature import fit_temperature
    from penultimate.probes.linear import LinearProbe
    from penultimate.probes.validation import split_off

    train, test = inputs.features("train"), inputs.features("test")
    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(train.features, train.labels)
    scores = _of_probe(probe, test.features, test.labels)
    yield from _measured(*scores, 1.0, "", "probe_")
    held = split_off(np.searchsorted(probe.classes_, train.labels), seed=inputs.seed)
    second = LinearProbe([probe.lambda_], metric=probe.metric, seed=inputs.seed)
    second.fit(train.features[~held], train.labels[~held])
    try:
        temperature = fit_temperature(*_of_probe(second, train.features[held], train.labels[held]))
    except UndefinedError as error:
        yield Undefined(str(error))
        return
    yield Number("probe_temperature", temperature, "ratio", "test")
    yield from _measured(*scores, temperature, "_scaled", "probe_")


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


def _measured(
    scores: Any, labels: Any, temperature: float | Tensor, suffix: str, stem: str = ""
) -> Iterator[Number]:
    """Yield NLL, ECE and, for a network, the bins of the reliability diagram."""
    from penultimate.metrics import calibration as metrics

    found = metrics.calibration_of_logits(scores, labels, temperature)
    yield Number(f"{stem}nll{suffix}", found.negative_log_likelihood, "nats", "test")
    yield Number(f"{stem}ece{suffix}", found.expected_calibration_error, "fraction", "test")
    for bar in found.reliability if not stem else ():
        setting = {"bin": round(bar.upper * metrics.BINS), "bins": metrics.BINS}
        values = (bar.examples / len(labels), bar.confidence, bar.accuracy)
        for name, value in zip(BIN, values, strict=True):
            yield Number(f"reliability_{name}{suffix}", value, "fraction", "test", setting=setting)


def _fitted_elsewhere(
    inputs: Inputs, scores: Tensor, bank: FeatureBank
) -> list[tuple[slice | npt.NDArray[np.bool_], float]]:
    """Return the parts of the test images, each with the temperature that suits other images."""
    import numpy as np

    from penultimate.metrics.temperature import fit_temperature

    if inputs.has_features("holdout"):
        holdout = inputs.features("holdout")
        return [(slice(None), fit_temperature(log_probabilities(inputs, holdout), holdout.labels))]
    if len(bank) < 2:
        raise UndefinedError("a temperature is fitted on other images than it is tested on: two are needed")
    first = np.zeros(len(bank), np.bool_)
    first[sample(len(bank), len(bank) // 2)] = True
    return [(half, fit_temperature(scores[~half], bank.labels[~half])) for half in (first, ~first)]


def _of_probe(probe: LinearProbe, features: Any, labels: Any) -> tuple[npt.NDArray[np.float64], Any]:
    """Return a probe's logits for the images of classes that it knows, and their places among these."""
    import numpy as np

    known = np.isin(labels, probe.classes_)
    logits = probe.decision_function(features[known])
    if logits.ndim == 1:  # two classes: the difference of their logits
        logits = np.stack([np.zeros(len(logits)), logits], 1)
    return logits, np.searchsorted(probe.classes_, labels[known])
