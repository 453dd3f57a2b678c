"""Likeness beside CKA against SciPy, scikit-learn and literal loops; invariances; bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr
from sklearn.neighbors import NearestNeighbors
from tests.oracles.similarity import minibatch_cka as literal_cka

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.likeness import (
    Procrustes,
    distance_correlation,
    mutual_neighbours,
    permuted_cka,
    shifted_cka,
)
from penultimate.metrics.similarity import linear_cka, minibatch_cka


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
def test_procrustes_is_scipys_in_any_batches(p: int, q: int) -> None:
    x, y = pair(40, p, q)
    width = max(p, q)
    wide = (np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in (x, y))
    disparity = procrustes(*wide)[2]
    whole = Procrustes().update(x, y).compute()
    assert 1 - whole**2 == pytest.approx(disparity, rel=1e-9)
    parts = [slice(0, 7), slice(7, 8), slice(8, 40)]
    streamed, first, second = Procrustes(), Procrustes(), Procrustes()
    for part in parts:
        streamed.update(x[part], y[part])
    first.update(x[parts[0]], y[parts[0]])
    for part in parts[1:]:
        second.update(x[part], y[part])
    assert streamed.compute() == pytest.approx(whole, rel=1e-12)
    assert first.merge(second).compute() == pytest.approx(whole, rel=1e-12)
    assert Procrustes().merge(second).merge(Procrustes()).compute() == pytest.approx(second.compute())


def test_mutual_neighbours_are_scikit_learns() -> None:
    x, y = pair()
    places = [
        NearestNeighbors(n_neighbors=5, metric="cosine").fit(each).kneighbors(return_distance=False)
        for each in (x, y)
    ]
    shared = np.mean([len({*a.tolist()} & {*b.tolist()}) for a, b in zip(*places, strict=True)]) / 5
    assert mutual_neighbours(x, y, 5) == pytest.approx(shared, rel=1e-12)
    assert mutual_neighbours(x, y, 39) == 1


def test_distances_correlate_as_scipy_says() -> None:
    x, y = pair(n=25)
    x[3] = x[4]  # equal distances
    found = distance_correlation(x, y)
    distances = pdist(x), pdist(y)
    assert found.spearman == pytest.approx(spearmanr(*distances).statistic, rel=1e-9)
    assert found.pearson == pytest.approx(pearsonr(*distances).statistic, rel=1e-9)


def test_a_shift_of_a_few_images_moves_cka_and_no_decision_on_the_others() -> None:
    x, y = pair(200, shared=3.0)
    found = shifted_cka(x, y, share=0.02, reach=20, seed=3)
    random = np.random.default_rng(3)
    chosen, towards = random.permutation(200)[:4], random.normal(size=6)
    spread = np.sqrt(np.square(x - x.mean(0)).sum(1).mean())
    moved = x.copy()
    moved[chosen] += 20 * spread * towards / np.linalg.norm(towards)
    assert found.itself == pytest.approx(linear_cka(x, moved, debiased=True), rel=1e-9)
    change = linear_cka(moved, y, debiased=True) - linear_cka(x, y, debiased=True)
    assert found.change == pytest.approx(change, rel=1e-9)
    assert found.itself < 0.6
    assert found.change < -0.2


def test_rotations_and_scales_change_nothing() -> None:
    x, _ = pair()
    turned = 7 * x @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0] + 5
    assert Procrustes().update(x, turned).compute() == pytest.approx(1, rel=1e-12)
    assert distance_correlation(x, turned) == pytest.approx((1, 1), rel=1e-9)
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
            lambda each: Procrustes().update(each, y),
            lambda each: mutual_neighbours(each, y),
            lambda each: distance_correlation(each, y),
            lambda each: shifted_cka(each, y),
        ),
    ):
        with pytest.raises(RequestError, match="NaN"):
            measure(one)
    same = np.ones((40, 3))
    for measure in (
        lambda: permuted_cka([x], [same]),
        lambda: Procrustes().update(x, same).compute(),
        lambda: distance_correlation(x, same),
        lambda: shifted_cka(x, same),
        lambda: Procrustes().update(x[:1], y[:1]).compute(),
    ):
        with pytest.raises(UndefinedError):
            measure()
    for measure in (
        lambda: permuted_cka([x], [y, y]),
        lambda: permuted_cka([x], [y[:-1]]),
        lambda: permuted_cka([], []),
        lambda: permuted_cka([x[:3]], [y[:3]]),
        lambda: Procrustes().update(x, y[1:]),
        lambda: Procrustes().update(x, y).update(y, x),
        lambda: Procrustes().update(x, y).merge(Procrustes().update(y, x)),
        lambda: mutual_neighbours(x, y[1:]),
        lambda: mutual_neighbours(x, y, 40),
        lambda: shifted_cka(x, y, share=0.0),
    ):
        with pytest.raises(RequestError):
            measure()
