"""The corruptions by name, as data; listing them imports nothing heavy."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from types import MappingProxyType

from penultimate.errors import RequestError, unknown

SEVERITIES = (1, 2, 3, 4, 5)

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "gaussian_noise": "Gaussian noise",
        "shot_noise": "Shot noise",
        "impulse_noise": "Impulse noise",
        "defocus_blur": "Defocus blur",
        "glass_blur": "Frosted glass blur",
        "motion_blur": "Motion blur",
        "zoom_blur": "Zoom blur",
        "snow": "Snow",
        "frost": "Frost (procedural)",
        "fog": "Fog",
        "brightness": "Brightness",
        "contrast": "Contrast",
        "elastic_transform": "Elastic transform",
        "pixelate": "Pixelate",
        "jpeg_compression": "JPEG compression",
    }
)

BENCHMARK = tuple(TITLES)
"""The fifteen over which the mean corruption error is taken, under their published folder names."""

PUBLISHED = (*BENCHMARK, "speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The folders of ImageNet-C: the fifteen, and four that were held out for validation."""


def check_corruption(name: str, severity: int) -> None:
    """Raise RequestError for an unknown name (with the nearest) or a severity that is not 1 to 5.

    >>> check_corruption("gausian_noise", 1)
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown corruption 'gausian_noise'. Did you mean 'gaussian_noise'? ...
    """
    if name not in TITLES:
        raise unknown("corruption", name, TITLES)
    if isinstance(severity, bool) or not isinstance(severity, numbers.Integral) or severity not in SEVERITIES:
        raise RequestError(f"a severity is a whole number from 1 to 5, not {severity!r}")
