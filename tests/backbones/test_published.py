"""The networks of the papers: published sizes, and the outputs of torchvision's on the same weights."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from penultimate.backbones import build
from penultimate.backbones.preactivation import PreActivationBlock
from penultimate.backbones.taps import taps


def size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("name", "classes", "published"),
    [
        ("resnet50", 1000, 25_557_032),
        ("inception_v3", 1000, 23_834_568),
        ("wrn16_8", 10, 10_961_370),
        ("allcnnc", 10, 1_369_738 - 1_248 + 2 * 1_248),
    ],
)
def test_they_have_the_published_numbers_of_parameters(name: str, classes: int, published: int) -> None:
    network = build(name)
    assert size(network) + (network.num_features + 1) * classes == published


@pytest.mark.long
@pytest.mark.parametrize(("name", "side"), [("resnet50", 64), ("inception_v3", 96)])
def test_torchvisions_networks_give_the_same_logits(name: str, side: int) -> None:
    ours = build(name, seed=3).eval().double()
    settings = {"aux_logits": False, "transform_input": False, "init_weights": False}
    theirs = torchvision.models.get_model(name, **(settings if name == "inception_v3" else {}))
    theirs = theirs.eval().double()
    final = nn.Linear(ours.num_features, 1000).double()
    weights = {**ours.state_dict(), "fc.weight": final.weight, "fc.bias": final.bias}
    theirs.load_state_dict(weights)
    images = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        features = ours(images)
        assert features.shape == (2, 2048)
        torch.testing.assert_close(final(features), theirs(images), rtol=1e-9, atol=1e-9)


def test_resnet_has_its_strides_in_the_3_x_3_and_its_last_gains_at_zero() -> None:
    network = build("resnet50")
    for stage in (2, 3, 4):
        first = network.get_submodule(f"layer{stage}.0")
        assert (first.conv1.stride, first.conv2.stride) == ((1, 1), (2, 2))
    blocks = [module for module in network.modules() if type(module).__name__ == "Bottleneck"]
    assert len(blocks) == 16
    assert all(block.bn3.weight.abs().sum() == 0 for block in blocks)


def test_allcnnc_pools_six_by_six_before_its_last_convolution() -> None:
    network = build("allcnnc").eval()
    seen: list[tuple[int, ...]] = []
    network.unit8.register_forward_hook(lambda layer, inputs, output: seen.append(tuple(output.shape)))
    features = network(torch.zeros(2, 3, 32, 32))
    assert seen == [(2, 192, 6, 6)]
    assert features.shape == (2, 192)
    strides = [unit.convolution.stride[0] for unit in network.children()]
    assert strides == [1, 1, 2, 1, 1, 2, 1, 1]


def test_a_wide_residual_network_is_the_identity_plus_what_its_blocks_add() -> None:
    block = PreActivationBlock(8, 8, 1).eval()
    nn.init.zeros_(block.second.weight)
    x = torch.randn(2, 8, 4, 4)
    assert torch.equal(block(x), x)
    network = build("wrn16_8")
    sides: list[int] = []
    for name, layer in network.named_children():
        if name.startswith("group"):
            layer.register_forward_hook(lambda layer, inputs, output: sides.append(output.shape[-1]))
    assert network.eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 512)
    assert sides == [32, 32, 16, 16, 8, 8]


@pytest.mark.parametrize(
    ("name", "number"), [("resnet50", 16), ("inception_v3", 11), ("wrn16_8", 6), ("allcnnc", 8)]
)
def test_their_layers_are_found(name: str, number: int) -> None:
    assert len(taps(build(name))) == number


@pytest.mark.parametrize("name", ["resnet50", "allcnnc"])
def test_features_are_float32_under_autocast(name: str) -> None:
    network = build(name).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        features = network(torch.zeros(1, 3, 64, 64))
    assert features.dtype == torch.float32
