"""What a monitor measures: registered metrics, the kNN probe, or a user's functions of a feature bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from penultimate.errors import RequestError, unknown
from penultimate.features.bank import FeatureBank
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import Bank
from penultimate.probes.knn import KNNProbe
from penultimate.registry import entry, names
from penultimate.specs import parse

Measure: TypeAlias = Callable[[Any], Any]
"""A function from a feature bank to one number; a `partial` takes banks of tensors on a GPU as well."""
USUAL = ("class_separation", "nonzero_share", "rankme", "knn")
"""What is measured unless something else is asked for."""


def knn(bank: Bank, max_k: int = 20, metric: str = "cosine") -> float:
    """Return the accuracy of a vote of the k nearest other examples, with the best k up to `max_k`."""
    return float(KNNProbe(metric, max_k=max_k).fit(bank).leave_one_out_.max())


def measures_of(
    asked: str | Measure | Iterable[str | Measure] | Mapping[str, str | Measure],
) -> dict[str, Measure]:
    """Return a function from a feature bank to a number for each name under which it is recorded.

    A name stands for a registered metric of features, labels and logits, with settings if need be, or for the
    kNN probe. Raises RequestError for an unknown name, and for settings that are refused.

    >>> [*measures_of(["class_separation(unbiased=True)", "knn(max_k=5)"])]
    ['class_separation(unbiased=True)', 'knn(max_k=5)']
    >>> measures_of("knm")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown measurement 'knm'. Did you mean 'knn'? All ...
    """
    listed: list[Any] = [asked] if isinstance(asked, str) or callable(asked) else [*asked]
    named = (
        asked if isinstance(asked, Mapping) else {getattr(one, "__name__", str(one)): one for one in listed}
    )
    if not named:
        raise RequestError(f"nothing to measure; usual are {', '.join(USUAL)}")
    return {name: each if callable(each) else _named(each) for name, each in named.items()}


def _named(text: str) -> Measure:
    spec, known = parse(text), ["knn", *(name for name in names("metric") if name != "knn")]
    if spec.name not in known:
        raise unknown("measurement", spec.name, known)
    function: Measure = knn if spec.name == "knn" else entry("metric", spec.name).resolve()
    measure = partial(function, **spec.arguments)
    random, labels = np.random.default_rng(0), np.arange(80) % 20  # a bank on which the settings are tried
    features = random.normal(size=(80, 8)).astype(np.float32)
    logits = features @ random.normal(size=(8, 20)).astype(np.float32)
    try:
        float(measure(FeatureBank(features, labels, logits)))
    except UndefinedError:
        pass
    except (RequestError, TypeError, AttributeError) as error:
        raise RequestError(f"'{text}' does not give one number of a feature bank: {error}") from None
    return measure
