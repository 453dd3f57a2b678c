"""KNNProbe, against votes counted one by one over distances in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from tests.oracles import probes as oracle
from tests.probes.conftest import blobs

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.probes import inputs, neighbours
from penultimate.probes.knn import KNNProbe, elections
from penultimate.probes.neighbours import Neighbours

METRICS = ["cosine", "euclidean"]


@st.composite
def lattices(draw):
    """Points with small integer coordinates: duplicates, zero vectors and ties of every kind."""
    examples, columns = draw(st.integers(3, 16)), draw(st.integers(1, 3))
    cells = st.lists(st.integers(-2, 3), min_size=columns, max_size=columns)
    points = np.array(draw(st.lists(cells, min_size=examples, max_size=examples)), dtype=float)
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=examples, max_size=examples)))
    points[0] += (points == points[0]).all()
    labels[0] = labels[1] == 0
    return points, labels


@settings(max_examples=80)
@given(lattices(), st.sampled_from(METRICS), st.sampled_from(["float32", "float64"]))
def test_leave_one_out_is_that_of_the_double_loop(problem, metric, dtype):
    points, labels = problem
    probe = KNNProbe(metric).fit(points.astype(dtype), labels)
    expected = oracle.leave_one_out(points, labels.tolist(), len(labels) - 1, metric)
    assert probe.leave_one_out_.tolist() == expected
    assert probe.k_ == 1 + expected.index(max(expected))


@settings(max_examples=40)
@given(lattices(), lattices(), st.sampled_from(METRICS), st.integers(1, 5))
def test_predictions_are_those_of_the_double_loop(problem, others, metric, most):
    points, labels = problem
    width = min(points.shape[1], others[0].shape[1])
    points, queries = points[:, :width], others[0][:, :width]
    if (points == points[0]).all():
        return
    probe = KNNProbe(metric, max_k=most).fit(points, labels)
    expected = [
        oracle.vote(labels[oracle.neighbour_order(points, query, metric)[: probe.k_]].tolist())
        for query in queries
    ]
    assert probe.predict(queries).tolist() == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_the_sampled_threshold_decides_nothing(metric, levels):
    generator = np.random.default_rng(levels)
    points = generator.integers(0, levels, size=(240, 4)).astype(float)
    points[::7] = points[3]
    search = Neighbours(points, metric)
    assert np.isfinite(search._threshold(points @ points.T, 7)).all()
    found = np.concatenate([indices for _, indices in search.nearest(6)])
    for i in range(0, 240, 24):
        assert found[i].tolist() == oracle.neighbour_order(points, points[i], metric, leave_out=i)[:6]


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_and_tensors_change_nothing(metric, monkeypatch):
    points = np.random.default_rng(0).integers(0, 4, size=(150, 3)).astype(float)
    whole = np.concatenate([indices for _, indices in Neighbours(points, metric).nearest(9)])
    tensors = Neighbours(torch.from_numpy(points), metric).nearest(9)
    assert np.concatenate([indices for _, indices in tensors]).tolist() == whole.tolist()
    monkeypatch.setattr(neighbours, "LEAST_QUERIES", 6)
    monkeypatch.setattr(neighbours, "BLOCK_DISTANCES", {"host": 1000, "device": 1000})
    parts = list(Neighbours(points, metric).nearest(9))
    assert len(parts) == 25
    assert np.concatenate([indices for _, indices in parts]).tolist() == whole.tolist()


def test_what_lies_on_a_device_stays_a_tensor(monkeypatch):
    points, labels = blobs(1, 50, 4, 3, 2.0)
    expected = KNNProbe(max_k=9).fit(points, labels)
    elected = expected.predict(points).tolist()
    monkeypatch.setattr(inputs, "at_home", lambda tensor: tensor)
    probe = KNNProbe(max_k=9).fit(torch.from_numpy(points), labels)
    assert isinstance(probe._neighbours.points, torch.Tensor)
    assert probe.leave_one_out_.tolist() == expected.leave_one_out_.tolist()
    assert probe.predict(torch.from_numpy(points)).tolist() == elected
    monkeypatch.undo()
    assert probe.predict(points).tolist() == elected


@pytest.mark.parametrize("metric", METRICS)
def test_it_agrees_with_scikit_learn_where_nothing_is_tied(metric):
    points, labels = blobs(1, 150, 5, 4, 2.0)
    test_points, test_labels = blobs(2, 60, 5, 4, 2.0)
    probe = KNNProbe(metric, max_k=30).fit(points, labels)
    for k in (1, 2, 7, 30):
        peer = KNeighborsClassifier(k, algorithm="brute", metric=metric).fit(points, labels)
        assert probe.leave_one_out_[k - 1] == pytest.approx(peer.score(None, labels))
    peer = KNeighborsClassifier(probe.k_, algorithm="brute", metric=metric).fit(points, labels)
    assert probe.predict(test_points).tolist() == peer.predict(test_points).tolist()
    assert probe.score(test_points, test_labels) == pytest.approx(peer.score(test_points, test_labels))


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from(METRICS))
def test_rotation_scale_and_shift_change_nothing(seed, metric):
    points, labels = blobs(seed, 60, 4, 3, 2.0)
    probe = KNNProbe(metric, max_k=20).fit(points, labels)
    generator = np.random.default_rng(seed)
    moved = 7.5 * points @ np.linalg.qr(generator.normal(size=(4, 4)))[0]
    if metric == "euclidean":
        moved = moved + 100 * generator.normal(size=4)
    assert (
        KNNProbe(metric, max_k=20).fit(moved, labels).leave_one_out_.tolist() == probe.leave_one_out_.tolist()
    )


@settings(max_examples=15)
@given(st.integers(0, 1000), st.permutations(range(40)), st.sampled_from(METRICS))
def test_the_order_of_examples_changes_nothing_without_ties(seed, order, metric):
    points, labels = blobs(seed, 40, 4, 3, 2.0)
    ours, theirs = KNNProbe(metric).fit(points, labels), KNNProbe(metric).fit(points[order], labels[order])
    assert ours.leave_one_out_.tolist() == theirs.leave_one_out_.tolist()


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e90])
def test_cosine_knows_no_scale(scale):
    points, labels = blobs(0, 50, 3, 3, 2.0)
    expected = KNNProbe().fit(points, labels).leave_one_out_.tolist()
    assert KNNProbe().fit(points * scale, labels).leave_one_out_.tolist() == expected


def test_features_whose_squares_overflow_are_refused():
    points, labels = blobs(0, 50, 3, 3, 2.0)
    with pytest.raises(RequestError, match="neighbours are found among features of at most 1e\\+100"):
        KNNProbe().fit(points * 1e200, labels)


def test_a_zero_vector_is_as_far_from_everything():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    _, found = next(Neighbours(points, "cosine").nearest(4))
    assert found[0].tolist() == [1, 2, 3, 4]
    assert found[1].tolist() == [0, 3, 4, 2]


def test_a_duplicate_is_a_neighbour_the_query_itself_is_not():
    points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.1]])
    probe = KNNProbe(max_k=1).fit(points, [0, 1, 2, 2])
    assert probe.leave_one_out_.tolist() == [0.5]
    assert probe.predict(points[:2]).tolist() == [0, 0]


def test_k_is_cut_to_the_others_and_the_smallest_of_equals():
    probe = KNNProbe("euclidean").fit([[0.0], [0.1], [5.0], [5.1]], [0, 0, 9, 9])
    assert probe.leave_one_out_.tolist() == [1.0, 0.5, 0.0]
    assert probe.k_ == 1
    assert probe.classes_.tolist() == [0, 9]
    assert KNNProbe(max_k=5).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).k_ == 1


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=6))
def test_elections_are_counted_again_after_every_vote(votes):
    for k, winners in enumerate(elections(np.array(votes), 4), start=1):
        assert winners.tolist() == [oracle.vote(row[:k]) for row in votes]


def test_it_follows_scikit_learns_conventions():
    probe = clone(KNNProbe("euclidean", max_k=7))
    assert probe.get_params() == {"metric": "euclidean", "max_k": 7}
    points, labels = blobs(0, 30, 3, 3)
    present = labels != 2
    score = probe.fit(points, labels).score(points[present], labels[present], metric="mean_per_class")
    per_class = [np.mean(probe.predict(points[labels == c]) == c) for c in (0, 1)]
    assert score == pytest.approx(np.mean(per_class))


@pytest.mark.parametrize(
    ("parameters", "points", "labels", "message"),
    [
        ({"metric": "cosin"}, [[1.0], [2.0]], [0, 1], "Did you mean 'cosine'"),
        ({"max_k": 0}, [[1.0], [2.0]], [0, 1], "max_k must be a whole number of at least 1"),
        ({}, [[1.0], [np.nan]], [0, 1], "row 1"),
        ({}, [[1.0], [2.0]], [0, 1, 1], "2 examples, but y has 3 labels"),
    ],
)
def test_bad_requests_are_named(parameters, points, labels, message):
    with pytest.raises(RequestError, match=message):
        KNNProbe(**parameters).fit(points, labels)


@pytest.mark.parametrize("value", [2.5, True, "3", None, 0])
def test_a_whole_number_is_one(value):
    with pytest.raises(RequestError, match="max_k must be a whole number of at least 1"):
        whole_number(value, "max_k", 1)


def test_where_nothing_can_be_measured_it_is_said():
    with pytest.raises(UndefinedError, match="one class only"):
        KNNProbe().fit([[1.0], [2.0]], [1, 1])
    with pytest.raises(UndefinedError, match="constant features"):
        KNNProbe().fit([[1.0], [1.0]], [0, 1])
    with pytest.raises(RequestError, match="not fitted yet"):
        KNNProbe().predict([[1.0]])


def hard_to_tell_apart(points):
    """The same points where float64's norms hide their distances: far away, beside a far one, in clusters."""
    half, tenth = np.arange(len(points)) % 2 == 0, np.arange(len(points)) == 9
    scales = 10.0 ** np.linspace(-6, 6, points.shape[1])
    return {
        "far away": points + 1e6,
        "further": points + 1e9,
        "one far": np.where(tenth[:, None], 1e8, points),
        "one very far": np.where(tenth[:, None], 1e90, points),
        "two clusters": points + 1e8 * half[:, None],
        "two sizes": points * np.where(half, 1e-4, 1e4)[:, None] + 1e4,
        "columns of all scales": points * scales,
        "tiny": points * 1e-30,
        "duplicates": points[np.arange(len(points)) // 2] + 1e7,
        "zeros": np.where(half[:, None], 0.0, points),
        "float16": points.astype(np.float16),
        "parallel": np.outer(np.arange(1, len(points) + 1), [1.0, 2.0, 4.0][: points.shape[1]]),
    }


HARD = list(hard_to_tell_apart(np.ones((2, 3))))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", HARD)
def test_neighbours_are_those_of_exact_arithmetic_whatever_the_norms(kind, metric):
    points = hard_to_tell_apart(blobs(4, 48, 3, 3, 1.0)[0])[kind]
    search = Neighbours(points, metric)
    found = np.concatenate([indices for _, indices in search.nearest(8)])
    asked = np.concatenate([indices for _, indices in search.nearest(8, points)])
    for i in range(0, 48, 5):
        assert found[i].tolist() == oracle.neighbour_order(points, points[i], metric, leave_out=i)[:8]
        assert asked[i].tolist() == oracle.neighbour_order(points, points[i], metric)[:8]


@pytest.mark.parametrize(("kind", "metric"), [("far away", "cosine"), ("one far", "euclidean")])
def test_leave_one_out_is_scikit_learns_far_away_and_beside_a_far_one(kind, metric):
    points, labels = blobs(5, 300, 5, 4, 2.0)
    points = hard_to_tell_apart(points)[kind]
    probe = KNNProbe(metric, max_k=11).fit(points, labels)
    for k in (1, 3, 11):
        peer = KNeighborsClassifier(k, algorithm="brute", metric=metric).fit(points, labels)
        # scikit-learn's own 1 - cos rounds by 4e-4 of such distances, which moves single examples.
        assert probe.leave_one_out_[k - 1] == pytest.approx(peer.score(None, labels), abs=0.01)


def test_many_equal_distances_are_ranked_in_one_pass(monkeypatch):
    """Whole numbers tie everywhere; a row is not sorted as a whole for that."""
    points = np.random.default_rng(3).integers(0, 3, size=(1200, 4)).astype(float)
    whole = []
    monkeypatch.setattr(neighbours, "_below", counting_candidates(whole))
    found = np.concatenate([indices for _, indices in Neighbours(points, "euclidean").nearest(5)])
    assert np.mean(whole) < 300
    for i in range(0, 1200, 300):
        assert found[i].tolist() == oracle.neighbour_order(points, points[i], "euclidean", leave_out=i)[:5]


def counting_candidates(seen):
    below = neighbours._below

    def counted(*arguments):
        candidates = below(*arguments)
        seen.extend(candidates.counts.tolist())
        return candidates

    return counted


def test_bytes_are_names():
    points, labels = blobs(2, 60, 4, 3, 2.0)
    names = np.array(["ant", "bee", "cat"])[labels]
    expected = KNNProbe(max_k=5).fit(points, names)
    for marks in (names.astype("S"), names.astype("S").tolist(), names.astype("S").astype(object)):
        probe = KNNProbe(max_k=5).fit(points, marks)
        assert probe.classes_.tolist() == ["ant", "bee", "cat"]
        assert probe.score(points, marks) == expected.score(points, names)
