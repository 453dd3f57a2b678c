"""Nuisances: what varies between images of one glyph, drawn and applied to whole batches of masks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

SIZE = 24
LUMINANCE = (0.299, 0.587, 0.114)
NEAREST = 0.45
APART = 0.55
WAVES = (1.0, 4.0)
BAR_HALF_WIDTH = (0.08, 0.24)


@dataclass(frozen=True)
class Nuisances:
    """Ranges and probabilities; lengths in units of half an image's width, colours in 0..1.

    stroke, bar, blur: probabilities of a changed stroke, an occluding bar, a 3 x 3 blur.
    rotation (rad), scale (of the inverse), aspect (log; on x, its inverse on y), shear, translation, elastic:
    uniform on +- the value.
    second_colour: how far the background's second colour may lie from its first, +- per channel.
    noise: the largest standard deviation of the pixel noise.
    """

    stroke: float = 0.30
    rotation: float = 0.25
    scale: float = 0.19
    aspect: float = 0.15
    shear: float = 0.19
    translation: float = 0.125
    elastic: float = 0.044
    second_colour: float = 0.225
    bar: float = 0.25
    blur: float = 0.15
    noise: float = 0.06


def luminance(colours: Float[Tensor, "n 3"]) -> Float[Tensor, " n"]:
    """L = 0.299 R + 0.587 G + 0.114 B (Rec. 601), in the units of the colours."""
    return colours @ torch.tensor(LUMINANCE, dtype=colours.dtype)


def _with_luminance(colours: Float[Tensor, "n 3"], target: Float[Tensor, " n"]) -> Float[Tensor, "n 3"]:
    # Mixing with black scales L and mixing with white scales 1 - L: either way the target is met exactly
    # and no channel leaves 0..1.
    old = luminance(colours)
    to_black = colours * (target / old.clamp(min=1e-6))[:, None]
    to_white = 1 - (1 - colours) * ((1 - target) / (1 - old).clamp(min=1e-6))[:, None]
    return torch.where((target < old)[:, None], to_black, to_white)


def push_apart(
    foreground: Float[Tensor, "n 3"], background: Float[Tensor, "n 3"]
) -> tuple[Float[Tensor, "n 3"], Float[Tensor, "n 3"]]:
    """Colours whose luminances differ by less than .45 are set .55 apart, about their mean where possible.

    The brighter one is mixed with white, the darker one with black. All others are left unchanged.

    >>> a, b = push_apart(torch.full((1, 3), 0.5), torch.full((1, 3), 0.4))
    >>> round(float(luminance(a) - luminance(b)), 4)
    0.55
    """
    light, dark = luminance(foreground), luminance(background)
    middle = ((light + dark) / 2).clamp(APART / 2, 1 - APART / 2)
    half = torch.where(light >= dark, APART / 2, -APART / 2)
    near = ((light - dark).abs() < NEAREST)[:, None]
    return (
        torch.where(near, _with_luminance(foreground, middle + half), foreground),
        torch.where(near, _with_luminance(background, middle - half), background),
    )


def _grown(masks: UInt8[Tensor, "n 48 48"]) -> UInt8[Tensor, "n 48 48"]:
    tall = F.pad(masks, (1, 1, 1, 1))
    tall = torch.maximum(torch.maximum(tall[:, :-2], tall[:, 1:-1]), tall[:, 2:])
    return torch.maximum(torch.maximum(tall[..., :-2], tall[..., 1:-1]), tall[..., 2:])


def bolder(masks: UInt8[Tensor, "n 48 48"]) -> UInt8[Tensor, "n 48 48"]:
    """Return the largest value of each 3 x 3 neighbourhood: a stroke one mask pixel wider on each side."""
    return _grown(masks)


def thinner(masks: UInt8[Tensor, "n 48 48"]) -> UInt8[Tensor, "n 48 48"]:
    """Return the smallest value of each 3 x 3 neighbourhood, but at least half the ink,
    so no hairline is lost.
    """
    return torch.maximum(255 - _grown(255 - masks), masks // 2)


def outline(masks: UInt8[Tensor, "n 48 48"]) -> UInt8[Tensor, "n 48 48"]:
    """Return the largest minus the smallest value of each 3 x 3 neighbourhood: the contour."""
    return _grown(masks) - (255 - _grown(255 - masks))


STROKES = (bolder, thinner, outline)


@cache
def _axes(size: int) -> tuple[Tensor, Tensor]:
    """Return the x and y of the pixel centres in -1..1, each [size * size]."""
    centres = (torch.arange(size) + 0.5) * 2 / size - 1
    y, x = torch.meshgrid(centres, centres, indexing="ij")
    return x.reshape(-1), y.reshape(-1)


@cache
def _bicubic(coarse: int, size: int) -> Float[Tensor, "size coarse"]:
    """U such that U F U' is the bicubic enlargement of a coarse x coarse field F, its corners kept."""
    basis = torch.eye(coarse).view(1, coarse, coarse, 1)
    columns = F.interpolate(basis, size=(size, 1), mode="bicubic", align_corners=True)
    return columns.view(coarse, size).T.contiguous()


