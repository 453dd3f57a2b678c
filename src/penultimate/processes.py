"""Starting of Python processes so that no file of the current folder replaces a module in them.

`python -m` and `python -c` put the current folder first on the path. A `types.py` or a `json.py` that lies
among somebody's data would then be executed in place of Python's own module.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PATH, SAFE = "PYTHONPATH", "PYTHONSAFEPATH"
HERE = str(Path(__file__).resolve().parents[1])
"""The folder from which this package is imported."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package.

    >>> command("penultimate.engine.worker", "3")[1:]
    ['-P', '-m', 'penultimate.engine.worker', '3']
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that finds this package, with `more` variables."""
    folders = [os.environ.get(PATH, "")]
    if Path(HERE).name not in ("site-packages", "dist-packages"):
        folders.append(HERE)
    return {**os.environ, PATH: os.pathsep.join(filter(None, folders)), **(more or {})}


@contextlib.contextmanager
def with_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for this process, and for those that it starts, within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


def safely() -> contextlib.AbstractContextManager[None]:
    """Keep the current folder off the path of processes that Ray or a pool starts in the block."""
    return with_variables({SAFE: "1"})
