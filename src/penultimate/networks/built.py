"""What a function in a user's Python file builds, and a digest that distinguishes it from other networks.

The file may read checkpoints, configurations and modules beside it, so its text alone does not identify the
network. A network is digested after it is built: its weights, its buffers, its layers, and its outputs for
two images of noise. A later process, perhaps on another machine, compares a network with a `sketch` of these
outputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.outputs import entries
from penultimate.data.disk.preparation import Preparation
from penultimate.data.seeding import derived_generator, seeded
from penultimate.errors import PenultimateError, RequestError
from penultimate.files import digest_bytes
from penultimate.networks.architectures import create, download, hub_of, options, preparation
from penultimate.networks.live import kept
from penultimate.networks.sources import HUBS, LIVE, Source, read_source
from penultimate.networks.state import in_single, unpack
from penultimate.networks.weights import load_weights, read_weights

SKETCHED, CLOSE = 4, 1e-3
"""The number of values in a sketch of outputs, and the relative tolerance with which two sketches agree."""
ADDRESS = re.compile(r"0x[0-9a-f]+")


def likeness(module: nn.Module, prepared: Preparation) -> dict[str, Any]:
    """Return what identifies a network: digests of its `weights` and `outputs`, and a `sketch` of outputs.

    The digests are only comparable on one kind of machine; the sketch is comparable on others too, up to
    rounding.
    """
    outputs = _outputs(module, prepared)
    tensors = dict(module.named_buffers()) | module.state_dict()
    said = "\n".join((type(module).__qualname__, repr(module), repr(prepared), *tensors))
    weights = "\n".join((ADDRESS.sub("", said), *map(_digest, tensors.values())))
    return {
        "weights": digest_bytes(weights.encode()),
        "outputs": digest_bytes("\n".join(map(_digest, outputs)).encode()),
        "sketch": _sketch(outputs),
    }


def alike(one: list[float], other: list[float]) -> bool:
    """Return whether two sketches belong to the same network."""
    if len(one) != len(other):
        return False
    scale = max((abs(value) for value in (*one, *other)), default=0.0)
    return all(abs(a - b) <= CLOSE * scale for a, b in zip(one, other, strict=True))


@torch.no_grad()
def _outputs(module: nn.Module, prepared: Preparation) -> list[Tensor]:
    """Return a network's outputs for two images of noise, computed on one thread.

    The number of threads changes the last bits. A network that draws random numbers draws the same ones each
    time. A network that refuses the images has no outputs; the step that runs it reports the error.
    """
    images = noise(prepared)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with seeded(0):
            answer = module.eval()(images.to(device_of(module)))
        return [value.detach().cpu() for value in entries(answer).values()]
    except (Exception, SystemExit):
        return []
    finally:
        torch.set_num_threads(threads)


def _digest(value: Any) -> str:
    """Return the digest of a tensor, or of the text of any other value in a network's state."""
    try:
        whole = value.detach().cpu().contiguous()
        content = whole.reshape(-1).view(torch.uint8).numpy().tobytes()
        return digest_bytes(f"{whole.dtype}{list(whole.shape)}".encode() + content)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # not a plain tensor
        return digest_bytes(ADDRESS.sub("", repr(value)).encode())


def _sketch(outputs: list[Tensor]) -> list[float]:
    """Return random weighted sums of all outputs; they tell networks apart and hardly depend on rounding."""
    flat = [value.to(torch.float64).reshape(-1) for value in outputs if not value.is_complex()]
    if not flat:
        return []
    joined = torch.nan_to_num(torch.cat(flat), nan=0.0, posinf=0.0, neginf=0.0)
    weights = torch.randn(SKETCHED, len(joined), generator=derived_generator("sketch"), dtype=torch.float64)
    return [float(value) for value in (weights * joined).sum(1)]


def noise(prepared: Preparation, count: int = 2) -> Tensor:
    """Return a few images of noise on which a network is tried."""
    generator = torch.Generator().manual_seed(0)
    channels = len(prepared.statistics.mean)
    return torch.randn(count, channels, prepared.crop, prepared.crop, generator=generator)


def obtain(source: Source) -> tuple[nn.Module, str]:
    """Return the network with the weights of its source, in evaluation mode, and what was left out."""
    library = source.kind in ("timm", "torchvision")
    if library and source.weights is None and source.settings.get("pretrained", True):
        return download(source).eval(), ""
    if source.kind == LIVE:
        return kept(source.name), ""
    if source.kind in HUBS:
        module, left_out = hub_of(source.kind).load(source), ""
    else:
        settings = options(source)
        module, left_out = create(source.kind, source.name, settings, source.settings.get("seed", 0)), ""
    if source.weights is not None:
        settings = source.settings
        tensors = read_weights(source.weights, settings.get("ema", False), settings.get("part", ""))
        left_out = load_weights(module, tensors, source.weights)
    return module.eval(), left_out


def what_is_built(text: str) -> dict[str, Any]:
    """Return the likeness of what a source builds now, or {"unbuilt": why}; its own step reports why."""
    source = read_source(text)
    try:
        module, _ = obtain(source)
        return _likeness_in_single(module, preparation(source, module)[0])
    except PenultimateError as error:
        return {"unbuilt": str(error)}


def _likeness_in_single(module: nn.Module, prepared: Preparation) -> dict[str, Any]:
    in_single(module, noise(prepared))
    return likeness(module, prepared)


def expected(
    text: str, source: Source, module: nn.Module, prepared: Preparation, built: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return where a Python file lies and the sketch of what it builds, so that other processes can build it.

    Raises RequestError if the network differs from `built`, which is part of the study's identity.
    """
    known = likeness(module, prepared)
    if built is not None and "unbuilt" in built:
        raise RequestError(
            f"'{text}' could not be built when the study began, and now it can: start the study again. It"
            f" said: {built['unbuilt']}"
        )
    if built is not None and not _same(built, known):
        if not _same(_likeness_in_single(obtain(source)[0], prepared), known):
            raise RequestError(
                f"'{text}' builds another network each time that it is called, so that no result could be"
                " found again; have what it draws follow from a seed (torch, NumPy and random are seeded for"
                " it), or load its weights from a file"
            )
        raise RequestError(f"what '{text}' builds was changed since the study began; start it again")
    return {"where": str(Path(source.name.rpartition(":")[0]).absolute()), "sketch": known["sketch"]}


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["weights"] == other["weights"] and alike(one["sketch"], other["sketch"]))


def built_again(card: Mapping[str, Any], code: Path) -> nn.Module:
    """Return what the kept text of a Python file builds when it is executed in its original place."""
    lay = card.get("where") or str(Path(card["name"].rpartition(":")[0]).absolute())
    return create(card["kind"], card["name"], card["options"], kept=(code.read_bytes(), lay))


def restore_as_built(
    card: Mapping[str, Any],
    module: nn.Module,
    prepared: Preparation,
    tensors: Mapping[str, Tensor],
) -> None:
    """Load the kept weights into what a Python file builds now; raise RequestError if it differs."""
    try:
        unpack(module, tensors)
        changed = not alike(card["sketch"], likeness(module, prepared)["sketch"])
    except (KeyError, RuntimeError, AttributeError):  # its tensors have other names or shapes
        changed = True
    if changed:
        raise RequestError(
            f"what '{card['name']}' builds was changed since its network was stored; start the study again"
        )