class _Draws:
    """Random numbers for n images, in the order of the calls."""

    def __init__(self, n: int, generator: torch.Generator) -> None:
        self.n, self.generator = n, generator

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        return torch.rand(self.n, *shape, generator=self.generator) * (high - low) + low

    def within(self, most: float, *shape: int) -> Tensor:
        return self.uniform(-most, most, *shape)

    def which(self, count: int) -> Tensor:
        return torch.randint(count, (self.n,), generator=self.generator)

    def chosen(self, probability: float) -> Tensor:
        return (self.uniform(0, 1) < probability).nonzero().view(-1)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(self.n, *shape, generator=self.generator)


def _restroked(masks: Tensor, nuisances: Nuisances, draws: _Draws) -> Tensor:
    chosen, kind = draws.chosen(nuisances.stroke), draws.which(len(STROKES))
    for index, stroke in enumerate(STROKES):
        members = chosen[kind[chosen] == index]
        if len(members):
            masks[members] = stroke(masks[members])
    return masks


def _warped(masks: Tensor, nuisances: Nuisances, draws: _Draws, size: int) -> Tensor:
    """Coverage [n 1 size^2] of the masks seen through a random affine map and an elastic field."""
    angle = draws.within(nuisances.rotation)
    inverse_scale = 1 + draws.within(nuisances.scale)
    aspect = draws.within(nuisances.aspect).exp()
    shear = draws.within(nuisances.shear)
    x_scale, y_scale = inverse_scale * aspect, inverse_scale / aspect
    cosine, sine = angle.cos(), angle.sin()
    # rotation x shear x scales: the map from a place in the image to its place in the mask
    matrix = torch.stack(
        [
            cosine * x_scale,
            (cosine * shear - sine) * y_scale,
            sine * x_scale,
            (sine * shear + cosine) * y_scale,
        ],
        dim=1,
    ).view(-1, 2, 2)
    places = matrix @ torch.stack(_axes(size)) + draws.within(nuisances.translation, 2, 1)
    enlarge = _bicubic(4, size)
    field = enlarge @ draws.within(nuisances.elastic, 2, 4, 4) @ enlarge.T
    grid = (places + field.flatten(2)).transpose(1, 2).view(len(masks), size, size, 2)
    ink = masks.to(torch.float32).mul_(1 / 255)[:, None]
    return F.grid_sample(ink, grid, align_corners=False).flatten(2)


def coverage(
    masks: UInt8[Tensor, "n 48 48"], nuisances: Nuisances, generator: torch.Generator, size: int = SIZE
) -> Float[Tensor, "n size size"]:
    """Return the share of each pixel that is ink, with each mask placed and deformed by the nuisances.

    >>> coverage(torch.full((1, 48, 48), 255).byte(), Nuisances(), torch.Generator()).amax().round()
    tensor(1.)
    """
    return _warped(masks, nuisances, _Draws(len(masks), generator), size).view(-1, size, size)


