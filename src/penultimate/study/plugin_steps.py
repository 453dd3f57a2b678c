"""The steps of metrics and probes that come from plug-ins: what `penultimate check` promises them, they get.

A metric is called with the bank of each of the source's splits. A probe is built anew for every network and
target, fitted to the training features, and judged by what it predicts of the test features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penultimate import registry
from penultimate.bank import FeatureBank
from penultimate.checking.answers import WrongError, numbers, predictions
from penultimate.metrics import UndefinedError
from penultimate.metrics.accuracy import accuracy, mean_per_class
from penultimate.plugins import raised_by
from penultimate.study.context import Context, Outcome

SCORES = {"top1": accuracy, "mean_per_class": mean_per_class}


def metric(context: Context) -> Outcome:
    """A row for each number and split: NAME for a lone one, NAME.PART for each of several.

    Where it raises UndefinedError on a split, that split has no row, and the step says why.
    """
    measure = context.config["measure"]
    called = _Plugin("metric", measure)
    rows, undefined = [], []
    for split in context.config["splits"]:
        bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
        try:
            answer = called(called.function, bank, **called.arguments)
        except UndefinedError as error:
            undefined.append(f"{measure} ({split}): {error}")
            continue
        found = numbers(called.name, answer, f"on the split '{split}' of {context.step.about['target']}")
        for name, value in found.items():
            written = measure if name == called.name else f"{measure}.{name}"
            rows.append(context.row(written, value, None, split=split))
    return Outcome(rows, facts={"undefined": "; ".join(undefined)} if undefined else {})


def probe(context: Context) -> Outcome:
    """One row: how right the probe is about the target's test images, by the accuracy that counts there."""
    measure, official = context.config["measure"], context.config["accuracy"]
    train = FeatureBank.load(context.parents["extract"] / "train.npz")
    test = FeatureBank.load(context.parents["extract"] / "test.npz")
    called = _Plugin("probe", measure)
    built = called(called.function, **called.arguments)
    for name in ("fit", "predict"):
        if not callable(getattr(built, name, None)):
            raise WrongError(f"{called.name} builds an object without .{name}.")
    called(built.fit, train.features, train.labels)
    predicted = predictions(called.name, called(built.predict, test.features), len(test))
    score = SCORES[official](predicted.astype("int64"), test.labels)
    return Outcome([context.row(f"{measure}_{official}", score, "fraction", split="test")])


class _Plugin:
    """A plug-in under its hyperparameters; what it raises is told with the line of its file."""

    def __init__(self, kind: str, measure: str) -> None:
        spec = registry.parse(measure)
        self.name, self.arguments = spec.name, spec.arguments
        self.function = registry.entry(kind, spec.name).resolve()

    def __call__(self, function: Callable[..., Any], *inputs: Any, **arguments: Any) -> Any:
        try:
            return function(*inputs, **arguments)
        except UndefinedError:
            raise
        except (Exception, SystemExit) as error:
            raise WrongError(raised_by(self.name, self.function, error)) from error
