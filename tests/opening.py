"""Which files are opened below a folder: what costs time in a store of many steps."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_watching: list[tuple[str, list[str]]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watching:
        for root, files in _watching:
            if str(arguments[0]).startswith(root):
                files.append(str(arguments[0]))


sys.addaudithook(_hear)


@contextlib.contextmanager
def opened(root: Path) -> Iterator[list[str]]:
    """The files below a folder that this process opens meanwhile, each time that it does."""
    files: list[str] = []
    _watching.append((str(root), files))
    try:
        yield files
    finally:
        _watching.remove((str(root), files))
