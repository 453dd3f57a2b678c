"""Checkpoints that survive a kill at any moment: two files written in turn, each complete with its sha256."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from penultimate.errors import DamagedFileError
from penultimate.store import atomic_write, with_digest, without_digest


class Checkpoints:
    """The last two states of a run in a folder, `checkpoint-0` and `checkpoint-1`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = Checkpoints(Path(folder))
    ...     checkpoints.save({"step": 7})
    ...     Checkpoints(Path(folder)).load()
    {'step': 7}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []

    def _paths(self) -> list[Path]:
        return [self.folder / f"checkpoint-{turn}" for turn in (0, 1)]

    def save(self, state: dict[str, Any]) -> None:
        """Write a state, which has a "step", over the older of the two."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        target = min(self._paths(), key=lambda path: path.stat().st_mtime_ns if path.exists() else -1)
        atomic_write(target, with_digest(buffer.getvalue()))

    def load(self) -> dict[str, Any] | None:
        """The newest intact state, or None; damaged files are named in `damaged`."""
        states = []
        for path in self._paths():
            if path.exists():
                try:
                    states.append(_read(path))
                except DamagedFileError as error:
                    self.damaged.append(str(error))
        return max(states, key=lambda state: state["step"], default=None)


def _read(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(io.BytesIO(without_digest(path)), weights_only=True)
    return state
