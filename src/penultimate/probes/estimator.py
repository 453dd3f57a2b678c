"""The base of every probe: a scikit-learn classifier that leaves tensors on their device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from penultimate.checks import one_of
from penultimate.errors import RequestError
from penultimate.metrics.accuracy import accuracy, mean_per_class
from penultimate.metrics.inputs import ArrayLike
from penultimate.notebook import facts
from penultimate.probes.arrays import Array
from penultimate.probes.inputs import (
    Data,
    TrainingSet,
    as_features,
    as_labels,
    encoded,
    examples_of,
    naming,
    training_set,
)
from penultimate.probes.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

ACCURACIES: dict[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "top1": accuracy,
    "mean_per_class": mean_per_class,
}
"""How predictions are scored. Like `balanced_accuracy_score`, both skip classes without examples in `y`."""


class UnfittedError(RequestError, NotFittedError):  # type: ignore[misc]
    """Error for a probe that is used before it is fitted."""


def accuracy_of(metric: str) -> Callable[[ArrayLike, ArrayLike], float]:
    """Return the accuracy function with this name, which takes class indices.

    Raise RequestError, which suggests the nearest known name, if there is no such function.

    >>> accuracy_of("mean_per_class")([0, 0, 0, 1], [0, 0, 0, 2])
    0.5
    """
    one_of(metric, "accuracy", ACCURACIES)
    return ACCURACIES[metric]


class DisplayedProbe:
    """What a notebook shows of a probe: its parameters, and what it learnt once it is fitted."""

    @abstractmethod
    def _learnt(self) -> dict[str, object]:
        """Return what a reader wants to know of a fitted probe, by name."""

    @abstractmethod
    def _fits(self) -> tuple[tuple[str, ...], Sequence[tuple[object, ...]]]:
        """Return names of columns, and a row for each value that was tried."""

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a row for each value that `fit` tried."""
        import pandas as pd

        self._expect_fitted()
        head, rows = self._fits()
        return pd.DataFrame(rows, columns=head)

    def _expect_fitted(self) -> None:
        if not self._is_fitted():
            raise UnfittedError(f"this {type(self).__name__} is not fitted yet: call .fit(X, y) first")

    def _is_fitted(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        state = self._learnt() if self._is_fitted() else {"state": "not fitted yet: call .fit(X, y)"}
        return facts(repr(self), state)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the probe as text and as HTML, in place of scikit-learn's diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class Probe(DisplayedProbe, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier on fixed features; `__init__` takes its parameters, and learnt attributes end in `_`."""

    def score(self, X: Data, y: Data = None, metric: str = "top1") -> float:
        """Return the accuracy on (X, y) or on a feature bank.

        `metric` is "top1" or "mean_per_class", which skips classes without examples in y.
        """
        X, y = examples_of(X, y)
        measure = accuracy_of(metric)
        predictions = self.predict(X)
        return measure(*encoded(predictions, as_labels(y, len(predictions))))

    def _training_set(self, X: Data, y: Data) -> TrainingSet:
        """Return the checked examples, and remember the number of features and a table's column names."""
        X, y = examples_of(X, y)
        features = as_features(X)
        examples = training_set(Rows(features), as_labels(y, len(features)))
        with naming("X"):
            validate_data(self, X, skip_check_array=True)
        return examples

    def _queries(self, X: Data, what: str = "X") -> Float[Array, "n p"]:
        """Return the checked features; raise unless their number and names are the same as in `fit`."""
        self._expect_fitted()
        X, _ = examples_of(X, None)
        features = as_features(X, what)
        with naming(what):
            validate_data(self, X, reset=False, skip_check_array=True)
        return features
