"""Every family of timm and torchvision: its features are found, its own classifier repeats its logits."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import timm
import torch
from torch import nn
from torchvision import models

import penultimate as pu
from penultimate.backbones.ending import ending
from penultimate.backbones.taps import tapped, taps
from penultimate.networks.given import fetch, load_given

QUICK = (
    "timm:test_resnet",
    "timm:test_vit",
    "timm:test_convnext",
    "timm:deit_tiny_distilled_patch16_224",
    "timm:levit_128s",
    "torchvision:squeezenet1_1",
)
LONG = (
    # convnets
    *("timm:test_byobnet", "timm:mobilenetv3_small_050", "timm:mobilenetv2_050", "timm:regnety_002"),
    *("timm:dla46x_c", "timm:dpn48b", "timm:densenet121", "timm:ese_vovnet19b_slim_dw", "timm:ghostnet_050"),
    *("timm:rexnet_100", "timm:resnest14d", "timm:resnetv2_18", "timm:legacy_seresnet18", "timm:skresnet18"),
    *("timm:hrnet_w18_small", "timm:nf_regnet_b1", "timm:inception_next_atto", "timm:cs3darknet_focus_s"),
    *("timm:starnet_s050", "timm:hgnetv2_b0", "timm:repghostnet_050", "timm:fasternet_t0", "timm:vgg11"),
    *("timm:mobilenetv4_conv_small", "timm:repvit_m1", "timm:convmixer_768_32", "timm:test_mambaout"),
    *(
        "torchvision:alexnet",
        "torchvision:efficientnet_b0",
        "torchvision:inception_v3",
        "torchvision:googlenet",
    ),
    *("torchvision:mnasnet0_5", "torchvision:mobilenet_v2", "torchvision:shufflenet_v2_x0_5"),
    *("torchvision:resnet18", "torchvision:regnet_x_400mf", "torchvision:vgg11"),
    # transformers, with and without a class token, distilled, windowed
    *("timm:vit_tiny_patch16_224", "timm:vit_little_patch16_reg4_gap_256", "timm:pit_ti_distilled_224"),
    *("timm:swin_tiny_patch4_window7_224", "timm:xcit_nano_12_p8_224", "timm:cait_xxs24_224"),
    *("timm:pvt_v2_b0", "timm:crossvit_tiny_240", "timm:convit_tiny", "timm:volo_d1_224"),
    *("timm:test_vit_relpos", "timm:efficientvit_m0", "timm:hiera_tiny_224", "torchvision:vit_b_16"),
    # perceptrons, and hybrids
    *(
        "timm:mixer_s32_224",
        "timm:resmlp_12_224",
        "timm:gmlp_ti16_224",
        "timm:poolformerv2_s12",
        "timm:caformer_s18",
    ),
    *("timm:test_coatnet", "timm:mobilevit_xxs", "timm:edgenext_xx_small", "timm:coat_tiny"),
    *("timm:efficientformerv2_s0", "timm:swiftformer_xs", "timm:efficientvit_b0", "timm:efficientvim_m1"),
    *(
        "timm:vit_tiny_r_s16_p8_224",
        "timm:visformer_tiny",
        "timm:tiny_vit_5m_224.dist_in22k_ft_in1k",
        "timm:sequencer2d_s",
    ),
)
ENTANGLED = ("torchvision:squeezenet1_1", "timm:volo_d1_224")
"""Their logits are no function of features alone: a ReLU, or a maximum, stands between."""

AS_LOADED = {
    name: {"aux_logits": True, "transform_input": True, "init_weights": False}
    for name in ("googlenet", "inception_v3")
}
"""How torchvision makes them for its own weights, whose file holds the auxiliary heads too."""


def as_if_trained(module: nn.Module) -> None:
    """Statistics of batches that differ, and final layers that are not zero, as in a trained network."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is not None:
            nn.init.normal_(layer.running_mean, std=0.05)
            nn.init.uniform_(layer.running_var, 0.8, 1.2)
        if isinstance(layer, nn.Linear | nn.Conv2d) and 1000 in (
            layer.weight.shape[0],
            layer.weight.shape[1],
        ):
            nn.init.normal_(layer.weight, std=0.05)
            if layer.bias is not None:
                nn.init.normal_(layer.bias)


def check(text: str, folder: Path) -> float:
    """The largest deviation of the logits from the network's own, relative to the largest logit."""
    kind, _, name = text.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = (
            timm.create_model(name) if kind == "timm" else models.get_model(name, **AS_LOADED.get(name, {}))
        )
        as_if_trained(module)
    module.eval()
    file = folder / "weights.safetensors"
    safetensors.torch.save_file({k: v.contiguous().clone() for k, v in module.state_dict().items()}, file)
    stored = folder / "given"
    stored.mkdir()
    usable = text not in ENTANGLED
    fetch(f"{text}(weights={str(file)!r})", tuple(map(str, range(1000))) if usable else (), stored)
    network = load_given(stored)
    side = network.preparation.crop
    images = torch.randn(3, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = module(images)
    features = network.features(images)
    assert (features.ndim, features.dtype) == (2, torch.float32)

    bank = pu.extract(module, [(images, torch.arange(3))])
    torch.testing.assert_close(torch.from_numpy(bank.features), features, rtol=1e-4, atol=1e-5)
    assert bank.logits is not None
    torch.testing.assert_close(torch.from_numpy(bank.logits), expected, rtol=1e-4, atol=1e-5)

    layers: dict[str, int] = {}
    with torch.no_grad(), tapped(taps(network.body), lambda name, out: layers.update({name: len(out)})):
        network.body(images)
    assert len(layers) > 1
    assert set(layers.values()) == {3}
    if not usable:
        return 0.0
    return float((network.logits(features) - expected).abs().max() / expected.abs().max())


@pytest.mark.long
@pytest.mark.parametrize("text", QUICK)
def test_its_own_classifier_on_our_features_repeats_the_logits_of(text: str, tmp_path: Path) -> None:
    assert check(text, tmp_path) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("text", LONG)
def test_so_for_every_other_family(text: str, tmp_path: Path) -> None:
    deviation = check(text, tmp_path)
    print(f"{text}: {deviation:.1e}")
    assert deviation < 1e-5


def test_the_heads_of_distilled_networks_stand_side_by_side_unless_they_are_given_the_same() -> None:
    for name, layers, width in (
        ("deit_tiny_distilled_patch16_224", ("head", "head_dist"), 2 * 192),
        ("swiftformer_xs", ("head", "head_dist"), 220),
    ):
        module = timm.create_model(name).eval()
        images = torch.randn(2, 3, 224, 224)
        with torch.no_grad():
            found = ending(module, lambda module=module, images=images: module(images))
        assert found is not None
        assert found.final is not None
        assert (found.final.layers, found.features.shape[1]) == (layers, width)
