"""`corrupt`: one corruption at one severity applied to a batch of images."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from jaxtyping import UInt8

from penultimate.data.corruptions import blur, digital, noise, weather
from penultimate.data.corruptions.catalogue import TITLES, check_corruption
from penultimate.data.corruptions.filters import Corruption
from penultimate.data.corruptions.randomness import generators
from penultimate.errors import RequestError

ROUNDING = 1e-3
"""Levels this little below a whole number count as that number: the gap is float32's rounding."""

_ROOMS = (noise, blur, weather, digital)
FUNCTIONS: Mapping[str, Corruption] = MappingProxyType(
    {name: getattr(room, name) for name in TITLES for room in _ROOMS if hasattr(room, name)}
)


def corrupt(
    images: UInt8[np.ndarray, "n h w 3"],
    name: str,
    severity: int,
    seed: int = 0,
    indices: Sequence[int] | np.ndarray | None = None,
) -> UInt8[np.ndarray, "n h w 3"]:
    """Return images of any size under one of ImageNet-C's corruptions at severity 1 to 5.

    The input is not changed. At 224 x 224 this is the published definition; at other sizes lengths are scaled
    (`corruptions.lengths`).
    Levels are clipped to 0..255 and truncated, as published; the published files were then saved as JPEG of
    quality 85, which is left to the caller. `frost` uses a procedural texture in place of photographs.

    Random numbers derive from (seed, name, severity, index of the example), with indices 0 to n - 1 unless
    given. Give each batch of a longer set its own range (or the examples' ids); the result then does not
    depend on how the set is split into batches.

    Raises RequestError for images that are not colour uint8 [n h w 3] or are smaller than 8 x 8, an unknown
    name (with the nearest), a severity or index out of range; TypeError for one that is no whole number.

    >>> images = np.full((4, 32, 32, 3), 128, np.uint8)
    >>> noisy = corrupt(images, "gaussian_noise", severity=3)
    >>> bool((corrupt(images[2:], "gaussian_noise", 3, indices=[2, 3]) == noisy[2:]).all())
    True

    Hendrycks and Dietterich, ICLR 2019, section 4 and their code `make_imagenet_c.py`.
    """
    check_corruption(name, severity)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 4:
        actual = f"{images.dtype} {list(images.shape)}" if hasattr(images, "dtype") else type(images).__name__
        raise RequestError(f"images to corrupt are a uint8 array [n h w 3]; these are {actual}")
    if images.shape[3] != 3 or min(images.shape[1:3]) < 8:
        raise RequestError(
            "corruptions are defined for colour images of at least 8 x 8 pixels (grey ones repeat their"
            f" channel); these are {images.shape[1]} x {images.shape[2]} with {images.shape[3]} channels"
        )
    places = [*map(operator.index, range(len(images)) if indices is None else indices)]
    if len(places) != len(images) or min(places, default=0) < 0:
        raise RequestError(f"indices name each of the {len(images)} images by a number from 0 up")
    if not len(images):
        return images.copy()
    levels = FUNCTIONS[name](images, severity, generators(operator.index(seed), name, severity, places))
    if levels.dtype == np.uint8:
        return levels
    return np.clip(np.floor(levels + ROUNDING), 0, 255).astype(np.uint8)