def _pattern(draws: _Draws, size: int) -> Tensor:
    """Weights [n 1 size^2] in 0..1: a gradient, a sine, a square wave or value noise, a quarter each."""
    x, y = _axes(size)
    angle = draws.uniform(0, 2 * math.pi, 1)
    along = angle.cos() * x + angle.sin() * y
    wave = (math.pi * draws.uniform(*WAVES, 1) * along + draws.uniform(0, 2 * math.pi, 1)).sin_()
    enlarge = _bicubic(6, size)
    noise = (enlarge @ draws.uniform(0, 1, 6, 6) @ enlarge.T).flatten(1)
    kind = draws.which(4)[:, None]
    weights = torch.where(kind == 0, 0.5 + 0.5 * along, 0.5 + 0.5 * wave)
    weights = torch.where(kind == 2, (wave > 0).to(torch.float32), weights)
    return torch.where(kind == 3, noise, weights).clamp_(0, 1)[:, None]


def _occlude(images: Tensor, nuisances: Nuisances, draws: _Draws, size: int) -> None:
    chosen = draws.chosen(nuisances.bar)
    angle, offset = draws.uniform(0, math.pi, 1), draws.within(0.8, 1)
    half_width, colour = draws.uniform(*BAR_HALF_WIDTH, 1), draws.uniform(0, 1, 3, 1)
    x, y = _axes(size)
    distance = (angle[chosen].cos() * x + angle[chosen].sin() * y - offset[chosen]).abs_()
    cover = ((half_width[chosen] - distance) * (size / 2) + 0.5).clamp_(0, 1)[:, None]
    images[chosen] = torch.lerp(images[chosen], colour[chosen], cover)


def _blur(images: Tensor, nuisances: Nuisances, draws: _Draws, size: int) -> None:
    chosen = draws.chosen(nuisances.blur)
    if len(chosen):
        soft = F.pad(images[chosen].view(-1, 3, size, size), (1, 1, 1, 1), mode="replicate")
        soft = (soft[:, :, :-2] + 2 * soft[:, :, 1:-1] + soft[:, :, 2:]) / 4
        soft = (soft[..., :-2] + 2 * soft[..., 1:-1] + soft[..., 2:]) / 4
        images[chosen] = soft.flatten(2)


def compose(
    masks: UInt8[Tensor, "n 48 48"], nuisances: Nuisances, generator: torch.Generator, size: int = SIZE
) -> UInt8[Tensor, "n size size 3"]:
    """Return one image for each mask: stroke, warp, colours, background, bar, blur and noise drawn at random.

    image = lerp(background, foreground, coverage), background = lerp(colour, second colour, pattern); then a
    bar over some, a binomial blur over some, normal noise over all; rounded to 0..255.

    >>> masks = torch.zeros(5, 48, 48, dtype=torch.uint8)
    >>> compose(masks, Nuisances(), torch.Generator().manual_seed(0)).shape
    torch.Size([5, 24, 24, 3])
    """
    draws = _Draws(len(masks), generator)
    coverage = _warped(_restroked(masks.clone(), nuisances, draws), nuisances, draws, size)
    foreground, background = push_apart(draws.uniform(0, 1, 3), draws.uniform(0, 1, 3))
    second = (background + draws.within(nuisances.second_colour, 3)).clamp_(0, 1)
    images = torch.lerp(background[..., None], second[..., None], _pattern(draws, size))
    images = torch.lerp(images, foreground[..., None], coverage)
    _occlude(images, nuisances, draws, size)
    _blur(images, nuisances, draws, size)
    images += draws.uniform(0, nuisances.noise, 1, 1) * draws.normal(3, size * size)
    pixels = images.mul_(255).round_().clamp_(0, 255).to(torch.uint8)
    return pixels.transpose(1, 2).reshape(len(masks), size, size, 3)
