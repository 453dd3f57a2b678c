"""What the processes of a study tell its engine: that they are ready, and how each step ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from penultimate.errors import PenultimateError, RequestError


@dataclass(frozen=True)
class Ready:
    """The process takes steps."""


@dataclass(frozen=True)
class Unfit:
    """The process cannot take steps: a plug-in cannot be loaded in it, or PyTorch, or its GPU be used."""

    reason: str

    def refusal(self) -> RequestError:
        """Return the error that ends the study."""
        return RequestError(self.reason)


@dataclass(frozen=True)
class Done:
    """The step has its folder, and this meta; it may have diverged."""

    meta: dict[str, Any]


@dataclass(frozen=True)
class Damaged:
    """The step could not use a parent, which is no longer what was written."""

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
    """The machine on which the step was is gone, which says nothing of the step."""

    machine: str


Ending: TypeAlias = Done | Damaged | Failed | Died | Lost


class EndedError(PenultimateError):
    """A step ended so in processes that it had started."""

    def __init__(self, ending: Died | Failed) -> None:
        super().__init__(str(ending))
        self.ending = ending
