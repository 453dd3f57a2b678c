"""How a network wants its images: what happens between a decoded file and its first layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from penultimate.data.decoding import Interpolation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError

Geometry: TypeAlias = tuple[int, int, Interpolation, bool] | tuple[int, int, Interpolation, bool, str]
"""What is done before an image is normalised: networks that agree in it share the resized image."""


@dataclass(frozen=True)
class Preparation:
    """Resize, crop in the middle, scale to 0..1 and normalise, as torchvision's transforms of these names do.

    resize          the shorter side in pixels before the crop; with squash=True, both sides
    crop            height and width of what the network sees
    interpolation   of the resizing, with antialiasing, as Pillow does it
    squash          both sides are brought to `resize`, whatever the proportions
    processor       the configuration, as JSON, of the image processor of transformers that makes the square
                    of `crop` pixels itself; empty for all other networks
    """

    resize: int
    crop: int
    interpolation: Interpolation
    statistics: ChannelStatistics
    squash: bool = False
    processor: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.crop <= self.resize:
            raise RequestError(
                f"a crop has 1 to {self.resize} pixels, as the image is resized; got {self.crop}"
            )

    @property
    def geometry(self) -> Geometry:
        """(resize, crop, interpolation, squash), and the image processor if there is one."""
        usual = self.resize, self.crop, self.interpolation, self.squash
        return (*usual, self.processor) if self.processor else usual
