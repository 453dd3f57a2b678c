"""Objectives that come with the package as plug-in files, which are loaded only if they are asked for.

`--plugin examples:focal` loads one, as it would a file of a user's own, and `check --example focal` prints
it. A file is found by its own name and by that of each objective in it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from penultimate.errors import RequestError, unknown

PREFIX = "examples:"
"""What stands before the name of a file of this package, where a path may stand."""
FOLDER = Path(__file__).with_name("examples")


@cache
def contents() -> dict[str, tuple[str, ...]]:
    """Return what each file registers, by the name of the file; no file is executed.

    >>> contents()["margins"]
    ('scaled_cosines', 'cosface', 'arcface', 'negative_margin')
    """
    trees = {file.stem: ast.parse(file.read_bytes()) for file in sorted(FOLDER.glob("*.py"))}
    return {
        file: tuple(
            each.name
            for each in tree.body
            if isinstance(each, ast.FunctionDef)
            and "register." in " ".join(map(ast.unparse, each.decorator_list))
        )
        for file, tree in trees.items()
    }


def every_name() -> list[str]:
    """Return every name by which a file is found: those of the objectives, then those of other files."""
    return list(dict.fromkeys([*(name for names in contents().values() for name in names), *contents()]))


def path_of(name: str) -> Path:
    """Return the file of this name, or with an objective of this name in it.

    >>> path_of("arcface").name
    'margins.py'
    """
    for file, names in contents().items():
        if name in (file, *names):
            return FOLDER / f"{file}.py"
    raise unknown("example", name, every_name())


def not_loaded(name: str) -> RequestError:
    """Return an error that says how to load the file of an objective of this name."""
    return RequestError(
        f"the objective '{name}' comes with the package and is not loaded yet: add --plugin {PREFIX}{name},"
        f" or in Python penultimate.plugins.load_plugin('{PREFIX}{name}')"
    )


def resolved(path: Path | str) -> Path | str:
    """Return the file that `examples:NAME` names; any other path stays as it is."""
    return path_of(str(path).removeprefix(PREFIX)) if str(path).startswith(PREFIX) else path
