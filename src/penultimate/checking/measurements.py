"""The checks of a metric and a probe: numbers that can be written in a row, and the contract of `fit`."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from penultimate.answers import WrongError, kind_of, numbers, predictions
from penultimate.checking.examination import Check, Examined, signature_of

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank

CLASSES = 4
FEATURES = 6
EACH = 12
FIELDS = ("features", "labels", "logits", "ids")


def _examples(seed: int, labels_from: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return four linearly separable clusters; the features are not negative, as after a ReLU."""
    generator = np.random.default_rng(seed)
    labels = np.arange(CLASSES * EACH) % CLASSES
    centres = 3 * np.eye(CLASSES, FEATURES)
    features = np.abs(centres[labels] + 0.3 * generator.standard_normal((len(labels), FEATURES)))
    return features.astype(np.float32), (labels + labels_from).astype(np.int64)


def _bank(order: np.ndarray | None = None) -> FeatureBank:
    from penultimate.features.bank import FeatureBank

    features, labels = _examples(0)
    logits = features[:, :CLASSES].copy()
    order = np.arange(len(labels)) if order is None else order
    ids = np.arange(len(labels), dtype=np.int64)
    return FeatureBank(
        features[order], labels[order], logits[order], ids[order], {"source": "penultimate check"}
    )


def _numbers(examined: Examined, bank: FeatureBank) -> dict[str, float]:
    value: Any = examined.call(
        examined.function, bank, given=f"a bank of {CLASSES * EACH} examples, {FEATURES} features"
    )
    return numbers(examined.name, value, "on four ordinary clusters")


def ask_value(examined: Examined) -> str:
    bank = _bank()
    before = {name: np.array(getattr(bank, name)) for name in FIELDS}
    first = _numbers(examined, bank)
    for name, values in before.items():
        if not np.array_equal(values, np.asarray(getattr(bank, name))):
            raise WrongError(f"{examined.name} changes the bank's {name} in place, but others read it later.")
    if _numbers(examined, _bank()) != first:
        raise WrongError(f"{examined.name} gives another value for the same bank; seed what it draws.")
    return (
        ", ".join(f"{name} = {value:.6g}" for name, value in first.items()) + " on four clusters, every time"
    )


def ask_order(examined: Examined) -> str:
    first = _numbers(examined, _bank())
    second = _numbers(examined, _bank(np.random.default_rng(1).permutation(CLASSES * EACH)))
    for name, value in first.items():
        if not math.isclose(second.get(name, math.nan), value, rel_tol=1e-4, abs_tol=1e-6):
            raise WrongError(
                f"{examined.name} depends on the order of the examples ({name}: {value:.6g}, and"
                f" {second.get(name, math.nan):.6g} after shuffling)."
            )
    return "the same in any order of the examples"


def ask_fit(examined: Examined) -> str:
    """Check that `fit` returns the probe, and that the probe has `predict` and `score`."""
    built: Any = examined.call(examined.function, given="no arguments")
    missing = [name for name in ("fit", "predict", "score") if not callable(getattr(built, name, None))]
    if missing:
        raise WrongError(f"{examined.name} builds an object without .{', .'.join(missing)}.")
    features, labels = _examples(0)
    before = features.copy()
    fitted = examined.call(built.fit, features, labels, given=_shapes(features))
    if fitted is not built:
        raise WrongError(f"{examined.name}.fit returns {kind_of(fitted)}; end it with 'return self'.")
    if not np.array_equal(features, before):
        raise WrongError(f"{examined.name}.fit changes its features in place, but others read them later.")
    return "fit(features, labels) returns itself"


def _fitted(examined: Examined, labels_from: int = 0) -> Any:
    features, labels = _examples(0, labels_from)
    built: Any = examined.call(examined.function, given="no arguments")
    return examined.call(built.fit, features, labels, given=_shapes(features))


def _predicted(examined: Examined, fitted: Any, features: np.ndarray) -> np.ndarray:
    answer = examined.call(fitted.predict, features, given=_shapes(features))
    return predictions(examined.name, answer, len(features))


def ask_predict(examined: Examined) -> str:
    """Check that predictions are the labels passed to `fit`, whatever integers these are."""
    unseen, expected = _examples(1, labels_from=3)
    predicted = _predicted(examined, _fitted(examined, labels_from=3), unseen)
    strange = sorted(set(predicted.tolist()) - set(expected.tolist()))
    if strange:
        raise WrongError(
            f"{examined.name}.predict names the class {strange[0]}, which was not among the labels 3 to"
            f" {CLASSES + 2} that it was fitted to; give back the labels, not their positions."
        )
    share = float((predicted == expected).mean())
    if share < 0.9:
        raise WrongError(
            f"{examined.name} classifies only {share:.0%} of four linearly separable clusters correctly."
        )
    return f"{share:.0%} of four separable clusters, labels 3 to {CLASSES + 2}"


def ask_score(examined: Examined) -> str:
    features, labels = _examples(1)
    fitted = _fitted(examined)
    score = examined.call(fitted.score, features, labels, given=_shapes(features))
    if isinstance(score, bool | Integral) or not isinstance(score, Real) or not 0 <= float(score) <= 1:
        raise WrongError(f"{examined.name}.score returns {score!r}; return an accuracy, a float from 0 to 1.")
    share = float((_predicted(examined, fitted, features) == labels).mean())
    if not math.isclose(score, share, abs_tol=1e-6):
        raise WrongError(
            f"{examined.name}.score is {float(score):.4g}, but {share:.4g} of its predictions are correct"
            " (the classes are equally frequent)."
        )
    return "score is the share of correct predictions"


def ask_refit(examined: Examined) -> str:
    features, _ = _examples(1)
    first, second = (_predicted(examined, _fitted(examined), features) for _ in range(2))
    if not np.array_equal(first, second):
        raise WrongError(f"{examined.name} predicts differently when it is fitted again; seed what it draws.")
    return "fitted again, it predicts the same"


def _shapes(features: np.ndarray) -> str:
    return f"features [{len(features)} {FEATURES}], numpy.float32, and integer labels"


METRIC_CHECKS = (
    signature_of(("bank",), keyword_only=False),
    Check("value", ask_value, essential=True),
    Check("order", ask_order),
)
PROBE_CHECKS = (
    signature_of((), keyword_only=False),
    Check("fit", ask_fit, essential=True),
    Check("predict", ask_predict, essential=True),
    Check("score", ask_score),
    Check("refit", ask_refit),
)
