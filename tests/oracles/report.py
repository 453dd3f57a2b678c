"""Literal statistics and colour science for the report's tests, sharing nothing with the package."""

from __future__ import annotations

import math
from collections.abc import Sequence

MACHADO = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}
"""Simulation of colour vision at full severity in linear RGB (Machado, Oliveira and Fernandes, 2009)."""


def mean_of(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


def standard_error_of(values: Sequence[float]) -> float:
    middle = mean_of(values)
    variance = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


def spearman_rho(x: Sequence[float], y: Sequence[float]) -> float:
    """1 - 6 sum d^2 / (n (n^2 - 1)), for values without ties."""
    assert len(set(x)) == len(x)
    assert len(set(y)) == len(y)
    first = [sorted(x).index(value) for value in x]
    second = [sorted(y).index(value) for value in y]
    n = len(x)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) / (n * (n * n - 1))


def linear_rgb(colour: str) -> tuple[float, ...]:
    """sRGB hexadecimal to linear light."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    lights = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear_rgb(one), linear_rgb(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def oklab(colour: str, vision: str = "normal") -> tuple[float, float, float]:
    """OKLab of a colour as seen with a kind of colour vision (Ottosson, 2020)."""
    source = linear_rgb(colour)
    seen = [
        min(1.0, max(0.0, sum(m * c for m, c in zip(row, source, strict=True)))) for row in MACHADO[vision]
    ]
    r, g, b = seen
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    medium = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )
