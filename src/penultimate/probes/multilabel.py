"""The linear probe for several labels: a binary logistic regression for each, with its own lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from penultimate.errors import RequestError, counted
from penultimate.metrics import UndefinedError
from penultimate.metrics.auc import auc
from penultimate.metrics.inputs import as_numbers
from penultimate.probes.arrays import NumpyFloats, to_numpy
from penultimate.probes.estimator import DisplayedProbe
from penultimate.probes.inputs import Data, as_features, examples_of
from penultimate.probes.linear import AUC, LAMBDAS, LinearProbe, logits_of
from penultimate.probes.rows import Rows
from penultimate.probes.validation import split_off
from penultimate.progress import Advance

_Result = TypeVar("_Result")


class MultiLabelProbe(DisplayedProbe, BaseEstimator):  # type: ignore[misc]
    """L2-regularised logistic regression for each label; its lambda is the one with the best validation AUC.

        F_l(w, b) = sum_i log(1 + exp(-s_il (w.x_i + b))) + lambda_l/2 |w|^2,    s_il = +1 or -1

    Labels [n l] are 0 or 1 (or booleans); uncertain labels must have been replaced before. Each label is
    fitted by a `LinearProbe` with two classes, so its optima are certified. Its validation examples are split
    off stratified by that label, so that there are positives among them.

    Parameters: `lambdas`, where None means the paper's 45 values, 1e-6..1e5, for the sum of losses;
    `tolerance`, `validation_fraction` and `seed` as for `LinearProbe`; `names` [l], the names of the labels
    in error messages.

    Learnt attributes: `lambda_` [l], `coef_` [l p], `intercept_` [l] (float64), and `probes_`, one
    `LinearProbe` for each label.

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> features = generator.normal(size=(200, 4))
    >>> labels = (features[:, :2] + 0.5 * generator.normal(size=(200, 2)) > 0.5).astype(int)
    >>> probe = MultiLabelProbe().fit(features[:150], labels[:150])
    >>> probe.lambda_.shape, bool(probe.score(features[150:], labels[150:]) > 0.9)
    ((2,), True)

    Kornblith et al., 2021, appendix D.3 and table D.1.
    """

    def __init__(
        self,
        lambdas: Sequence[float] | npt.NDArray[np.floating] | None = None,
        *,
        tolerance: float = 1e-4,
        validation_fraction: float = 0.2,
        seed: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        self.lambdas = lambdas
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.seed = seed
        self.names = names

    def fit(self, X: Data, y: Data, X_val: Data = None, y_val: Data = None) -> MultiLabelProbe:
        """Fit every label on X [n p] and y [n l]; lambda is chosen on (X_val, y_val) or on a share of (X, y).

        Raise RequestError for what `LinearProbe.fit` refuses, for labels other than 0 and 1, and if there are
        more or fewer names than labels; raise UndefinedError for a label without a positive or without a
        negative example. An error about one label names that label.
        """
        X, y = examples_of(X, y)
        X_val, y_val = examples_of(X_val, y_val)
        labels = _as_binary(y, "y")
        columns = _columns(y)
        if self.names is not None and len(self.names) != labels.shape[1]:
            raise RequestError(
                f"y has {counted(labels.shape[1], 'label')}, and names has {len(self.names)}"
                f" ({', '.join(map(str, self.names))}): name each column of y, or leave names out"
            )
        if (X_val is None) != (y_val is None):
            raise RequestError("X_val and y_val go together; got one of them")
        of_validation = (
            None if y_val is None else _as_binary(_ordered(y_val, columns, "y_val"), "y_val", labels.shape[1])
        )
        grid = LAMBDAS if self.lambdas is None else np.asarray(self.lambdas, dtype=np.float64)
        probes = []
        advance = Advance("linear probes", "labels", labels.shape[1])
        for place in range(labels.shape[1]):
            # For two classes the penalty is lambda/2 (|w_0|^2 + |w_1|^2) = lambda/4 |w|^2, w = w_1 - w_0.
            probe = LinearProbe(
                2 * grid,
                metric=AUC,
                tolerance=self.tolerance,
                validation_fraction=self.validation_fraction,
                seed=self.seed,
            )
            val = None if of_validation is None else of_validation[:, place]
            self._expect_both(place, labels[:, place], splits=val is None)
            with advance.one():
                probes.append(self._of_label(place, probe.fit, X, labels[:, place], X_val, val))
        self.probes_ = probes
        self._columns = columns
        self.lambda_ = np.array([probe.lambda_ / 2 for probe in probes])
        self.coef_ = np.stack([probe.coef_[1] - probe.coef_[0] for probe in probes])
        self.intercept_ = np.array([probe.intercept_[1] - probe.intercept_[0] for probe in probes])
        return self

    def _expect_both(self, place: int, label: npt.NDArray[np.int64], splits: bool) -> None:
        """Raise UndefinedError if a label has no positives or no negatives.

        If `splits` is true, the validation examples that will be split off must hold both as well.
        """
        if len(label) == 0:
            return  # the check of X reports that there are no examples
        rarest, kind = min(zip(np.bincount(label, minlength=2), ("negative", "positive"), strict=True))
        if rarest == 0:
            raise UndefinedError(f"{self._called(place)} has no {kind} example among {len(label)}")
        if splits and len(np.unique(label[split_off(label, self.validation_fraction, self.seed)])) < 2:
            few = "one example" if rarest == 1 else f"{rarest} examples"
            raise UndefinedError(
                f"{self._called(place)} has {few} of one kind, too few for any to be among those that"
                " validate; give some to validate on, or leave the label out"
            )

    def _is_fitted(self) -> bool:
        return hasattr(self, "coef_")

    def _learnt(self) -> dict[str, object]:
        _, rows = self._fits()
        return {
            str(name): f"validation AUC {auc:.4f}, lambda {penalty:.4g}, certificate {certificate:.1e}"
            for name, penalty, auc, certificate in rows
        }

    def _fits(self) -> tuple[tuple[str, ...], Sequence[tuple[object, ...]]]:
        names = self.names or self._columns or [f"label {place}" for place in range(len(self.lambda_))]
        rows: list[tuple[object, ...]] = [
            (name, penalty, float(probe.validation_accuracy_.max()), float(probe.certificate_))
            for name, penalty, probe in zip(names, self.lambda_.tolist(), self.probes_, strict=True)
        ]
        return ("label", "lambda", "validation_auc", "certificate"), rows

    def decision_function(self, X: Data) -> NumpyFloats:
        """Return the log-odds w.x + b of every label [n l]."""
        self._expect_fitted()
        X, _ = examples_of(X, None)
        features = as_features(X, "X")
        if features.shape[1] != self.coef_.shape[1]:
            raise RequestError(
                f"X has {features.shape[1]} features, and the probe was fitted on {self.coef_.shape[1]}"
            )
        features = self.probes_[0]._queries(X)  # refuses columns of other names, or in another order
        parts = logits_of(Rows(features), self.coef_, self.intercept_)
        return np.concatenate([to_numpy(part) for part in parts])

    def predict(self, X: Data) -> npt.NDArray[np.int64]:
        """Return 1 for each label that is more likely than not, else 0 [n l]."""
        return (self.decision_function(X) > 0).astype(np.int64)

    def scores(self, X: Data, y: Data = None) -> NumpyFloats:
        """Return the exact AUC of every label [l] on (X, y) or on a feature bank.

        If y in `fit` had named columns, columns here are matched by name. Raise RequestError if the names
        differ.
        """
        X, y = examples_of(X, y)
        logits = self.decision_function(X)
        labels = _as_binary(_ordered(y, self._columns, "y"), "y", logits.shape[1])
        return np.array(
            [self._of_label(place, auc, logits[:, place], labels[:, place]) for place in range(len(logits.T))]
        )

    def score(self, X: Data, y: Data = None) -> float:
        """Return the AUC on (X, y) or on a feature bank, averaged over labels."""
        return float(self.scores(X, y).mean())

    def _called(self, place: int) -> str:
        return f"label {place}" if self.names is None else f"label '{self.names[place]}'"

    def _of_label(self, place: int, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Return what `work` returns for one label; an error that it raises then names the label."""
        try:
            return work(*arguments)
        except RequestError as error:
            raise type(error)(f"{self._called(place)}: {error}") from None


