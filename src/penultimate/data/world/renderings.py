"""Glyphs drawn differently from pretraining: as outlines on paper, and in four other styles.

They stand in for ImageNet-Sketch and ImageNet-R: classes, faces and the placement of a glyph in its image are
those of pretraining; how it is drawn is new.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from penultimate.data.world.nuisance import Nuisances, compose, coverage, outline

PAPER, INK = (0.88, 1.0), (0.0, 0.25)
GRAIN = 0.02
"""Standard deviation of the pixel noise of sketches, embossed glyphs and neon signs."""
PITCH = (6.0, 9.0)
"""Distance of stripes and dots, in mask pixels (two to an image pixel)."""

Rendering = Callable[[UInt8[Tensor, "n 48 48"], Nuisances, torch.Generator], UInt8[Tensor, "n h w 3"]]


def sketch(
    masks: UInt8[Tensor, "n 48 48"], nuisances: Nuisances, generator: torch.Generator
) -> UInt8[Tensor, "n h w 3"]:
    """Outlines only, dark grey on near-white paper.

    >>> images = sketch(torch.zeros(2, 48, 48, dtype=torch.uint8), Nuisances(), torch.Generator())
    >>> images.shape, bool(images.min() > 200)
    (torch.Size([2, 24, 24, 3]), True)
    """
    lines = coverage(outline(masks), nuisances, generator)
    paper, ink = (_uniform(len(masks), generator, *levels) for levels in (PAPER, INK))
    return _pixels(torch.lerp(paper, ink, lines)[:, None].expand(-1, 3, -1, -1), generator)


def rendition(
    masks: UInt8[Tensor, "n 48 48"], nuisances: Nuisances, generator: torch.Generator
) -> UInt8[Tensor, "n h w 3"]:
    """Return each glyph in one of four styles chosen at random: striped, dotted, embossed or as a neon sign.

    >>> rendition(torch.zeros(5, 48, 48, dtype=torch.uint8), Nuisances(), torch.Generator()).shape
    torch.Size([5, 24, 24, 3])
    """
    style = torch.randint(len(STYLES), (len(masks),), generator=generator)
    drawn: list[tuple[Tensor, Tensor]] = []
    for index, draw in enumerate(STYLES):
        chosen = (style == index).nonzero().view(-1)
        if len(chosen):
            drawn.append((chosen, draw(masks[chosen], nuisances, generator)))
    images = torch.empty(len(masks), *drawn[0][1].shape[1:], dtype=torch.uint8)
    for chosen, pixels in drawn:
        images[chosen] = pixels
    return images


def _striped(masks: Tensor, nuisances: Nuisances, generator: torch.Generator) -> Tensor:
    along, _ = _turned_axes(masks, generator)
    stripes = (1.6 * along.sin()).clamp(-0.5, 0.5) + 0.5
    return compose((masks * stripes).to(torch.uint8), nuisances, generator)


def _dotted(masks: Tensor, nuisances: Nuisances, generator: torch.Generator) -> Tensor:
    along, across = _turned_axes(masks, generator)
    dots = (1.6 * (along.sin() * across.sin() + 0.1)).clamp(-0.5, 0.5) + 0.5
    return compose((masks * dots).to(torch.uint8), nuisances, generator)


def _embossed(masks: Tensor, nuisances: Nuisances, generator: torch.Generator) -> Tensor:
    height = torch.nn.functional.pad(coverage(masks, nuisances, generator)[:, None], (1, 1, 1, 1))[:, 0]
    angle = _uniform(len(masks), generator, 0, 2 * math.pi)
    slope = angle.cos() * (height[:, 1:-1, 2:] - height[:, 1:-1, :-2])
    slope = slope + angle.sin() * (height[:, 2:, 1:-1] - height[:, :-2, 1:-1])
    ground = torch.rand(len(masks), 3, 1, 1, generator=generator) * 0.5 + 0.25
    return _pixels(ground + 0.4 * slope[:, None], generator)


def _neon(masks: Tensor, nuisances: Nuisances, generator: torch.Generator) -> Tensor:
    light = coverage(outline(masks), nuisances, generator)[:, None]
    halo = torch.nn.functional.avg_pool2d(light, 5, 1, 2, count_include_pad=False)
    colour = torch.rand(len(masks), 3, 1, 1, generator=generator)
    colour = 0.3 + 0.7 * colour / colour.amax(1, keepdim=True).clamp(min=1e-6)
    ground = torch.rand(len(masks), 3, 1, 1, generator=generator) * 0.15
    return _pixels(ground + colour * (light + halo), generator)


STYLES: tuple[Rendering, ...] = (_striped, _dotted, _embossed, _neon)


def _turned_axes(masks: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return two phases at right angles [n 48 48], with an angle and a pitch for each image."""
    angle = _uniform(len(masks), generator, 0, math.pi)
    pitch = _uniform(len(masks), generator, *PITCH)
    rows, columns = torch.meshgrid(*(torch.arange(side) for side in masks.shape[1:]), indexing="ij")
    along = angle.cos() * columns + angle.sin() * rows
    across = angle.cos() * rows - angle.sin() * columns
    return 2 * math.pi * along / pitch, 2 * math.pi * across / pitch


def _uniform(count: int, generator: torch.Generator, low: float, high: float) -> Float[Tensor, "n 1 1"]:
    return torch.rand(count, 1, 1, generator=generator) * (high - low) + low


def _pixels(images: Float[Tensor, "n 3 h w"], generator: torch.Generator) -> UInt8[Tensor, "n h w 3"]:
    noisy = images + GRAIN * torch.randn(images.shape, generator=generator)
    return noisy.mul(255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()
