"""The linear probe: logistic regression on features, with lambda chosen on validation examples.

The probe with the chosen lambda is then refitted on training and validation examples together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Shaped
from scipy.special import softmax

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics.auc import auc
from penultimate.probes.arrays import (
    Array,
    NumpyFloats,
    NumpyInts,
    beside,
    blocks,
    cast,
    to_numpy,
)
from penultimate.probes.estimator import Probe, accuracy_of
from penultimate.probes.inputs import (
    Data,
    Labels,
    TrainingSet,
    as_labels,
    encoded,
    examples_of,
    training_set,
)
from penultimate.probes.logistic import LogisticProblem
from penultimate.probes.path import Optimum, Solver
from penultimate.probes.rows import Rows
from penultimate.probes.validation import split_off
from penultimate.progress import Advance

LAMBDAS: NumpyFloats = np.logspace(-6, 5, 45)
"""The paper's 45 values, for an objective that SUMS the examples' losses."""
AUC = "auc"
"""The one metric that ranks examples instead of scoring predictions."""
LAMBDA_RANGE = (1e-30, 1e30)
LEAST_PENALTY = 1e-30
"""The smallest lambda for features of unit variance; rounding of the gradient hides any smaller one."""
ROWS_SCORED, NUMBERS_SCORED = 1 << 14, 1 << 23
"""The largest number of examples that are scored at once, and of feature values that they hold."""


class UncertifiedWarning(UserWarning):
    """Warning that an optimum could not be certified: float64 is not precise enough for these features."""


class LinearProbe(Probe):
    """L2-regularised multinomial logistic regression whose lambda is chosen on validation examples.

        F(W, b) = sum_i CE(W x_i + b, y_i) + lambda/2 |W|_F^2,    the intercept b unpenalised

    For each lambda the optimum on the training examples is found and certified: F <= (1 + tolerance) F*, by a
    bound computed in float64 on the features as given (`certificates_`). The lambda with the best validation
    accuracy is chosen (the largest one if several are equal), and the probe is refitted with it on training
    and validation examples together.

    For three classes or more this is scikit-learn's `LogisticRegression(C=1/lambda)`. For two classes
    scikit-learn penalises the single vector w = w_1 - w_0, while this probe penalises both vectors
    (|W|^2 = |w|^2/2), so it corresponds to `C=2/lambda`.

    Parameters: `lambdas`, where None means the paper's 45 values, 1e-6..1e5; `metric`, which is "top1",
    "mean_per_class" or, for two classes, "auc", and by which lambda is chosen and `score` is computed;
    `tolerance`; `validation_fraction` and `seed` of the stratified split that is made if `fit` is given no
    validation examples.

    Learnt attributes: `classes_` [k]; `lambda_`; `coef_` [k p] and `intercept_` [k] (float64, k rows also for
    k = 2); `lambdas_` in ascending order, and for each of them `validation_accuracy_`, `certificates_`
    (bounds on (F - F*)/F*), `objectives_` (F) and `n_iter_` (passes over the features); `certificate_`, the
    bound for the refit.

    Memory: the features are read in blocks from where they are stored (also from a memory-mapped float16
    bank) and never copied as a whole. Their rotation, n p numbers of 4 bytes (8 if X is float64), is kept in
    memory up to 256 MB and otherwise in a file in TMPDIR. The logits for a certificate take 8 n k bytes, and
    the descent takes about 40 k p numbers. A pass costs 4 n p k flop, and each lambda takes 2 to 10 passes.
    CUDA tensors stay on their device.

    The penalty is not relative to the features: where n |x|^2 is below a 1e-16th of the smallest lambda, only
    the intercept is left, as in scikit-learn. Scale such features up.

    A long fit reports its progress on a terminal, or to `penultimate.progress.listening`.

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> labels = np.arange(120) % 3
    >>> features = generator.normal(size=(120, 5)) + 2 * np.eye(3, 5)[labels]
    >>> probe = LinearProbe().fit(features[:90], labels[:90])
    >>> round(probe.score(features[90:], labels[90:]), 2), bool(max(probe.certificates_) <= 1e-4)
    (0.9, True)

    Kornblith et al., 2021, section 3.1 and appendix A.2.
    """

    def __init__(
        self,
        lambdas: Sequence[float] | npt.NDArray[np.floating] | None = None,
        *,
        metric: str = "top1",
        tolerance: float = 1e-4,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.lambdas = lambdas
        self.metric = metric
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.seed = seed

    def fit(self, X: Data, y: Data = None, X_val: Data = None, y_val: Data = None) -> LinearProbe:
        """Choose lambda on (X_val, y_val), or on a stratified share of (X, y), and refit on all examples.

        X is [n p] and X_val is [v p]; y [n] and y_val [v] hold classes as numbers or strings. A bank given as
        X or X_val supplies its own labels. Without X_val, the share `validation_fraction` of (X, y) is split
        off. Examples of a class that occurs only in validation count as errors there, and the refit learns
        the class. Raise RequestError for NaN (it lists the rows) and for wrong shapes or parameters; raise
        UndefinedError for a single class or constant features.
        """
        measure = None if isinstance(self.metric, str) and self.metric == AUC else accuracy_of(self.metric)
        lambdas = self._checked_lambdas()
        whole = self._training_set(X, y)
        train, validation, validation_labels = self._divide(whole, X_val, y_val)
        known, truth = encoded(train.classes, validation_labels)
        if measure is None:
            _expect_two(whole.classes)

        optima = []
        accuracies = []
        advance = Advance("linear probe", "fits", len(lambdas) + 1)
        solver = Solver(train.features, train.codes, len(train.classes), self.tolerance, advance.again)
        _expect_told_apart(float(lambdas[0]), solver.problem)
        gain = _gain(solver.problem, train.codes)
        for penalty in lambdas[::-1]:
            solver.tolerance = self.tolerance * min(1.0, gain / float(penalty))
            optimum = solver.solve(float(penalty))
            optima.append(optimum)
            advance.to(len(optima))
            if measure is None:
                margins = _margins(validation, optimum.weight, optimum.intercept)
                accuracies.append(auc(margins, truth == known[1]))
            else:
                accuracies.append(
                    measure(_largest(validation, known, optimum.weight, optimum.intercept), truth)
                )
        del solver

        best = int(np.argmax(accuracies))
        if X_val is not None:
            labels = np.concatenate([train.classes[train.codes], validation_labels])
            whole = training_set(train.features.joined(validation), labels)
        refit = self._refit(whole, train.classes, optima[best], advance)
        advance.to(advance.total)
        optima.reverse()

        self.classes_ = whole.classes
        self.lambda_ = refit.penalty
        self.coef_, self.intercept_ = refit.weight, refit.intercept
        self.certificate_ = refit.gap
        self.lambdas_ = lambdas
        self.validation_accuracy_ = np.array(accuracies[::-1])
        self.certificates_ = np.array([optimum.gap for optimum in optima])
        self.objectives_ = np.array([optimum.objective for optimum in optima])
        self.n_iter_ = np.array([optimum.passes for optimum in optima])
        self._warn([*optima, refit])
        return self

    def _learnt(self) -> dict[str, object]:
        chosen = float(self.validation_accuracy_.max())
        accuracy = f"{chosen:.4f}" if self.metric == AUC else f"{100 * chosen:.2f} %"
        ends = self.lambdas_[[0, -1]]
        where = ", an end of their range" if self.lambda_ in ends and len(self.lambdas_) > 1 else ""
        return {
            f"validation {self.metric}": accuracy,
            "lambda": f"{self.lambda_:.4g}, of {len(self.lambdas_)} values{where}",
            "certificate": f"F is at most {self.certificate_:.1e} F* above the optimum F*",
            "worst certificate": f"{self.certificates_.max():.1e} F*, over all values of lambda",
            "classes": len(self.classes_),
            "features": self.coef_.shape[1],
        }

    def _fits(self) -> tuple[tuple[str, ...], Sequence[tuple[object, ...]]]:
        columns = (self.lambdas_, self.validation_accuracy_, self.certificates_, self.objectives_)
        chosen = self.lambdas_ == self.lambda_
        rows = list(zip(*(column.tolist() for column in (*columns, self.n_iter_, chosen)), strict=True))
        return ("lambda", f"validation_{self.metric}", "certificate", "objective", "passes", "chosen"), rows

    def decision_function(self, X: Data) -> NumpyFloats:
        """Return the logits W x + b [n k] in the order of `classes_`; for two classes, z_1 - z_0 [n]."""
        logits = self._all_logits(X)
        return logits if len(self.classes_) > 2 else logits[:, 1] - logits[:, 0]

    def predict(self, X: Data) -> Labels:
        """Return the class of the largest logit [n]."""
        return _largest(Rows(self._queries(X)), self.classes_, self.coef_, self.intercept_)

    def predict_proba(self, X: Data) -> NumpyFloats:
        """Return the probabilities softmax(W x + b) [n k] in the order of `classes_`."""
        return np.asarray(softmax(self._all_logits(X), axis=1))

    def score(self, X: Data, y: Data = None, metric: str | None = None) -> float:
        """Return the accuracy on (X, y) or on a feature bank.

        `metric` is "top1", "mean_per_class" (which skips classes without examples in y) or, for two classes,
        "auc" (the second class is the positive one). By default it is the metric that chose lambda.
        """
        metric = self.metric if metric is None else metric
        if not isinstance(metric, str) or metric != AUC:
            return super().score(X, y, metric)
        features, labels = examples_of(X, y)
        queries = Rows(self._queries(features))
        _expect_two(self.classes_)
        known, truth = encoded(self.classes_, as_labels(labels, len(queries)))
        return auc(_margins(queries, self.coef_, self.intercept_), truth == known[1])

    def _all_logits(self, X: Data) -> NumpyFloats:
        parts = logits_of(Rows(self._queries(X)), self.coef_, self.intercept_)
        return np.concatenate([to_numpy(part) for part in parts])

    def _checked_lambdas(self) -> NumpyFloats:
        given = LAMBDAS if self.lambdas is None else self.lambdas
        try:
            lambdas = np.unique(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            lambdas = np.zeros(0)
        if lambdas.size == 0 or not ((lambdas >= LAMBDA_RANGE[0]) & (lambdas <= LAMBDA_RANGE[1])).all():
            span = "from {:g} to {:g}".format(*LAMBDA_RANGE)
            raise RequestError(
                f"lambdas must be positive numbers, at least one, {span}; got {self.lambdas!r}"
            )
        real_number(self.tolerance, "tolerance", above=0, below=1)
        whole_number(self.seed, "seed", 0)
        return lambdas

    def _divide(
        self, whole: TrainingSet, X_val: Data, y_val: Data
    ) -> tuple[TrainingSet, Rows, Shaped[np.ndarray, " v"]]:
        """Return the training examples, the validation features and the validation labels."""
        X_val, y_val = examples_of(X_val, y_val)
        if (X_val is None) != (y_val is None):
            raise RequestError("X_val and y_val go together; got one of them")
        if X_val is not None:
            validation = Rows(beside(self._queries(X_val, "X_val"), whole.features.home))
            return whole, validation, as_labels(y_val, len(validation), "y_val")
        chosen = split_off(whole.codes, self.validation_fraction, self.seed)
        labels = whole.classes[whole.codes]
        train = training_set(whole.features.chosen(~chosen), labels[~chosen])
        return train, whole.features.chosen(chosen), labels[chosen]

    def _refit(self, whole: TrainingSet, classes: Labels, optimum: Optimum, advance: Advance) -> Optimum:
        """Return the optimum on all examples at the chosen lambda, started from the training optimum."""
        places = np.searchsorted(whole.classes, classes)
        weight = np.zeros((len(whole.classes), whole.features.shape[1]))
        intercept = np.full(len(whole.classes), optimum.intercept.min())
        weight[places], intercept[places] = optimum.weight, optimum.intercept
        solver = Solver(whole.features, whole.codes, len(whole.classes), self.tolerance, advance.again)
        _expect_told_apart(optimum.penalty, solver.problem)  # a validation example may lie far away
        solver.tolerance *= min(1.0, _gain(solver.problem, whole.codes) / optimum.penalty)
        solver.start_at(weight, intercept, optimum.penalty)
        return solver.solve(optimum.penalty)

    def _warn(self, optima: list[Optimum]) -> None:
        worst = max(optima, key=lambda optimum: optimum.gap)
        if worst.gap > self.tolerance:
            count = sum(optimum.gap > self.tolerance for optimum in optima)
            warnings.warn(
                f"{count} of {len(optima)} optima are not certified to {self.tolerance:g}: at lambda ="
                f" {worst.penalty:g} only to {worst.gap:.2g}. Rescale the features or leave it out.",
                UncertifiedWarning,
                stacklevel=3,
            )


def _expect_told_apart(penalty: float, problem: LogisticProblem) -> None:
    """Raise RequestError for a lambda whose optimum float64 cannot tell from others on these features."""
    least = LEAST_PENALTY * problem.unit**2
    if penalty < least:
        raise RequestError(
            f"lambda = {penalty:g} is too small for X, which varies by {problem.unit:g}: from"
            f" {least:.1g} up float64 can tell the optimum; scale X down, or leave it out"
        )


def _gain(problem: LogisticProblem, codes: NumpyInts) -> float:
    """Return lambda times the largest share of F(0) that the weights can save when lambda is large.

        F(0) - F* -> |g|^2 / (2 lambda),    g the gradient at W = 0, where F(0) = n H(classes)

    A probe's predictions depend on the direction of the weights, however short they are. The tolerance
    therefore shrinks with what the weights can save; otherwise W = 0, which cannot tell classes apart, would
    be accepted at the largest lambdas.
    """
    shares = np.bincount(codes, minlength=problem.classes) / len(codes)
    sums = np.zeros((problem.classes, problem.rank))
    for block in problem.blocks:
        members = beside(np.equal.outer(np.arange(problem.classes), codes[block]), problem.mean)
        sums += to_numpy(cast(members, problem.dtype) @ problem.features[block])
    square = float((sums**2).sum()) * problem.unit**2
    return square / (2 * len(codes) * float(-(shares * np.log(shares)).sum()))


def logits_of(features: Rows, weight: NumpyFloats, intercept: NumpyFloats) -> Iterator[Float[Array, "_ k"]]:
    """Yield the logits W x + b in float64, one block of examples after another."""
    weight, intercept = beside(weight, features.home), beside(intercept, features.home)
    examples, columns = features.shape
    for block in blocks(examples, min(ROWS_SCORED, max(1, NUMBERS_SCORED // columns))):
        yield features.float64(block) @ weight.T + intercept


def _margins(features: Rows, weight: NumpyFloats, intercept: NumpyFloats) -> NumpyFloats:
    """Return each example's logit of the second class minus its logit of the first."""
    parts = [to_numpy(part) for part in logits_of(features, weight, intercept)]
    return np.concatenate([part[:, 1] - part[:, 0] for part in parts])


def _expect_two(classes: Labels) -> None:
    if len(classes) != 2:
        raise RequestError(f"the metric 'auc' is for two classes; y has {len(classes)}")


def _largest(features: Rows, classes: Labels, weight: NumpyFloats, intercept: NumpyFloats) -> Labels:
    """Return the class of each example's largest logit, or the smallest such class if logits are equal."""
    return np.concatenate(
        [classes[to_numpy(part.argmax(1))] for part in logits_of(features, weight, intercept)]
    )
