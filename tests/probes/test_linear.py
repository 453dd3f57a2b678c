"""LinearProbe: the right lambda, the right refit, the conventions, and what it says of bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles import probes as oracle
from tests.probes.conftest import blobs

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.probes import inputs, path
from penultimate.probes.linear import LAMBDAS, LinearProbe, UncertifiedWarning
from penultimate.probes.validation import split_off

GRID = [1e-4, 1e-2, 1.0, 1e2]


def halves(seed=0, examples=80, features=4, classes=3, spread=2.0):
    points, codes = blobs(seed, examples, features, classes, spread)
    middle = examples // 2
    return points[:middle], codes[:middle], points[middle:], codes[middle:]


def test_the_grid_is_the_papers():
    assert len(LAMBDAS) == 45
    assert (LAMBDAS[0], LAMBDAS[-1]) == pytest.approx((1e-6, 1e5))
    np.testing.assert_allclose(np.diff(np.log10(LAMBDAS)), 0.25)


@pytest.mark.parametrize("seed", range(4))
def test_lambda_is_the_one_that_exact_optima_choose(seed):
    x, y, x_val, y_val = halves(seed)
    probe = LinearProbe(GRID, tolerance=1e-9).fit(x, y, x_val, y_val)
    accuracies = []
    for penalty in GRID:
        weight, intercept, _ = oracle.optimum(x, y, 3, penalty)
        accuracies.append(float(np.mean((x_val @ weight.T + intercept).argmax(1) == y_val)))
    best = max(penalty for penalty, a in zip(GRID, accuracies, strict=True) if a == max(accuracies))
    assert probe.validation_accuracy_.tolist() == accuracies
    assert probe.lambda_ == best
    assert probe.certificates_.max() <= 1e-9


@pytest.mark.parametrize("penalty", [1e4, 1e6])
def test_the_largest_lambdas_leave_the_weights_in_proportion(penalty):
    """Weights of next to nothing save next to no loss, and decide between the classes all the same."""
    x, y, _, _ = halves()
    probe = LinearProbe([penalty]).fit(x, y)
    expected, _, _ = oracle.optimum(x, y, 3, penalty)
    np.testing.assert_allclose(probe.coef_, expected, atol=0.02 * abs(expected).max())


def test_the_refit_is_the_optimum_of_everything_at_that_lambda():
    x, y, x_val, y_val = halves()
    probe = LinearProbe(GRID).fit(x, y, x_val, y_val)
    everything, codes = np.concatenate([x, x_val]), np.concatenate([y, y_val])
    _, _, least = oracle.optimum(everything, codes, 3, probe.lambda_)
    value = oracle.objective(probe.coef_, probe.intercept_, everything, codes, probe.lambda_)
    assert value <= (1 + probe.certificate_) * least * (1 + 1e-9)
    assert probe.certificate_ <= 1e-4


def test_of_equal_lambdas_the_largest():
    codes = np.arange(60) % 3
    points = 10 * np.eye(3)[codes] + np.random.default_rng(0).normal(size=(60, 3)) * 0.1
    probe = LinearProbe().fit(points[:30], codes[:30], points[30:], codes[30:])
    ties = probe.validation_accuracy_ == 1
    assert ties.sum() > 30
    assert probe.lambda_ == probe.lambdas_[ties].max()


@pytest.mark.parametrize(("classes", "factor"), [(2, 2.0), (3, 1.0)])
def test_it_is_scikit_learns_logistic_regression(classes, factor):
    x, y, x_val, y_val = halves(classes=classes)
    probe = LinearProbe([0.3], tolerance=1e-11).fit(x, y, x_val, y_val)
    peer = LogisticRegression(C=factor / 0.3, tol=1e-12, max_iter=10000, solver="newton-cg")
    peer.fit(np.concatenate([x, x_val]), np.concatenate([y, y_val]))
    np.testing.assert_allclose(probe.predict_proba(x), peer.predict_proba(x), atol=1e-5)
    assert probe.coef_.shape == (classes, 4)
    np.testing.assert_allclose(probe.coef_.sum(0), 0, atol=1e-8)


@settings(max_examples=8)
@given(st.integers(0, 100), st.permutations(range(40)), st.permutations(range(3)))
def test_rotation_translation_and_order_change_nothing(seed, order, names):
    x, y, x_val, y_val = halves(seed)
    probe = LinearProbe(GRID, tolerance=1e-10).fit(x, y, x_val, y_val)
    generator = np.random.default_rng(seed)
    rotation = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    shift = 5 * generator.normal(size=4)
    order, names = np.array(order), np.array(names)
    other = LinearProbe(GRID, tolerance=1e-10)
    other.fit((x @ rotation + shift)[order], names[y][order], x_val @ rotation + shift, names[y_val])
    assert other.lambda_ == probe.lambda_
    assert other.validation_accuracy_.tolist() == probe.validation_accuracy_.tolist()
    np.testing.assert_allclose(
        other.predict_proba(x_val @ rotation + shift)[:, names], probe.predict_proba(x_val), atol=1e-4
    )


def test_labels_need_not_be_contiguous_nor_all_in_training():
    x, y, x_val, y_val = halves(classes=3)
    names = np.array([4, 17, 1000])
    x, y = x[y != 1], y[y != 1]
    probe = LinearProbe(GRID).fit(x, names[y], x_val, names[y_val])
    assert probe.classes_.tolist() == [4, 17, 1000]
    assert probe.validation_accuracy_.max() <= np.mean(y_val != 1)
    assert 17 in probe.predict(x_val)
    assert probe.predict_proba(x_val).shape == (len(x_val), 3)


def test_classes_of_one_example_and_columns_without_variance():
    points, codes = blobs(0, 30, 3, 3)
    points = np.column_stack([points, np.full(30, 7.0), points[:, 0]])
    points = np.concatenate([points, points[:1] + np.array([9, 9, 9, 0, 9])])
    codes = np.append(codes, 3)
    probe = LinearProbe(GRID).fit(points, codes)
    assert probe.predict(points[-1:]).tolist() == [3]
    np.testing.assert_allclose(probe.coef_[:, 3], 0, atol=1e-9)
    np.testing.assert_allclose(probe.coef_[:, 4], probe.coef_[:, 0], atol=1e-6)


def test_fewer_examples_than_features():
    x, y, x_val, y_val = halves(examples=40, features=50)
    probe = LinearProbe().fit(x, y, x_val, y_val)
    assert max(*probe.certificates_, probe.certificate_) <= 1e-4


def test_tensors_and_arrays_give_the_same_bits_and_so_do_two_runs():
    x, y, _, _ = halves()
    first = LinearProbe(GRID).fit(x, y)
    for features, labels in ((x, y), (torch.from_numpy(x), torch.from_numpy(y)), (x.tolist(), y.tolist())):
        again = LinearProbe(GRID).fit(features, labels)
        assert again.coef_.tobytes() == first.coef_.tobytes()
        assert again.predict(features).tolist() == first.predict(x).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("given", [True, False])
def test_what_lies_on_a_device_stays_a_tensor(dtype, given, monkeypatch):
    x, y, x_val, y_val = halves()
    x, x_val = torch.from_numpy(x).to(dtype), torch.from_numpy(x_val).to(dtype)
    validation = (x_val, y_val) if given else ()
    expected = LinearProbe(GRID, tolerance=1e-8).fit(x, y, *validation)
    probabilities, predictions = expected.predict_proba(x_val), expected.predict(x_val).tolist()
    monkeypatch.setattr(inputs, "at_home", lambda tensor: tensor)
    probe = LinearProbe(GRID, tolerance=1e-8).fit(x, y, *validation)
    assert probe.lambda_ == expected.lambda_
    assert probe.certificates_.max() <= 1e-8
    np.testing.assert_allclose(probe.predict_proba(x_val), probabilities, atol=1e-2)
    assert probe.predict(x_val).tolist() == predictions


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32])
def test_every_dtype_is_taken(dtype):
    x, y, _, _ = halves()
    probe = LinearProbe([1.0]).fit(torch.from_numpy(x).to(dtype), y)
    assert probe.coef_.dtype == np.float64
    assert probe.certificate_ <= 1e-4


def test_the_metric_chooses_and_scores():
    x, y, x_val, y_val = halves(7, examples=120, spread=3.0)
    rare = y.copy()
    rare[y == 2] = np.where(np.arange((y == 2).sum()) % 4 == 0, 2, 0)
    probe = LinearProbe(GRID, metric="mean_per_class").fit(x, rare, x_val, y_val)
    kept = y_val != 0
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        expected = balanced_accuracy_score(y_val[kept], probe.predict(x_val[kept]))
    assert probe.score(x_val[kept], y_val[kept]) == pytest.approx(expected)
    top1 = float(np.mean(probe.predict(x_val) == y_val))
    assert probe.score(x_val, y_val, metric="top1") == top1


def test_it_follows_scikit_learns_conventions():
    x, y, _, _ = halves()
    probe = LinearProbe(GRID, seed=3)
    copy = clone(probe)
    assert copy is not probe
    assert copy.get_params() == probe.get_params()
    assert copy.set_params(seed=5, lambdas=[1.0]).seed == 5
    assert repr(LinearProbe([1.0])) == "LinearProbe(lambdas=[1.0])"
    scores = cross_val_score(make_pipeline(StandardScaler(), LinearProbe([1.0])), x, y, cv=3)
    assert scores.min() > 0.3


def test_what_it_learns_lies_along_ascending_lambdas():
    x, y, _, _ = halves()
    probe = LinearProbe([1.0, 1e-3, 10.0]).fit(x, y)
    assert probe.lambdas_.tolist() == [1e-3, 1.0, 10.0]
    assert (np.diff(probe.objectives_) > 0).all()
    for learnt in (probe.validation_accuracy_, probe.certificates_, probe.n_iter_):
        assert learnt.shape == (3,)
    assert (probe.n_iter_ > 0).all()


def test_an_optimum_without_certificate_is_said(monkeypatch):
    monkeypatch.setattr(path, "MOST_PASSES", {"float32": 0, "float64": 0})
    x, y, _, _ = halves()
    with pytest.warns(UncertifiedWarning, match="2 of 2 optima are not certified"):
        probe = LinearProbe([1e-3]).fit(x, y)
    assert probe.certificates_[0] > 1e-4


@settings(max_examples=50)
@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.floats(0.05, 0.6), st.integers(0, 9))
def test_the_split_is_stratified_and_deterministic(sizes, fraction, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if max(sizes) == 1:
        with pytest.raises(RequestError, match="single example"):
            split_off(codes, fraction, seed)
        return
    chosen = split_off(codes, fraction, seed)
    assert (chosen == split_off(codes, fraction, seed)).all()
    taken = np.bincount(codes[chosen], minlength=len(sizes))
    eligible = np.array([size if size > 1 else 0 for size in sizes])
    wanted = max(1, round(fraction * eligible.sum()))
    assert taken.sum() == wanted
    share = eligible * wanted / eligible.sum()
    assert (taken >= np.floor(share) - 1e-9).all()
    assert (taken <= np.ceil(share) + 1e-9).all()


def test_the_split_depends_on_its_seed():
    codes = np.zeros(50, dtype=int)
    assert (split_off(codes, seed=0) != split_off(codes, seed=1)).any()


POINTS = np.arange(12.0).reshape(6, 2) ** 1.5
LABELS = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.where(np.arange(12).reshape(6, 2) == 5, np.nan, POINTS), LABELS), "NaN or infinity in row 2"),
        ((POINTS, LABELS, np.full((2, 2), np.inf), [0, 1]), "X_val holds NaN or infinity in rows 0 and 1"),
        ((POINTS[:, 0], LABELS), r"X must be \[examples, features\]"),
        ((POINTS[:0], []), "no examples"),
        ((POINTS, LABELS[:5]), "6 examples, but y has 5 labels"),
        ((POINTS, [0.5, 1, 0, 1, 0, 1]), "Unknown label type: continuous"),
        ((POINTS, np.eye(2)[LABELS]), r"pass argmax\(1\) of one-hot rows"),
        ((POINTS, LABELS, POINTS, ["a", "b"] * 3), "labels must be of one kind; got both"),
        ((POINTS, LABELS, POINTS), "X_val and y_val go together"),
        ((POINTS, LABELS, POINTS[:, :1], LABELS), "X_val: X has 1 features, but LinearProbe is expecting 2"),
        ((POINTS[:3], [0, 1, 2]), "single example"),
    ],
)
def test_bad_data_is_named(arguments, message):
    with pytest.raises(RequestError, match=message):
        LinearProbe([1.0]).fit(*arguments)


@pytest.mark.parametrize(
    ("points", "labels", "message"),
    [
        (POINTS, [3] * 6, r"one class only \(3, 6 examples\)"),
        (POINTS[:1], [0], "one class only"),
        (np.ones((6, 2)), LABELS, "constant features"),
    ],
)
def test_where_nothing_can_be_learnt_it_is_said(points, labels, message):
    with pytest.raises(UndefinedError, match=message):
        LinearProbe([1.0]).fit(points, labels)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lambdas": [1.0, 0.0]}, "positive"),
        ({"lambdas": []}, "at least one"),
        ({"lambdas": [np.nan]}, "positive"),
        ({"metric": "top-1"}, "Did you mean 'top1'"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(RequestError, match=message):
        LinearProbe(**parameters).fit(POINTS, LABELS)


def test_an_unfitted_probe_says_so_and_a_fitted_one_knows_its_features():
    with pytest.raises(RequestError, match="not fitted yet"):
        LinearProbe().predict(POINTS)
    probe = LinearProbe([1.0]).fit(POINTS, LABELS)
    with pytest.raises(RequestError, match="X has 3 features, but LinearProbe is expecting 2"):
        probe.predict(np.ones((2, 3)))


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-10, 1e-30, 1e-36])
def test_tiny_float32_features_are_fitted_without_a_warning(scale):
    points, labels = blobs(3, 60, 3, 3, 2.0)
    probe = LinearProbe().fit((points * scale).astype(np.float32), labels)
    assert np.isfinite(probe.coef_).all()
    assert probe.certificates_.max() <= 1e-4


@pytest.mark.long
def test_one_far_example_costs_little_more_than_the_first_uncertified_lambda() -> None:
    labels = np.arange(121) % 5
    features = np.random.default_rng(0).normal(size=(121, 2)) + np.stack([labels, -labels], axis=1)
    features[7] = 1e12
    train = np.arange(121) % 4 > 0
    probe = LinearProbe()
    with pytest.warns(UncertifiedWarning, match="optima are not certified"):
        probe.fit(features[train], labels[train], features[~train], labels[~train])
    assert max(probe.certificates_) > 1e-4
    assert sum(probe.n_iter_) < 40_000
