"""What is asked of a metric and of a probe: numbers that can be written in a row, and the contract of fit."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from penultimate.checking.answers import WrongError, kind_of, numbers, predictions
from penultimate.checking.examination import Check, Subject, signature_of

if TYPE_CHECKING:
    from penultimate.bank import FeatureBank

CLASSES = 4
FEATURES = 6
EACH = 12
FIELDS = ("features", "labels", "logits", "ids")


def _examples(seed: int, labels_from: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four clusters that a straight line separates; features are not negative, as after a ReLU."""
    generator = np.random.default_rng(seed)
    labels = np.arange(CLASSES * EACH) % CLASSES
    centres = 3 * np.eye(CLASSES, FEATURES)
    features = np.abs(centres[labels] + 0.3 * generator.standard_normal((len(labels), FEATURES)))
    return features.astype(np.float32), (labels + labels_from).astype(np.int64)


def _bank(order: np.ndarray | None = None) -> FeatureBank:
    from penultimate.bank import FeatureBank

    features, labels = _examples(0)
    logits = features[:, :CLASSES].copy()
    order = np.arange(len(labels)) if order is None else order
    ids = np.arange(len(labels), dtype=np.int64)
    return FeatureBank(
        features[order], labels[order], logits[order], ids[order], {"source": "penultimate check"}
    )


def _numbers(subject: Subject, bank: FeatureBank) -> dict[str, float]:
    value: Any = subject.call(
        subject.function, bank, given=f"a bank of {CLASSES * EACH} examples, {FEATURES} features"
    )
    return numbers(subject.name, value, "on four ordinary clusters")


def ask_value(subject: Subject) -> str:
    bank = _bank()
    before = {name: np.array(getattr(bank, name)) for name in FIELDS}
    first = _numbers(subject, bank)
    for name, values in before.items():
        if not np.array_equal(values, np.asarray(getattr(bank, name))):
            raise WrongError(
                f"{subject.name} changes the bank's {name} in place, which others read after it."
            )
    if _numbers(subject, _bank()) != first:
        raise WrongError(f"{subject.name} gives another value for the same bank; seed what it draws.")
    return (
        ", ".join(f"{name} = {value:.6g}" for name, value in first.items()) + " on four clusters, every time"
    )


def ask_order(subject: Subject) -> str:
    first = _numbers(subject, _bank())
    second = _numbers(subject, _bank(np.random.default_rng(1).permutation(CLASSES * EACH)))
    for name, value in first.items():
        if not math.isclose(second.get(name, math.nan), value, rel_tol=1e-4, abs_tol=1e-6):
            raise WrongError(
                f"{subject.name} depends on the order of the examples ({name}: {value:.6g}, and"
                f" {second.get(name, math.nan):.6g} after shuffling)."
            )
    return "the same in any order of the examples"


def ask_fit(subject: Subject) -> str:
    """fit returns the probe, which then has predict and score."""
    built: Any = subject.call(subject.function, given="no arguments")
    missing = [name for name in ("fit", "predict", "score") if not callable(getattr(built, name, None))]
    if missing:
        raise WrongError(f"{subject.name} builds an object without .{', .'.join(missing)}.")
    features, labels = _examples(0)
    before = features.copy()
    fitted = subject.call(built.fit, features, labels, given=_shapes(features))
    if fitted is not built:
        raise WrongError(f"{subject.name}.fit returns {kind_of(fitted)}; end it with 'return self'.")
    if not np.array_equal(features, before):
        raise WrongError(f"{subject.name}.fit changes its features in place, which others read after it.")
    return "fit(features, labels) returns itself"


def _fitted(subject: Subject, labels_from: int = 0) -> Any:
    features, labels = _examples(0, labels_from)
    built: Any = subject.call(subject.function, given="no arguments")
    return subject.call(built.fit, features, labels, given=_shapes(features))


def _predicted(subject: Subject, fitted: Any, features: np.ndarray) -> np.ndarray:
    answer = subject.call(fitted.predict, features, given=_shapes(features))
    return predictions(subject.name, answer, len(features))


def ask_predict(subject: Subject) -> str:
    """Labels are what they were in fit, whatever integers they are."""
    unseen, expected = _examples(1, labels_from=3)
    predicted = _predicted(subject, _fitted(subject, labels_from=3), unseen)
    strange = sorted(set(predicted.tolist()) - set(expected.tolist()))
    if strange:
        raise WrongError(
            f"{subject.name}.predict names the class {strange[0]}, which was not among the labels 3 to"
            f" {CLASSES + 2} that it was fitted to; give back the labels, not their positions."
        )
    share = float((predicted == expected).mean())
    if share < 0.9:
        raise WrongError(
            f"{subject.name} gets {share:.0%} of four clusters right that a straight line separates."
        )
    return f"{share:.0%} of four separate clusters, labels 3 to {CLASSES + 2}"


def ask_score(subject: Subject) -> str:
    features, labels = _examples(1)
    fitted = _fitted(subject)
    score = subject.call(fitted.score, features, labels, given=_shapes(features))
    if isinstance(score, bool | Integral) or not isinstance(score, Real) or not 0 <= float(score) <= 1:
        raise WrongError(f"{subject.name}.score returns {score!r}; return an accuracy, a float from 0 to 1.")
    share = float((_predicted(subject, fitted, features) == labels).mean())
    if not math.isclose(score, share, abs_tol=1e-6):
        raise WrongError(
            f"{subject.name}.score is {float(score):.4g}, but {share:.4g} of its predictions are right (the"
            " classes are equally frequent)."
        )
    return "score is the share of right predictions"


def ask_refit(subject: Subject) -> str:
    features, _ = _examples(1)
    first, second = (_predicted(subject, _fitted(subject), features) for _ in range(2))
    if not np.array_equal(first, second):
        raise WrongError(f"{subject.name} predicts otherwise when it is fitted again; seed what it draws.")
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
