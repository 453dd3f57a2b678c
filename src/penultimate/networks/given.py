"""Networks that were not trained here, behind the same protocol as those that were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from torch import Tensor, nn

from penultimate.data.images import ChannelStatistics
from penultimate.data.transforms import normalise
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write
from penultimate.networks.sources import GIVEN, Source, read_source
from penultimate.networks.trained import load_network

WEIGHTS = "given.safetensors"


@dataclass(frozen=True)
class GivenNetwork:
    """A `Network` from timm or torchvision: the `body`, its final layer, and how images are prepared.

    `side` is the height and width that it was made for; `class_names` are empty if its final layer is not for
    the study's classes.
    """

    body: nn.Module
    final: nn.Linear
    statistics: ChannelStatistics
    side: int
    class_names: tuple[str, ...]

    @property
    def head_weight(self) -> Float[Tensor, "k m"] | None:
        """The weight of the final layer, if that is for the study's classes."""
        return self.final.weight.detach() if self.class_names else None

    def prepared(self, images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n 3 side side"]:
        """Images resized to the side that the network was made for and normalised as its weights expect."""
        pixels = normalise(images.expand(-1, -1, -1, 3), self.statistics)
        return F.interpolate(
            pixels, (self.side, self.side), mode="bilinear", align_corners=False, antialias=True
        )

    @torch.inference_mode()
    def features(self, images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n m"]:
        """The input of the final layer, float32."""
        features: Tensor = self.body(self.prepared(images))
        return features.flatten(1).float()

    @torch.inference_mode()
    def logits(self, features: Float[Tensor, "n m"]) -> Float[Tensor, "n k"]:
        """The final layer's output for the features."""
        logits: Tensor = self.final(features)
        return logits

    def log_probabilities(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """Log softmax, with which classifiers of timm and torchvision are trained."""
        return logits.log_softmax(-1)


def fetch(text: str, class_names: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Store a given network in a folder, to be loaded without its source; returns facts about it.

    `class_names` are those of its logits; () ignores its final layer. Raises RequestError if the network
    cannot be obtained or its final layer has a different number of classes.
    """
    source = read_source(text)
    if source.kind == "folder":
        return _copied(text, source, class_names, folder)
    module, config = _build(source)
    _expect_classes(text, _final_layer(module).out_features, class_names)
    tensors = {name: value.contiguous().clone() for name, value in module.state_dict().items()}
    atomic_write(folder / WEIGHTS, safetensors.torch.save(tensors))
    card = {"kind": source.kind, "name": source.name, "class_names": list(class_names), **config}
    atomic_write(folder / GIVEN, (json.dumps(card, indent=1, sort_keys=True) + "\n").encode())
    return {"weights": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()}


def load_given(folder: Path) -> GivenNetwork:
    """The network that `fetch` stored in a folder; raises DamagedFileError if it cannot be read."""
    try:
        card = json.loads((folder / GIVEN).read_text())
        module = _with_first_weights(card["kind"], card["name"])
        module.load_state_dict(safetensors.torch.load_file(folder / WEIGHTS))
    except (ValueError, KeyError, RuntimeError, OSError, SafetensorError) as error:
        raise DamagedFileError(f"the given network in '{folder}' cannot be read: {error}") from error
    return _network(module.eval(), card)


def _expect_classes(text: str, outputs: int, class_names: tuple[str, ...]) -> None:
    if class_names and outputs != len(class_names):
        raise RequestError(
            f"'{text}' has {outputs} classes and the source {len(class_names)}; without classifies=True its"
            " final layer is not used"
        )


def _copied(text: str, source: Source, class_names: tuple[str, ...], folder: Path) -> dict[str, Any]:
    network = load_network(Path(source.name))
    _expect_classes(text, len(network.class_names), class_names)
    for path in sorted(Path(source.name).glob("network.*")):
        atomic_write(folder / path.name, path.read_bytes())
    return {"trained_with": network.card["objective"], "num_features": network.card["num_features"]}


def _with_first_weights(kind: str, name: str, seed: int = 0) -> nn.Module:
    """The architecture with the first weights of a seed; the caller's random numbers stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return _create(kind, name)


def _create(kind: str, name: str, pretrained: bool = False) -> nn.Module:
    """The architecture as its library makes it."""
    try:
        if kind == "timm":
            import timm

            module: nn.Module = timm.create_model(name, pretrained=pretrained)
        else:
            import torchvision

            module = torchvision.models.get_model(name, weights="DEFAULT" if pretrained else None)
    except ImportError:
        raise RequestError(f"networks of {kind} need it: pip install 'penultimate[models]'") from None
    except Exception as error:  # a download raises whatever its connection does
        if not pretrained:
            raise RequestError(f"{kind} has no network '{name}': {error}") from None
        raise RequestError(
            f"the weights of {kind}:{name} cannot be downloaded ({type(error).__name__}); give a file,"
            f" {kind}:{name}(weights='FILE'), or pretrained=False for first weights"
        ) from None
    return module


def _build(source: Source) -> tuple[nn.Module, dict[str, Any]]:
    """The network with the weights that its source specifies, and how images are prepared for it."""
    settings = source.settings
    module = _with_first_weights(source.kind, source.name, int(settings.get("seed", 0)))
    if "weights" in settings:
        _load_weights(module, Path(settings["weights"]))
    elif settings.get("pretrained", True):
        module = _create(source.kind, source.name, pretrained=True)
    config = getattr(module, "pretrained_cfg", None) or {}
    size = tuple(config.get("input_size", (3, 224, 224)))
    prepared = {
        "size": int(size[-1]),
        "mean": list(config.get("mean", (0.485, 0.456, 0.406))),
        "std": list(config.get("std", (0.229, 0.224, 0.225))),
    }
    return module.eval(), prepared


def _load_weights(module: nn.Module, path: Path) -> None:
    try:
        if path.suffix == ".safetensors":
            tensors = safetensors.torch.load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(tensors.get("state_dict", tensors))
    except Exception as error:  # an unpickler, a zip file and a state dict each raise their own
        raise RequestError(f"'{path}' does not hold weights of this network: {error}") from None


def _final_layer(module: nn.Module) -> nn.Linear:
    """The final linear layer of a classifier of timm or torchvision."""
    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise RequestError(f"{type(module).__name__} has no linear layer at its end")
    return linear[-1]


def _network(module: nn.Module, card: dict[str, Any]) -> GivenNetwork:
    final = _final_layer(module)
    statistics = ChannelStatistics(tuple(card["mean"]), tuple(card["std"]))
    return GivenNetwork(_without(module, final), final, statistics, card["size"], tuple(card["class_names"]))


def _without(module: nn.Module, final: nn.Linear) -> nn.Module:
    """The module with an identity in place of its final layer."""
    for layer in module.modules():
        for child, part in list(layer.named_children()):
            if part is final:
                setattr(layer, child, nn.Identity())
                return module
    raise RequestError(f"the final layer of {type(module).__name__} cannot be removed")
