"""CKA against eq. 10's double sums, known values, its invariances and its distribution; bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import similarity as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.comparison import Comparison
from penultimate.metrics.similarity import (
    centred_gram,
    minibatch_cka,
    packed,
    products,
    u_centred,
    u_vector,
)

seeds = st.integers(0, 10_000)


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


@given(seed=seeds, scale=st.floats(1e-6, 1e6), shift=st.floats(-10, 10))
@settings(max_examples=20)
def test_rotation_scale_translation_and_joint_order_do_not_matter(
    seed: int, scale: float, shift: float
) -> None:
    x, y = pair(seed)
    random = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(random.normal(size=(4, 4)))
    orders = [random.permutation(len(batch)) for batch in x]
    moved = [scale * (batch @ rotation + shift)[order] for batch, order in zip(x, orders, strict=True)]
    mixed = [batch[order] for batch, order in zip(y, orders, strict=True)]
    expected = minibatch_cka(x, y)
    assert minibatch_cka(moved, mixed) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert minibatch_cka(y, x) == expected
    assert minibatch_cka(moved, moved) == 1


def test_order_of_examples_matters_when_it_is_not_joint() -> None:
    x, y = pair(0, sizes=(40,))
    assert minibatch_cka(x, [y[0][::-1]]) < minibatch_cka(x, y) - 0.1


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


def random_comparison(batches: int, passes=None, seed: int = 0) -> tuple[Comparison, list[list[np.ndarray]]]:
    x, y = pair(seed, sizes=tuple(8 + i % 3 for i in range(batches)))
    layers = [[a, b, a**2] for a, b in zip(x, y, strict=True)]
    found = [products(torch.stack([u_vector(one) for one in batch]), len(batch[0])) for batch in layers]
    names = [("one", "low"), ("one", "high"), ("two", "only")]
    sizes = [len(batch[0]) for batch in layers]
    passes = np.array(passes or [0] * batches)
    return Comparison(names, np.stack(found), np.array(sizes), passes), layers


def test_comparison_equals_its_oracles_with_batches_of_several_sizes() -> None:
    comparison, layers = random_comparison(5)
    assert np.abs(comparison.matrix - oracle.cka_matrix(layers)).max() < 1e-12
    assert np.array_equal(comparison.matrix, comparison.matrix.T)
    assert (comparison.matrix.diagonal() == 1).all()
    assert np.abs(comparison.standard_error - oracle.jackknife(layers)).max() < 1e-12
    assert comparison.between("one", "two").shape == (2, 1)
    assert comparison.layers("one") == ["low", "high"]
    assert "2 of 9" in comparison.notes[0]
    with pytest.raises(RequestError, match="Did you mean 'two'"):
        comparison.layers("tow")


def test_passes_over_the_same_data_are_no_more_data() -> None:
    once, _ = random_comparison(5)
    twice = Comparison(
        once.names,
        np.concatenate([once.products] * 2),
        np.concatenate([once.sizes] * 2),
        np.concatenate([once.passes, once.passes + 1]),
    )
    assert np.abs(twice.matrix - once.matrix).max() < 1e-14
    assert np.abs(twice.standard_error - once.standard_error).max() < 1e-14
    assert any("shuffle" in note for note in twice.notes)
    assert not any("shuffle" in note for note in random_comparison(6, passes=[0] * 3 + [1] * 3)[0].notes)


def test_one_batch_has_a_value_and_no_standard_error() -> None:
    comparison, layers = random_comparison(1)
    assert np.abs(comparison.matrix - oracle.cka_matrix(layers)).max() < 1e-12
    assert np.isnan(comparison.standard_error).all()
    assert any("no standard error" in note for note in comparison.notes)
    with pytest.raises(RequestError, match=r"\[1 2 2\], not \[1, 3, 3\]"):
        Comparison([("a", "x"), ("b", "y")], comparison.products, np.array([8]), np.array([0]))


@pytest.mark.parametrize("examples", [5, 40, 256, 5000])
def test_many_equal_examples_are_constant_whatever_the_mean_of_them_rounds_to(examples: int) -> None:
    for value in (1.0, 0.1, 37.3):
        still = np.full((examples, 6), value, np.float32)
        with pytest.raises(UndefinedError, match="is the same for all examples"):
            minibatch_cka([still], [still])


@pytest.mark.parametrize("constant", [np.full((6, 300), 3.1415927), np.zeros((6, 2))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_representation_is_said(constant: np.ndarray, dtype: type) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    rounding = np.random.default_rng(1).choice([-1, 0, 1], constant.shape) * np.finfo(dtype).eps
    for still in (constant, constant * (1 + rounding)):
        with pytest.raises(UndefinedError, match="y is the same for all examples"):
            minibatch_cka([x], [still.astype(dtype)])
    assert minibatch_cka([x, x], [constant, x]) > 0.5  # constant in one batch only


def test_bad_input_is_named() -> None:
    good = np.random.default_rng(0).normal(size=(6, 3))
    bad = good.copy()
    bad[4, 1] = np.inf
    with pytest.raises(RequestError, match="batch 1: activations hold NaN or infinity in row 4"):
        minibatch_cka([good, good], [good, bad])
    with pytest.raises(RequestError, match="at least 4 examples; one holds 3"):
        minibatch_cka([good, good[:3]], [good, good[:3]])
    with pytest.raises(RequestError, match="batch 0 holds 6 examples of x and 5 of y"):
        minibatch_cka([good], [good[:5]])
    with pytest.raises(RequestError, match="batches_y ends after 1 batches"):
        minibatch_cka([good, good], [good])
    with pytest.raises(RequestError, match="no batch"):
        minibatch_cka([], [])
    with pytest.raises(RequestError, match=r"pass \[batch\]"):
        minibatch_cka(good, good)
    with pytest.raises(RequestError, match="flatten each example first"):
        minibatch_cka([good[:, :, None]], [good])
    with pytest.raises(RequestError, match="too large for the products of"):
        u_vector((good * 1e30).astype(np.float32))
