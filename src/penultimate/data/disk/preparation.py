"""The preparation of images between decoding and a network's first layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penultimate.data.decoding import Interpolation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError

Geometry: TypeAlias = tuple[int, int, Interpolation, bool]
"""The steps before normalisation; networks with equal geometry share the resized image."""


@dataclass(frozen=True)
class Preparation:
    """Resize, crop in the middle, scale to 0..1 and normalise, as torchvision's transforms of these names do.

    resize          the shorter side in pixels before the crop; with squash=True, both sides
    crop            height and width of the network's input
    interpolation   Pillow's filter for resizing, with antialiasing
    squash          whether both sides are resized to `resize`, regardless of the proportions
    """

    resize: int
    crop: int
    interpolation: Interpolation
    statistics: ChannelStatistics
    squash: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.crop <= self.resize:
            raise RequestError(
                f"a crop must have 1 to {self.resize} pixels, the size of the resized image; got {self.crop}"
            )

    @property
    def geometry(self) -> Geometry:
        """The tuple (resize, crop, interpolation, squash)."""
        return self.resize, self.crop, self.interpolation, self.squash
