"""CKA against eq. 10's double sums, its null and its jackknife; likeness against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes as scipy_procrustes
from sklearn.neighbors import NearestNeighbors
from tests.oracles import similarity as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.comparison import Comparison
from penultimate.metrics.likeness import mutual_neighbours, permuted_cka, procrustes
from penultimate.metrics.similarity import centred_gram, minibatch_cka, packed, products, u_centred, u_vector


def pair(seed: int, sizes=(9, 9, 5), p: int = 4, q: int = 6):
    """Batches of related, post-ReLU-like activations."""
    random = np.random.default_rng(seed)
    mixture = random.normal(size=(p, q))
    x = [np.maximum(random.normal(size=(n, p)) + 0.5, 0) for n in sizes]
    y = [np.maximum(batch @ mixture + random.normal(size=(len(batch), q)), 0) for batch in x]
    return x, y


@pytest.mark.parametrize("sizes", [(9, 9, 5), (4,), (12, 4)])
def test_minibatch_cka_equals_equation_10(sizes: tuple[int, ...]) -> None:
    for seed in range(3):
        x, y = pair(seed, sizes)
        assert minibatch_cka(x, y) == pytest.approx(oracle.minibatch_cka(x, y), abs=1e-11)


def test_known_values() -> None:
    random = np.random.RandomState(1337)
    x = random.randn(100, 10)
    y = random.randn(100, 10) + x
    assert minibatch_cka([x], [y]) == pytest.approx(0.51346, abs=5e-6)


def test_equals_the_correlation_of_u_centred_distances_an_independent_route() -> None:
    """-|x_i - x_j|^2 / 2 has the same U-centring as x_i . x_j: HSIC_1 is translation invariant."""
    (x,), (y,) = pair(1, sizes=(15,))
    grams = [-((z[:, None] - z[None]) ** 2).sum(2) / 2 for z in (x, y)]
    a, b = (packed(u_centred(torch.tensor(gram))) for gram in grams)
    assert minibatch_cka([x], [y]) == pytest.approx(float(a @ b / (a.norm() * b.norm())), abs=1e-13)


@pytest.mark.parametrize("columns", [7, 5000])
def test_float32_features_far_from_the_origin(columns: int) -> None:
    random = np.random.default_rng(0)
    x = (random.normal(size=(64, columns)) + 30).astype(np.float32)
    y = (x + random.normal(size=x.shape)).astype(np.float32)
    expected = oracle.cka_matrix([[x, y]], np.longdouble)[0, 1]
    assert minibatch_cka([x], [y]) == pytest.approx(float(expected), abs=1e-6)
    half = minibatch_cka([torch.from_numpy(x - 30).bfloat16()], [torch.from_numpy(y - 30).bfloat16()])
    assert half == pytest.approx(float(expected), abs=0.01)


def test_the_callers_precision_settings_neither_act_nor_change() -> None:
    x = torch.randn(300, 400)
    expected = centred_gram(x.double())
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.allclose(centred_gram(x), expected, atol=1e-3)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_the_jackknife_tells_the_spread_over_samples() -> None:
    generator = torch.Generator().manual_seed(1)
    values, errors = [], []
    for _ in range(150):
        x = torch.randn(10, 16, 4, generator=generator, dtype=torch.float64)
        y = x + torch.randn(10, 16, 4, generator=generator, dtype=torch.float64)
        found = [products(torch.stack([u_vector(a), u_vector(b)]), 16) for a, b in zip(x, y, strict=True)]
        comparison = Comparison([("x", ""), ("y", "")], np.stack(found), np.full(10, 16), np.zeros(10, int))
        values.append(comparison.matrix[0, 1])
        errors.append(comparison.standard_error[0, 1])
    # The spread of 150 values is known to 6 %.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values), rel=0.2)


def compared(batches: int, passes=None) -> tuple[Comparison, list[list[np.ndarray]]]:
    x, y = pair(0, sizes=tuple(8 + i % 3 for i in range(batches)))
    layers = [[a, b, a**2] for a, b in zip(x, y, strict=True)]
    found = [products(torch.stack([u_vector(one) for one in batch]), len(batch[0])) for batch in layers]
    names = [("one", "low"), ("one", "high"), ("two", "only")]
    sizes = np.array([len(batch[0]) for batch in layers])
    return Comparison(names, np.stack(found), sizes, np.array(passes or [0] * batches)), layers


def test_comparison_equals_its_oracles_with_batches_of_several_sizes() -> None:
    comparison, layers = compared(5)
    assert np.abs(comparison.matrix - oracle.cka_matrix(layers)).max() < 1e-12
    assert np.array_equal(comparison.matrix, comparison.matrix.T)
    assert np.abs(comparison.standard_error - oracle.jackknife(layers)).max() < 1e-12
    assert comparison.between("one", "two").shape == (2, 1)
    assert comparison.layers("one") == ["low", "high"]
    assert "2 of 9" in comparison.notes[0]
    frame = comparison.to_pandas()
    assert frame["cka"].tolist() == comparison.matrix.ravel().tolist()
    with pytest.raises(RequestError, match="Did you mean 'two'"):
        comparison.layers("tow")


def test_passes_over_the_same_data_are_no_more_data() -> None:
    once, _ = compared(5)
    passes = np.repeat([0, 1], 5)
    twice = Comparison(once.names, np.tile(once.products, (2, 1, 1)), np.tile(once.sizes, 2), passes)
    assert np.abs(twice.matrix - once.matrix).max() < 1e-14
    assert np.abs(twice.standard_error - once.standard_error).max() < 1e-14
    assert any("shuffle" in note for note in twice.notes)
    assert not any("shuffle" in note for note in compared(6, passes=[0] * 3 + [1] * 3)[0].notes)


def test_one_batch_has_a_value_and_no_standard_error() -> None:
    comparison, layers = compared(1)
    assert np.abs(comparison.matrix - oracle.cka_matrix(layers)).max() < 1e-12
    assert np.isnan(comparison.standard_error).all()
    assert any("no standard error" in note for note in comparison.notes)


@pytest.mark.parametrize("examples", [5, 256, 5000])
def test_equal_examples_are_constant_whatever_their_mean_rounds_to(examples: int) -> None:
    x = np.random.default_rng(0).normal(size=(examples, 3))
    for value in (0.0, 0.1, 37.3):
        still = np.full((examples, 6), value, np.float32)
        rounded = still * (1 + np.random.default_rng(1).choice([-1, 0, 1], (examples, 6)) * 1e-7)
        for constant in (still, rounded.astype(np.float32)) if examples == 5 else (still,):
            with pytest.raises(UndefinedError, match="the same for all examples"):
                minibatch_cka([x], [constant])
        assert minibatch_cka([x, x], [still, x]) > 0.5  # constant in one batch only


def related(n: int = 40, p: int = 6, q: int = 9) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(n, p)) + 3
    return x, x @ random.normal(size=(p, q)) + random.normal(size=(n, q))


def test_the_null_of_cka_is_the_literal_one() -> None:
    x, y = related(12, 3, 2)
    parts = [slice(0, 6), slice(6, 12)]
    found = permuted_cka([x[part] for part in parts], [y[part] for part in parts], permutations=9, seed=4)
    assert found.cka == pytest.approx(minibatch_cka([x[p] for p in parts], [y[p] for p in parts]), rel=1e-9)
    random = np.random.default_rng(4)
    orders = [[random.permutation(6) for _ in range(9)] for _ in parts]
    null = [
        oracle.minibatch_cka([x[p] for p in parts], [y[p][orders[at][each]] for at, p in enumerate(parts)])
        for each in range(9)
    ]
    assert found.null_mean == pytest.approx(np.mean(null), rel=1e-9)
    assert found.null_high == pytest.approx(np.quantile(null, 0.95), rel=1e-9)
    assert found.p == (1 + sum(value >= found.cka for value in null)) / 10


def test_p_is_small_where_there_is_likeness_and_uniform_where_there_is_none() -> None:
    x, y = related()
    assert permuted_cka([x], [y], permutations=99).p == 0.01
    random = np.random.default_rng(1)
    ps = [
        permuted_cka([random.normal(size=(12, 3))], [random.normal(size=(12, 3))], 19).p for _ in range(300)
    ]
    assert np.mean(np.array(ps) <= 0.1) == pytest.approx(0.1, abs=0.05)
    assert np.mean(ps) == pytest.approx(0.525, abs=0.05)


@pytest.mark.parametrize(("p", "q"), [(6, 6), (6, 9), (60, 5)])
def test_procrustes_is_scipys(p: int, q: int) -> None:
    x, y = related(40, p, q)
    wide = (np.pad(each, ((0, 0), (0, max(p, q) - each.shape[1]))) for each in (x, y))
    assert 1 - procrustes(x, y) ** 2 == pytest.approx(scipy_procrustes(*wide)[2], rel=1e-9)


def test_mutual_neighbours_are_scikit_learns() -> None:
    x, y = related()
    places = [
        NearestNeighbors(n_neighbors=5, metric="cosine").fit(each).kneighbors(return_distance=False)
        for each in (x, y)
    ]
    shared = np.mean([len({*a.tolist()} & {*b.tolist()}) for a, b in zip(*places, strict=True)]) / 5
    assert mutual_neighbours(x, y, 5) == pytest.approx(shared, rel=1e-12)
    assert mutual_neighbours(x, y, 39) == 1


GOOD = np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([GOOD, GOOD[:3]], [GOOD, GOOD[:3]], "at least 4 examples; one holds 3"),
        ([GOOD], [GOOD[:5]], "batch 0 holds 6 and 5 examples"),
        ([GOOD, GOOD], [GOOD], "batch 1 holds 6 and none examples"),
        ([], [], "no batch"),
        (GOOD, GOOD, r"pass \[batch\]"),
        ([(GOOD * 1e30).astype(np.float32)], [GOOD], "too large for the products of"),
    ],
)
@pytest.mark.parametrize("metric", [minibatch_cka, permuted_cka])
def test_batches_that_do_not_pair_are_named(metric, x: object, y: object, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        metric(x, y)


def test_likeness_without_a_value() -> None:
    x, y = related()
    for measure in (
        lambda: permuted_cka([x], [np.ones((40, 3))]),
        lambda: procrustes(x, np.ones((40, 3))),
        lambda: procrustes(x[:1], y[:1]),
    ):
        with pytest.raises(UndefinedError):
            measure()
    with pytest.raises(RequestError, match="neighbours must be a whole number"):
        mutual_neighbours(x, y, 40)
