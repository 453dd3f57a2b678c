"""A unit against its literal equation, a taped network against the same modules run by PyTorch."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from tests.oracles import backbones as oracle
from torch import Tensor, nn

from penultimate.backbones import build
from penultimate.backbones.glyphnet import GlyphNet
from penultimate.backbones.tape import Recorded, record
from penultimate.backbones.unit import Unit
from penultimate.backbones.unit_net import UnitNet


def generic(network: nn.Module, seed: int = 3) -> nn.Module:
    """No gain at zero or one: every path of the network carries a gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        if parameter.ndim == 1:
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return network


def plain_features(network: UnitNet, images: Tensor) -> Tensor:
    return network.body(images).mean((2, 3))


def gradients(features: Tensor, network: nn.Module) -> list[Tensor]:
    weights = torch.linspace(-1, 1, features.numel(), dtype=features.dtype).view(features.shape)
    return list(torch.autograd.grad((features * weights).sum(), list(network.parameters())))


def images_of(count: int, dtype: torch.dtype, side: int = 24) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 3, side, side, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("activate", [True, False])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [1, 3])
def test_a_unit_is_its_equation(size: int, stride: int, activate: bool) -> None:
    unit = generic(Unit(3, 4, size, stride, activate).double())
    x = images_of(3, torch.float64, side=5)
    side = (5 - 1) // stride + 1
    residual = torch.randn(3, 4, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = oracle.unit(
        x.numpy(),
        unit.convolution.weight.detach().numpy(),
        unit.normalisation.weight.detach().numpy(),
        unit.normalisation.bias.detach().numpy(),
        stride,
        unit.normalisation.eps,
        residual.numpy(),
        activate,
    )
    lying = residual.permute(1, 2, 3, 0).contiguous()

    def body(start: Recorded) -> Recorded:
        return unit(start, Recorded(start.tape, lying))

    taped = record(body, x, list(unit.parameters()))
    np.testing.assert_allclose(taped.detach().numpy(), expected.mean((2, 3)), atol=1e-12)
    np.testing.assert_allclose(unit(x, residual).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["glyphnet", "glyphplain"])
@pytest.mark.parametrize("side", [24, 17])
def test_taped_network_equals_plain_modules_in_float64(side: int, name: str) -> None:
    network = generic(build(f"{name}(width=4, features=16)", seed=1).double())
    assert isinstance(network, UnitNet)
    images = images_of(6, torch.float64, side)
    taped, plain = network(images), plain_features(network, images)
    torch.testing.assert_close(taped, plain, rtol=1e-10, atol=1e-12)
    for mine, expected in zip(gradients(taped, network), gradients(plain, network), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-8, atol=1e-10)


def test_gradients_pass_numerical_differentiation() -> None:
    network = generic(build("glyphnet(width=1, features=2)", seed=1).double())
    images = images_of(4, torch.float64, side=9)
    kernel = network.block1.first.convolution.weight
    gain = network.bottleneck1.second.normalisation.weight

    def features(*_: Tensor) -> Tensor:
        return network(images)

    assert torch.autograd.gradcheck(features, (kernel, gain), atol=1e-5)


@pytest.mark.parametrize("name", ["glyphnet", "glyphplain"])
def test_bfloat16_gradients_are_as_near_the_truth_as_autocast(name: str) -> None:
    network = generic(build(name, seed=1))
    assert isinstance(network, UnitNet)
    images = images_of(64, torch.float32)
    double = copy.deepcopy(network).double()
    truth = gradients(plain_features(double, images.double()), double)
    with torch.autocast("cpu", torch.bfloat16):
        taped, plain = network(images), plain_features(network, images)
    assert taped.dtype == torch.float32
    for mine, autocast, exact in zip(
        gradients(taped, network), gradients(plain.float(), network), truth, strict=True
    ):
        assert mine.dtype == torch.float32
        error, allowed = ((one - exact).norm() / exact.norm() for one in (mine, autocast))
        assert error < 1.5 * allowed + 1e-3


@pytest.mark.parametrize("momentum", [0.1, None, 0.0])
def test_running_moments_move_as_batch_norm_moves_them(momentum: float | None) -> None:
    taped = build("glyphnet(width=4, features=16)", seed=1)
    for module in taped.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = momentum
    plain = copy.deepcopy(taped)
    assert isinstance(plain, GlyphNet)
    for seed in range(3):
        images = torch.randn(8, 3, 24, 24, generator=torch.Generator().manual_seed(seed))
        taped(images)
        plain.body(images)
    if momentum == 0.0:
        assert torch.equal(taped.stem.normalisation.running_mean, torch.zeros(4))
    for name, expected in plain.named_buffers():
        if momentum != 0.0 or "running" in name:
            torch.testing.assert_close(taped.get_buffer(name), expected, rtol=1e-4, atol=1e-5)


def test_a_copy_trains_its_own_weights() -> None:
    network = build("glyphnet(width=4, features=16)", seed=1)
    twin = copy.deepcopy(network)
    twin(images_of(4, torch.float32)).sum().backward()
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(parameter.grad is not None for parameter in twin.parameters())


def test_gradients_accumulate_and_can_be_changed_in_place() -> None:
    network = build("glyphnet(width=4, features=16)", seed=1)
    images = images_of(4, torch.float32)
    network(images).square().sum().backward()
    once = [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]
    network(images).square().sum().backward()
    for parameter, first in zip(network.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * first, rtol=1e-3, atol=1e-4)
    nn.utils.clip_grad_norm_(network.parameters(), 1e-3)


def test_images_that_ask_for_gradients_get_them() -> None:
    network = build("glyphnet(width=4, features=16)", seed=1)
    images = images_of(4, torch.float32).requires_grad_()
    network(images).square().sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


def test_what_is_not_a_number_stays_visible() -> None:
    network = build("glyphnet(width=4, features=16)", seed=1)
    images = images_of(4, torch.bfloat16)
    images[0, 0, 0, 0] = float("nan")
    assert network(images).isnan().any()
