"""The network of a run that was trained elsewhere, read from its file as one that was trained here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError, legible
from penultimate.files import digest_file
from penultimate.networks.architectures import IMAGENET
from penultimate.networks.store import noted
from penultimate.networks.trained import build, save_network
from penultimate.networks.weights import listed, load_weights, read_weights, without_prefixes
from penultimate.objectives.objective import Objective

OWN = "head.weight"
"""What the name of a final layer's weight ends with in the files of this package."""
USUAL_FOR = "imagenet"
"""The source whose networks are normalised by what is usual, unless it is said, and not by its moments."""


def assemble(
    config: Mapping[str, Any],
    source: str,
    class_names: Sequence[str],
    statistics: ChannelStatistics,
    geometry: Mapping[str, int],
    folder: Path,
) -> dict[str, Any]:
    """Store a network from a file of weights in a folder, as a training would; return facts about it.

    The architecture is the study's, and the weight and bias of the file's final layer become those of the
    objective's head. `statistics` are the moments of the training images, and `geometry` is empty for images
    that are not resized.

    Raises RequestError for a file that was changed, that does not fit the architecture or the classes (it
    names the tensors), and for weights that are not finite.
    """
    path = Path(config["file"])
    if not path.is_file() or digest_file(path) != config["content"]:
        raise RequestError(f"'{path}' was changed or removed since the study began; start it again")
    body, head = build(config["objective"], config["backbone"], len(class_names), 0)
    tensors = read_weights(path, config.get("ema", False), config.get("part", ""))
    weight, bias = _final_layer(path, tensors, head.head.weight, body.state_dict())
    others = {name: value for name, value in tensors.items() if name not in (weight, bias)}
    is_own = weight.endswith(OWN)
    if weight == f"objective.{OWN}":  # as `save_network` writes it
        _load_parts(head, tensors, path)
        others = {
            name.removeprefix("backbone."): value
            for name, value in others.items()
            if not name.startswith("objective.")
        }
    left_out = load_weights(body, others, path)
    with torch.no_grad():
        head.head.weight.copy_(tensors[weight].reshape(head.head.weight.shape))
        head.head.bias.copy_(tensors[bias] if bias else torch.zeros_like(head.head.bias))
    used, origin = statistics, "the moments of the training images"
    if "mean" in config:
        used, origin = ChannelStatistics(tuple(config["mean"]), tuple(config["std"])), ""
    elif source == USUAL_FOR and not is_own:
        used, origin = IMAGENET, "what is usual for ImageNet"
    if len(used.mean) != len(statistics.mean):
        raise RequestError(
            f"'{path}': mean and std are {len(used.mean)} numbers, and the images have"
            f" {len(statistics.mean)} channels"
        )
    card = {
        **{name: config[name] for name in ("objective", "backbone", "seed")},
        "num_classes": len(class_names),
        "class_names": list(class_names),
        "num_features": head.num_features,
        **({"resize": geometry["resize"], "crop": geometry["size"]} if geometry else {}),
        **({"interpolation": config["interpolation"]} if "interpolation" in config else {}),
    }
    save_network(folder, body, head, used, card)
    remarks = {
        "left out": left_out,
        "no bias": "" if bias else f"its final layer '{weight}' has no bias, and 0 is taken",
        "normalised by": f"its images are normalised by {origin}" if origin else "",
    }
    return {"num_features": head.num_features, "weights": config["content"], **noted(remarks)}


def _load_parts(head: Objective, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load what an objective has beside its final layer; raise RequestError if the file lacks any of it."""
    own = {name.removeprefix("objective."): value for name, value in tensors.items()}
    lacking = [name for name in head.state_dict() if name not in own]
    if lacking:
        raise RequestError(f"'{path}' holds no '{legible(lacking[0])}', which '{head.spec}' has")
    head.load_state_dict({name: own[name] for name in head.state_dict()})


def _final_layer(
    path: Path, tensors: Mapping[str, Tensor], wanted: Tensor, of_body: Iterable[str]
) -> tuple[str, str]:
    """Return the names of the final layer's weight and bias in a file; the bias's is empty if it has none.

    Every head of an objective has a weight of this shape and a bias, so it takes those of any linear layer.
    Layers whose names are those of the body are not meant, though one may have this shape.
    """
    within = {*of_body}
    classes, width = wanted.shape
    linear = {
        name: value.flatten(1)
        for name, value in tensors.items()
        if value.ndim in (2, 4) and value.shape[2:].numel() == 1 and without_prefixes(name) not in within
    }
    fitting = [name for name, value in linear.items() if value.shape == wanted.shape]
    weight = next(iter(([name for name in fitting if name.endswith(OWN)] or fitting)[-1:]), "")
    bias = f"{weight.removesuffix('weight')}bias" if weight.endswith("weight") else ""
    bias = bias if bias in tensors else ""
    if not weight or (bias and tensors[bias].shape != (classes,)):
        last = listed(f"{legible(name)} is {list(value.shape)}" for name, value in [*linear.items()][-3:])
        raise RequestError(
            f"'{path}' holds no final layer of {classes} classes on {width} features, a weight of"
            f" [{classes}, {width}] and a bias of [{classes}]; its last ones: {last or 'none'}"
        )
    for name in filter(None, (weight, bias)):
        if not tensors[name].is_floating_point() or not tensors[name].isfinite().all():
            raise RequestError(
                f"'{path}': '{legible(name)}' holds values that are not finite, or no floating-point numbers"
            )
    return weight, bias
