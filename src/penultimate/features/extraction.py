"""The features that a network, left unchanged, computes from images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import MAY_EMBED, SAY, Ending, ending, not_found
from penultimate.backbones.outputs import (
    OUTPUT,
    described,
    entries,
    entry,
    entry_of_features,
    is_entry,
    made_features,
    of_one_pixel,
)
from penultimate.backbones.passes import BESIDE, FEW, difference, influence, plainly
from penultimate.backbones.taps import tapped, taps, unwrapped
from penultimate.checks import whole_number
from penultimate.data.images import Images
from penultimate.errors import PenultimateError, RequestError
from penultimate.features.bank import FeatureBank, float32
from penultimate.metrics.inputs import as_tensor, items
from penultimate.networks.given import network_of
from penultimate.networks.model import Model
from penultimate.networks.protocol import Network
from penultimate.networks.state import single_of
from penultimate.networks.told import preparer

Batches = Iterable[tuple[Any, ...]]
DOUBTS = {
    "made": "the model's output is made of what {} gives, in a way that is not known: it is taken for the"
    " features; if it is class scores, name a layer: layer='NAME'",
    "unseen": "how the model's output is made cannot be seen, so it is taken for the features; if it is class"
    " scores, name a layer: layer='NAME'",
    "embedding": f"whether the model ends in a classifier is not certain: {MAY_EMBED}",
}
"""Warnings for models whose penultimate features cannot be determined with certainty."""
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, AssertionError)
"""The errors that a forward pass raises for input that it was not made for."""


def extract(
    model: Network | Model | Callable[[Tensor], Tensor],
    data: Images | Batches,
    batch_size: int = 256,
    provenance: dict[str, Any] | None = None,
    *,
    layer: str | None = None,
) -> FeatureBank:
    """Return the penultimate features of every image in float32, and the logits if there is a final layer.

    `model` is a `Network` with `Images` (an ImageSet), or any `nn.Module` (or other callable) with an
    iterable of (images, labels) or (images, labels, ids). Ids are whole numbers that identify the image of
    each row, whatever the order of the loader; without them the bank has none. An ImageSet has its own ids.

    A module whose output follows from that of a final layer (see `backbones.ending.FORMS`) is a classifier:
    its features are the input of that layer, and its logits are the output. If the output is a tuple or
    mapping, the first tensor that comes from a final layer counts. The output of any other model is taken to
    be the features, [n m], as for a model whose head was removed or is an Identity. A warning is issued if
    that is not certain. `layer` names another layer whose output is used as features: "avgpool", for
    example; "fc" for the output of a final linear layer; "output" for the model's own output; or
    "output.pooler_output" for an entry of it. Maps of one pixel are flattened.

    `pu.Model(module, layer=..., mean=..., size=...)` gives more information about a module, and can be used
    with an ImageSet too.

    A module is put into evaluation mode, and its mode is restored afterwards. It is computed in float32 (as a
    copy, if its weights have another dtype), without gradients and autocast. The batch size changes features
    by no more than float32 rounding. A warning is issued for a model whose results differ between two passes
    over the same images.

    Raise RequestError if features are not [n m] or not finite, if there are no batches, and for a layer that
    the model does not have (the error suggests the nearest names).

    >>> batches = [(torch.ones(2, 3), torch.tensor([0, 1]))]
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 10))
    >>> bank = extract(net, batches)
    >>> bank.features.shape, bank.logits.shape, extract(net, batches, layer="2").features.shape
    ((2, 4), (2, 10), (2, 10))
    """
    return _extracted(model, data, batch_size, provenance, layer, warns=True)


def extract_again(model: nn.Module | Model, data: Images | Batches, batch_size: int) -> FeatureBank:
    """Return the features of a module that `extract` has read before: without warnings and their passes."""
    return _extracted(model, data, batch_size, None, None, warns=False)


def _extracted(
    model: Network | Model | Callable[[Tensor], Tensor],
    data: Images | Batches,
    batch_size: int,
    provenance: dict[str, Any] | None,
    layer: str | None,
    warns: bool,
) -> FeatureBank:
    whole_number(batch_size, "batch_size", 1)
    prepare: Callable[[Tensor], Tensor] | None = None
    if isinstance(model, Model):
        if layer is not None:
            others = {name: value for name, value in model.settings.items() if name != "pooling"}
            model = Model(model.module, **others)
        layer = model.layer if layer is None else layer
        if isinstance(data, Images):
            told = Model(model.module, **{**model.settings, "layer": layer})
            return _from_images(network_of(told), data, batch_size, provenance or {})
        prepare = preparer(model)
        if model.settings.get("pooling"):
            model, layer = network_of(model).body, OUTPUT
        else:
            model = model.module
    if isinstance(data, Images):
        if not isinstance(model, Network):
            raise RequestError(
                "an ImageSet goes with a Network, or a pu.Model, which prepare it; give another model an"
                " iterable of (batch, labels)"
            )
        if layer is not None:
            raise RequestError(
                f"a Network has its penultimate features; for layer '{layer}' give its body, and batches"
            )
        return _from_images(model, data, batch_size, provenance or {})
    if isinstance(model, Network):
        raise RequestError("a Network goes with an ImageSet; it normalises uint8 images itself")
    return _from_batches(model, data, layer, provenance or {}, prepare, warns)


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
        chosen = logits if among is None else logits[:, among]
        found.append(chosen.argmax(1) if among is None else among[chosen.argmax(1)])
    return np.concatenate(found)


def _from_images(network: Network, data: Images, size: int, provenance: dict[str, Any]) -> FeatureBank:
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


def _from_batches(
    model: Callable[[Tensor], Tensor],
    data: Batches,
    layer: str | None,
    provenance: dict[str, Any],
    prepare: Callable[[Tensor], Tensor] | None,
    warns: bool,
) -> FeatureBank:
    if not callable(model):
        raise RequestError(
            f"the model is a {type(model).__name__}, not an nn.Module or another function of images"
        )
    module = unwrapped(model) if isinstance(model, nn.Module) else None
    if layer is not None and module is None:
        raise RequestError(f"layer '{layer}' is of an nn.Module; the model is a {type(model).__name__}")
    modes = {part: part.training for part in module.modules()} if module is not None else {}
    device = device_of(module) if module is not None else None
    of = _Reading(model if module is None else module, layer, warns)
    parts: list[tuple[Tensor, Tensor | None]] = []
    labels: list[np.ndarray] = []
    ids: list[np.ndarray] = []
    try:
        if module is not None:
            module.eval()
        with plainly(device):
            for images, targets, *numbers in _batches(data):
                batch, targets = as_tensor(images, "images"), as_tensor(targets, "labels")
                batch = batch if device is None else batch.to(device)
                batch = batch if prepare is None else prepare(batch)
                batch = batch.float() if module is not None and batch.is_floating_point() else batch
                if batch.is_inference() and not torch.is_inference_mode_enabled():
                    batch = batch.clone()  # a network may write into its input
                try:
                    if not parts:
                        of.model = model if module is None else single_of(module, batch.clone())
                        if warns:
                            _warn_of_chance(of, batch, device)
                    features, logits = of(batch)
                except PenultimateError:
                    raise
                except REFUSALS as error:
                    raise RequestError(_refusal(len(parts), batch, error)) from error
                if targets.ndim not in (1, 2) or features.ndim != 2 or len(features) != len(targets):
                    how = made_features(features, SAY) if features.ndim != 2 else ""
                    raise RequestError(
                        f"features are [n m] for labels [n]; {_name_of(layer)} gave {list(features.shape)}"
                        f" for {list(targets.shape)}{how}"
                    )
                parts.append((features, logits))
                labels.append(targets.cpu().numpy())
                ids += [as_tensor(numbers[0], "ids").cpu().numpy()] if numbers else []
    finally:
        for part, training in modes.items():
            part.training = training
    if not parts:
        raise RequestError("no batch to extract features from")
    if ids and len(ids) < len(parts):
        raise RequestError(
            f"{len(ids)} of {len(parts)} batches have ids; give them with every batch, or none"
        )
    found = [logits for _, logits in parts if logits is not None]
    return FeatureBank(
        _joined([features for features, _ in parts]),
        np.concatenate(labels),
        _joined(found) if len(found) == len(parts) else None,
        np.concatenate(ids) if ids else None,
        provenance,
    )


def _refusal(number: int, batch: Tensor, error: Exception) -> str:
    """Return a message for input that a model refused: the input, the model's error, and a likely remedy."""
    hint = ""
    if not batch.is_floating_point():
        hint = "; most models take float32 from 0 to 1: images.float() / 255"
    elif batch.ndim == 3:
        hint = "; a batch is [n c h w]: give a data set to a DataLoader, one image as images[None]"
    elif batch.ndim == 4 and batch.shape[-1] in (1, 3) and batch.shape[1] not in (1, 3):
        hint = "; channels stand first: images.permute(0, 3, 1, 2)"
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    kind = str(batch.dtype).removeprefix("torch.")
    return f"the model refused batch {number}, {kind} {list(batch.shape)}: {said}{hint}"


