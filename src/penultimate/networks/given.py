"""Networks that were not trained here, behind the same protocol as trained ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from safetensors import SafetensorError
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import MAY_EMBED, SAY, ending, has_classifier, not_found
from penultimate.backbones.final import Final, classifier, cut
from penultimate.backbones.outputs import (
    OUTPUT,
    at_entry,
    at_layer,
    described,
    entry_of_features,
    is_entry,
    made_features,
    of_one_pixel,
    tensors_of,
)
from penultimate.backbones.passes import BESIDE, difference, influence, plainly
from penultimate.backbones.taps import taps, unwrapped
from penultimate.backbones.tokens import Pooling, at_tokens
from penultimate.data.augmentation.transforms import normalise
from penultimate.data.decoding import middle_square
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
    with_told,
)
from penultimate.networks.built import built_again, expected, noise, obtain, restore_as_built
from penultimate.networks.live import kept
from penultimate.networks.model import Model
from penultimate.networks.onnx import OnnxBody, with_features
from penultimate.networks.sources import FEATURES, GIVEN, LIVE, Source, read_source
from penultimate.networks.state import (
    in_single,
    packed,
    packed_others,
    tensors_of_state,
    unpack,
    unpacked_others,
)
from penultimate.networks.trained import load_network
from penultimate.networks.trying import REFUSALS, pooling_of, run

WEIGHTS = "given.safetensors"
OTHERS = "given.pt"
"""The extra states of the network's modules, if it has any."""
CODE = "given.py"
GRAPH = "given.onnx"
NO_LAST_LAYER = "no last layer was found in its graph, so its output itself is evaluated as its features"
OWN = {"hf": f"{OUTPUT}.pooler_output", "open_clip": OUTPUT}
"""What is taken for the features of networks that have no final layer."""
OWN_OUTPUT = "no final layer was found behind its output, which is taken for its features"


@dataclass(frozen=True)
class GivenNetwork:
    """A `Network` from elsewhere: its `body`, the layer from features to logits, and how images are prepared.

    `class_names` is empty if its logits are not used; `final` may then be None.
    """

    body: nn.Module
    final: nn.Module | None
    preparation: Preparation
    class_names: tuple[str, ...]

    def to(self, device: str) -> GivenNetwork:
        """Move the network to a device and return it; an ONNX network stays on the CPU."""
        for module in (self.body, self.final):
            if module is not None:
                module.to(device)
        return self

    @property
    def head_weight(self) -> Float[Tensor, "k m"] | None:
        """The weight of the final layer, if its classes are the study's classes."""
        if self.final is None or not self.class_names:
            return None
        weight = getattr(self.final, "weight", None)  # an objective with a projector has none
        return weight.detach() if isinstance(weight, Tensor) else None

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
        return normalise(self.sized(images).to(device), self.preparation.statistics)

    def sized(self, images: UInt8[Tensor, "n h w c"]) -> UInt8[Tensor, "n side side channels"]:
        """Return images of bytes in the size and number of channels that the network expects."""
        channels, size = len(self.preparation.statistics.mean), self.preparation.crop
        if images.shape[1:] == (size, size, channels):
            return images
        squares = np.empty((len(images), size, size, channels), np.uint8)
        for place, image in enumerate(images.cpu().numpy()):
            squares[place] = _square(image, self.preparation, channels)
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
    of_file = expected(text, source, module, prepared, built) if source.kind == "file" else {}
    pooling = pooling_of(text, source, module, prepared)
    end, doubt = (OUTPUT, "") if pooling else end_of(text, source, module, prepared)
    last = None if isinstance(end, str) else classifier(module, end)
    weighted: Any = getattr(last, "head", last)  # the head of an objective with a projector
    _expect_classes(text, None if last is None else len(weighted.weight), class_names)
    if source.kind == "file":
        atomic_write(folder / CODE, Path(source.name.rpartition(":")[0]).read_bytes())
    atomic_write(folder / WEIGHTS, packed(module))
    if others := packed_others(module):
        atomic_write(folder / OTHERS, others)
    found: dict[str, Any] = {"layer": end} if isinstance(end, str) else {"final": asdict(end)}
    found = {"pooling": asdict(pooling)} if pooling else found
    card = {"options": options(source, module), "preparation": asdict(prepared), "single": bool(single)}
    _write_card(folder, source, class_names, **card, **of_file, **found)
    is_said = source.settings.keys() & {*FEATURES} or source.kind in OWN
    own = OWN_OUTPUT if isinstance(end, str) and not is_said else ""
    remarks = {"left out": left_out, "made float32": single, "no final layer": own, "may embed": doubt}
    remarks["not deterministic"] = _chance(text, module, prepared)
    told = {"pooling": asdict(pooling)} if pooling else {}
    return {**_facts(folder / WEIGHTS, prepared, origin), **told, **noted(remarks)}


