"""Linear transfer: certified logistic regression on the fixed features of each target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

LINEAR = (
    "Transfer by logistic regression on the frozen features, its regularization chosen among 45 strengths on"
    " a part of the training images held back for it."
)
LINEAR_ACCURACIES = tuple(
    Yield(f"linear_{accuracy}", "fraction", better="high", words=LINEAR, called="linear transfer")
    for accuracy in ("top1", "mean_per_class")
)
LINEAR_YIELDS = (
    *LINEAR_ACCURACIES,
    Yield(
        "linear_lambda",
        "lambda",
        words="The strength of regularization that did best on the validation images.",
    ),
    Yield(
        "linear_validation_accuracy",
        "fraction",
        better="high",
        words="The accuracy on the validation images, by which the strength is chosen.",
    ),
    Yield(
        "linear_certified_gap",
        "ratio",
        better="low",
        words="The largest share by which the fitted loss can lie above its optimum.",
    ),
)
"""The quantities of the linear probe, for any features that it is fitted to."""


@register.measurement(
    version=2,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=LINEAR_YIELDS,
    seconds=0.5,
    paper="Kornblith et al., 2021, section 3.1 and appendix A.2",
)
def linear(inputs: Inputs) -> Iterator[Number]:
    """Test accuracy of logistic regression on the target's features, with lambda chosen by validation."""
    yield from linear_transfer(inputs, inputs.features("train"), inputs.features("test"))


def linear_transfer(
    inputs: Inputs, train: FeatureBank, test: FeatureBank, layer: str | None = None
) -> Iterator[Number]:
    """Yield linear transfer from any features of the target's images, such as those of a layer."""
    from penultimate.probes.linear import LinearProbe

    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(train.features, train.labels)
    yield from linear_numbers(probe, test, inputs.accuracy, layer)


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
