"""The linear probe: logistic regression on features, lambda chosen on validation, refitted on everything."""

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
"""The paper's 45 values, relative to the SUM of the examples' losses."""
AUC = "auc"
"""The metric that ranks examples and predicts none."""
LAMBDA_RANGE = (1e-30, 1e30)
LEAST_PENALTY = 1e-30
"""Relative to the variance of the features: a gradient rounded to eps certifies no smaller lambda."""
ROWS_SCORED, NUMBERS_SCORED = 1 << 14, 1 << 23
"""The most examples that are scored together, and the most features of theirs."""


class UncertifiedWarning(UserWarning):
    """An optimum is not known to be within the tolerance: float64 is not enough for these features."""


class LinearProbe(Probe):
    """L2-regularised multinomial logistic regression whose lambda is chosen on validation examples.

        F(W, b) = sum_i CE(W x_i + b, y_i) + lambda/2 |W|_F^2,    the intercept b unpenalised

    For each lambda the optimum on the training examples is found and certified: F <= (1 + tolerance) F*, by a
    bound computed in float64 on the features as given (`certificates_`). The lambda with the best validation
    accuracy (the largest of equals) is refitted on training and validation examples together.

    This is scikit-learn's `LogisticRegression(C=1/lambda)` for three classes or more. For two, scikit-learn
    penalises one vector w = w_1 - w_0 and this probe both (|W|^2 = |w|^2/2), so there it is `C=2/lambda`.

    Parameters: `lambdas`, None for the paper's 45, 1e-6..1e5; `metric`, "top1", "mean_per_class" or, for two
    classes, "auc", by which lambda is chosen and `score` is computed; `tolerance`; `validation_fraction` and
    `seed` of the stratified split that is made if `fit` is given no validation examples.

    Learnt: `classes_` [k]; `lambda_`; `coef_` [k p] and `intercept_` [k] (float64, k rows also for k = 2);
    `lambdas_` ascending, and for each of them `validation_accuracy_`, `certificates_` (bounds on
    (F - F*)/F*), `objectives_` (F) and `n_iter_` (passes over the features); `certificate_` of the refit.

    Memory: the features are read in blocks from where they lie (a memory-mapped bank in float16 too) and
    never copied as a whole; their rotation, n p numbers of 4 bytes (8 if X is in float64), is in memory up to
    256 MB, else in a file in TMPDIR. 8 n k bytes for a certificate's logits, about 40 k p numbers for the
    descent. A pass costs 4 n p k flop, and a lambda takes 2 to 10. CUDA tensors stay on their device.

    A long fit says on a terminal how far it is; `penultimate.progress.listening` hears it instead.

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
        """Choose lambda on (X_val, y_val), or on a fifth of (X, y) split off by class; refit on everything.

        X [n p], X_val [v p]; y [n], y_val [v] classes: numbers or strings. A bank as X or X_val brings its
        own labels. A class that occurs only in validation counts as an error there and is learnt in the
        refit. Raises RequestError for NaN (with the rows), wrong shapes or parameters; UndefinedError for one
        class only or constant features.
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
        least = LEAST_PENALTY * solver.problem.unit**2
        if lambdas[0] < least:
            raise RequestError(
                f"lambda = {lambdas[0]:g} is too small for X, which varies by {solver.problem.unit:g}: from"
                f" {least:.1g} up float64 can tell the optimum; scale X down, or leave it out"
            )
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

    def decision_function(self, X: Data) -> NumpyFloats:
        """Return the logits W x + b [n k] in the order of `classes_`; for two classes, z_1 - z_0 [n]."""
        logits = self._all_logits(X)
        return logits if len(self.classes_) > 2 else logits[:, 1] - logits[:, 0]

    def predict(self, X: Data) -> Labels:
        """Return the class of the largest logit [n]."""
        return _largest(Rows(self._queries(X)), self.classes_, self.coef_, self.intercept_)

    def predict_proba(self, X: Data) -> NumpyFloats:
        """softmax(W x + b) [n k], in the order of `classes_`."""
        return np.asarray(softmax(self._all_logits(X), axis=1))

    def score(self, X: Data, y: Data = None, metric: str | None = None) -> float:
        """Return the accuracy on (X, y), or on a bank: "top1", "mean_per_class" (absent classes skipped) or,
        for two classes, "auc" (the second class is the positive one);
        by default that by which lambda was chosen.
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
        """Training examples, validation features, validation labels."""
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
        """Return the optimum on everything at the chosen lambda, started
        from the one on the training examples.
        """
        places = np.searchsorted(whole.classes, classes)
        weight = np.zeros((len(whole.classes), whole.features.shape[1]))
        intercept = np.full(len(whole.classes), optimum.intercept.min())
        weight[places], intercept[places] = optimum.weight, optimum.intercept
        solver = Solver(whole.features, whole.codes, len(whole.classes), self.tolerance, advance.again)
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


def _gain(problem: LogisticProblem, codes: NumpyInts) -> float:
    """Lambda times the share of F at W = 0 that weights can save at most where lambda is large.

        F(0) - F* -> |g|^2 / (2 lambda),    g the gradient at W = 0, where F(0) = n H(classes)

    What a probe predicts depends on the direction of the weights, however short they are. So the tolerance
    shrinks with what they save: else W = 0 would do at the largest lambdas, and tell nothing apart.
    """
    shares = np.bincount(codes, minlength=problem.classes) / len(codes)
    sums = np.zeros((problem.classes, problem.rank))
    for block in problem.blocks:
        members = beside(np.equal.outer(np.arange(problem.classes), codes[block]), problem.mean)
        sums += to_numpy(cast(members, problem.dtype) @ problem.features[block])
    square = float((sums**2).sum()) * problem.unit**2
    return square / (2 * len(codes) * float(-(shares * np.log(shares)).sum()))


def logits_of(features: Rows, weight: NumpyFloats, intercept: NumpyFloats) -> Iterator[Float[Array, "_ k"]]:
    """W x + b in float64, of a block of examples after another."""
    weight, intercept = beside(weight, features.home), beside(intercept, features.home)
    examples, columns = features.shape
    for block in blocks(examples, min(ROWS_SCORED, max(1, NUMBERS_SCORED // columns))):
        yield features.float64(block) @ weight.T + intercept


def _margins(features: Rows, weight: NumpyFloats, intercept: NumpyFloats) -> NumpyFloats:
    """Return how far the second class's logit lies above the first's."""
    parts = [to_numpy(part) for part in logits_of(features, weight, intercept)]
    return np.concatenate([part[:, 1] - part[:, 0] for part in parts])


def _expect_two(classes: Labels) -> None:
    if len(classes) != 2:
        raise RequestError(f"the metric 'auc' is for two classes; y has {len(classes)}")


def _largest(features: Rows, classes: Labels, weight: NumpyFloats, intercept: NumpyFloats) -> Labels:
    """Return the class of the largest logit; among equals the smallest class."""
    return np.concatenate(
        [classes[to_numpy(part.argmax(1))] for part in logits_of(features, weight, intercept)]
    )
