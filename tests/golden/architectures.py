"""Features and logits of 65 architectures of timm, torchvision and transformers, as they come out today.

The weights are drawn from a seed and the parameters' names, so nothing is downloaded and no library's way of
initialising matters. `architectures.json` holds what came out. To record it again, in about five minutes and
with transformers installed as well:

    OMP_NUM_THREADS=1 python -m tests.golden.architectures
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

import penultimate as pu
from penultimate.networks.sources import GIVEN
from penultimate.networks.store import fetch, load_given

GOLDEN = Path(__file__).with_suffix(".json")


def sources(kind: str, *names: str) -> tuple[str, ...]:
    """Return the sources of networks of one kind: "timm:resnet18" and the like."""
    return tuple(f"{kind}:{name}" for name in " ".join(names).split())


QUICK = sources(
    "timm",
    "test_resnet test_vit test_convnext test_efficientnet test_byobnet test_mambaout test_coatnet",
    "mobilenetv3_small_050 ghostnet_050 deit_tiny_distilled_patch16_224",
) + sources("torchvision", "squeezenet1_1 shufflenet_v2_x0_5")
LONG = sources(
    "timm",
    "resnet18 resnetv2_18 legacy_seresnet18 regnety_002 densenet121 dpn48b vgg11 efficientnet_b0",
    "mobilenetv4_conv_small test_nfnet convnext_atto hrnet_w18_small inception_next_atto repvit_m1",
    "vit_tiny_patch16_224 eva02_tiny_patch14_224 pit_ti_distilled_224 swin_tiny_patch4_window7_224",
    "xcit_nano_12_p8_224 cait_xxs24_224 volo_d1_224 hiera_tiny_224 mixer_s32_224 poolformerv2_s12",
    "maxvit_rmlp_pico_rw_256 mobilevit_xxs swiftformer_xs",
) + sources(
    "torchvision",
    "alexnet convnext_tiny resnet18 mobilenet_v2 mobilenet_v3_small googlenet inception_v3 mnasnet0_5",
    "efficientnet_b0 regnet_x_400mf swin_t vit_b_16",
)
_VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
_VIT |= {"image_size": 32, "patch_size": 8}
_SWIN = {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4, "patch_size": 2}
_SWIN |= {"image_size": 32}
_STAGES = {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
_DINO = {key: _VIT[key] for key in _VIT if key != "intermediate_size"}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "ViT": _VIT,
    "DeiT": _VIT,
    "Beit": _VIT,
    "Dinov2": _DINO,
    "Swin": _SWIN,
    "Swinv2": _SWIN,
    "ConvNext": _STAGES,
    "ResNet": {**_STAGES, "embedding_size": 8},
    "MobileViT": {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32]}
    | {"image_size": 64, "num_attention_heads": 2},
    "MobileNetV2": {"image_size": 64, "depth_multiplier": 0.35},
}
"""Tiny networks of transformers, by the beginning of their classes' names."""
TRANSFORMERS = sources(
    "module",
    "ViTForImageClassification DeiTForImageClassificationWithTeacher BeitForImageClassification",
    "Dinov2ForImageClassification SwinForImageClassification Swinv2ForImageClassification",
    "ConvNextForImageClassification ResNetForImageClassification MobileViTForImageClassification",
    "MobileNetV2ForImageClassification",
) + sources("hf", "ViTModel ConvNextModel SwinModel ViTForImageClassification")
"""Classifiers as modules, and folders that save_pretrained writes; that of a classifier has no pooler."""
ALL = (*QUICK, *LONG, *TRANSFORMERS)


def outcome(source: str) -> dict[str, Any]:
    """Return what comes out of an architecture: its features, logits and final layers, or a refusal."""
    module, side = build(source)
    draw_weights(module, side)
    try:
        features, logits, layers = enter(source, module, images_of(side, 2, seed=0))
    except pu.RequestError:
        return {"refused": True}
    summed_up = None if logits is None else summary(logits)
    return {"side": side, "features": summary(features), "logits": summed_up, "layers": layers}


def enter(source: str, module: nn.Module, images: Tensor) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """Return features and logits through the package's own doors, and the final layers where it names them.

    This is the only function here that changes when those doors do.
    """
    kind = source.partition(":")[0]
    if kind == "module":
        bank = pu.extract(module, [(images, torch.arange(len(images)))])
        return bank.features, bank.logits, None
    with tempfile.TemporaryDirectory() as place:
        stored = Path(place) / "stored"
        stored.mkdir()
        fetch(with_weights(source, module, Path(place)), (), stored)
        network, card = load_given(stored), json.loads((stored / GIVEN).read_text())
        features = network.features(images)
        logits = None if network.final is None else network.logits(features).numpy()
        return features.numpy(), logits, card["final"]["layers"] if "final" in card else card["layer"]


