"""Packages whose names are imported on first use, so that listing names needs no tensor library."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def found(place: str) -> Any:
    """Return what a place names, "package.module:name", imported now.

    >>> found("penultimate.lazy:found") is found
    True
    """
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def attributes(
    package: str, modules: Mapping[str, str], own: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package that imports its names on first use.

    `modules` is {module: "the names that the package exports from it"}, where NAME=OTHER exports OTHER as
    NAME. `own` lists the exported names that the package defines itself.
    """
    pairs = [(module, *name.partition("=")) for module, listed in modules.items() for name in listed.split()]
    places = {name: (module, other or name) for module, name, _, other in pairs}

    def get(name: str) -> Any:
        if name in places:
            module, attribute = places[name]
            return getattr(importlib.import_module(f"{package}.{module}"), attribute)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return get, lambda: [*places, *own.split()]
