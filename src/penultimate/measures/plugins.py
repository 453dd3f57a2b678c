"""The simpler plug-ins as measurements: a metric on a feature bank, or a probe on a target.

A metric is called with the bank of the source's training images and with that of its test images. A probe is
built again for every network and target, fitted to the training features, and scored on the test features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penultimate.answers import WrongError, numbers, predictions
from penultimate.errors import RequestError
from penultimate.measures.declaration import Features, Measurement, Need
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import of_function
from penultimate.plugins import raised_by
from penultimate.specs import Spec

BANKS = {"metric": 1, "probe": 0}
"""The number of arguments that are not settings: a metric receives a bank, and a probe receives nothing."""


def as_measurement(kind: str, name: str, function: Callable[..., Any]) -> Measurement:
    """Return a plug-in metric or probe as a measurement; what it yields is known only after it has run."""
    try:
        settings = of_function(function, BANKS[kind])
    except (TypeError, ValueError):
        raise RequestError(f"the {kind} '{name}' has no signature to read") from None
    needs: tuple[Need, ...] = (Features("train"), Features("test"))
    per, run = ("network", _metric) if kind == "metric" else ("target", _probe)

    def measure(inputs: Inputs, **values: Any) -> Iterator[Number | Undefined]:
        return run(name, function, inputs, values)

    return Measurement(name, 1, per, needs, None, settings, kind=kind, function=measure)


def _metric(
    name: str, function: Callable[..., Any], inputs: Inputs, values: dict[str, Any]
) -> Iterator[Number | Undefined]:
    """Yield the plug-in's numbers for each split: NAME for a single number, NAME.PART for each of several."""
    written = _written(name, inputs)
    for split in ("train", "test"):
        bank = inputs.features(split)
        try:
            answer = _called(name, function, function, bank, **values)
        except UndefinedError as error:
            yield Undefined(f"{written} ({split}): {error}")
            continue
        where = f"on the split '{split}' of {inputs.target}"
        for part, value in numbers(name, answer, where).items():
            yield Number(written if part == name else f"{written}.{part}", value, None, split)


def _probe(
    name: str, function: Callable[..., Any], inputs: Inputs, values: dict[str, Any]
) -> Iterator[Number | Undefined]:
    """Yield the probe's accuracy on the target's test images, of the kind that is official for the target."""
    from penultimate.metrics.accuracy import accuracy, mean_per_class

    train, test = inputs.features("train"), inputs.features("test")
    probe = _called(name, function, function, **values)
    for method in ("fit", "predict"):
        if not callable(getattr(probe, method, None)):
            raise WrongError(f"{name} builds an object without .{method}.")
    _called(name, function, probe.fit, train.features, train.labels)
    predicted = predictions(name, _called(name, function, probe.predict, test.features), len(test))
    score = {"top1": accuracy, "mean_per_class": mean_per_class}[inputs.accuracy]
    value = score(predicted.astype("int64"), test.labels)
    yield Number(f"{_written(name, inputs)}_{inputs.accuracy}", value, "fraction", "test")


def _written(name: str, inputs: Inputs) -> str:
    """Return the plug-in's spec in the study, with the settings that the study changes."""
    changed = {
        key: value for key, value in inputs.step.identity.items() if key not in ("plugins", "accuracy")
    }
    return str(Spec(name, changed))


def _called(
    name: str, plugin: Callable[..., Any], function: Callable[..., Any], *arguments: Any, **values: Any
) -> Any:
    """Return a plug-in's answer; an error that it raises is reported with the line of its file."""
    try:
        return function(*arguments, **values)
    except UndefinedError:
        raise
    except (Exception, SystemExit) as error:
        raise WrongError(raised_by(name, plugin, error)) from error
