"""Transfer to a target: certified logistic regression and nearest neighbours on its fixed features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield, accuracies
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank
    from penultimate.probes.knn import KNNProbe
    from penultimate.probes.linear import LinearProbe

NEEDS = (Features("train"), Features("test"))
LINEAR_ACCURACIES = accuracies("linear", "linear transfer")
LINEAR_YIELDS = (
    *LINEAR_ACCURACIES,
    Yield("linear_lambda", "lambda"),
    Yield("linear_validation_accuracy", "fraction"),
    Yield("linear_certified_gap", "ratio"),
)
KNN_YIELDS = (
    *accuracies("knn", "kNN transfer"),
    Yield("knn_k", "count"),
    Yield("knn_leave_one_out", "fraction"),
)
PREDICTIONS = ("ids", "labels", "linear", "knn")
"""The arrays of the predictions: for each test image its id, its class, and the prediction of each probe."""


@register.measurement(
    version=2,
    per="target",
    needs=NEEDS,
    yields=LINEAR_YIELDS,
    seconds=0.5,
    paper="Kornblith et al., 2021, section 3.1 and appendix A.2",
)
def linear(inputs: Inputs) -> Iterator[Number]:
    """Test accuracy of logistic regression on the target's features, with lambda chosen by validation."""
    probe = linear_probe(inputs, inputs.features("train"))
    yield from linear_numbers(probe, inputs.features("test"), inputs.accuracy)


@register.measurement(
    version=1,
    per="target",
    needs=NEEDS,
    yields=KNN_YIELDS,
    seconds=0.1,
    paper="Kornblith et al., 2021, section 3.1",
)
def knn(inputs: Inputs) -> Iterator[Number]:
    """Test accuracy of k nearest neighbours on the target's features, with k chosen by leave-one-out."""
    from penultimate.probes.knn import KNNProbe

    probe = KNNProbe().fit(inputs.features("train"))
    yield from knn_numbers(probe, inputs.features("test"), inputs.accuracy)


@register.measurement(
    version=2,
    per="target",
    needs=NEEDS,
    yields=(*LINEAR_YIELDS, *KNN_YIELDS, Yield("probe_predictions", "points", PREDICTIONS)),
    seconds=2.0,
    paper="Kornblith et al., 2021, section 3.1",
)
def probed(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Linear and kNN transfer, and the predictions of both probes, by which networks are compared on the same
    images."""
    import numpy as np

    from penultimate.probes.knn import KNNProbe

    train, test = inputs.features("train"), inputs.features("test")
    try:
        own, neighbours = linear_probe(inputs, train), KNNProbe().fit(train)
    except UndefinedError as error:
        yield Undefined(f"probes on '{inputs.target}': {error}")
        return
    yield from linear_numbers(own, test, inputs.accuracy)
    yield from knn_numbers(neighbours, test, inputs.accuracy)
    ids = np.arange(len(test)) if test.ids is None else test.ids
    predictions = (ids, test.labels, own.predict(test.features), neighbours.predict(test.features))
    yield Arrays("probe_predictions", dict(zip(PREDICTIONS, predictions, strict=True)), "test")


def linear_probe(inputs: Inputs, train: FeatureBank) -> LinearProbe:
    """Return the fitted linear probe of a target, on any features of its images."""
    from penultimate.probes.linear import LinearProbe

    return LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(train.features, train.labels)


def linear_numbers(
    probe: LinearProbe, test: FeatureBank, accuracy: str, layer: str | None = None
) -> Iterator[Number]:
    """Yield the numbers of a fitted linear probe."""
    score = probe.score(test.features, test.labels)
    yield Number(f"linear_{accuracy}", score, "fraction", "test", layer)
    yield Number("linear_lambda", float(probe.lambda_), "lambda", "train", layer)
    best = float(max(probe.validation_accuracy_))
    yield Number("linear_validation_accuracy", best, "fraction", "train", layer)
    gap = float(max(*probe.certificates_, probe.certificate_))
    yield Number("linear_certified_gap", gap, "ratio", "train", layer)


def knn_numbers(
    probe: KNNProbe, test: FeatureBank, accuracy: str, layer: str | None = None
) -> Iterator[Number]:
    """Yield the numbers of a fitted kNN probe."""
    score = probe.score(test.features, test.labels, metric=accuracy)
    yield Number(f"knn_{accuracy}", score, "fraction", "test", layer)
    yield Number("knn_k", float(probe.k_), "count", "train", layer)
    yield Number("knn_leave_one_out", float(max(probe.leave_one_out_)), "fraction", "train", layer)
