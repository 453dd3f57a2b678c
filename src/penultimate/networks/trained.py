"""A trained network on disk and in memory: backbone, objective, and the normalisation of its input."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from penultimate import backbones
from penultimate.backbones.backbone import device_of
from penultimate.data.augmentation.transforms import normalise
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write, given_path
from penultimate.networks.sources import OF_TRAINING
from penultimate.objectives.objective import Objective, objective

WEIGHTS = "network.safetensors"
CARD = OF_TRAINING


@dataclass(frozen=True)
class TrainedNetwork:
    """A `Network` that was trained here: its backbone and objective, in evaluation mode.

    `statistics` are the channel statistics of its training images, with which every image is normalised.
    """

    backbone: nn.Module
    objective: Objective
    statistics: ChannelStatistics
    class_names: tuple[str, ...]
    card: dict[str, Any]

    @property
    def body(self) -> nn.Module:
        """The backbone, up to the penultimate features: the module whose layers are observed."""
        return self.backbone

    @property
    def head_weight(self) -> Float[Tensor, "k m"] | None:
        """The weight of the final layer; None with a projector, on whose output the final layer acts."""
        weight: Tensor = self.objective.head.weight.detach()
        return weight if self.objective.projector is None else None

    @property
    def preparation(self) -> Preparation:
        """How image files are resized and cropped for it: as in its tests, or as usual for ImageNet."""
        resize, crop = self.card.get("resize", 256), self.card.get("crop", 224)
        return Preparation(resize, crop, self.card.get("interpolation", "bilinear"), self.statistics)

    def resized_to_crop(self) -> TrainedNetwork:
        """Return the network for images whose shorter side is resized to the crop, to lose less."""
        return replace(
            self, card={**self.card, "resize": self.preparation.crop, "crop": self.preparation.crop}
        )

    def prepared(self, images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n c h w"]:
        """Return images as the body expects them, on their own device."""
        return normalise(images.to(device_of(self.backbone)), self.statistics)

    def to(self, device: str) -> TrainedNetwork:
        """Move the network to a device and return it."""
        self.backbone.to(device)
        self.objective.to(device)
        return self

    @torch.inference_mode()
    def features(self, images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n m"]:
        """Return the penultimate features, float32, of uint8 images."""
        features: Tensor = self.backbone(self.prepared(images))
        return features.float()

    @torch.inference_mode()
    def logits(self, features: Tensor) -> Float[Tensor, "n k"]:
        """Return the logits of features [n m], as the objective's head defines them."""
        logits: Tensor = self.objective(features)
        return logits

    def log_probabilities(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """Return the logarithms of the class probabilities, as the objective defines them."""
        logarithms: Tensor = self.objective.log_probabilities(logits)
        return logarithms


def build(
    objective_text: str,
    backbone_text: str,
    num_classes: int,
    seed: int,
    body: nn.Module | None = None,
    class_counts: Any = None,
) -> tuple[nn.Module, Objective]:
    """Return a fresh backbone (or the given `body`) and an objective; the seed determines all weights.

    `class_counts` [k] are the training images of each class, for a loss that asks for them.
    """
    built: Any = backbones.build(backbone_text, seed) if body is None else body
    return built, objective(objective_text, built.num_features, num_classes, seed, class_counts)


def snapshot(folder: Path, epoch: int) -> Path:
    """Return the folder, inside a run's folder, of the network at an earlier epoch.

    >>> snapshot(Path("run"), 5).as_posix()
    'run/epoch-00005'
    """
    return folder / f"epoch-{epoch:05d}"


def snapshots(folder: Path) -> dict[int, Path]:
    """Return the networks of earlier epochs that a run's folder keeps, by epoch."""
    return {int(path.name.partition("-")[2]): path for path in sorted(folder.glob("epoch-*"))}


def save_network(
    folder: Path, body: nn.Module, head: Objective, statistics: ChannelStatistics, card: dict[str, Any]
) -> None:
    """Write weights (safetensors) and card (JSON)."""
    tensors = {f"backbone.{name}": value.contiguous().clone() for name, value in body.state_dict().items()}
    tensors |= {f"objective.{name}": value.contiguous() for name, value in head.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / WEIGHTS, safetensors.torch.save(tensors))
    content = {**card, "statistics": asdict(statistics)}
    atomic_write(folder / CARD, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def load_network(folder: Path | str, body: nn.Module | None = None) -> TrainedNetwork:
    """Read a network back, in evaluation mode; use `body` if its architecture is not built in.

    Raises RequestError if there is none, and DamagedFileError if a file is not as it was written.
    """
    folder = given_path(folder, "folder")
    try:
        card = json.loads((folder / CARD).read_text("utf-8"))
        tensors = safetensors.torch.load_file(folder / WEIGHTS)
        statistics = ChannelStatistics(**card["statistics"])
        counts = tensors.get("objective.class_counts")
        body, head = build(card["objective"], card["backbone"], card["num_classes"], 0, body, counts)
        body.load_state_dict(_part(tensors, "backbone."))
        head.load_state_dict(_part(tensors, "objective."))
        class_names = tuple(card["class_names"])
    except FileNotFoundError as error:
        raise RequestError(
            f"no network in '{folder}': {Path(error.filename or '').name} is missing"
        ) from None
    except (ValueError, KeyError, TypeError, RuntimeError, safetensors.SafetensorError) as error:
        raise DamagedFileError(f"the network in '{folder}' cannot be read: {error}") from error
    return TrainedNetwork(body.eval(), head.eval(), statistics, class_names, card)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
