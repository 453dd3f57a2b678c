"""Networks that were not trained here, behind the same protocol as trained ones."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from safetensors import SafetensorError
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import SAY, Final, classifier, cut, final_of, has_classifier
from penultimate.backbones.outputs import (
    OUTPUT,
    at_entry,
    at_layer,
    described,
    entries,
    entry_of_features,
    is_entry,
    made_features,
    of_one_pixel,
)
from penultimate.backbones.passes import difference, plainly
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
from penultimate.networks.sources import FEATURES, GIVEN, LIVE, Source, read_source, with_settings
from penultimate.networks.state import copied, in_single, packed, tensors_of_state, unpack
from penultimate.networks.trained import TrainedNetwork, load_network
from penultimate.networks.trying import REFUSALS, pooling_of, run

WEIGHTS = "given.safetensors"
CODE = "given.py"
GRAPH = "given.onnx"
NO_LAST_LAYER = "no last layer was found in its graph, so its output itself is evaluated as its features"
OWN = {"hf": f"{OUTPUT}.pooler_output", "open_clip": OUTPUT}
"""What is taken for the features of networks that have no final layer."""
OWN_OUTPUT = "no final layer was found behind its output, which is taken for its features"


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
        if self.own_transform is not None:
            return torch.stack([self.transform(picture_of(image)) for image in images.cpu().numpy()]).to(
                device
            )
        return normalise(self.sized(images).to(device), self.preparation.statistics)

    def transform(self, image: Image.Image) -> Float[Tensor, "channels side side"]:
        """Return a picture as the network is shown it: what `ImageFolder(..., transform=)` takes."""
        if self.own_transform is not None:
            return self.own_transform(image)
        channels = len(self.preparation.statistics.mean)
        square = _framed(image.convert("L" if channels == 1 else "RGB"), self.preparation, channels)
        return normalise(torch.from_numpy(square.copy())[None], self.preparation.statistics)[0]

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
    end = OUTPUT if pooling else end_of(text, source, module, prepared)
    last = None if isinstance(end, str) else classifier(module, end)
    weighted: Any = getattr(last, "head", last)  # the head of an objective with a projector
    _expect_classes(text, None if last is None else len(weighted.weight), class_names)
    if source.kind == "file":
        atomic_write(folder / CODE, Path(source.name.rpartition(":")[0]).read_bytes())
    atomic_write(folder / WEIGHTS, packed(module))
    found: dict[str, Any] = {"layer": end} if isinstance(end, str) else {"final": asdict(end)}
    found = {"pooling": asdict(pooling)} if pooling else found
    card = {"options": options(source, module), "preparation": asdict(prepared), "single": bool(single)}
    _write_card(folder, source, class_names, **card, **of_file, **found)
    is_said = source.settings.keys() & {*FEATURES} or source.kind in OWN
    own = OWN_OUTPUT if isinstance(end, str) and not is_said else ""
    remarks = {"left out": left_out, "made float32": single, "no final layer": own}
    remarks["not deterministic"] = _chance(text, module, prepared)
    told = {"pooling": asdict(pooling)} if pooling else {}
    return {**_facts(folder / WEIGHTS, prepared, origin), **told, **noted(remarks)}


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
    said = {"head": head, "layer": layer, "pooling": pooling, "weights": str(weights)}
    settings |= {name: value for name, value in said.items() if value}
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
    return replace(network, class_names=_numbered(network.final), own_transform=transform)


def network_of(model: Model) -> GivenNetwork:
    """Return a copy of a module as a network that prepares images as the model specifies, on its device."""
    module = copied(unwrapped(model.module)).eval()
    source = Source(LIVE, "the module", dict(model.settings))
    prepared, _ = preparation(source, module)
    in_single(module, noise(prepared).to(device_of(module)))
    text = f"{LIVE}:{type(module).__name__}"
    if pooling := pooling_of(text, source, module, prepared):
        return GivenNetwork(at_tokens(module, pooling), None, prepared, ())
    end = end_of(text, source, module, prepared)
    if isinstance(end, str):
        body = module if source.settings.get("layer") == end else _up_to(module, end)
        return GivenNetwork(body, None, prepared, ())
    last = classifier(module, end)
    return GivenNetwork(cut(module, end), last, prepared, _numbered(last))


def _numbered(final: nn.Module | None) -> tuple[str, ...]:
    """Return numbers as the names of a final layer's classes."""
    weighted: Any = getattr(final, "head", final)
    return () if final is None else tuple(map(str, range(len(weighted.weight))))


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
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    if "sketch" in card:
        restore_as_built(card, module, prepared, tensors)
    else:
        unpack(module, tensors)
    if "pooling" in card:
        return at_tokens(module, Pooling(**card["pooling"])), None
    if "layer" in card:
        return _up_to(module, card["layer"]), None
    final = Final(**{**card["final"], "layers": tuple(card["final"]["layers"])})
    last = classifier(module, final)
    return cut(module, final), last


def end_of(text: str, source: Source, module: nn.Module, prepared: Preparation) -> Final | str:
    """Return the final layers, proved with images of noise, or the layer whose output is the features."""
    layer: str | None = source.settings.get("layer")
    head = source.settings.get("head") or ""
    if layer is None and not head:
        layer = OWN.get(source.kind, None if has_classifier(module) else OUTPUT)
    images = noise(prepared)
    say = f"pu.Model(module, {SAY})" if source.kind == LIVE else SAY
    try:
        if layer is None:
            end = final_of(module, lambda: run(text, module, images), head, say)
            if end:
                return end
            output = run(text, module, images)
        else:
            output = run(text, _up_to(module, layer), images)
            if layer == OUTPUT and not isinstance(output, Tensor) and (name := entry_of_features(output)):
                return name
            if isinstance(output, Tensor) and of_one_pixel(output).ndim == 2:
                return layer
    except RequestError as error:
        raise error if text in str(error) else type(error)(f"'{text}': {error}") from None
    gives = f"layer '{layer}' gives" if layer else "its output is"
    raise RequestError(
        f"'{text}': features are [n m]; {gives} {described(output)}{made_features(output, say)}"
    )


def _chance(text: str, module: nn.Module, prepared: Preparation) -> str:
    """Return a note if two passes over a few images of noise differ."""
    images, device = noise(prepared, 4).to(device_of(module)), device_of(module)

    def first() -> Tensor:
        return next(iter(entries(run(text, module, images)).values()))

    found = difference(first, device)
    return f"{found}: the network is not deterministic, and its numbers are those of one pass" * bool(found)


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
    with_features(Path(source.name), folder / GRAPH, source.settings.get("head", ""))
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


def picture_of(image: np.ndarray) -> Image.Image:
    """Return bytes [h w c] as a picture."""
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def _square(image: np.ndarray, prepared: Preparation, channels: int) -> np.ndarray:
    """Return one image resized and cropped by Pillow: uint8 [crop crop channels]."""
    picture = picture_of(image)
    if picture.mode != (mode := "L" if channels == 1 else "RGB"):
        picture = picture.convert(mode)
    crop = prepared.crop
    if picture.size == (crop, crop):
        return np.asarray(picture).reshape(crop, crop, channels)
    return _framed(picture, prepared, channels)


def _framed(picture: Image.Image, prepared: Preparation, channels: int) -> np.ndarray:
    resized = middle_square(Path("an image"), picture, *prepared.geometry)
    return resized.reshape(prepared.crop, prepared.crop, channels)
