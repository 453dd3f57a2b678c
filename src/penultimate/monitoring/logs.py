"""Where a monitor's numbers go: a list, a function, or the loggers that training loops have.

A logger is recognised by the method that it has, so none of their libraries is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from penultimate.errors import RequestError

Row: TypeAlias = dict[str, float]
Recorder: TypeAlias = Callable[[Row], None]
"""A function that records one measurement: its step, and a number for each name."""
EXPECTED = (
    "a function of a row, a list, a logging.Logger, or an object with add_scalar (TensorBoard), log_metrics"
    " (Lightning's loggers, MLflow), log_dict (Lightning) or log (wandb)"
)


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


def in_words(row: Mapping[str, float]) -> str:
    """Return a row as a line of a log.

    >>> in_words({"step": 3, "class_separation": 0.25, "seconds": 0.5})
    'features at step 3: class_separation 0.25, seconds 0.5'
    """
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name != "step")
    return f"features at step {row['step']}: {numbers}"


def prefixed(row: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the numbers of a row under names with a prefix, without the step."""
    return {f"{prefix}{name}": value for name, value in row.items() if name != "step"}


def _recorder(log: Any, prefix: str) -> Recorder:
    if isinstance(log, list):
        return lambda row: log.append(dict(row))
    if isinstance(log, logging.Logger):
        return lambda row: log.info("%s", in_words(row))
    if hasattr(log, "add_scalar"):
        return lambda row: _scalars(log, row, prefix)
    if hasattr(log, "log_metrics"):
        return lambda row: log.log_metrics(prefixed(row, prefix), step=int(row["step"]))
    if hasattr(log, "log_dict"):
        return lambda row: log.log_dict(prefixed(row, prefix))
    if hasattr(log, "log"):  # wandb drops numbers whose step is before its own, so ours is one of the numbers
        return lambda row: log.log({**prefixed(row, prefix), f"{prefix}step": row["step"]})
    if callable(log):
        return lambda row: log(dict(row))
    raise RequestError(f"log is {EXPECTED}; a {type(log).__name__} is none of these")


def _scalars(writer: Any, row: Row, prefix: str) -> None:
    for name, value in prefixed(row, prefix).items():
        writer.add_scalar(name, value, int(row["step"]))