def build(source: str) -> tuple[nn.Module, int]:
    """Return the architecture, and the side in pixels of the images that its library would give it."""
    kind, _, name = source.partition(":")
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about how torchvision draws initial weights
        if kind == "timm":
            import timm

            module = timm.create_model(name)
            return module.eval(), module.pretrained_cfg["input_size"][-1]
        if kind == "torchvision":
            from torchvision import models

            weights = models.get_model_weights(name).DEFAULT
            # The trained weights of these two normalise their own input, and have auxiliary heads.
            more = {"aux_logits": True, "transform_input": True, "init_weights": False}
            more = more if name in ("googlenet", "inception_v3") else {}
            return models.get_model(name, **more).eval(), weights.transforms().crop_size[0]
        import transformers

        made = getattr(transformers, name)
        settings = CONFIGURATIONS[name.removesuffix("Model").partition("For")[0]]
        config = made.config_class(**settings, num_labels=10)
        return made(config).eval(), settings.get("image_size", 32)


@torch.no_grad()
def draw_weights(module: nn.Module, side: int) -> None:
    """Draw every parameter from a seed made of its name; statistics of batches are those of eight images.

    Other statistics would let signals fade on their way through deep networks, until all images look alike.
    """
    for name, parameter in module.named_parameters():
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
        drawn = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
        if parameter.ndim >= 2:
            parameter.copy_(drawn * (2 * parameter.shape[0] / parameter.numel()) ** 0.5)
        else:
            parameter.copy_(0.1 * drawn + (0 if "bias" in name.rpartition(".")[2] else 1))
    norms = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
    hooks = [layer.register_forward_pre_hook(_take_statistics) for layer in norms]
    module(images_of(side, 8, seed=1))
    for hook in hooks:
        hook.remove()


def _take_statistics(layer: _BatchNorm, inputs: tuple[Tensor]) -> None:
    channels = inputs[0].transpose(0, 1).flatten(1)
    layer.running_mean, layer.running_var = channels.mean(1), channels.var(1)


def images_of(side: int, count: int, seed: int) -> Tensor:
    """Return smooth images of noise; without smoothness, all of them would have the same means."""
    coarse = torch.randn(count, 3, 7, 7, generator=torch.Generator().manual_seed(seed))
    return nn.functional.interpolate(coarse, size=(side, side), mode="bilinear")


def with_weights(source: str, module: Any, folder: Path) -> str:
    """Write the weights of a module into a folder; return the source that names them."""
    if not source.startswith("hf:"):
        file = folder / "weights.safetensors"
        safetensors.torch.save_file({k: v.contiguous().clone() for k, v in module.state_dict().items()}, file)
        return f"{source}(weights={str(file)!r})"
    import transformers

    side = getattr(module.config, "image_size", 32)
    transformers.utils.logging.disable_progress_bar()
    module.save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": side, "width": side}).save_pretrained(folder)
    return f"hf:{folder}"


def summary(values: np.ndarray) -> dict[str, Any]:
    """Return the width of features or logits [n m], a digest of them in four digits, and eight of the values.

    They are rounded in units of their root mean square, for it differs between architectures by a thousand.
    """
    scale = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    if not 0 < scale < float("inf"):
        raise ValueError(f"the root mean square of the values is {scale}, which says nothing of a network")
    rounded = np.round(values / scale * 10_000).astype("<i4")
    some = rounded.ravel()[np.linspace(0, rounded.size - 1, 8).astype(int)]
    return {
        "width": values.shape[1],
        "digest": hashlib.sha256(rounded.tobytes()).hexdigest()[:16],
        "root mean square": float(f"{scale:.6g}"),
        "means": [round(float(mean), 5) for mean in (values / scale).mean(1, dtype=np.float64)],
        "some": (some / 10_000).tolist(),
    }


def main() -> None:
    """Record all architectures."""
    torch.set_num_threads(1)
    found = {}
    for source in ALL:
        found[source] = outcome(source)
        print(source, found[source], flush=True)
    lines = [f"{json.dumps(source)}: {json.dumps(of)}" for source, of in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
