"""What a monitor measures: registered metrics, the kNN probe, or a user's functions of a feature bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from penultimate.errors import RequestError, unknown
from penultimate.features.bank import FeatureBank
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import Bank
from penultimate.probes.knn import KNNProbe
from penultimate.registry import entry, names
from penultimate.specs import parse

Measure: TypeAlias = Callable[[Any], Any]
"""A function from a feature bank to one number."""


class Meter(NamedTuple):
    """A function from a feature bank to one number, and whether the bank may hold tensors on a GPU."""

    function: Measure
    takes_tensors: bool


USUAL = ("class_separation", "nonzero_share", "rankme", "knn")
"""What is measured unless something else is asked for."""
NEIGHBOURS = 20


def knn(bank: Bank, max_k: int = NEIGHBOURS, metric: str = "cosine") -> float:
    """Return the accuracy of a vote of the k nearest other examples, with the best k up to `max_k`."""
    return float(KNNProbe(metric, max_k=max_k).fit(bank).leave_one_out_.max())


def measures_of(
    asked: str | Measure | Iterable[str | Measure] | Mapping[str, str | Measure],
) -> dict[str, Meter]:
    """Return a function from a feature bank to a number for each name under which it is recorded.

    A name stands for a registered metric of features, labels and logits, with settings if need be, or for the
    kNN probe. Raises RequestError for an unknown name, for settings that are refused, for what does not give
    one number, and for two measurements of one name.

    >>> [*measures_of(["class_separation(unbiased=True)", "knn(max_k=5)"])]
    ['class_separation(unbiased=True)', 'knn(max_k=5)']
    >>> measures_of("knm")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown measurement 'knm'. Did you mean 'knn'? All ...
    """
    if isinstance(asked, Mapping):
        pairs = [(name, each) for name, each in asked.items()]
    else:
        listed = [asked] if isinstance(asked, str) or callable(asked) else list(asked)
        pairs = [(each if isinstance(each, str) else _name_of(each), each) for each in listed]
    found: dict[str, Meter] = {}
    for name, each in pairs:
        if name in found or name == "step":
            taken = "the step" if name == "step" else "another measurement"
            raise RequestError(
                f"the name '{name}' is that of {taken}: give measure={{'NAME': ...}}, a name for each"
            )
        if not isinstance(each, str) and not callable(each):
            raise RequestError(
                f"a measurement is a name or a function of a feature bank, not a {type(each).__name__}"
            )
        found[name] = Meter(_named(each), True) if isinstance(each, str) else Meter(each, False)
    if not found:
        raise RequestError(f"nothing to measure; usual are {', '.join(USUAL)}")
    return found


def number(value: Any) -> float:
    """Return what a measurement gave as a float; raise RequestError unless it is one number."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise RequestError(f"it gave a {type(value).__name__}, not one number") from None


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _named(text: str) -> Measure:
    spec = parse(text)
    known = [name for name in names("metric") if name != "knn"]
    if spec.name != "knn" and spec.name not in known:
        raise unknown("measurement", spec.name, ["knn", *known])
    function: Measure = knn if spec.name == "knn" else entry("metric", spec.name).resolve()
    measure = partial(function, **spec.arguments)
    try:
        number(measure(_tiny()))
    except UndefinedError:
        pass
    except RequestError as error:
        raise RequestError(f"the measurement '{text}': {error}") from None
    except (TypeError, AttributeError) as error:
        raise RequestError(
            f"the measurement '{text}' is not one of a feature bank alone ({error}); give a function of a"
            " bank: lambda bank: ..."
        ) from None
    return measure


def _tiny() -> FeatureBank:
    """Return a feature bank of twenty classes on which a measurement's form is tried."""
    random, labels = np.random.default_rng(0), np.arange(80) % 20
    features = random.normal(size=(80, 8)).astype(np.float32)
    return FeatureBank(features, labels, features @ random.normal(size=(8, 20)).astype(np.float32))