def _batches(data: Batches) -> Iterator[tuple[Any, ...]]:
    for number, batch in enumerate(items(data, "batches")):
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
            raise RequestError(
                f"batch {number} must be (images, labels) or (images, labels, ids); got {_got(batch)}"
            )
        yield tuple(batch)


def _got(batch: Any) -> str:
    """Return a description of a value that is not a batch, and how to turn it into one."""
    if isinstance(batch, Mapping):
        keys = ", ".join(map(repr, batch))
        return f"a mapping with {keys}: give ((each[IMAGES], each[LABELS]) for each in loader), by their keys"
    if isinstance(batch, tuple | list) and len(batch) > 3:
        return f"a {type(batch).__name__} of {len(batch)}"
    alone = f"a {type(batch).__name__}{f' of {len(batch)}' if isinstance(batch, tuple | list) else ''}"
    return f"{alone}; images without labels are given with zeros"


class _Reading:
    """A reader of a model's features, and logits if there are any; it remembers where it found them."""

    def __init__(self, model: Any, layer: str | None, warns: bool) -> None:
        self.model, self.layer = model, layer
        self.calls: tuple[int, ...] = ()
        self.warned = not warns

    def __call__(self, batch: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the features [n m] of a batch, and its logits [n k] or None."""
        if self.layer is not None:
            return _single(self._at_layer(batch, self.layer), "features"), None
        if not isinstance(self.model, nn.Module):
            output = self.model(batch)
            name = entry_of_features(output)
            found = Ending(of_one_pixel(entry(output, name)), None) if name else None
        else:
            found = ending(self.model, lambda: self.model(batch), self.calls)
        if found is None:
            output = self.model(batch)
            how = made_features(output, SAY) if isinstance(self.model, nn.Module) else ""
            raise RequestError(f"features are one tensor [n m]; the model gave {described(output)}{how}")
        if found.unclear in ("declared", "scores"):
            raise not_found(self.model, found.features)
        if found.unclear and not self.warned:
            self.warned = True
            warn(DOUBTS[found.unclear].format(found.unsure), stacklevel=9)
        self.calls = found.calls
        logits = None if found.logits is None else _single(found.logits, "logits")
        return _single(found.features, "features"), logits

    def _at_layer(self, batch: Tensor, layer: str) -> Tensor:
        if is_entry(self.model, layer):
            output = self.model(batch)
            if layer not in entries(output):
                how = made_features(output, SAY)
                raise RequestError(f"features are one tensor [n m]; '{layer}' is {described(output)}{how}")
            return of_one_pixel(entry(output, layer))
        outputs: list[Tensor] = []
        with tapped(taps(self.model, layer), lambda name, output: outputs.append(output.clone())):
            self.model(batch)
        if len(outputs) > 1:
            raise RequestError(f"'{layer}' is {len(outputs)} layers; features are those of one")
        return of_one_pixel(outputs[0])


def _warn_of_chance(of: _Reading, batch: Tensor, device: torch.device | None) -> None:
    """Warn if two passes over a few images differ.

    Errors are ignored here, because the model raises them again when the whole batch is run.
    """

    def run(images: Tensor) -> list[Tensor]:
        return [values for values in of(images) if values is not None]

    few, found, beside = batch[:FEW], None, None
    try:
        found = difference(lambda: run(few.clone()), device)
        beside = influence(run, few) if found is None else None
    except (PenultimateError, *REFUSALS):  # for example a network with a fixed batch size
        pass
    if found is not None:
        warn(
            f"{found}: the model is not deterministic in evaluation mode (dropout or a random crop in its"
            " forward pass, say), and these are the features of one pass",
            stacklevel=5,
        )
    if beside is not None:
        warn(f"{BESIDE.format(beside.largest, beside.scale)}", stacklevel=5)


def _single(values: Tensor, what: str) -> Tensor:
    return torch.from_numpy(float32(what, values))


def _name_of(layer: str | None) -> str:
    return "the model" if layer is None else f"layer '{layer}'"


def _joined(parts: list[Tensor]) -> np.ndarray:
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise RequestError(f"features are of one width; batches have {', '.join(map(str, sorted(widths)))}")
    return torch.cat(parts).cpu().numpy()
