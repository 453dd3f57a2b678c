"""A network as the classifier that it is, on test images alone: accuracy and calibration as it comes."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.calibration import OF_BINS, log_probabilities, measured
from penultimate.measures.declaration import Head, LogProbabilities, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register


@register.measurement(
    version=1,
    per="network",
    needs=(LogProbabilities("test"), Head()),
    yields=(
        Yield("top1", "fraction"),
        Yield("top5", "fraction"),
        Yield("nll", "nats"),
        Yield("ece", "fraction"),
        *(Yield(f"reliability_{name}", "fraction") for name in OF_BINS),
    ),
    seconds=0.3,
)
def classifier(inputs: Inputs) -> Iterator[Number]:
    """Top-1 and top-5 accuracy, NLL, ECE and reliability on the source's test images, as it comes."""
    from penultimate.metrics.accuracy import top_k

    bank = inputs.features("test")
    assert bank.logits is not None
    for k in (1, 5):
        yield Number(f"top{k}", top_k(bank.logits, bank.labels, k), "fraction", "test")
    yield from measured(log_probabilities(inputs, bank), bank.labels, 1.0, "")
