"""The form of the arrays that built-in exhibits read: checked when the arrays of a kept run are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from penultimate import registry

if TYPE_CHECKING:
    import numpy.typing as npt

NONE_POSSIBLE = ("pairs", "pictures", "classes")
"""The dimensions that may be zero: a network may confuse nothing."""


def _is_float(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and values.itemsize == 4


def _is_whole(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind in "iu"


KINDS: Mapping[str, tuple[str, Callable[[npt.NDArray[Any]], Any]]] = {
    "number": ("finite float32 numbers", lambda it: _is_float(it) and (abs(it) < math.inf).all()),
    "share": ("float32 numbers, finite or NaN", lambda it: _is_float(it) and not (abs(it) == math.inf).any()),
    "whole": ("whole numbers", _is_whole),
    "count": ("whole numbers, 1 or more", lambda it: _is_whole(it) and (it >= 1).all()),
    "id": ("whole numbers, each once", lambda it: _is_whole(it) and len({*it.tolist()}) == it.size),
    "text": ("text", lambda it: it.dtype.kind == "U" and isinstance(it.tolist(), list)),
    "byte": ("bytes", lambda it: it.dtype.kind == "u" and it.itemsize == 1),
    "any": ("numbers or text", lambda it: it.dtype.kind in "biufU"),
}
"""What an array may hold: in words, and as a test of an array that has dimensions."""


@cache
def array_forms() -> Mapping[str, Mapping[str, str]]:
    """Return the form of each array that a built-in measurement declares, by metric and name."""
    entries = [registry.entry("measurement", name) for name in registry.names("measurement")]
    declared = [entry.resolve().declared for entry in entries if not entry.is_plugin]
    yields = [item for one in declared for item in one.get("yields") or ()]
    return {item.metric: item.arrays for item in yields if item.arrays}


def expect_arrays(metric: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError, with the array's name, for arrays that no measurement of this metric leaves.

    The arrays of a plug-in's metric need only have dimensions, and hold numbers or text.
    """
    sizes = {"2": 2, "3": 3}
    for name, form in (array_forms().get(metric) or dict.fromkeys(arrays, "any ...")).items():
        if name not in arrays:
            raise ValueError(f"there is no array '{name}'")
        kind, _, dimensions = form.partition(" ")
        values, (what, is_right) = arrays[name], KINDS[kind]
        is_shaped = values.ndim > 0 if kind == "any" else _fit(dimensions.split(), values.shape, sizes)
        if not (is_shaped and is_right(values)):
            raise ValueError(
                f"'{name}' is to be an array [{dimensions}] of {what}, not"
                f" {[*values.shape]} of {values.dtype}"
            )


def _fit(dimensions: Sequence[str], shape: Sequence[int], sizes: dict[str, int]) -> bool:
    """Return whether a shape has these dimensions; `sizes` are those that are known, and gets the others."""
    return len(dimensions) == len(shape) and all(
        sizes.setdefault(name, size) == size and (size > 0 or name in NONE_POSSIBLE)
        for name, size in zip(dimensions, shape, strict=True)
    )
