"""A callback of Lightning around a monitor; Lightning is imported when one is made."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from penultimate.checks import one_of
from penultimate.errors import RequestError
from penultimate.monitoring.logs import Row, prefixed

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
"""The names of Lightning; one that is imported already comes before one that is only installed."""
PER = ("epoch", "batch")


class Stepping(Protocol):
    """What a callback needs of a monitor."""

    prefix: str

    def step(self) -> Row | None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


def callback_of(monitor: Stepping, per: str) -> Any:
    """Return a callback that counts a step after every epoch or batch.

    Raises RequestError without Lightning.
    """
    one_of(per, "per", PER)

    class MonitorCallback(_callback_class()):  # type: ignore[misc]
        """Calls a monitor's `step`, logs its numbers by the module, and keeps its state in checkpoints."""

        @property
        def state_key(self) -> str:
            return f"penultimate.Monitor({monitor.prefix!r})"

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            if per == "epoch":
                _advance(monitor, module)

        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            if per == "batch":
                _advance(monitor, module)

        def state_dict(self) -> dict[str, Any]:
            return monitor.state_dict()

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            monitor.load_state_dict(state)

    return MonitorCallback()


def _advance(monitor: Stepping, module: Any) -> None:
    row = monitor.step()
    if row is not None:
        module.log_dict(prefixed(row, monitor.prefix), rank_zero_only=True)


def _callback_class() -> Any:
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise RequestError("a callback for Lightning needs it: pip install lightning")
