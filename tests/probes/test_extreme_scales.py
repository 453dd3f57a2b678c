"""Both probes on features of extreme scales, against scikit-learn where float64 has the digits for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.oracles import probes as oracle
from tests.probes.conftest import blobs

from penultimate.errors import RequestError
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe, UncertifiedWarning

TRAIN, COLUMNS, FAR = 60, 4, 7
"""How many examples the probes learn from, and which of them lies far away."""


def _scaled(scale: float, kind: str = "float64") -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: (x * scale).astype(kind)


def _shifted(offset: float, kind: str = "float64") -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: (x + offset).astype(kind)


def _beside(place: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(np.arange(len(x))[:, None] == FAR, place, x)


def _with_column(value: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(np.arange(COLUMNS) == 2, value, x)


def _of_all_sizes(x: np.ndarray) -> np.ndarray:
    """Rows from 1e-300 to 1e300 long."""
    return x * 10.0 ** np.random.default_rng(5).integers(-300, 300, (len(x), 1))


SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"float32, times {scale:g}": _scaled(scale, "float32") for scale in (1e-45, 1e-38, 1e-20, 1e20, 1e37)},
    **{f"times {text}": _scaled(float(text)) for text in ("1e-322", "1e-320", "1e-310", "1e-300", "1e-160")},
    "times 1e-45": _scaled(1e-45),
    **{f"times {scale:g}": _scaled(scale) for scale in (1e-9, 1.0, 1e9, 1e45, 1e150, 1e200, 1e300)},
    "the largest": lambda x: np.where(x > 0, 1.7e308, -1.7e308) * (1 - abs(x) / 100),
    **{f"plus {offset:g}": _shifted(offset) for offset in (1e4, 1e8, 1e12)},
    "float32, plus 1e4": _shifted(1e4, "float32"),
    **{f"one at {place:g}": _beside(place) for place in (1e12, 1e100, 1e300)},
    **{f"a column of {value:g}": _with_column(value) for value in (0.0, 1e-310, 1e12, 1e300)},
    "every other twice": lambda x: x[np.arange(len(x)) // 2 * 2],
    "every other twice, times 1e300": lambda x: 1e300 * x[np.arange(len(x)) // 2 * 2],
    "some zero": lambda x: np.where(np.arange(len(x))[:, None] % 9 == 0, 0.0, x),
    "a direction": lambda x: np.array([1e8, 0, 0, 0]) + x,
    "of all sizes": _of_all_sizes,
}


def problem(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    points, labels = blobs(11, 90, COLUMNS, 3, 1.5)
    with np.errstate(under="ignore"):
        points = SCALES[kind](points)
    return points[:TRAIN], labels[:TRAIN], points[TRAIN:], labels[TRAIN:]


def with_ties(train: np.ndarray, query: np.ndarray, order: list[int]) -> list[int]:
    """The order by index of examples whose distances agree to 1e-12, as all do from one that is far away."""
    squares = [
        sum(
            (Fraction(a) - Fraction(b)) ** 2
            for a, b in zip(train[place].tolist(), query.tolist(), strict=True)
        )
        for place in order
    ]
    group, groups = 0, {order[0]: 0}
    for place, before, square in zip(order[1:], squares, squares[1:], strict=False):
        group += square - before > square / 10**12
        groups[place] = group
    return sorted(order, key=lambda place: (groups[place], place))


def ranks(train: np.ndarray, asked: np.ndarray, metric: str, leave_out: bool) -> np.ndarray:
    """The place of each training example in the order of exact distances from a query; 0 for itself."""
    places = np.zeros((len(asked), len(train)))
    for row, query in enumerate(asked):
        order = oracle.neighbour_order(train, query, metric, leave_out=row if leave_out else None)
        order = order if metric == "cosine" else with_ties(train, query, order)
        places[row, order] = 1 + np.arange(len(order))
    return places


@pytest.mark.parametrize(
    ("kind", "metric"),
    [  # one of the two distances at each scale in `make test`, in turn
        pytest.param(kind, metric, marks=[pytest.mark.long] * ((place + turn) % 2))
        for place, kind in enumerate(SCALES)
        for turn, metric in enumerate(("cosine", "euclidean"))
    ],
)
def test_neighbours_vote_as_in_scikit_learn_over_exact_distances(kind: str, metric: str) -> None:
    train, labels, test, truth = problem(kind)
    if len({*map(tuple, train.tolist())}) == 1:
        pytest.skip("all features are zero")
    probe = KNNProbe(metric, max_k=15).fit(train, labels)
    own = ranks(train, train, metric, leave_out=True)
    for k in (1, 2, 5, 15):
        peer = KNeighborsClassifier(k, metric="precomputed", algorithm="brute").fit(own, labels)
        assert probe.leave_one_out_[k - 1] == peer.score(None, labels)
    peer = KNeighborsClassifier(probe.k_, metric="precomputed", algorithm="brute").fit(own, labels)
    asked = ranks(train, test, metric, leave_out=False)
    assert probe.predict(test).tolist() == peer.predict(asked).tolist()
    assert probe.score(test, truth) == peer.score(asked, truth)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-10, 1.0, 2.0**60, 2.0**120])
def test_neighbours_vote_as_in_scikit_learn_on_the_features(scale: float, metric: str) -> None:
    """Brute force on float64 features, where their squares are within its range."""
    points, labels = blobs(12, 400, COLUMNS, 3, 1.5)
    train, test = (points[:300] * scale).astype(np.float32), (points[300:] * scale).astype(np.float32)
    probe = KNNProbe(metric, max_k=15).fit(train, labels[:300])
    for k in (1, 7, probe.k_):
        peer = KNeighborsClassifier(k, metric=metric, algorithm="brute").fit(
            train.astype(float), labels[:300]
        )
        assert probe.leave_one_out_[k - 1] == pytest.approx(peer.score(None, labels[:300]), abs=1e-9)
    assert probe.score(test, labels[300:]) == peer.score(test.astype(float), labels[300:])


def test_a_query_beyond_all_training_examples_is_refused_or_ranked() -> None:
    points, labels = blobs(13, 40, COLUMNS, 3, 1.5)
    probe = KNNProbe("euclidean", max_k=5).fit(points, labels)
    with pytest.raises(RequestError, match="all distances to the training examples are equal in float64"):
        probe.predict(points * 1e300)


WELL_POSED = (
    *("times 1e-09", "times 1", "times 1e+09", "plus 10000", "plus 1e+08", "float32, plus 1e4"),
    *("a column of 0", "a column of 1e-310", "every other twice", "some zero", "a direction"),
)


@pytest.mark.parametrize("kind", WELL_POSED)
def test_the_linear_probe_is_scikit_learns_on_the_same_problem_about_the_mean(kind: str) -> None:
    """(x - mu) / unit with C = unit^2 / lambda has the same logits, and scikit-learn can solve it."""
    train, labels, test, truth = problem(kind)
    mean = [sum(map(Fraction, column)) / len(train) for column in train.astype(float).T.tolist()]

    def about_the_mean(points: np.ndarray, unit: float = 1.0) -> np.ndarray:
        rows = points.astype(float).tolist()
        return (
            np.array([[float(Fraction(x) - m) for x, m in zip(row, mean, strict=True)] for row in rows])
            / unit
        )

    unit = 2.0 ** round(math.log2(abs(about_the_mean(train)).max()))
    for share in (1e-3, 1.0, 10.0):
        probe = LinearProbe([share * unit**2], tolerance=1e-6).fit(train, labels)
        peer = LogisticRegression(C=1 / share, tol=1e-10, max_iter=10_000)
        peer.fit(about_the_mean(train, unit), labels)
        expected = peer.decision_function(about_the_mean(test, unit))
        found = probe.decision_function(test)
        found = found - found.mean(1, keepdims=True)
        np.testing.assert_allclose(found, expected, atol=2e-3 * abs(expected).max())
        assert probe.score(test, truth) == peer.score(about_the_mean(test, unit), truth)


REFUSED = {
    **dict.fromkeys(
        (
            *("times 1e-322", "times 1e-320", "times 1e-310", "times 1e-300", "times 1e-160"),
            *("times 1e+150", "times 1e+200", "times 1e+300", "the largest", "one at 1e+300"),
            *("a column of 1e+300", "every other twice, times 1e300", "of all sizes"),
        ),
        "X holds numbers whose squares leave float64 .* scale it",
    ),
    **dict.fromkeys(
        ("times 1e+45", "one at 1e+100", "float32, times 1e+20", "float32, times 1e+37"),
        "lambda = .* is too small for X, which varies by .* scale X down, or leave it out",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_features_whose_optimum_float64_cannot_tell_are_refused(kind: str) -> None:
    train, labels, _, _ = problem(kind)
    with pytest.raises(RequestError, match=REFUSED[kind]):
        LinearProbe().fit(train, labels)


@pytest.mark.long
@pytest.mark.parametrize("place", [1e12, 1e20, 1e38, 1e100, 1e140, 1e300])
def test_a_far_validation_example_is_refused_or_leaves_an_uncertified_optimum(place: float) -> None:
    """It is met in the refit alone; NumPy's own warnings of overflow tell nobody what to do."""
    points, labels = blobs(14, 90, COLUMNS, 3, 1.5)
    points[80] = place
    given = points[:60], labels[:60], points[60:], labels[60:]
    if place < 1e18:
        with pytest.warns(UncertifiedWarning, match="optima are not certified"):
            LinearProbe().fit(*given)
    else:
        with pytest.raises(RequestError, match=r"scale (X|it)"):
            LinearProbe().fit(*given)
