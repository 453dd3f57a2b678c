"""The size of an architecture, as stated beside its name; nothing is built to find it."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate import registry, specs
from penultimate.errors import RequestError


@dataclass(frozen=True)
class Size:
    """The sizes of an architecture's weights, features and training state.

    numbers   the number of weights and batch-norm moments up to its features
    features  the number of features for each image
    kept      the numbers that training stores for the backward pass, for each pixel of an image
    layers    the number of blocks whose outputs are measured
    """

    numbers: int
    features: int
    kept: int = 0
    layers: int = 1


def size_of(backbone: str) -> Size | None:
    """Return the size that the architecture of a spec states, or None if it states none for these arguments.

    >>> size_of("glyphnet"), size_of("glyphwide(width=7)")
    (Size(numbers=224892, features=256, kept=61, layers=4), None)
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
    """Return the size of a glyphnet, summed over its units; each stage sees fewer pixels than the image."""
    half = features // 2
    stages = (
        (4, ((channels, width, 3),)),
        (16, ((width, 2 * width, 1), (width, 2 * width, 3), (2 * width, 2 * width, 3))),
        (64, ((2 * width, 4 * width, 1), (2 * width, 4 * width, 3), (4 * width, 4 * width, 3))),
        (64, ((4 * width, features, 1), *2 * ((features, half, 1), (half, features, 1)))),
    )
    of_moments = 4  # gain, shift, mean and variance of a channel, and one counter
    numbers = sum(
        inputs * outputs * side**2 + of_moments * outputs + 1
        for _, units in stages
        for inputs, outputs, side in units
    )
    kept = channels + sum(2 * outputs / shrunk for shrunk, units in stages for _, outputs, _ in units)
    return Size(numbers, features, round(kept), layers=4)
