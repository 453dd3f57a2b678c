"""Building backbones by name: seeds, sizes, and what is refused."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from penultimate import RequestError, register, registry
from penultimate.backbones import build
from penultimate.backbones.taps import taps
from penultimate.backbones.unit import convolution


def test_weights_derive_from_the_seed_alone() -> None:
    before = torch.get_rng_state()
    first = build("glyphnet(width=4, features=16)", seed=5).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    again = build("glyphnet(width=4, features=16)", seed=5).state_dict()
    other = build("glyphnet(width=4, features=16)", seed=6).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["stem.convolution.weight"], other["stem.convolution.weight"])


def test_the_default_is_the_network_of_the_world() -> None:
    network = build("glyphnet")
    kernels = [tuple(p.shape[:3]) for p in network.parameters() if p.ndim == 4]
    block = [(32, 16, 1), (32, 16, 3), (32, 32, 3), (64, 32, 1), (64, 32, 3), (64, 64, 3)]
    bottleneck = [(128, 256, 1), (256, 128, 1)]
    assert kernels == [(16, 3, 3), *block, (256, 64, 1), *bottleneck, *bottleneck]
    assert network.bottleneck1.second.normalisation.weight.abs().sum() == 0
    assert network.num_features == 256


def test_the_plain_network_has_no_way_past_a_unit() -> None:
    network = build("glyphplain")
    kernels = [tuple(p.shape[:3]) for p in network.parameters() if p.ndim == 4]
    stages = [(16, 3, 3), (32, 16, 3), (32, 32, 3), (64, 32, 3), (64, 64, 3)]
    assert kernels == [*stages, (256, 64, 1), (256, 256, 1)]
    assert network.num_features == 256
    images = torch.randn(4, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    for name in list(taps(network)):
        cut = copy.deepcopy(network)
        nn.init.zeros_(cut.get_submodule(name).normalisation.weight)
        assert cut(images[:1]).equal(cut(images[1:2]))
    assert not network(images[:1]).equal(network(images[1:2]))


def test_the_mobile_network_convolves_each_channel_for_itself() -> None:
    network = build("glyphmobile")
    kernels = [tuple(p.shape[:3]) for p in network.parameters() if p.ndim == 4]
    halving = [(48, 16, 1), (48, 1, 3), (32, 48, 1)], [(96, 32, 1), (96, 1, 3), (64, 96, 1)]
    keeping = [(96, 32, 1), (96, 1, 3), (32, 96, 1)], [(192, 64, 1), (192, 1, 3), (64, 192, 1)]
    assert kernels == [(16, 3, 3), *halving[0], *keeping[0], *halving[1], *keeping[1], (256, 64, 1)]
    assert [getattr(network, f"block{place}").adds for place in range(1, 5)] == [False, True, False, True]
    x = torch.randn(2, 32, 6, 6, generator=torch.Generator().manual_seed(0))
    block = network.block2.eval()
    nn.init.zeros_(block.narrow.normalisation.weight)
    assert block(x).equal(x)


def test_the_wide_network_sums_without_a_non_linearity() -> None:
    network = build("glyphwide").eval()
    kernels = [tuple(p.shape[:3]) for p in network.parameters() if p.ndim == 4]
    blocks = [
        [(outputs, inputs, 1), (outputs, inputs, 3), (outputs, outputs, 3)]
        for inputs, outputs in ((8, 16), (16, 32), (32, 128))
    ]
    assert kernels == [(8, 3, 3), *itertools.chain(*blocks)]
    x = torch.randn(2, 8, 12, 12, generator=torch.Generator().manual_seed(0))
    block = network.block1
    rectified = (x / (1 + block.normalisation1.eps) ** 0.5).relu()
    inner = (block.first(rectified) / (1 + block.normalisation2.eps) ** 0.5).relu()
    torch.testing.assert_close(block(x), block.shortcut(rectified) + block.second(inner))
    assert (block(x) < 0).any()


@pytest.mark.parametrize("name", [name for name in registry.names("backbone") if name.startswith("glyph")])
def test_features_do_not_depend_on_the_batch_in_evaluation(name: str) -> None:
    network = build(f"{name}(width=8, features=32)").eval()
    images = torch.randn(20, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = network(images)
        parts = torch.cat([network(part) for part in images.split(7)])
    torch.testing.assert_close(whole, parts, rtol=1e-5, atol=1e-6)
    assert (whole >= 0).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("glyfnet", "Did you mean 'glyphnet'"),
        ("glyphnet(depth=3)", "unexpected keyword argument 'depth'"),
        ("glyphnet(width=0)", "width is a whole number of channels, at least 1, not 0"),
        ("glyphnet(features=31)", "features is an even number of channels, at least 2, not 31"),
        ("glyphnet(width=True)", "width"),
        ("glyphnet(channels='3')", "channels"),
        ("glyphplane", "Did you mean 'glyphplain'"),
        ("glyphplain(width=0)", "glyphplain: width is a whole number of channels, at least 1, not 0"),
        ("glyphplain(features=0)", "glyphplain: features is a whole number"),
        ("glyphmobile(width=0)", "glyphmobile: width is a whole number of channels"),
        ("glyphwide(width=3)", "glyphwide: width is an even number of channels, at least 2, not 3"),
    ],
)
def test_a_wrong_request_says_why(text: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        build(text)
    assert reason in str(caught.value)


def test_a_plugin_that_is_no_backbone_is_named() -> None:
    @register.backbone
    def flatten_only() -> nn.Module:
        return nn.Flatten()

    try:
        with pytest.raises(RequestError, match="num_features"):
            build("flatten_only")
    finally:
        registry.forget("backbone", "flatten_only")


@pytest.mark.parametrize("inputs", [2, 4, 6, 8])
def test_a_strided_convolution_of_few_channels_has_the_gradients_of_the_plain_one(inputs: int) -> None:
    """By oneDNN's own they are wrong or end the process, on processors without AVX-512."""
    torch.manual_seed(0)
    images = torch.randn(32, inputs, 12, 12, dtype=torch.float64)
    made = convolution(inputs, 8, size=1, stride=2)
    plain = made.weight.detach().double().requires_grad_()
    F.conv2d(images, plain, stride=2).square().sum().backward()
    shown = images.float().contiguous(memory_format=torch.channels_last)
    for _ in range(20):
        made.weight.grad = None
        made.to(memory_format=torch.channels_last)(shown).square().sum().backward()
        torch.testing.assert_close(made.weight.grad.double(), plain.grad, rtol=1e-4, atol=1e-3)
