"""AutoAugment's ImageNet policy, on batches of uint8 images on whatever device they lie.

Operations, magnitudes and draws are torchvision's (nearest pixel, black outside). Which source pixel a turned
or sheared image takes is computed once for each size and angle, on the CPU, so every device does the same.

Cubuk et al., CVPR 2019, table 9; torchvision.transforms.AutoAugment.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from penultimate.data.seeding import Among
from penultimate.errors import RequestError

Batch: TypeAlias = UInt8[Tensor, "n h w c"]

POLICY: tuple[tuple[tuple[str, float, int], tuple[str, float, int]], ...] = (
    (("posterize", 0.4, 8), ("rotate", 0.6, 9)),
    (("solarize", 0.6, 5), ("autocontrast", 0.6, 0)),
    (("equalize", 0.8, 0), ("equalize", 0.6, 0)),
    (("posterize", 0.6, 7), ("posterize", 0.6, 6)),
    (("equalize", 0.4, 0), ("solarize", 0.2, 4)),
    (("equalize", 0.4, 0), ("rotate", 0.8, 8)),
    (("solarize", 0.6, 3), ("equalize", 0.6, 0)),
    (("posterize", 0.8, 5), ("equalize", 1.0, 0)),
    (("rotate", 0.2, 3), ("solarize", 0.6, 8)),
    (("equalize", 0.6, 0), ("posterize", 0.4, 6)),
    (("rotate", 0.8, 8), ("colour", 0.4, 0)),
    (("rotate", 0.4, 9), ("equalize", 0.6, 0)),
    (("equalize", 0.0, 0), ("equalize", 0.8, 0)),
    (("invert", 0.6, 0), ("equalize", 1.0, 0)),
    (("colour", 0.6, 4), ("contrast", 1.0, 8)),
    (("rotate", 0.8, 8), ("colour", 1.0, 2)),
    (("colour", 0.8, 8), ("solarize", 0.8, 7)),
    (("sharpness", 0.4, 7), ("invert", 0.6, 0)),
    (("shear", 0.6, 5), ("equalize", 1.0, 0)),
    (("colour", 0.4, 0), ("equalize", 0.6, 0)),
    (("equalize", 0.4, 0), ("solarize", 0.2, 4)),
    (("solarize", 0.6, 5), ("autocontrast", 0.6, 0)),
    (("invert", 0.6, 0), ("equalize", 1.0, 0)),
    (("colour", 0.6, 4), ("contrast", 1.0, 8)),
    (("equalize", 0.8, 0), ("equalize", 0.6, 0)),
)
"""Of each of the 25 sub-policies two (operation, probability, index of its magnitude in `MAGNITUDES`)."""

LEVELS = 10
MAGNITUDES: dict[str, tuple[float, ...]] = {
    "shear": tuple(torch.linspace(0, 0.3, LEVELS).tolist()),
    "rotate": tuple(torch.linspace(0, 30, LEVELS).tolist()),
    **dict.fromkeys(("colour", "contrast", "sharpness"), tuple(torch.linspace(0, 0.9, LEVELS).tolist())),
    "posterize": tuple(float(8 - round(level * 4 / (LEVELS - 1))) for level in range(LEVELS)),
    "solarize": tuple(torch.linspace(255, 0, LEVELS).tolist()),
    **dict.fromkeys(("autocontrast", "equalize", "invert"), (0.0,) * LEVELS),
}
"""Of each operation its ten magnitudes: a shear, degrees, a change of a factor, bits kept, a threshold."""
SIGNED = ("shear", "rotate", "colour", "contrast", "sharpness")


def autoaugment(
    images: Batch,
    generator: torch.Generator,
    among: Among | None = None,
) -> Batch:
    """Return each image under a sub-policy of its own: two operations, each with its probability,
    its sign a coin's.

    The draws are those of the (CPU) generator, in one order: sub-policies, probabilities, signs; for each
    image of a batch, of which these may be some (`among`: of how many, which). Raises RequestError for images
    that are neither grey nor RGB.
    """
    n, rows = among or (len(images), slice(None))
    chosen = torch.randint(len(POLICY), (n,), generator=generator)
    uniform = torch.rand((n, 2), generator=generator)
    signs = torch.randint(2, (n, 2), generator=generator)
    return apply_policy(images, chosen[rows], uniform[rows], signs[rows])


def apply_policy(
    images: Batch, chosen: Int[Tensor, " n"], uniform: Float[Tensor, "n 2"], signs: Int[Tensor, "n 2"]
) -> Batch:
    """Return each image under its sub-policy: an operation acts where uniform <= p,
    negated where its sign is 0.
    """
    if images.shape[3] not in (1, 3):
        raise RequestError(
            f"AutoAugment is for images of 1 channel (grey) or 3 (RGB); these have {images.shape[3]}"
        )
    images = images.clone()
    for place in (0, 1):
        steps = [POLICY[policy][place] for policy in chosen.tolist()]
        acts = uniform[:, place] <= torch.tensor([probability for _, probability, _ in steps])
        of_operation: dict[str, list[tuple[int, float]]] = {}
        for i, (acting, sign) in enumerate(zip(acts.tolist(), signs[:, place].tolist(), strict=True)):
            operation, _, level = steps[i]
            if acting:
                size = MAGNITUDES[operation][level]
                size = -size if operation in SIGNED and not sign else size
                of_operation.setdefault(operation, []).append((i, size))
        for operation, mine in of_operation.items():
            where = torch.tensor([i for i, _ in mine]).to(images.device)
            changed = apply_operation(operation, images.index_select(0, where), [size for _, size in mine])
            images.index_copy_(0, where, changed)
    return images


def apply_operation(operation: str, images: Batch, magnitudes: list[float]) -> Batch:
    """Return an operation of `MAGNITUDES` on each image, at a magnitude of its own."""
    if operation in ("rotate", "shear"):
        return _moved(operation, images, magnitudes)
    if operation in _BY_ITSELF:
        return _BY_ITSELF[operation](images)
    size = torch.tensor(magnitudes, dtype=torch.float64).to(images.device).view(-1, 1, 1, 1)
    if operation == "posterize":
        return images & (256 - 2 ** (8 - size)).to(torch.uint8)
    if operation == "solarize":
        return torch.where(images >= size.float(), 255 - images, images)
    others = _DEGENERATE[operation](images)
    if others is images:  # nothing to blend with; rounding would still change it
        return images
    ratio = 1 + size
    mixed = ratio.float() * images + (1 - ratio).float() * others
    return mixed.clamp(0, 255).to(torch.uint8)


def _grey(images: Batch) -> Batch:
    if images.shape[3] == 1:
        return images
    red, green, blue = images.unbind(3)
    return (0.2989 * red + 0.587 * green + 0.114 * blue).to(torch.uint8).unsqueeze(3)


def _mean_grey(images: Batch) -> Tensor:
    grey = _grey(images).flatten(1)
    return (grey.sum(1, dtype=torch.int64).float() / grey.shape[1]).view(-1, 1, 1, 1)


def _smooth(images: Batch) -> Batch:
    """Return the mean of a pixel and its eight neighbours, the pixel counting five times;
    edges as they are.
    """
    h, w = images.shape[1:3]
    if min(h, w) <= 2:
        return images
    total = 4 * images[:, 1:-1, 1:-1].to(torch.int32)  # summed in integers: exact on every device
    for down in range(3):
        for across in range(3):
            total += images[:, down : down + h - 2, across : across + w - 2]
    smooth = images.clone()
    smooth[:, 1:-1, 1:-1] = (total / 13).round().to(torch.uint8)
    return smooth


def _autocontrast(images: Batch) -> Batch:
    low = images.amin((1, 2), keepdim=True).float()
    high = images.amax((1, 2), keepdim=True).float()
    flat = high == low
    scale = torch.where(flat, 1, 255 / (high - low))
    return ((images - low.masked_fill(flat, 0)) * scale).clamp(0, 255).to(torch.uint8)


def _equalized(images: Batch) -> Batch:
    n, h, w, c = images.shape
    values = images.permute(0, 3, 1, 2).reshape(n * c, h * w)
    places = values.long()
    counts = torch.zeros((n * c, 256), dtype=torch.int32, device=images.device)
    counts.scatter_add_(1, places, torch.ones_like(counts[:, :1]).expand_as(places))
    brightest = counts.gather(1, values.amax(1, keepdim=True).long())
    step = (h * w - brightest) // 255
    table = (counts.cumsum(1, dtype=torch.int32) - counts + step // 2) // step.clamp(min=1)
    table = torch.where(step == 0, torch.arange(256, device=images.device), table.clamp(0, 255))
    return table.to(torch.uint8).gather(1, places).view(n, c, h, w).permute(0, 2, 3, 1)


def _inverted(images: Batch) -> Batch:
    return 255 - images


_BY_ITSELF = {"autocontrast": _autocontrast, "equalize": _equalized, "invert": _inverted}
_DEGENERATE = {"colour": _grey, "contrast": _mean_grey, "sharpness": _smooth}


def _moved(operation: str, images: Batch, magnitudes: list[float]) -> Batch:
    n, h, w, c = images.shape
    distinct = sorted(set(magnitudes))
    maps = torch.stack([_sources(operation, size, h, w) for size in distinct])
    sources = maps[torch.tensor([distinct.index(size) for size in magnitudes])].to(images.device)
    pixels = F.pad(images.reshape(n, h * w, c), (0, 0, 1, 0))
    return pixels.gather(1, sources.unsqueeze(2).expand(-1, -1, c)).view(n, h, w, c)


@functools.lru_cache(maxsize=64)
def _sources(operation: str, size: float, h: int, w: int) -> Int[Tensor, " p"]:
    """Return, for each pixel of a turned or sheared image, 1 + the pixel that lies there, or 0 for none.

    The grid is torchvision's, operation for operation: at 30 degrees pixels of images of odd size lie halfway
    between two others, and rounding decides.
    """
    if operation == "rotate":
        angle = -math.radians(size)
        matrix = [[math.cos(angle), math.sin(angle), 0.0], [-math.sin(angle), math.cos(angle), 0.0]]
    else:
        shear = math.tan(math.radians(math.degrees(math.atan(size))))
        matrix = [[1.0, shear, (w * 0.5 + shear * h * 0.5) - w * 0.5], [0.0, 1.0, 0.0]]
    across = torch.linspace(-w * 0.5 + 0.5, w * 0.5 - 0.5, w).expand(h, w)
    down = torch.linspace(-h * 0.5 + 0.5, h * 0.5 - 0.5, h).unsqueeze(1).expand(h, w)
    places = torch.stack([across, down, torch.ones(h, w)], dim=2).view(1, h * w, 3)
    theta = torch.tensor(matrix).T.unsqueeze(0) / torch.tensor([0.5 * w, 0.5 * h])
    grid = places.bmm(theta).view(1, h, w, 2)
    numbers = torch.arange(1.0, h * w + 1).view(1, 1, h, w)
    found = F.grid_sample(numbers, grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return found.long().view(-1)
