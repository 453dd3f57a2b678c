"""Features of images from a network that is left unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penultimate.data.images import Images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank, float32
from penultimate.metrics.inputs import as_tensor, labelled, whole_number
from penultimate.networks.protocol import Network

Batches = Iterable[tuple[Any, Any]]


def extract(
    model: Network | Callable[[Tensor], Tensor],
    data: Images | Batches,
    batch_size: int = 256,
    provenance: dict[str, Any] | None = None,
) -> FeatureBank:
    """The features of every image, float32, and, from a Network with a final layer, its logits.

    `model` is a `Network` with `Images` (an ImageSet), or any callable (an `nn.Module` without its last
    layer) that maps a batch to features [n m], with an iterable of (batch, labels). A module is put into
    evaluation mode for the duration, and its mode is then restored. Computed in float32, without autocast;
    the batch size changes features by no more than float32 rounding.

    Raises RequestError if features are not [n m] or not finite, or if there are no batches.

    >>> batches = [(torch.ones(2, 3), torch.tensor([0, 1]))]
    >>> extract(nn.Linear(3, 4), batches).features.shape
    (2, 4)
    """
    whole_number(batch_size, "batch_size", 1)
    if isinstance(data, Images):
        if not isinstance(model, Network):
            raise RequestError(
                "an ImageSet goes with a Network; give another model an iterable of (batch, labels)"
            )
        return _from_images(model, data, batch_size, provenance or {})
    if isinstance(model, Network):
        raise RequestError("a Network goes with an ImageSet; it normalises uint8 images itself")
    return _from_batches(model, data, provenance or {})


def _from_images(network: Network, data: Images, size: int, provenance: dict[str, Any]) -> FeatureBank:
    features, logits = [], []
    for batch, _ in data.batches(size):
        features.append(network.features(batch))
        if network.class_names:
            logits.append(network.logits(features[-1]))
    if not features:
        raise RequestError("no image to extract features from")
    joined = _joined(logits) if logits else None
    return FeatureBank(_joined(features), data.labels, joined, data.ids, provenance)


def _from_batches(
    model: Callable[[Tensor], Tensor], data: Batches, provenance: dict[str, Any]
) -> FeatureBank:
    module = model if isinstance(model, nn.Module) else None
    modes = {layer: layer.training for layer in module.modules()} if module is not None else {}
    device = next((p.device for p in module.parameters()), None) if module is not None else None
    features, labels = [], []
    try:
        if module is not None:
            module.eval()
        with torch.inference_mode():
            for images, targets in labelled(data):
                batch, targets = as_tensor(images, "images"), as_tensor(targets, "labels")
                part = model(batch if device is None else batch.to(device))
                if not isinstance(part, Tensor):
                    raise RequestError(f"features are a tensor [n m]; the model gave a {type(part).__name__}")
                if targets.ndim != 1 or part.ndim != 2 or len(part) != len(targets):
                    raise RequestError(
                        f"features are [n m] for labels [n]; the model gave {list(part.shape)} for"
                        f" {list(targets.shape)}"
                    )
                features.append(torch.from_numpy(float32("features", part)))
                labels.append(targets.cpu().numpy())
    finally:
        for layer, training in modes.items():
            layer.training = training
    if not features:
        raise RequestError("no batch to extract features from")
    return FeatureBank(_joined(features), np.concatenate(labels), provenance=provenance)


def _joined(parts: list[Tensor]) -> np.ndarray:
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise RequestError(f"features are of one width; batches have {', '.join(map(str, sorted(widths)))}")
    return torch.cat(parts).cpu().numpy()
