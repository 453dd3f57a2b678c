"""Heads against the literal equations and torch's cosine similarity; what zero vectors do; penalties."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import objectives as oracle

from penultimate import RequestError
from penultimate.objectives import heads, penalties

N, M, K = 4, 5, 3
HEADS = {
    "linear": (heads.linear, {}, lambda x, W, b: oracle.linear(x, W, b)),
    "normalised_logits": (
        heads.normalised_logits,
        {"temperature": 0.04},
        lambda x, W, b: oracle.normalised_logits(x, W, b, 0.04),
    ),
    "cosine": (heads.cosine, {"temperature": 0.05}, lambda x, W, b: oracle.cosine_logits(x, W, b, 0.05)),
}
every_head = pytest.mark.parametrize("name", HEADS)
seeds = st.integers(0, 10_000)


def draw(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((N, M), (K, M), (K,))
    features, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
    )
    return features, weight, bias


@every_head
@given(seed=seeds)
def test_equals_the_equation(name, seed):
    head, hyperparameters, equation = HEADS[name]
    features, weight, bias = draw(seed)
    expected = [equation(x, weight.tolist(), bias.tolist()) for x in features.tolist()]
    torch.testing.assert_close(
        head(features, weight, bias, **hyperparameters),
        torch.tensor(expected, dtype=torch.float64),
        rtol=1e-11,
        atol=1e-11,
    )


@given(seed=seeds, stretch=st.floats(1e-6, 1e6))
def test_cosine_is_torchs_and_does_not_see_lengths(seed, stretch):
    features, weight, bias = draw(seed)
    expected = F.cosine_similarity(features[:, None], weight[None], dim=2) / 0.05 + bias
    torch.testing.assert_close(heads.cosine(features, weight, bias), expected, rtol=1e-10, atol=1e-10)
    stretched = heads.cosine(stretch * features, weight / stretch, bias)
    torch.testing.assert_close(stretched, expected, rtol=1e-10, atol=1e-10)


@given(seed=seeds, stretch=st.floats(1e-6, 1e6), temperature=st.floats(1e-3, 10))
def test_normalised_logits_have_one_length(seed, stretch, temperature):
    features, weight, bias = draw(seed)
    logits = heads.normalised_logits(features, stretch * weight, stretch * bias, temperature=temperature)
    torch.testing.assert_close(logits.norm(dim=1), torch.full((N,), 1 / temperature, dtype=torch.float64))


def test_a_zero_vector_has_no_direction_and_passes_no_gradient():
    features = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    weight = torch.tensor([[0.0, 0.0], [0.0, 2.0]], requires_grad=True)
    bias = torch.tensor([1.0, 2.0], requires_grad=True)
    logits = heads.cosine(features, weight, bias, temperature=0.5)
    torch.testing.assert_close(logits, torch.tensor([[1.0, 2.0], [1.0, 3.6]]))
    logits.sum().backward()
    assert features.grad[0].tolist() == weight.grad[0].tolist() == [0.0, 0.0]
    assert features.grad[1].abs().sum() > 0
    assert bias.grad.tolist() == [2.0, 2.0]


def test_zero_logits_stay_zero_under_normalisation_with_zero_gradient():
    features = torch.zeros(1, 2, requires_grad=True)
    weight, bias = torch.ones(2, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
    logits = heads.normalised_logits(features, weight, bias)
    logits.sum().backward()
    assert logits.tolist() == [[0.0, 0.0]]
    assert all(not tensor.grad.any() for tensor in (features, weight, bias))


@pytest.mark.parametrize("size", [1e-18, 1e18])
def test_directions_of_very_short_and_very_long_vectors_are_finite_in_float32(size):
    vectors = torch.tensor([[3 * size, 4 * size]], requires_grad=True)
    found = heads.direction(vectors)
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.8]]), rtol=1e-5, atol=0)
    found[0, 0].backward()
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("head", [heads.cosine, heads.normalised_logits])
@pytest.mark.parametrize("temperature", [0, -0.05, float("nan")])
def test_a_temperature_out_of_range_is_refused(head, temperature):
    with pytest.raises(RequestError, match=r"temperature must be a number in \(0, inf\)"):
        head(*draw(0), temperature=temperature)


def test_first_deviations_are_those_documented():
    assert heads.initial_deviation(heads.linear, 256) == 0.01
    assert heads.initial_deviation(heads.normalised_logits, 256) == 0.01
    assert heads.initial_deviation(heads.cosine, 256) == 1 / 16


@given(seed=seeds, strength=st.floats(0, 10))
def test_penalties_equal_their_equations(seed, strength):
    logits, weight, bias = draw(seed)
    head = heads.Head(heads.linear, {}, weight, bias)
    on_logits = [strength * oracle.norm(z) ** 2 for z in logits.tolist()]
    on_weight = [strength * oracle.frobenius(weight.tolist()) ** 2] * N
    found = penalties.squared_logits(logits, head, strength=strength).tolist()
    assert found == pytest.approx(on_logits, rel=1e-12)
    assert penalties.squared_weight(logits, head, strength=strength).tolist() == pytest.approx(on_weight)


def test_the_weight_penalty_has_its_gradient_once_in_the_mean_of_a_batch():
    _, weight, bias = draw(3)
    head = heads.Head(heads.linear, {}, weight, bias)
    penalties.squared_weight(torch.zeros(9, K, dtype=torch.float64), head, strength=0.5).mean().backward()
    torch.testing.assert_close(head.weight.grad, weight)
    assert head.bias.grad is None
