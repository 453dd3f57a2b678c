"""Where a monitor's numbers go: a list, a function, a callback of Lightning, or a training loop's logger.

A logger is recognised by the method that it has, so none of their libraries is imported.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from penultimate.checks import one_of
from penultimate.errors import RequestError

Row: TypeAlias = dict[str, float]
Recorder: TypeAlias = Callable[[Row], None]
"""A function that records one measurement: its step, and a number for each name."""
EXPECTED = (
    "a function of a row, a list, a logging.Logger, or an object with add_scalar (TensorBoard), log_metrics"
    " (Lightning's loggers, MLflow), log_dict (Lightning) or log (wandb)"
)
PACKAGES = ("lightning.pytorch", "pytorch_lightning")
"""The names of Lightning; one that is imported already comes before one that is only installed."""


def recorders_of(log: Any, prefix: str) -> list[Recorder]:
    """Return the functions that record a row; a tuple has several. Raises RequestError for other objects.

    >>> rows = []
    >>> for record in recorders_of((rows, print), "features/"):
    ...     record({"step": 1, "knn": 0.5})
    {'step': 1, 'knn': 0.5}
    >>> rows
    [{'step': 1, 'knn': 0.5}]
    """
    if log is None:
        return []
    if isinstance(log, tuple):
        return [recorder for each in log for recorder in recorders_of(each, prefix)]
    return [_recorder(log, prefix)]


def _recorder(log: Any, prefix: str) -> Recorder:
    if isinstance(log, list):
        return lambda row: log.append(dict(row))
    if isinstance(log, logging.Logger):
        return lambda row: log.info("features at step %s: %s", row["step"], _in_words(row))
    if hasattr(log, "add_scalar"):
        return lambda row: _scalars(log, row, prefix)
    if hasattr(log, "log_metrics"):
        return lambda row: log.log_metrics(_prefixed(row, prefix), step=int(row["step"]))
    if hasattr(log, "log_dict"):
        return lambda row: log.log_dict(_prefixed(row, prefix))
    if hasattr(log, "log"):  # wandb drops numbers whose step is before its own, so ours is one of the numbers
        return lambda row: log.log({**_prefixed(row, prefix), f"{prefix}step": row["step"]})
    if callable(log):
        return lambda row: log(dict(row))
    raise RequestError(f"log is {EXPECTED}; a {type(log).__name__} is none of these")


def _prefixed(row: Mapping[str, float], prefix: str) -> Row:
    return {f"{prefix}{name}": value for name, value in row.items() if name != "step"}


def _in_words(row: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in _prefixed(row, "").items())


def _scalars(writer: Any, row: Row, prefix: str) -> None:
    for name, value in _prefixed(row, prefix).items():
        writer.add_scalar(name, value, int(row["step"]))


def callback_of(monitor: Any, per: str) -> Any:
    """Return a callback of Lightning that counts a monitor's step after every "epoch" or "batch".

    Raises RequestError without Lightning.
    """
    one_of(per, "per", ("epoch", "batch"))

    def advance(module: Any) -> None:
        row = monitor.step()
        if row is not None:
            module.log_dict(_prefixed(row, monitor.prefix), rank_zero_only=True)

    class MonitorCallback(_callback_class()):  # type: ignore[misc]
        """Calls a monitor's `step`, logs its numbers by the module, and keeps its state in checkpoints."""

        @property
        def state_key(self) -> str:
            return f"penultimate.Monitor({monitor.prefix!r})"

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            if per == "epoch":
                advance(module)

        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            if per == "batch":
                advance(module)

        def state_dict(self) -> dict[str, Any]:
            state: dict[str, Any] = monitor.state_dict()
            return state

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            monitor.load_state_dict(state)

    return MonitorCallback()


def _callback_class() -> Any:
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise RequestError("a callback for Lightning needs it: pip install lightning")
