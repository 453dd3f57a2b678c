"""How large an architecture is, as it states beside its name; nothing is built for it."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate import registry
from penultimate.errors import RequestError


@dataclass(frozen=True)
class Size:
    """What the weights, the features and a training of an architecture take.

    numbers   of its weights and batch-norm moments up to its features
    features  the numbers that it makes of an image
    kept      the numbers that a training keeps for the way back, for each pixel of an image
    layers    how many blocks it has whose outputs are measured
    """

    numbers: int
    features: int
    kept: int = 0
    layers: int = 1


def size_of(backbone: str) -> Size | None:
    """Return the size that the architecture of a spec states; None where it states none for such arguments.

    >>> size_of("glyphnet"), size_of("glyphwide(width=7)")
    (Size(numbers=224892, features=256, kept=61, layers=4), None)
    """
    try:
        spec = registry.parse(backbone)
        stated = registry.entry("backbone", spec.name).facts.get("size")
        if callable(stated):
            stated = stated(**spec.arguments)
        elif spec.arguments:
            stated = None
    except (RequestError, TypeError):
        return None
    return stated if isinstance(stated, Size) else None


def glyphnet_size(width: int = 16, features: int = 256, channels: int = 3) -> Size:
    """Return the size of a glyphnet, a sum over its units; each stage sees fewer pixels than an image has."""
    half = features // 2
    stages = (
        (4, ((channels, width, 3),)),
        (16, ((width, 2 * width, 1), (width, 2 * width, 3), (2 * width, 2 * width, 3))),
        (64, ((2 * width, 4 * width, 1), (2 * width, 4 * width, 3), (4 * width, 4 * width, 3))),
        (64, ((4 * width, features, 1), *2 * ((features, half, 1), (half, features, 1)))),
    )
    of_moments = 4  # gain, shift, mean and variance of a channel, and one count
    numbers = sum(
        inputs * outputs * side**2 + of_moments * outputs + 1
        for _, units in stages
        for inputs, outputs, side in units
    )
    kept = channels + sum(2 * outputs / shrunk for shrunk, units in stages for _, outputs, _ in units)
    return Size(numbers, features, round(kept), layers=4)