def _columns(labels: Data) -> list[str] | None:
    """Return the column names of a table of labels, or None if the labels have no column names."""
    columns = list(getattr(labels, "columns", []))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


def _ordered(labels: Data, expected: list[str] | None, what: str) -> Data:
    """Return the labels with their columns in the expected order.

    Raise RequestError if the table has other columns.
    """
    columns = _columns(labels)
    if columns is None or expected is None or columns == expected:
        return labels
    if sorted(columns) != sorted(expected) or len(set(columns)) < len(columns):
        raise RequestError(
            f"{what} has the columns {', '.join(columns)}, and the probe was fitted on {', '.join(expected)}"
        )
    return labels[expected]


def _as_binary(values: Data, what: str, labels: int | None = None) -> npt.NDArray[np.int64]:
    """Return labels [n l] of zeros and ones; raise RequestError for anything else."""
    array = to_numpy(as_numbers(values, what))
    if array.ndim != 2 or array.shape[1] < 1 or (labels is not None and array.shape[1] != labels):
        columns = "l" if labels is None else labels
        raise RequestError(f"{what} is [n {columns}], with a column for each label; got {list(array.shape)}")
    if not np.isin(array, (0, 1)).all():
        other = array[~np.isin(array, (0, 1))].tolist()[0]
        raise RequestError(
            f"{what} holds 0 and 1, not {other!r}; say first what an uncertain label counts as"
        )
    return array.astype(np.int64)
