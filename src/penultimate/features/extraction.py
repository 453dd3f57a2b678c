"""The features that a network, left unchanged, computes from images."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import Final, final_of, read, read_at
from penultimate.backbones.outputs import described_with_advice, entry
from penultimate.backbones.passes import FEW, REFUSALS, aside, difference, message_of, plainly
from penultimate.backbones.taps import unwrapped
from penultimate.checks import whole_number
from penultimate.data.images import Images
from penultimate.errors import PenultimateError, RequestError
from penultimate.features.bank import FeatureBank, float32
from penultimate.metrics.inputs import as_tensor, items, read_labels
from penultimate.networks.batches import preparer, with_channels_last
from penultimate.networks.given import GivenNetwork, network_of
from penultimate.networks.model import Model
from penultimate.networks.protocol import Network
from penultimate.networks.state import copied, in_single, other_kinds

Batches = Iterable[tuple[Any, ...]]
Reader = Callable[[Tensor], tuple[Tensor, Tensor | None]]
PROVED_ON = 3
"""The number of images on which it is proved which layer is the final one."""


def extract(
    model: Network | Model | Callable[[Tensor], Tensor],
    data: Images | Batches,
    batch_size: int = 256,
    provenance: dict[str, Any] | None = None,
    *,
    layer: str | None = None,
    head: str | None = None,
) -> FeatureBank:
    """Return the penultimate features of every image in float32, and the logits if there is a final layer.

    `model` is a `Network` with `Images` (an ImageSet), a network of `pu.load`, or any `nn.Module` (or other
    callable) with an iterable of (images, labels) or (images, labels, ids). Labels are class numbers, or
    names. Ids are numbers or names that identify the image of each row, whatever the order of the loader;
    without them the bank has none. An ImageSet has its own ids.

    A module whose output follows from that of a final layer (see `backbones.ending.FORMS`) is a classifier:
    its features are the input of that layer, and its logits are the output. If the output is a tuple or
    mapping, the first tensor that comes from a final layer counts. A module that has none, because its head
    was removed or is an Identity, gives its output as features, [n m]. `head` names the final layer where it
    is not found, and `layer` a layer whose output is used as features: "avgpool", for example; "output" for
    the model's own output; or "output.pooler_output" for an entry of it. Maps of one pixel are flattened.

    `pu.Model(module, layer=..., mean=..., size=...)` gives more information about a module, and can be used
    with an ImageSet too.

    A module is put into evaluation mode, and its mode is restored afterwards. It is computed in float32 (as a
    copy, if its weights have another dtype), without gradients and autocast. The batch size changes features
    by no more than float32 rounding. A warning is issued for a model whose results differ between two passes
    over the same images.

    Raise RequestError if features are not [n m] or not finite, if there are no batches, and for a layer that
    the model does not have; NoHeadError if it cannot be proved which layer is the final one.

    >>> batches = [(torch.ones(2, 3), torch.tensor([0, 1]))]
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 10))
    >>> bank = extract(net, batches)
    >>> bank.features.shape, bank.logits.shape, extract(net, batches, layer="2").features.shape
    ((2, 4), (2, 10), (2, 10))
    """
    return _extract(model, data, batch_size, provenance, {"layer": layer, "head": head}, warns=True)


def extract_again(model: nn.Module | Model, data: Images | Batches, batch_size: int) -> FeatureBank:
    """Return the features of a module that `extract` has read before: without warnings and their passes."""
    return _extract(model, data, batch_size, None, {}, warns=False)


def predicted(
    network: Network, images: Images, batch_size: int = 256, among: np.ndarray | None = None
) -> npt.NDArray[np.int64]:
    """Return the class [n] that a network predicts for each image, with one batch of logits in memory.

    `among` lists the classes to choose from in ascending order; by default all. Among equal logits the first
    counts. Raise RequestError for logits that are not finite.
    """
    found = []
    for batch, places in images.batches(batch_size):
        logits = network.logits(network.features(batch)).cpu().numpy()
        if not np.isfinite(logits).all():
            first = images.ids[places][~np.isfinite(logits).all(1)][0]
            raise RequestError(f"the logits of image {first} are not finite")
        found.append(logits.argmax(1) if among is None else among[logits[:, among].argmax(1)])
    return np.concatenate(found)


def _extract(
    model: Network | Model | Callable[[Tensor], Tensor],
    data: Images | Batches,
    batch_size: int,
    provenance: dict[str, Any] | None,
    where: Mapping[str, str | None],
    warns: bool,
) -> FeatureBank:
    whole_number(batch_size, "batch_size", 1)
    where = {name: value for name, value in where.items() if value is not None}
    if isinstance(model, Model) and where:
        others = {name: of for name, of in model.settings.items() if name not in ("layer", "head", "pooling")}
        model = Model(model.module, **others, **where)
    if isinstance(model, Network) and where:
        raise RequestError("a Network has its penultimate features: say layer= and head= to pu.load")
    if not isinstance(data, Images):
        return _of_batches(model, data, where, provenance or {}, warns)
    model = network_of(model) if isinstance(model, Model) else model
    if not isinstance(model, Network):
        raise RequestError(
            "an ImageSet goes with a Network, or a pu.Model, which prepare it; give another model an"
            " iterable of (batch, labels)"
        )
    return _of_images(model, data, batch_size, provenance or {})


def _of_images(network: Network, data: Images, size: int, provenance: dict[str, Any]) -> FeatureBank:
    features, logits = [], []
    for batch, _ in data.batches(size):
        found = network.features(batch)
        features.append(found.cpu())
        if network.class_names:
            logits.append(network.logits(found).cpu())
    if not features:
        raise RequestError("no image to extract features from")
    joined = _joined(logits) if logits else None
    return FeatureBank(_joined(features), data.labels, joined, data.ids, provenance)


def _of_batches(
    model: Any, data: Batches, where: Mapping[str, Any], provenance: dict[str, Any], warns: bool
) -> FeatureBank:
    if isinstance(model, Network) and not isinstance(model, GivenNetwork):
        raise RequestError("a Network goes with an ImageSet; it normalises uint8 images itself")
    module = model.module if isinstance(model, Model) else model
    module = module.body if isinstance(module, GivenNetwork) else module
    module = unwrapped(module) if isinstance(module, nn.Module) else None
    if module is None and (where or not callable(model)):
        raise RequestError(f"the model is a {type(model).__name__}, not an nn.Module or a function of images")
    modes = {part: part.training for part in module.modules()} if module is not None else {}
    device = device_of(module) if module is not None else None
    prepare = preparer(model) if isinstance(model, Model) else lambda batch: batch
    of: Reader | None = None
    features, logits, labels, ids = list[Tensor](), list[Tensor](), list[np.ndarray](), list[np.ndarray]()
    try:
        if module is not None:
            module.eval()
        with plainly(device):
            for images, targets, *names in _batches(data):
                marks, batch = _marks(targets, "labels"), prepare(as_tensor(images, "images").to(device))
                if batch.is_inference() and not torch.is_inference_mode_enabled():
                    batch = batch.clone()  # a network may write into its input
                try:
                    if of is None:
                        of = _reader(model, module, where, batch)
                        if warns:
                            _warn_of_chance(of, batch[:FEW], device)
                    found, scores = of(batch)
                except PenultimateError:
                    raise
                except REFUSALS as error:
                    raise RequestError(_refusal(len(features), batch, error)) from error
                if marks.ndim not in (1, 2) or found.ndim != 2 or len(found) != len(marks):
                    raise RequestError(
                        f"features are [n m] for labels [n]; for {list(marks.shape)} the model gave"
                        f" {described_with_advice(found)}"
                    )
                features.append(_single(found))
                logits += [] if scores is None else [_single(scores)]
                labels.append(marks)
                ids += [_marks(names[0], "ids")] if names else []
    finally:
        for part, training in modes.items():
            part.training = training
    if not features:
        raise RequestError("no batch to extract features from")
    if ids and len(ids) < len(features):
        raise RequestError(
            f"{len(ids)} of {len(features)} batches have ids; give them with every batch, or none"
        )
    marks = _concatenated(labels, "labels")
    if marks.dtype.kind == "U":
        classes, marks = np.unique(marks, return_inverse=True)
        provenance = {"class_names": classes.tolist(), **provenance}
    return FeatureBank(
        _joined(features),
        marks,
        _joined(logits) if len(logits) == len(features) else None,
        _concatenated(ids, "ids") if ids else None,
        provenance,
    )


def _reader(model: Any, module: nn.Module | None, where: Mapping[str, Any], batch: Tensor) -> Reader:
    """Return the function that gives features [n ...] and logits of a batch, found on its first images."""
    if isinstance(model, GivenNetwork):
        return lambda images: _of_given(model, images)
    if module is None:
        return lambda images: (entry(model(images)), None)
    if isinstance(model, Model):
        where = model.settings
        if where.get("pooling"):
            body = network_of(model).body
            return lambda images: (body(images), None)
    single = module
    if other_kinds(module):
        single = copied(module)
        single = single if in_single(single, _floats(batch)) else module
    if where.get("layer"):
        return lambda images: (read_at(single, where["layer"], lambda: single(_floats(images))), None)

    def proved(few: Tensor) -> Final | str:
        return final_of(single, lambda: single(_floats(few).clone()), where.get("head", ""))

    with aside(batch.device):
        try:
            end = proved(batch[:PROVED_ON])
        except PenultimateError:
            raise
        except REFUSALS:  # a network with a fixed batch size
            end = proved(batch)
    return lambda images: read(single, end, lambda: single(_floats(images)))


def _of_given(network: GivenNetwork, images: Tensor) -> tuple[Tensor, Tensor | None]:
    features = network.features(with_channels_last(images) if images.dtype == torch.uint8 else images)
    return features, network.logits(features) if network.class_names else None


def _floats(images: Tensor) -> Tensor:
    return images.float() if images.is_floating_point() else images


def _marks(values: Any, what: str) -> np.ndarray:
    """Return the labels or ids of a batch as an array of numbers or of names; paths are names too."""
    if isinstance(values, list | tuple):
        values = [os.fspath(value) if isinstance(value, os.PathLike) else value for value in values]
    return np.asarray(
        as_tensor(values, what).cpu() if isinstance(values, Tensor) else read_labels(values, what)
    )


def _concatenated(parts: list[np.ndarray], what: str) -> np.ndarray:
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise RequestError(f"{what} are names in some batches and numbers in others; give one kind")
    return np.concatenate(parts)


def _refusal(number: int, batch: Tensor, error: Exception) -> str:
    """Return a message for input that a model refused: the input, the model's error, and a likely remedy."""
    hint = ""
    if not batch.is_floating_point():
        hint = "; most models take float32 from 0 to 1: images.float() / 255"
    elif batch.ndim == 3:
        hint = "; a batch is [n c h w]: give a data set to a DataLoader, one image as images[None]"
    elif batch.ndim == 4 and batch.shape[-1] in (1, 3) and batch.shape[1] not in (1, 3):
        hint = "; channels stand first: images.permute(0, 3, 1, 2)"
    kind = str(batch.dtype).removeprefix("torch.")
    return f"the model refused batch {number}, {kind} {list(batch.shape)}: {message_of(error)}{hint}"


