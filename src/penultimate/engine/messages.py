"""The messages of a study's processes to its engine: the ending of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Done:
    """The step has finished its folder with this meta; its training may have diverged."""

    meta: dict[str, Any]


@dataclass(frozen=True)
class Damaged:
    """The step could not use a parent whose files have changed since they were written."""

    parent: str
    reason: str


@dataclass(frozen=True)
class Failed:
    """The step raised an exception; `log` is its traceback."""

    reason: str
    log: str = ""
    disk_full: bool = False


@dataclass(frozen=True)
class Died:
    """The process of the step ended before the step did; `how` continues "the process ..."."""

    how: str


@dataclass(frozen=True)
class Lost:
    """The machine or GPU of the step is gone, for which the step is not to blame."""

    place: str


Ending: TypeAlias = Done | Damaged | Failed | Died | Lost


@dataclass(frozen=True)
class Unfit:
    """The process can do no step, because a plug-in, PyTorch or its GPU does not work in it."""

    reason: str
