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
    """Return what each file registers, by the name of the file.

    >>> contents()["margins"]
    ('scaled_cosines', 'cosface', 'arcface', 'negative_margin')
    """
    return {file.stem: tuple(_registered(file)) for file in sorted(FOLDER.glob("*.py"))}


def every_name() -> list[str]:
    """Return every name by which a file is found: those of the objectives, then those of other files."""
    return list(dict.fromkeys([*(name for names in contents().values() for name in names), *contents()]))


def path_of(name: str) -> Path:
    """Return the file of this name, or with an objective of this name in it.

    >>> path_of("arcface").name
    'margins.py'
    >>> path_of("focl")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown example 'focl'. Did you mean 'focal'? Known: ...
    """
    files = {name: file for file, names in contents().items() for name in (file, *names)}
    if name not in files:
        raise unknown("example", name, every_name())
    return FOLDER / f"{files[name]}.py"


def not_loaded(name: str) -> RequestError:
    """Return an error that says how to load the file of an objective of this name.

    >>> str(not_loaded("focal"))[:50]
    "the objective 'focal' comes with the package and i"
    """
    return RequestError(
        f"the objective '{name}' comes with the package and is not loaded yet: add --plugin {PREFIX}{name},"
        f" or in Python penultimate.plugins.load_plugin('{PREFIX}{name}')"
    )


def resolved(path: Path | str) -> Path | str:
    """Return the file that `examples:NAME` names; any other path stays as it is."""
    if isinstance(path, str) and path.startswith(PREFIX):
        return path_of(path.removeprefix(PREFIX))
    return path


def _registered(file: Path) -> list[str]:
    """Return the names of the functions under `@register`, read without executing the file."""
    functions = (node for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.FunctionDef))
    return [of.name for of in functions if any("register." in ast.unparse(one) for one in of.decorator_list)]
