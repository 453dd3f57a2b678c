"""Images of many sizes as bytes on a device, and random parts of them cut out in batches there.

A part is resized as Pillow does it, by two products with matrices of its weights: across, rounded to bytes,
and down. Its weights have 22 bits, so that their products with bytes, and sums of these, are exact in float64
in whatever order: every device gives the same bytes. Pillow 13 goes down first where that is cheaper; up to a
quarter of the values of such a part then differ, by 1 of 255.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from penultimate.data.disk.cropping import Box, box_of
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.loading import in_order
from penultimate.data.disk.shrinking import Shrunk
from penultimate.data.images import ImageSet
from penultimate.errors import RequestError
from penultimate.memory import memory

PART = 32
"""Images that are resized at once: of 256 pixels they take 200 MB on the way."""
BITS = 22
"""Of Pillow's weights."""
PIECE = 32
"""Images that a worker decodes at once."""
ASPECT = 4 / 3
"""How many times as long as its shorter side an image's longer one is taken to be, in a guess of its size."""


@dataclass(frozen=True)
class Resident:
    """Images on a device, each shown as a random part of it, resized to a square.

    pixels     uint8 [p c], those of all images one after another, row by row
    starts     int64 [n], where in `pixels` each begins
    sizes      int64 [n 2], height and width
    """

    pixels: UInt8[Tensor, "p c"]
    starts: Int[Tensor, " n"]
    sizes: Int[Tensor, "n 2"]
    size: int
    area: tuple[float, float]
    seed: int

    @classmethod
    def of(
        cls,
        images: ImageSet | ListedImages,
        area: tuple[float, float],
        seed: int,
        device: torch.device,
    ) -> Resident:
        """Return the resident images: those in memory in their own size, or those on disk, decoded once.

        Of those the shorter side is brought to the `resize` of their preparation, unless it is smaller.
        Raises RequestError where they do not fit into memory.
        """
        if isinstance(images, ImageSet):
            n, h, w, c = images.images.shape
            pixels = torch.from_numpy(images.images).view(-1, c)
            sizes = torch.tensor([[h, w]]).expand(n, 2)
            return cls(pixels.to(device), torch.arange(n) * h * w, sizes, h, area, seed)
        side = images.preparation.resize
        for where in {device, torch.device("cpu")}:
            expect_room(round(len(images) * side * side * ASPECT * 3), len(images), side, where)
        pieces = [range(at, min(at + PIECE, len(images))) for at in range(0, len(images), PIECE)]
        shape: list[tuple[int, ...]] = []
        shrunk: list[np.ndarray] = []
        for decoded in in_order(Shrunk(images.listing, side), pieces, images.workers):
            shape += [image.shape[:2] for image in decoded]
            shrunk.append(_apart(decoded))
        sizes = torch.tensor(shape)
        counts = sizes.prod(1)
        at = int(counts.sum())
        pixels = torch.empty((at, 3), dtype=torch.uint8, device=device)
        starts = counts.cumsum(0) - counts
        while shrunk:  # each piece goes as it is copied: no two copies of all are in memory
            flat = torch.from_numpy(shrunk.pop())
            at -= len(flat)
            pixels[at : at + len(flat)] = flat.to(device)
        return cls(pixels, starts, sizes, images.preparation.crop, area, seed)

    @property
    def values(self) -> int:
        """Of each, what is shown."""
        return self.size * self.size * self.pixels.shape[1]

    def shown(self, epoch: int, rows: Int[Tensor, " n"]) -> UInt8[Tensor, "n size size c"]:
        """Return what is shown of the images at these places in an epoch."""
        places = rows.tolist()
        boxes = [
            box_of(width, height, self.area, self.seed, epoch, row)
            for row, (height, width) in zip(places, self.sizes[places].tolist(), strict=True)
        ]
        parts = (slice(at, at + PART) for at in range(0, len(places), PART))
        return torch.cat([self.cut(places[part], boxes[part]) for part in parts])

    def cut(self, rows: Sequence[int], boxes: Sequence[Box]) -> UInt8[Tensor, "n size size c"]:
        """These parts of these images, resized to `size`."""
        device, size, channels = self.pixels.device, self.size, self.pixels.shape[1]
        top, left, height, width = torch.tensor(boxes).T
        origin = self.starts[rows] + top * self.sizes[rows, 1] + left
        down, across = torch.arange(int(height.max())), torch.arange(int(width.max()))
        lines = torch.minimum(down, height[:, None] - 1) * self.sizes[rows, 1, None]
        columns = torch.minimum(across, width[:, None] - 1)
        origin, lines, columns = (each.to(device) for each in (origin, lines, columns))
        places = origin[:, None, None] + lines[:, None, :] + columns[:, :, None]
        part = self.pixels[places].to(torch.float64)  # [n width height c]
        n, wide, high = part.shape[:3]
        narrowed = _rounded(torch.bmm(_weights(width, wide, size, device), part.view(n, wide, -1)))
        turned = narrowed.view(n, size, high, channels).transpose(1, 2).reshape(n, high, -1)
        shrunk = _rounded(torch.bmm(_weights(height, high, size, device), turned))
        return shrunk.view(n, size, size, channels).to(torch.uint8)


def _apart(images: Sequence[np.ndarray]) -> UInt8[np.ndarray, "p 3"]:
    """Return the pixels of images in a mapping of their own, which the system has back as soon as they go."""
    pixels = np.frombuffer(mmap.mmap(-1, sum(image.size for image in images)), np.uint8)
    np.concatenate([image.reshape(-1) for image in images], out=pixels)
    return pixels.reshape(-1, 3)


def _weights(
    lengths: Int[Tensor, " n"], longest: int, size: int, device: torch.device
) -> Float[Tensor, "n size longest"]:
    """Return what each of `size` pixels takes of the first `lengths[i]`:
    a triangle over two of the larger pixels.

    Rounded to BITS bits.
    """
    scale = (lengths.to(torch.float64) / size).view(-1, 1, 1).to(device)
    places = torch.arange(longest, device=device, dtype=torch.float64) + 0.5
    centres = (torch.arange(size, device=device, dtype=torch.float64).view(-1, 1) + 0.5) * scale
    weights = (1 - (places - centres).abs() / scale.clamp(min=1)).clamp(min=0)
    weights = weights * (places < lengths.view(-1, 1, 1).to(device))
    quantised = torch.floor(weights / weights.sum(2, keepdim=True) * 2**BITS + 0.5)
    return quantised.div(2**BITS)


def _rounded(values: Tensor) -> Tensor:
    return values.add_(0.5).floor_().clamp_(0, 255)


def expect_room(needed: int, images: int, side: int, device: torch.device) -> None:
    """Raise RequestError where that many bytes are not free, on the device or in memory."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else memory().free
    if needed > free:
        fits = int(side * np.sqrt(free / needed))
        raise RequestError(
            f"recipe: resident=True holds {images:,} images with a shorter side of {side} pixels, about"
            f" {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: give resident=False, or"
            f" resize={fits}"
        )
