"""Networks that were not trained here, stored so that they load without their source; and `pu.load`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from warnings import warn

import safetensors.torch
import torch
from PIL import Image
from safetensors import SafetensorError
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import Final, classifier
from penultimate.backbones.outputs import described, entries
from penultimate.backbones.passes import REFUSALS, difference
from penultimate.backbones.tokens import Pooling
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write, digest_file
from penultimate.networks.architectures import (
    AS_USUAL,
    GREY,
    USUAL,
    changed,
    create,
    options,
    preparation,
    with_settings_named,
)
from penultimate.networks.building import (
    expect_as_built,
    kept,
    noise,
    obtain,
    restore_as_built,
)
from penultimate.networks.given import OWN, GivenNetwork, cut_by, end_of, network_of, numbered, run
from penultimate.networks.model import Model
from penultimate.networks.onnx import OnnxBody, with_features
from penultimate.networks.sources import FEATURES, GIVEN, LIVE, Source, read_source, with_settings
from penultimate.networks.state import in_single, packed, tensors_of_state, unpack
from penultimate.networks.trained import TrainedNetwork, load_network

WEIGHTS = "given.safetensors"
CODE = "given.py"
GRAPH = "given.onnx"
NO_LAST_LAYER = "no last layer was found in its graph, so its output itself is evaluated as its features"
OWN_OUTPUT = "no final layer was found behind its output, which is taken for its features"


def load(
    source: str | nn.Module,
    *,
    head: str = "",
    layer: str = "",
    pooling: str = "",
    weights: Path | str = "",
    transform: Callable[[Image.Image], Tensor] | None = None,
    **settings: Any,
) -> GivenNetwork | TrainedNetwork:
    """Return a network as features and logits, with the transform of its own library.

    `source` is a module, or "timm:resnet18", "torchvision:resnet50", "hf:NAME" (transformers),
    "open_clip:NAME/WEIGHTS", "onnx:FILE", "FILE.py:FUNCTION", or "folder:FOLDER" of a training here.

    `weights` is a file of weights. `head` names the final layer, whose input is the features, `layer` the
    layer whose output they are, and `pooling` how the tokens of a vision transformer become features ("cls",
    "mean", "cls+mean", "patches:mean"); all are found where they are not said. `transform` makes a float
    tensor [c h w] of a picture; by default it is the library's own. Further settings are those of a source:
    `pretrained`, `seed`, `num_classes`, `part`, `ema`, `crop`, `mean`, `std`.

    Raises RequestError if the network cannot be obtained, and NoHeadError, which says how to name it, if its
    final layer cannot be proved.

    >>> network = load(nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3)), crop=2)
    >>> features = network.features(torch.rand(4, 3, 2, 2))
    >>> features.shape, network.logits(features).shape
    (torch.Size([4, 5]), torch.Size([4, 3]))
    """
    named = {"head": head, "layer": layer, "pooling": pooling, "weights": str(weights)}
    settings |= {name: value for name, value in named.items() if value}
    if isinstance(source, nn.Module):
        return replace(network_of(Model(source, **settings)), own_transform=transform)
    text = with_settings(source, **settings)
    read_from = read_source(text)
    if read_from.kind == "folder":
        return load_network(Path(read_from.name))
    with tempfile.TemporaryDirectory() as folder:
        facts = fetch(text, (), Path(folder))
        network = load_given(Path(folder))
    for note in facts.get("noted", {}).values():
        warn(note, stacklevel=2)
    return replace(network, class_names=numbered(network.final), own_transform=transform)


def fetch(
    text: str, class_names: tuple[str, ...], folder: Path, built: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Store a given network in a folder, so that it loads without its source; return facts about it.

    `class_names` are the classes of its logits; () ignores its final layer. `built` is the likeness of what a
    Python file built when the study began. Raises RequestError if the network cannot be obtained, if it
    differs from `built`, if its final layer is not found, or if it has a different number of classes.
    """
    source = read_source(text)
    if source.kind == "folder":
        return _copied(text, source, class_names, folder)
    if source.kind == "onnx":
        return _exported(text, source, class_names, folder)
    module, left_out = obtain(source)
    tensors_of_state(module)  # refuses what cannot be stored, before it is run
    prepared, origin = preparation(source, module)
    single = in_single(module, noise(prepared))
    of_file = expect_as_built(text, source, module, prepared, built) if source.kind == "file" else {}
    end = end_of(text, source, module, prepared)
    last = classifier(module, end) if isinstance(end, Final) else None
    _expect_classes(text, None if last is None else len(numbered(last)), class_names)
    if source.kind == "file":
        atomic_write(folder / CODE, source.file.read_bytes())
    atomic_write(folder / WEIGHTS, packed(module))
    found = {"layer": end} if isinstance(end, str) else {type(end).__name__.lower(): asdict(end)}
    card = {"options": options(source, module), "preparation": asdict(prepared), "single": bool(single)}
    _write_card(folder, source, class_names, **card, **of_file, **found)
    is_said = source.settings.keys() & {*FEATURES} or source.kind in OWN
    remarks = {
        "left out": left_out,
        "made float32": single,
        "no final layer": OWN_OUTPUT if isinstance(end, str) and not is_said else "",
        "not deterministic": _chance(text, module, prepared),
    }
    pooling = found if isinstance(end, Pooling) else {}
    facts = {"weights": digest_file(folder / WEIGHTS), **_prepared(prepared, origin)}
    return {**facts, **pooling, **noted(remarks)}


