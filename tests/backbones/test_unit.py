"""A unit against its literal equation, and what the nets made of units promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.oracles import backbones as oracle
from torch import Tensor, nn

from penultimate import registry
from penultimate.backbones import build
from penultimate.backbones.unit import Unit


def generic(network: nn.Module, seed: int = 3) -> nn.Module:
    """No gain at zero or one: every path of the network carries a gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        if parameter.ndim == 1:
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return network


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
    np.testing.assert_allclose(unit(x, residual).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 256])
def test_kernels_start_with_the_spread_of_their_own_fan_out(groups: int) -> None:
    """He's normal distribution: the variance is 2 / (9 channels that a value goes to)."""
    torch.manual_seed(0)
    weight = Unit(256, 256, 3, groups=groups).convolution.weight
    assert weight.std().item() == pytest.approx((2 / (9 * 256 / groups)) ** 0.5, rel=0.05)


@pytest.mark.parametrize("name", [name for name in registry.names("backbone") if name.startswith("glyph")])
def test_features_are_wide_and_every_path_carries_a_gradient(name: str) -> None:
    network = generic(build(f"{name}(width=4, features=16)", seed=1))
    with torch.autocast("cpu", torch.bfloat16):
        features = network(images_of(8, torch.float32))
    assert features.dtype == torch.float32
    features.square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0
    assert network.double()(images_of(2, torch.float64)).dtype == torch.float64
