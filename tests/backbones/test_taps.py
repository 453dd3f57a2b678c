"""Taps: patterns, defaults for other people's networks, and what a hook sees."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn

from penultimate import RequestError
from penultimate.backbones import build
from penultimate.backbones.taps import flattened, tapped, taps


def seen(model: nn.Module, layers, x: Tensor) -> dict[str, Tensor]:
    """The output of each tapped layer as it was when it came out."""
    found: dict[str, Tensor] = {}
    with torch.no_grad(), tapped(taps(model, layers), lambda name, out: found.update({name: out.clone()})):
        model(x)
    return found


DEFAULTS = [
    ("resnet18", torchvision.models, 8, "layer1.0", "layer4.1"),
    ("resnet50", torchvision.models, 16, "layer1.0", "layer4.2"),
    ("vit_b_16", torchvision.models, 12, "encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_11"),
    ("densenet121", torchvision.models, 4, "features.denseblock1", "features.denseblock4"),
    ("vgg11", torchvision.models, 10, "features.1", "classifier.4"),
    ("resnet50", timm.models, 16, "layer1.0", "layer4.2"),
    ("inception_v3", timm.models, 11, "Mixed_5b", "Mixed_7c"),
    ("vit_tiny_patch16_224", timm.models, 12, "blocks.0", "blocks.11"),
    ("swin_tiny_patch4_window7_224", timm.models, 12, "layers.0.blocks.0", "layers.3.blocks.1"),
    ("convnext_tiny", timm.models, 18, "stages.0.blocks.0", "stages.3.blocks.2"),
]


@pytest.mark.parametrize(("name", "library", "count", "first", "last"), DEFAULTS)
def test_by_default_every_residual_block(name: str, library, count: int, first: str, last: str) -> None:
    with torch.device("meta"):
        model = getattr(library, name)()
    names = list(taps(model))
    assert (len(names), names[0], names[-1]) == (count, first, last)


class ViTSelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)


@dataclass
class BaseModelOutput:
    last_hidden_state: Tensor


class ViTLayer(nn.Module):
    """As transformers has it: gives a tuple, and its class is called a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = ViTSelfAttention()

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return x + self.attention.query(x), None


class ViTEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ModuleList([ViTLayer(), ViTLayer()])

    def forward(self, x: Tensor) -> BaseModelOutput:
        for layer in self.layer:
            x = layer(x)[0]
        return BaseModelOutput(x)


class ViTModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = ViTEncoder()
        self.pooler = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pooler(self.encoder(x).last_hidden_state[:, 0])


def test_models_of_transformers_whose_layers_give_tuples_and_outputs() -> None:
    found = seen(ViTModel(), None, torch.randn(3, 5, 4))
    assert {name: list(value.shape) for name, value in found.items()} == {
        "encoder.layer.0": [3, 5, 4],
        "encoder.layer.1": [3, 5, 4],
    }
    assert list(seen(ViTModel(), "encoder", torch.randn(3, 5, 4))["encoder"].shape) == [3, 5, 4]


def test_glyphnet_is_tapped_in_evaluation_mode_to_the_values_that_its_features_average() -> None:
    net = build("glyphnet(width=4, features=32)", seed=3).eval()
    images = torch.randn(6, 3, 24, 24)
    found = seen(net, None, images)
    assert list(found) == ["block1", "block2", "bottleneck1", "bottleneck2"]
    with torch.no_grad():
        assert torch.equal(found["bottleneck2"].mean((2, 3)), net(images))
    assert all((value >= 0).all() and (value == 0).any() for value in found.values())


def test_patterns_match_within_a_component_or_across() -> None:
    with torch.device("meta"):
        net = torchvision.models.resnet18()
    assert list(taps(net, "layer[34].*")) == ["layer3.0", "layer3.1", "layer4.0", "layer4.1"]
    assert list(taps(net, ["fc", "layer1.0.bn2"])) == ["layer1.0.bn2", "fc"]
    assert len(taps(net, "layer1.**")) == 2 + 2 * 5
    assert list(taps(net, "layer?")) == ["layer1", "layer2", "layer3", "layer4"]
    with pytest.raises(RequestError, match=r"no layer matches 'layer5\.\*'; the nearest names: layer"):
        taps(net, ["layer4.*", "layer5.*"])
    with pytest.raises(RequestError, match="the outermost layers: conv1, bn1"):
        taps(net, "qqq")
    with pytest.raises(RequestError, match="layers are patterns of names"):
        taps(net, [])


def test_a_network_without_blocks_is_tapped_at_its_non_linearities_or_asks_for_names() -> None:
    assert list(taps(nn.Sequential(nn.Linear(2, 2), nn.GELU(), nn.Linear(2, 2)))) == ["1"]
    with pytest.raises(RequestError, match="name the layers: 0, 1"):
        taps(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    with pytest.raises(RequestError, match="it has no named modules"):
        taps(nn.Linear(2, 2))


def test_the_output_is_seen_before_an_in_place_operation_changes_it() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
    x = torch.randn(8, 3)
    found = seen(net, ["0", "1"], x)
    assert torch.equal(found["0"], net[0](x))
    assert (found["0"] < 0).any()
    assert (found["1"] >= 0).all()


class Reused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.relu = nn.ReLU()
        self.spare = nn.Linear(3, 3)
        self.words = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        self.words("text")
        return self.relu(self.linear(self.relu(x)))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("relu", r"layer 'relu' \(ReLU\) ran twice in one forward pass"),
        ("spare", "no output of 'spare'"),
        ("words", "layer 'words' gives a str, not a tensor"),
    ],
)
def test_what_cannot_be_tapped_is_said_and_no_hook_stays(layer: str, message: str) -> None:
    net = Reused()
    with pytest.raises(RequestError, match=message):
        seen(net, [layer, "linear"], torch.randn(2, 3))
    assert not any(module._forward_hooks for module in net.modules())
    assert list(seen(net, "linear", torch.randn(2, 3))) == ["linear"]
    assert not any(module._forward_hooks for module in net.modules())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_flattened_rows_hold_each_examples_numbers_without_a_copy(layout: torch.memory_format) -> None:
    x = torch.randn(4, 3, 5, 6).contiguous(memory_format=layout)
    rows = flattened(x)
    assert rows.data_ptr() == x.data_ptr()
    assert torch.allclose(rows @ rows.T, x.flatten(1) @ x.flatten(1).T, atol=1e-5)
    assert flattened(torch.randn(4)).shape == (4, 1)