def _batches(data: Batches) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, tuple) and len(data) in (2, 3) and isinstance(data[0], Tensor | np.ndarray):
        data = [data]  # one batch
    for number, batch in enumerate(items(data, "batches")):
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
            keys = f" with {', '.join(map(repr, batch))}" if isinstance(batch, Mapping) else ""
            raise RequestError(
                f"batch {number} must be (images, labels) or (images, labels, ids); got a"
                f" {type(batch).__name__}{keys}: of mappings give ((each[IMAGES], each[LABELS]) for each in"
                " loader), and zeros for images without labels"
            )
        yield tuple(batch)


def _warn_of_chance(of: Reader, few: Tensor, device: torch.device | None) -> None:
    """Warn if two passes over a few images differ; the model raises its errors again for the whole batch."""
    try:
        found = difference(lambda: of(few.clone())[0], device)
    except (PenultimateError, *REFUSALS):  # for example a network with a fixed batch size
        return
    if found:
        warn(
            f"{found}: the model is not deterministic in evaluation mode (dropout or a random crop in its"
            " forward pass, say), and these are the features of one pass",
            stacklevel=5,
        )


def _single(values: Tensor) -> Tensor:
    return torch.from_numpy(float32("features", values))


def _joined(parts: list[Tensor]) -> np.ndarray:
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise RequestError(f"features are of one width; batches have {', '.join(map(str, sorted(widths)))}")
    return torch.cat(parts).cpu().numpy()
