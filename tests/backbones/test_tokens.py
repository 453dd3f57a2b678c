"""Poolings of tokens: against the libraries' own, with registers counted, refused without tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from tests.networks.given import STRANGER
from torch import Tensor, nn
from torchvision.models import VisionTransformer

import penultimate as pu
from penultimate.backbones.tokens import at_tokens, token_pooling
from penultimate.errors import RequestError
from penultimate.evaluation.naming import networks_named
from penultimate.evaluation.request import Request
from penultimate.networks.sources import POOLINGS, read_source
from penultimate.networks.store import fetch, load_given

IMAGES = torch.randn(3, 3, 160, 160, generator=torch.Generator().manual_seed(0))


def built(name: str, **settings: Any) -> nn.Module:
    torch.manual_seed(0)
    module: nn.Module = timm.create_model(name, **settings).eval()
    return module


@torch.no_grad()
def pooled(module: nn.Module, how: str, images: Tensor = IMAGES) -> Tensor:
    features: Tensor = at_tokens(module, token_pooling(module, images[:2], how))(images)
    return features


@torch.no_grad()
def by_hand(module: Any, how: str) -> Tensor:
    """The poolings, literally, of timm's own tokens."""
    tokens, first = module.forward_features(IMAGES), module.num_prefix_tokens
    of = {
        "cls": [tokens[:, 0]],
        "mean": [sum(tokens[:, each] for each in range(tokens.shape[1])) / tokens.shape[1]],
        "patches:mean": [tokens[:, first:].sum(1) / (tokens.shape[1] - first)],
    }
    parts = of["cls"] + of["patches:mean"] if how == "cls+mean" else of[how]
    return torch.cat([module.fc_norm(part) for part in parts], 1)


@pytest.mark.parametrize("how", POOLINGS)
@pytest.mark.parametrize(
    ("name", "settings", "prefix"),
    [
        ("test_vit", {}, 1),
        ("test_vit2", {}, 1),
        ("test_vit", {"reg_tokens": 4}, 5),
        ("deit_tiny_distilled_patch16_224", {"img_size": 160, "depth": 1}, 2),
    ],
)
def test_poolings_are_those_of_the_networks_own_tokens(
    name: str, settings: dict[str, Any], prefix: int, how: str
) -> None:
    module = built(name, **settings)
    if name == "test_vit2" and how.startswith("cls"):  # its prefix token is a register
        with pytest.raises(RequestError, match="has no class token"):
            token_pooling(module, IMAGES[:2], how)
        return
    expected = by_hand(module, how)
    assert token_pooling(module, IMAGES[:2], how).prefix == prefix
    found = pooled(module, how)
    assert found.shape == (3, (1 + (how == "cls+mean")) * module.num_features)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_the_networks_own_pooling_gives_its_own_features() -> None:
    for name, own in (("test_vit", "cls"), ("test_vit2", "patches:mean")):
        module: Any = built(name)
        with torch.no_grad():
            features = module.forward_head(module.forward_features(IMAGES), pre_logits=True)
        torch.testing.assert_close(pooled(module, own), features)


def test_torchvision_is_pooled_behind_its_encoder() -> None:
    torch.manual_seed(0)
    module = VisionTransformer(32, 8, 2, 2, 16, 32).eval()
    images = IMAGES[:, :, :32, :32]
    with torch.no_grad():
        patches = module._process_input(images)
        tokens = module.encoder(torch.cat([module.class_token.expand(3, -1, -1), patches], 1))
    assert token_pooling(module, images, "mean").prefix == 1
    torch.testing.assert_close(pooled(module, "patches:mean", images), tokens[:, 1:].mean(1))
    torch.testing.assert_close(pooled(module, "cls", images), tokens[:, 0])


@pytest.mark.parametrize("name", ["test_resnet", "test_convnext", "test_mambaout"])
def test_networks_without_tokens_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match=r"pooling='mean' is of networks with tokens.*has none"):
        token_pooling(built(name), IMAGES[:2], "mean")


def test_a_pooled_network_is_stored_and_loaded_and_has_no_final_layer(tmp_path: Path) -> None:
    text = "timm:test_vit(pretrained=False, seed=1, pooling='cls+mean')"
    facts = fetch(text, (), tmp_path)
    assert facts["pooling"] == {"how": "cls+mean", "layer": "norm", "prefix": 1, "norm": ""}
    network = load_given(tmp_path)
    images = torch.randint(0, 256, (2, 40, 40, 3), dtype=torch.uint8)
    assert network.features(images).shape == (2, 128)
    assert network.final is None
    with pytest.raises(RequestError, match="has no final layer that takes its features to logits"):
        fetch(text, ("a", "b"), tmp_path)
    with pytest.raises(RequestError, match=r"'timm:test_resnet\(.*' *: pooling='cls' is of networks with"):
        fetch(STRANGER.replace("seed=1", "pooling='cls'"), (), tmp_path)


def test_a_model_of_the_session_has_a_pooling() -> None:
    model, data = built("test_vit"), [(IMAGES, torch.tensor([0, 1, 0]))]
    found = pu.extract(pu.Model(model, pooling="mean"), data)
    torch.testing.assert_close(torch.from_numpy(found.features), by_hand(model, "mean"), rtol=1e-5, atol=1e-6)
    with pytest.raises(RequestError, match="Did you mean 'mean'"):
        pu.Model(model, pooling="meen")
    with pytest.raises(RequestError, match="layer and pooling both say"):
        read_source("timm:test_vit(layer='norm', pooling='mean')")
    with pytest.raises(RequestError, match="pooling is of type str"):
        read_source("timm:test_vit(pooling=1)")


def test_networks_are_named_by_their_poolings_and_never_share_features() -> None:
    text = "timm:test_vit(pretrained=False, pooling='cls')"
    assert [*networks_named([(text, ""), (text.replace("'cls'", "'mean'"), "")])] == [
        "test_vit cls",
        "test_vit mean",
    ]
    asked = Request({"vit": "timm:test_vit", "net": "timm:test_resnet"}, {"glyphs_smoke": ""}, poolings="all")
    (block,) = asked.study().networks
    assert [*block.networks] == ["vit", *(f"vit {how}" for how in POOLINGS), "net"]  # type: ignore[union-attr]
    assert len({*block.networks.values()}) == 6  # type: ignore[union-attr]
    headless = Request(
        {"a": "timm:vit_medium_patch16_reg4_gap_256"}, {"glyphs_smoke": ""}, poolings=("cls", "patches:mean")
    )
    assert [*headless.sources] == ["a", "a patches:mean"]
    with pytest.raises(RequestError, match="none of net is known to have any"):
        _ = Request({"net": "timm:test_resnet"}, {"glyphs_smoke": ""}, poolings="all").sources
    with pytest.raises(RequestError, match="Did you mean 'mean'"):
        _ = Request({"net": "timm:test_vit"}, {"glyphs_smoke": ""}, poolings=("meann",)).sources
