"""What makes a probe a scikit-learn estimator, without importing scikit-learn."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from penultimate.errors import RequestError, unknown
from penultimate.metrics.accuracy import accuracy, mean_per_class
from penultimate.metrics.inputs import ArrayLike
from penultimate.probes.arrays import NumpyInts
from penultimate.probes.inputs import as_labels

ACCURACIES: dict[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "top1": accuracy,
    "mean_per_class": mean_per_class,
}
"""How predictions are scored; a class without examples in `y` is skipped, as by `balanced_accuracy_score`."""


def accuracy_of(metric: str) -> Callable[[ArrayLike, ArrayLike], float]:
    """The accuracy of that name; raises RequestError with the nearest known one.

    >>> accuracy_of("mean_per_class")([0, 0, 0, 1], [0, 0, 0, 2])
    0.5
    """
    if metric not in ACCURACIES:
        raise unknown("accuracy", str(metric), ACCURACIES)
    return ACCURACIES[metric]


class Probe(ABC):
    """A classifier on fixed features: parameters in `__init__`, what was learnt in names that end in `_`."""

    classes_: NumpyInts
    n_features_in_: int

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Probe:
        """Change constructor arguments; raises RequestError on a name that is none."""
        for name, value in parameters.items():
            if name not in self._parameter_names():
                raise unknown(f"parameter of {type(self).__name__}", name, self._parameter_names())
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    @abstractmethod
    def predict(self, X: ArrayLike) -> NumpyInts:
        """The class of each example [n]."""

    def _scored(self, X: ArrayLike, y: ArrayLike, metric: str) -> float:
        measure = accuracy_of(metric)
        predictions = self.predict(X)
        return measure(predictions, as_labels(y, len(predictions)))

    def _fitted_on(self) -> int:
        """The number of features it was fitted on; raises RequestError before that."""
        if not hasattr(self, "n_features_in_"):
            raise RequestError(f"this {type(self).__name__} is not fitted yet: call .fit(X, y) first")
        return self.n_features_in_


def whole_number(value: object, name: str, least: int) -> int:
    """`value` as an int of at least `least`; raises RequestError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise RequestError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return int(value)
