"""Losses and penalties against the literal equations, against torch's own, and at the edges of float32."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import objectives as oracle

from penultimate import RequestError
from penultimate.objectives import losses

K = 7
LOSSES = {
    "softmax": (losses.softmax_cross_entropy, {}, oracle.softmax_loss, {}),
    "smoothed": (losses.softmax_cross_entropy, {"smoothing": 0.3}, oracle.smooth_loss, {"alpha": 0.3}),
    "sigmoid": (losses.sigmoid_cross_entropy, {}, oracle.sigmoid_loss, {}),
    "squared": (
        losses.weighted_squared_error,
        {"kappa": 9.0, "target": 60.0},
        oracle.squared_loss,
        {"kappa": 9.0, "M": 60.0},
    ),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
seeds = st.integers(0, 10_000)


def draw(seed: int, n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(n, K, generator=generator, dtype=torch.float64)
    targets = torch.rand(n, K, generator=generator, dtype=torch.float64)
    return logits, targets / targets.sum(1, keepdim=True)


@every_loss
@given(seed=seeds)
def test_equals_the_equation_for_soft_targets(name, seed):
    loss, ours, equation, theirs = LOSSES[name]
    logits, targets = draw(seed)
    expected = [equation(z, t, **theirs) for z, t in zip(logits.tolist(), targets.tolist(), strict=True)]
    assert loss(logits, targets, **ours).tolist() == pytest.approx(expected, rel=1e-12)


@every_loss
def test_float32_is_close_to_float64(name):
    loss, ours, _, _ = LOSSES[name]
    logits, targets = draw(0, n=100)
    single = loss(logits.float(), targets.float(), **ours)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), loss(logits, targets, **ours), rtol=2e-6, atol=0)


@every_loss
@given(seed=seeds, mixing=st.floats(0, 1))
def test_is_affine_in_the_targets(name, seed, mixing):
    """Mixup's two forms (mixed targets, mixed losses) are one."""
    loss, ours, _, _ = LOSSES[name]
    logits, first = draw(seed)
    second = first.roll(1, dims=1)
    mixed = loss(logits, mixing * first + (1 - mixing) * second, **ours)
    expected = mixing * loss(logits, first, **ours) + (1 - mixing) * loss(logits, second, **ours)
    torch.testing.assert_close(mixed, expected, rtol=1e-12, atol=1e-12)


@given(seed=seeds, smoothing=st.floats(0, 0.99))
def test_softmax_is_torchs_up_to_the_scale_of_smoothing(seed, smoothing):
    logits, targets = draw(seed)
    labels = targets.argmax(1)
    expected = F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing) / (1 - smoothing)
    one_hot = F.one_hot(labels, K).double()
    found = losses.softmax_cross_entropy(logits, one_hot, smoothing=smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=0)


@given(seed=seeds)
def test_sigmoid_is_torchs_binary_cross_entropy_summed(seed):
    logits, targets = draw(seed)
    expected = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1)
    torch.testing.assert_close(losses.sigmoid_cross_entropy(logits, targets), expected, rtol=1e-12, atol=0)


@given(seed=seeds)
def test_squared_error_with_kappa_and_target_one_is_the_mean_squared_error(seed):
    logits, targets = draw(seed)
    one_hot = F.one_hot(targets.argmax(1), K).double()
    expected = F.mse_loss(logits, one_hot, reduction="none").mean(1)
    found = losses.weighted_squared_error(logits, one_hot, kappa=1, target=1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (losses.softmax_cross_entropy, [0.0, 2e4]),
        (losses.sigmoid_cross_entropy, [0.0, 2e4]),
    ],
)
def test_extreme_logits_give_the_limit_and_finite_gradients(loss, expected):
    logits = torch.tensor([[1e4, -1e4], [1e4, -1e4]], requires_grad=True)
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    value = loss(logits, targets)
    assert value.tolist() == expected
    value.sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[1].tolist() == [1.0, -1.0]


def test_sigmoid_keeps_the_small_loss_of_a_sure_and_right_class():
    loss = losses.sigmoid_cross_entropy(torch.tensor([[25.0, -1e4]]), torch.tensor([[1.0, 0.0]]))
    assert loss.item() == pytest.approx(math.log1p(math.exp(-25.0)), rel=1e-6)


def test_sigmoid_keeps_the_small_losses_of_classes_that_are_surely_and_rightly_absent():
    logits, targets = torch.full((1, 1000), -16.0), torch.zeros(1, 1000)
    logits[0, 0], targets[0, 0] = 16.0, 1.0
    loss = losses.sigmoid_cross_entropy(logits, targets)
    assert loss.item() == pytest.approx(1000 * math.log1p(math.exp(-16.0)), rel=1e-5)


@pytest.mark.parametrize("smoothing", [1.0, 1.5, -0.1, math.nan])
def test_smoothing_out_of_range_is_refused(smoothing):
    with pytest.raises(RequestError, match=r"smoothing must be a number in \[0, 1\)"):
        losses.softmax_cross_entropy(torch.zeros(1, 2), torch.ones(1, 2) / 2, smoothing=smoothing)


def test_only_the_sigmoid_loss_declares_a_reading():
    sigmoid, softmax = map(losses.reading_of, (losses.sigmoid_cross_entropy, losses.softmax_cross_entropy))
    logits = torch.tensor([-2.0, 0.0, 3.0])
    assert sigmoid.initial_bias(1000) == pytest.approx(-math.log(1000))
    torch.testing.assert_close(sigmoid.log_scores(logits), logits.sigmoid().log())
    assert softmax.initial_bias(1000) == 0
    assert softmax.log_scores(logits) is logits