def network_of(model: Model) -> GivenNetwork:
    """Return a copy of a module as a network that prepares images as the model specifies, on its device."""
    module = copy.deepcopy(unwrapped(model.module)).eval()
    source = Source(LIVE, "the module", dict(model.settings))
    prepared, _ = preparation(source, module)
    text = f"{LIVE}:{type(module).__name__}"
    if pooling := pooling_of(text, source, module, prepared):
        return GivenNetwork(at_tokens(module, pooling), None, prepared, ())
    end, _ = end_of(text, source, module, prepared)
    if isinstance(end, str):
        body = module if source.settings.get("layer") == end else _up_to(module, end)
        return GivenNetwork(body, None, prepared, ())
    last = classifier(module, end)
    return GivenNetwork(cut(module, end), last, prepared, ())


def load_given(folder: Path) -> GivenNetwork:
    """Return the network that `fetch` stored in a folder; raises DamagedFileError if it cannot be read."""
    try:
        card = json.loads((folder / GIVEN).read_text("utf-8"))
        statistics = ChannelStatistics(**card["preparation"].pop("statistics"))
        prepared = Preparation(**card["preparation"], statistics=statistics)
        body, last = _loaded(card, folder, prepared)
        class_names = tuple(card["class_names"])
    except RequestError:
        raise
    except (*REFUSALS, OSError, SafetensorError) as error:
        raise DamagedFileError(f"the given network in '{folder}' cannot be read: {error}") from error
    return GivenNetwork(body, last, prepared, class_names)


def _loaded(card: dict[str, Any], folder: Path, prepared: Preparation) -> tuple[nn.Module, nn.Module | None]:
    """Return the body and the final layer."""
    if card["kind"] == "onnx":
        return OnnxBody(folder / GRAPH), None
    if card["kind"] == LIVE:
        module = kept(card["name"])
    else:
        of_file = card["kind"] == "file"
        module = (
            built_again(card, folder / CODE)
            if of_file
            else create(card["kind"], card["name"], card["options"])
        )
        module.eval()
    if card.get("single"):
        module.float()
    others = unpacked_others((folder / OTHERS).read_bytes()) if (folder / OTHERS).is_file() else {}
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    if "sketch" in card:
        restore_as_built(card, module, prepared, tensors, others)
    else:
        unpack(module, tensors, others)
    if "pooling" in card:
        return at_tokens(module, Pooling(**card["pooling"])), None
    if "layer" in card:
        return _up_to(module, card["layer"]), None
    final = Final(**{**card["final"], "layers": tuple(card["final"]["layers"])})
    last = classifier(module, final)
    return cut(module, final), last


def end_of(text: str, source: Source, module: nn.Module, prepared: Preparation) -> tuple[Final | str, str]:
    """Return the final layers, found with two images of noise, or the layer whose output is the features.

    Also returns a note if the result is uncertain.
    """
    layer: str | None = source.settings.get("layer")
    if layer is None and source.kind in OWN:
        layer = OWN[source.kind]
    if layer is None and not has_classifier(module):
        layer = OUTPUT
    images = noise(prepared)
    say = f"pu.Model(module, {SAY})" if source.kind == LIVE else SAY
    if layer is not None:
        features = run(text, _up_to(module, layer), images)
        if layer == OUTPUT and not isinstance(features, Tensor) and (name := entry_of_features(features)):
            return name, ""
        if not isinstance(features, Tensor) or of_one_pixel(features).ndim != 2:
            how = made_features(features, say)
            raise RequestError(
                f"'{text}': features are [n m]; layer '{layer}' gives {described(features)}{how}"
            )
        return layer, ""
    found = ending(module, lambda: run(text, module, images))
    if found is not None and found.final is not None:
        if not all(found.final.layers):
            raise RequestError(
                f"'{text}': its output is that of a linear layer which is applied as a function, not called"
                f" as a module of {type(module).__name__}. Name the layer whose output is to be the features:"
                f" {say}, or {say.replace('NAME', OUTPUT)} for the network's own"
            )
        return found.final, MAY_EMBED.format(found.unsure) if found.unclear else ""
    if found is None or found.features.ndim != 2:
        output = run(text, module, images)
        how = made_features(output, say)
        raise RequestError(f"'{text}': features are [n m]; its output is {described(output)}{how}")
    if found.unclear:
        raise RequestError(f"'{text}': {not_found(module, found.features, say)}")
    return found.entry, ""


