"""Checkpoints that survive a kill at any moment: two files, written in turn, each with its sha256."""

from __future__ import annotations

import io
import os
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from penultimate.errors import DamagedFileError
from penultimate.files import atomic_write, with_digest, without_digest


class Checkpoints:
    """The last two states of a run in a folder, `checkpoint-0` and `checkpoint-1`.

    A checkpoint that cannot be used is moved into a folder `checkpoint-damaged-*` beside them, and `damaged`
    holds the reason.

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
        self._loaded = Path()
        self._writer = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None

    def _paths(self) -> list[Path]:
        return [self.folder / f"checkpoint-{turn}" for turn in (0, 1)]

    def save(self, state: dict[str, Any], wait: bool = True) -> None:
        """Write a state, which has a "step", over the older checkpoint.

        The state is copied first, so it may change while it is written in the background (without `wait`).
        Raise the error that kept the previous state from being written, if any.
        """
        self.close()
        self._written = self._writer.submit(self._write, _copied(state))
        if wait:
            self.close()

    def close(self) -> None:
        """Wait until the saved state is written; raise the error that keeps it from being written."""
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def _write(self, state: dict[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        target = min(self._paths(), key=lambda path: path.stat().st_mtime_ns if path.exists() else -1)
        atomic_write(target, with_digest(buffer.getvalue()))

    def load(self) -> dict[str, Any] | None:
        """Return the newest state that can be read, or None; set unreadable checkpoints aside."""
        states = {}
        for path in self._paths():
            if os.path.lexists(path):
                try:
                    states[path] = _read(path)
                except DamagedFileError as error:
                    self._set_aside(path, str(error))
        self._loaded = max(states, key=lambda path: states[path]["step"], default=Path())
        return states.get(self._loaded)

    def refuse(self, reason: str) -> None:
        """Set aside the checkpoint that was loaded, for the given reason."""
        self._set_aside(self._loaded, f"{self._loaded.name} {reason}")

    def _set_aside(self, path: Path, reason: str) -> None:
        folder = self.folder / f"checkpoint-damaged-{secrets.token_hex(4)}"
        folder.mkdir()
        path.replace(folder / path.name)
        self.damaged.append(reason)


def _copied(state: Any) -> Any:
    """Return a copy of a state in host memory, which later steps do not change."""
    if isinstance(state, Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {name: _copied(value) for name, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, list) else state


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DamagedFileError(f"{path.name} is no file")
    try:
        content = without_digest(path)
    except OSError as error:
        raise DamagedFileError(f"{path.name} cannot be read ({error.strerror})") from None
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception:  # torch.load raises some ten undocumented kinds for bytes of other origin
        raise DamagedFileError(f"{path.name} is nothing that a training has saved") from None
    if not isinstance(state, dict) or not isinstance(state.get("step"), int):
        raise DamagedFileError(f"{path.name} is not the state of a training")
    return state
