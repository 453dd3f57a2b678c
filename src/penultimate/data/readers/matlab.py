"""MATLAB files, read in a process of their own: some damaged ones end the process in which scipy reads them.

It is this module, run as `python -m penultimate.data.readers.matlab VARIABLE`: a file in, JSON out.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from penultimate.errors import DamagedFileError
from penultimate.processes import command, environment

MOST_SECONDS = 20
"""Of processor time for a file: a damaged one can claim more elements than any memory holds."""
T = TypeVar("T")


def elements(content: bytes, where: str, variable: str, element: Callable[[Any], T]) -> list[T]:
    """Return what `element` makes of each element of a variable: of a number, a text, a list or {field:
    value}.

    Raises DamagedFileError, which names the file by `where`, for what is no whole one with such elements.
    """
    try:
        return [element(value) for value in json.loads(_as_json(content, variable))]
    except KeyError as error:
        why = f"there is no {error}"
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error)
    raise DamagedFileError(f"{where} is not a whole MATLAB file with '{variable}' as published: {why}")


@lru_cache(maxsize=8)
def _as_json(content: bytes, variable: str) -> bytes:
    """Return the elements, read once for all splits; raises ValueError."""
    reader = command("penultimate.data.readers.matlab", variable)
    answer = subprocess.run(reader, input=content, env=environment(), capture_output=True, check=False)
    if answer.returncode < 0:
        raise ValueError(f"reading it ends in '{signal.strsignal(-answer.returncode)}'")
    if answer.returncode:
        raise ValueError(answer.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return answer.stdout


def main() -> None:
    import resource

    from scipy.io import loadmat

    variable = sys.argv[1]
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    try:
        file = io.BytesIO(sys.stdin.buffer.read())
        found = loadmat(file, squeeze_me=True, variable_names=[variable])
        if variable not in found:
            sys.exit(f"it holds no '{variable}'")
        print(json.dumps(np.atleast_1d(found[variable]), default=_plain))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _plain(value: object) -> object:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"it holds a {type(value).__name__}")
    names = value.dtype.names
    if names is None:
        return value.tolist()
    return [dict(zip(names, row, strict=True)) for row in value.ravel().tolist()]


if __name__ == "__main__":
    main()