def load_given(folder: Path) -> GivenNetwork:
    """Return the network that `fetch` stored in a folder; raises DamagedFileError if it cannot be read."""
    try:
        card = json.loads((folder / GIVEN).read_text("utf-8"))
        statistics = ChannelStatistics(**card["preparation"].pop("statistics"))
        prepared = Preparation(**card["preparation"], statistics=statistics)
        class_names = tuple(card["class_names"])
        if card["kind"] == "onnx":
            return GivenNetwork(OnnxBody(folder / GRAPH), None, prepared, class_names)
        module = _restored(card, folder, prepared)
        end: Final | Pooling | str = card.get("layer", "")
        if "pooling" in card:
            end = Pooling(**card["pooling"])
        elif "final" in card:
            end = Final(**{**card["final"], "layers": tuple(card["final"]["layers"])})
        last = classifier(module, end) if isinstance(end, Final) else None
        return GivenNetwork(cut_by(module, end), last, prepared, class_names)
    except RequestError:
        raise
    except (*REFUSALS, OSError, SafetensorError) as error:
        raise DamagedFileError(f"the given network in '{folder}' cannot be read: {error}") from error


def noted(remarks: Mapping[str, str]) -> dict[str, Any]:
    """Return notes on how a network was fetched, as facts of its step: a sentence for each two-word name."""
    notes = {short: text for short, text in remarks.items() if text}
    return {"noted": notes} if notes else {}


def _restored(card: dict[str, Any], folder: Path, prepared: Preparation) -> nn.Module:
    """Return the stored module with its weights."""
    code = ((folder / CODE).read_bytes(), card["where"]) if card["kind"] == "file" else None
    is_live = card["kind"] == LIVE
    module = kept(card["name"]) if is_live else create(card["kind"], card["name"], card["options"], kept=code)
    module = module.eval().float() if card.get("single") else module.eval()
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    if "sketch" in card:
        restore_as_built(card, module, prepared, tensors)
    else:
        unpack(module, tensors)
    return module


def _copied(text: str, source: Source, class_names: tuple[str, ...], folder: Path) -> dict[str, Any]:
    network = load_network(Path(source.name))
    _expect_classes(text, len(network.class_names), class_names)
    for path in sorted(Path(source.name).glob("network.*")):
        atomic_write(folder / path.name, path.read_bytes())
    known = {"trained_with": network.card["objective"], "num_features": network.card["num_features"]}
    return {**known, **_prepared(network.preparation, "its training here")}


def _exported(text: str, source: Source, class_names: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Store an ONNX network; its images are prepared as usual, in the size and channels that it expects."""
    _expect_classes(text, None, class_names)
    with_features(Path(source.name), folder / GRAPH, source.settings.get("head", ""))
    body = OnnxBody(folder / GRAPH)
    grey = body.channels == 1
    own = {"crop": body.side or USUAL.crop, **({"mean": GREY.mean, "std": GREY.std} if grey else {})}
    prepared = changed(USUAL, own | source.settings)
    features = run(text, body, torch.zeros_like(noise(prepared)))
    if features.ndim != 2:
        raise RequestError(f"'{text}': features are [n m]; its output is {described(features)}")
    _write_card(folder, source, (), preparation=asdict(prepared))
    known = "; its size and channels are the file's" if body.side or grey else ""
    origin = with_settings_named(AS_USUAL + known, source.settings)
    itself = "" if body.has_last_layer else NO_LAST_LAYER
    facts = {"weights": digest_file(folder / GRAPH), **_prepared(prepared, origin)}
    return {**facts, **noted({"output itself": itself})}


def _chance(text: str, module: nn.Module, prepared: Preparation) -> str:
    """Return a note if two passes over a few images of noise differ."""
    images = noise(prepared, 4)

    def first() -> Tensor:
        return next(iter(entries(run(text, module, images)).values()))

    found = difference(first, device_of(module))
    return f"{found}: the network is not deterministic, and its numbers are those of one pass" * bool(found)


def _expect_classes(text: str, outputs: int | None, class_names: tuple[str, ...]) -> None:
    if not class_names or outputs == len(class_names):
        return
    if outputs is None:
        raise RequestError(
            f"'{text}' has no final layer that takes its features to logits; without classifies=True none is"
            " used"
        )
    raise RequestError(
        f"'{text}' has {outputs} classes and the source {len(class_names)}; without classifies=True its"
        " final layer is not used"
        + ("; class_order may also name classes without images" if outputs > len(class_names) else "")
    )


def _prepared(prepared: Preparation, origin: str) -> dict[str, Any]:
    return {"preparation": {**asdict(prepared), "from": origin}}


def _write_card(folder: Path, source: Source, class_names: tuple[str, ...], **rest: Any) -> None:
    card = {"kind": source.kind, "name": source.name, "class_names": list(class_names), **rest}
    atomic_write(folder / GIVEN, (json.dumps(card, indent=1, sort_keys=True) + "\n").encode())
