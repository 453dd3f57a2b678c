"""Execution of a graph of steps: a single step, the schedule of all steps, and the engines that place
them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penultimate.errors import RequestError, unknown

if TYPE_CHECKING:
    from penultimate.engine.observer import Engine

ENGINES = {"local": "penultimate.engine.local:LocalEngine", "ray": "penultimate.engine.ray:RayEngine"}
"""The place of each engine by name (`--on`); it is imported on first use."""


def load_engine(name: str, processes: int | None = None) -> Engine:
    """Return an engine by its name, with `processes` side by side (None: as many as the cores allow).

    "ray:HOST:PORT" joins a cluster, "ray:auto" the cluster of this machine. "module:Class" names your own
    engine, which is made by a call with `processes`.

    >>> load_engine("rai")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown engine 'rai'. Did you mean 'ray'? Known: local, ray.
    """
    known, _, address = name.partition(":") if name.startswith("ray:") else (name, "", "")
    module, colon, attribute = ENGINES.get(known, name).partition(":")
    if not colon:
        raise unknown("engine", name, ENGINES)
    try:
        make = getattr(importlib.import_module(module), attribute)
        engine: Engine = make(processes, address) if address else make(processes)
    except Exception as error:  # whatever the caller's own raises
        if known in ENGINES or isinstance(error, RequestError):
            raise
        raise RequestError(f"there is no engine at '{name}': {error or type(error).__name__}") from None
    if not callable(getattr(engine, "run", None)):
        raise RequestError(f"'{name}' is no engine: it has no run(graph, store, observer)")
    return engine
