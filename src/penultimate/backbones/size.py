"""The size of an architecture, as stated beside its name; nothing is built to find it."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate import registry, specs
from penultimate.errors import RequestError


@dataclass(frozen=True)
class Size:
    """The sizes of an architecture's weights and features.

    numbers   the number of weights and batch-norm moments up to its features
    features  the number of features for each image
    """

    numbers: int
    features: int


def size_of(backbone: str) -> Size | None:
    """Return the size that the architecture of a spec states, or None if it states none for these arguments.

    >>> size_of("glyphnet"), size_of("glyphwide(width=7)")
    (Size(numbers=224892, features=256), None)
    """
    try:
        spec = specs.parse(backbone)
        stated = registry.entry("backbone", spec.name).facts.get("size")
        if callable(stated):
            stated = stated(**spec.arguments)
        elif spec.arguments:
            stated = None
    except (RequestError, TypeError):
        return None
    return stated if isinstance(stated, Size) else None


def glyphnet_size(width: int = 16, features: int = 256, channels: int = 3) -> Size:
    """Return the size of a glyphnet, summed over its units."""
    half = features // 2
    units = (
        (channels, width, 3),
        *((width, 2 * width, 1), (width, 2 * width, 3), (2 * width, 2 * width, 3)),
        *((2 * width, 4 * width, 1), (2 * width, 4 * width, 3), (4 * width, 4 * width, 3)),
        *((4 * width, features, 1), *2 * ((features, half, 1), (half, features, 1))),
    )
    of_moments = 4  # gain, shift, mean and variance of a channel, and one counter
    numbers = sum(inputs * outputs * side**2 + of_moments * outputs + 1 for inputs, outputs, side in units)
    return Size(numbers, features)