def _chance(text: str, module: nn.Module, prepared: Preparation) -> str:
    """Return a note if two passes over a few images of noise differ."""
    images, device = noise(prepared, 4), device_of(module)
    if found := difference(lambda: tensors_of(run(text, module, images)), device):
        return f"{found}: the network is not deterministic, and its numbers are those of one pass"
    try:
        beside = influence(lambda batch: tensors_of(run(text, module, batch)), images.to(device))
    except RequestError:  # a network with a fixed batch size
        return ""
    return BESIDE.format(beside.largest, beside.scale) if beside else ""


def _up_to(module: nn.Module, layer: str) -> nn.Module:
    if is_entry(module, layer):
        return module if layer == OUTPUT else at_entry(module, layer)
    found = taps(module, layer)
    if len(found) > 1:
        raise RequestError(f"layer='{layer}' is {len(found)} layers; features are the output of one")
    ((name, part),) = found.items()
    return at_layer(module, name, part)


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
    atomic_write(folder / GRAPH, with_features(Path(source.name)))
    body = OnnxBody(folder / GRAPH)
    grey = body.channels == 1
    own = {"crop": body.side or USUAL.crop, **({"mean": GREY.mean, "std": GREY.std} if grey else {})}
    prepared = changed(USUAL, own | source.settings)
    channels = len(prepared.statistics.mean)
    features = run(text, body, torch.zeros(2, channels, prepared.crop, prepared.crop))
    if features.ndim != 2:
        raise RequestError(f"'{text}': features are [n m]; its output is {described(features)}")
    _write_card(folder, source, (), preparation=asdict(prepared))
    known = "; its size and channels are the file's" if body.side or grey else ""
    facts = _facts(folder / GRAPH, prepared, with_told(AS_USUAL + known, source.settings))
    itself = "" if body.has_last_layer else NO_LAST_LAYER
    return {**facts, **noted({"output itself": itself})}


def noted(remarks: Mapping[str, str]) -> dict[str, Any]:
    """Return notes on how a network was fetched, as facts of its step: a sentence for each two-word name."""
    told = {short: text for short, text in remarks.items() if text}
    return {"noted": told} if told else {}


def _facts(weights: Path, prepared: Preparation, origin: str) -> dict[str, Any]:
    return {"weights": digest_file(weights), **_prepared(prepared, origin)}


def _prepared(prepared: Preparation, origin: str) -> dict[str, Any]:
    return {"preparation": {**asdict(prepared), "from": origin}}


def _write_card(folder: Path, source: Source, class_names: tuple[str, ...], **rest: Any) -> None:
    card = {"kind": source.kind, "name": source.name, "class_names": list(class_names), **rest}
    atomic_write(folder / GIVEN, (json.dumps(card, indent=1, sort_keys=True) + "\n").encode())


def _square(image: np.ndarray, prepared: Preparation, channels: int) -> np.ndarray:
    """Return one image resized and cropped by Pillow: uint8 [crop crop channels]."""
    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    if picture.mode != (mode := "L" if channels == 1 else "RGB"):
        picture = picture.convert(mode)
    crop = prepared.crop
    if picture.size == (crop, crop):
        return np.asarray(picture).reshape(crop, crop, channels)
    resized = middle_square(Path("an image"), picture, *prepared.geometry)
    return resized.reshape(crop, crop, channels)
