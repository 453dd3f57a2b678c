"""Plug-in files for the time of a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from penultimate import registry
from penultimate.plugins import Plugin, load_plugin

SAMPLES = Path(__file__).parent / "plugins"


@contextlib.contextmanager
def released() -> Iterator[None]:
    """The names of plug-ins that are registered within are released in the end."""
    before = {*registry.registered()}
    try:
        yield
    finally:
        for place in {*registry.registered()} - before:
            if registry.entry(*place).is_plugin:
                registry.forget(*place)


@contextlib.contextmanager
def plugged(*files: Path | str) -> Iterator[list[Plugin]]:
    """Samples by name, files by path and `examples:NAME` are loaded; in the end their names are released."""
    plugins = [
        load_plugin(SAMPLES / f"{file}.py" if isinstance(file, str) and ":" not in file else file)
        for file in files
    ]
    try:
        yield plugins
    finally:
        for plugin in plugins:
            for entry in plugin.entries:
                registry.forget(entry.kind, entry.name)
