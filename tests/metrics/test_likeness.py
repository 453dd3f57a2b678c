"""Likeness beside CKA against SciPy, scikit-learn and literal loops; invariances; bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes as scipy_procrustes
from sklearn.neighbors import NearestNeighbors
from tests.oracles.similarity import minibatch_cka as literal_cka

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.likeness import mutual_neighbours, permuted_cka, procrustes
from penultimate.metrics.similarity import minibatch_cka


def pair(n: int = 40, p: int = 6, q: int = 9, shared: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(n, p)) + 3
    return x, shared * x @ random.normal(size=(p, q)) + random.normal(size=(n, q))


def test_cka_and_its_null_are_the_literal_ones() -> None:
    x, y = pair(12, 3, 2)
    parts = [slice(0, 6), slice(6, 12)]
    found = permuted_cka([x[part] for part in parts], [y[part] for part in parts], permutations=9, seed=4)
    assert found.cka == pytest.approx(literal_cka([x[p] for p in parts], [y[p] for p in parts]), rel=1e-9)
    random = np.random.default_rng(4)
    orders = [[random.permutation(6) for _ in range(9)] for _ in parts]
    null = [
        literal_cka([x[p] for p in parts], [y[p][orders[at][each]] for at, p in enumerate(parts)])
        for each in range(9)
    ]
    assert found.null_mean == pytest.approx(np.mean(null), rel=1e-9)
    assert found.null_high == pytest.approx(np.quantile(null, 0.95), rel=1e-9)
    assert found.p == (1 + sum(value >= found.cka for value in null)) / 10


def test_p_is_small_where_there_is_likeness_and_uniform_where_there_is_none() -> None:
    x, y = pair()
    assert permuted_cka([x], [y], permutations=99).p == 0.01
    random = np.random.default_rng(1)
    ps = [
        permuted_cka([random.normal(size=(12, 3))], [random.normal(size=(12, 3))], 19).p for _ in range(300)
    ]
    assert np.mean(np.array(ps) <= 0.1) == pytest.approx(0.1, abs=0.05)
    assert np.mean(ps) == pytest.approx(0.525, abs=0.05)


@pytest.mark.parametrize(("p", "q"), [(6, 6), (6, 9), (60, 5)])
def test_procrustes_is_scipys(p: int, q: int) -> None:
    x, y = pair(40, p, q)
    width = max(p, q)
    wide = (np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in (x, y))
    disparity = scipy_procrustes(*wide)[2]
    assert 1 - procrustes(x, y) ** 2 == pytest.approx(disparity, rel=1e-9)


def test_mutual_neighbours_are_scikit_learns() -> None:
    x, y = pair()
    places = [
        NearestNeighbors(n_neighbors=5, metric="cosine").fit(each).kneighbors(return_distance=False)
        for each in (x, y)
    ]
    shared = np.mean([len({*a.tolist()} & {*b.tolist()}) for a, b in zip(*places, strict=True)]) / 5
    assert mutual_neighbours(x, y, 5) == pytest.approx(shared, rel=1e-12)
    assert mutual_neighbours(x, y, 39) == 1


def test_rotations_and_scales_change_nothing() -> None:
    x, _ = pair()
    turned = 7 * x @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0] + 5
    assert procrustes(x, turned) == pytest.approx(1, rel=1e-12)
    centred = x - x.mean(0)
    assert mutual_neighbours(centred, turned - turned.mean(0)) == 1
    assert permuted_cka([x], [turned], 9).cka == pytest.approx(1, rel=1e-9)
    single = minibatch_cka([x.astype(np.float32)], [turned.astype(np.float32)])
    assert permuted_cka([x.astype(np.float32)], [turned.astype(np.float32)], 1).cka == pytest.approx(single)


def test_what_cannot_be_compared_is_refused_or_undefined() -> None:
    x, y = pair()
    broken = x.copy()
    broken[2, 1] = np.nan
    for one, measure in itertools.product(
        (broken, torch.from_numpy(broken)),
        (
            lambda each: permuted_cka([each], [y]),
            lambda each: procrustes(each, y),
            lambda each: mutual_neighbours(each, y),
        ),
    ):
        with pytest.raises(RequestError, match="NaN"):
            measure(one)
    same = np.ones((40, 3))
    for measure in (
        lambda: permuted_cka([x], [same]),
        lambda: procrustes(x, same),
        lambda: procrustes(x[:1], y[:1]),
    ):
        with pytest.raises(UndefinedError):
            measure()
    for measure in (
        lambda: permuted_cka([x], [y, y]),
        lambda: permuted_cka([x], [y[:-1]]),
        lambda: permuted_cka([], []),
        lambda: permuted_cka([x[:3]], [y[:3]]),
        lambda: procrustes(x, y[1:]),
        lambda: mutual_neighbours(x, y[1:]),
        lambda: mutual_neighbours(x, y, 40),
    ):
        with pytest.raises(RequestError):
            measure()
