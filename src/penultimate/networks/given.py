"""Networks that were not trained here, behind the same protocol as trained ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import Final, classifier, cut, cut_at, final_of, has_classifier, read_at
from penultimate.backbones.outputs import OUTPUT, described_with_advice, of_one_pixel
from penultimate.backbones.passes import REFUSALS, message_of, plainly
from penultimate.backbones.taps import unwrapped
from penultimate.backbones.tokens import Pooling, at_tokens, token_pooling
from penultimate.data.augmentation.transforms import normalise
from penultimate.data.decoding import middle_square
from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError
from penultimate.networks.building import noise
from penultimate.networks.model import Model
from penultimate.networks.sources import LIVE, Source
from penultimate.networks.state import copied, in_single

OWN = {"hf": f"{OUTPUT}.pooler_output", "open_clip": OUTPUT}
"""What is taken for the features of networks that have no final layer."""


@dataclass(frozen=True)
class GivenNetwork:
    """A `Network` from elsewhere: its `body`, the layer from features to logits, and how images are prepared.

    `class_names` is empty if its logits are not used; `final` may then be None. `own_transform` makes a
    float tensor [c h w] of a picture, if the user gave such a function in the place of the preparation.
    """

    body: nn.Module
    final: nn.Module | None
    preparation: Preparation
    class_names: tuple[str, ...]
    own_transform: Callable[[Image.Image], Tensor] | None = None

    def to(self, device: str) -> GivenNetwork:
        """Move the network to a device and return it; an ONNX network stays on the CPU."""
        for module in (self.body, self.final):
            if module is not None:
                module.to(device)
        return self

    @property
    def head_weight(self) -> Float[Tensor, "k m"] | None:
        """The weight of the final layer, if its classes are the study's classes."""
        weight = getattr(self.final, "weight", None)  # an objective with a projector has none
        return weight.detach() if self.class_names and isinstance(weight, Tensor) else None

    def prepared(
        self, images: UInt8[Tensor, "n h w c"] | Float[Tensor, "n channels side side"]
    ) -> Float[Tensor, "n channels side side"]:
        """Return bytes prepared as the network expects, exactly like images from files; floats are unchanged.

        Images that already have the network's size are not resized again. Grey becomes colour by repetition;
        for a network with one channel, colour becomes grey as in Pillow.
        """
        device = device_of(self.body)
        if images.is_floating_point():
            return images.to(device)
        if self.own_transform is not None:
            pictures = map(picture_of, images.cpu().numpy())
            return torch.stack([self.transform(picture) for picture in pictures]).to(device)
        return normalise(self.sized(images).to(device), self.preparation.statistics)

    def transform(self, image: Image.Image) -> Float[Tensor, "channels side side"]:
        """Return a picture as the network is shown it: what `ImageFolder(..., transform=)` takes."""
        if self.own_transform is not None:
            return self.own_transform(image)
        return normalise(torch.from_numpy(self._framed(image).copy())[None], self.preparation.statistics)[0]

    def sized(self, images: UInt8[Tensor, "n h w c"]) -> UInt8[Tensor, "n side side channels"]:
        """Return images of bytes in the size and number of channels that the network expects."""
        channels, size = len(self.preparation.statistics.mean), self.preparation.crop
        if images.shape[1:] == (size, size, channels):
            return images
        squares = np.empty((len(images), size, size, channels), np.uint8)
        for place, image in enumerate(images.cpu().numpy()):
            squares[place] = self._framed(picture_of(image), keeps_size=True)
        return torch.from_numpy(squares).to(images.device)

    @torch.inference_mode()
    def features(
        self, images: UInt8[Tensor, "n h w c"] | Float[Tensor, "n channels side side"]
    ) -> Float[Tensor, "n m"]:
        """Return the penultimate features, float32."""
        with plainly(device_of(self.body)):
            features: Tensor = self.body(self.prepared(images))
        return of_one_pixel(features).float()

    @torch.inference_mode()
    def logits(self, features: Float[Tensor, "n m"]) -> Float[Tensor, "n k"]:
        """Return the final layer's output for the features."""
        if self.final is None:
            raise RequestError("the network has no final layer that takes its features to logits")
        with plainly(features.device):
            logits: Tensor = self.final(features)
        return logits

    def log_probabilities(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """Return the log softmax, with which classifiers of timm and torchvision are trained."""
        return logits.log_softmax(-1)

    def _framed(
        self, picture: Image.Image, keeps_size: bool = False
    ) -> UInt8[np.ndarray, "side side channels"]:
        """Return a picture resized and cropped; with `keeps_size`, unchanged if it has the right size."""
        mode, side = "L" if len(self.preparation.statistics.mean) == 1 else "RGB", self.preparation.crop
        picture = picture if picture.mode == mode else picture.convert(mode)
        whole = keeps_size and picture.size == (side, side)
        square = picture if whole else middle_square(Path("an image"), picture, *self.preparation.geometry)
        return np.asarray(square).reshape(side, side, -1)


def network_of(model: Model) -> GivenNetwork:
    """Return a copy of a module as a network that prepares images as the model specifies, on its device."""
    module = copied(unwrapped(model.module)).eval()
    source, prepared = Source(LIVE, "the module", dict(model.settings)), model.preparation_of(module)
    in_single(module, noise(prepared).to(device_of(module)))
    end = end_of(f"{LIVE}:{type(module).__name__}", source, module, prepared)
    last = classifier(module, end) if isinstance(end, Final) else None
    return GivenNetwork(cut_by(module, end), last, prepared, numbered(last))


def numbered(final: nn.Module | None) -> tuple[str, ...]:
    """Return numbers as the names of a final layer's classes."""
    weighted: Any = getattr(final, "head", final)  # the head of an objective with a projector
    return () if final is None else tuple(map(str, range(len(weighted.weight))))


def cut_by(module: nn.Module, end: Final | Pooling | str) -> nn.Module:
    """Make a module return the features that `end_of` found, and return it."""
    if isinstance(end, Pooling):
        return at_tokens(module, end)
    return cut_at(module, end) if isinstance(end, str) else cut(module, end)


def end_of(text: str, source: Source, module: nn.Module, prepared: Preparation) -> Final | Pooling | str:
    """Return the final layers, proved with images of noise, or what the features are: a layer, or tokens."""
    layer: str | None = source.settings.get("layer")
    head, how = (source.settings.get(name) or "" for name in ("head", "pooling"))
    if layer is None and not head:
        layer = OWN.get(source.kind, None if has_classifier(module) else OUTPUT)
    images = noise(prepared)
    try:
        if how:
            run(text, module, images)  # says which images it wants
            with plainly(device_of(module)):
                return token_pooling(module, images.to(device_of(module)), how)
        if layer is None:
            with plainly(device_of(module)):
                return final_of(module, lambda: run(text, module, images), head)
        found = read_at(module, layer, lambda: run(text, module, images))
        if found.ndim != 2:
            raise RequestError(f"features are [n m]; layer '{layer}' gives {described_with_advice(found)}")
    except RequestError as error:
        raise error if text in str(error) else type(error)(f"'{text}': {error}") from None
    return layer


def run(text: str, module: nn.Module, images: Tensor) -> Any:
    """Return what a module gives for images; raise RequestError with what it says if it refuses them."""
    try:
        with plainly(device_of(module)):
            return module(images.to(device_of(module)).clone())  # the network may overwrite it
    except RequestError:
        raise
    except REFUSALS as error:
        size = "pu.Model(module, size=64)" if text.startswith(f"{LIVE}:") else "crop=64"
        raise RequestError(
            f"'{text}' refuses images {list(images.shape)}: {message_of(error)}. What it wants can be said:"
            f" {size} for 64 x 64 pixels, mean=(0.5,), std=(0.25,) for one channel"
        ) from None


def picture_of(image: np.ndarray) -> Image.Image:
    """Return bytes [h w c] as a picture."""
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
