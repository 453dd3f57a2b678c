"""How a network wants its images: what happens between a decoded file and its first layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]


@dataclass(frozen=True)
class Preparation:
    """Resized, cropped in the middle, scaled to 0..1 and normalised.

    As by torchvision's Resize, CenterCrop, ToTensor and Normalize.

    resize          the shorter side in pixels before the crop; with squash=True, both sides
    crop            height and width of what the network sees
    interpolation   of the resizing, with antialiasing, as Pillow does it
    squash          both sides are brought to `resize`, whatever the proportions
    """

    resize: int
    crop: int
    interpolation: Interpolation
    statistics: ChannelStatistics
    squash: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.crop <= self.resize:
            raise RequestError(
                f"a crop has 1 to {self.resize} pixels, as the image is resized; got {self.crop}"
            )
