"""Fresh processes for a user's code, forked from a server that has imported PyTorch.

Whatever the code does to its process (a default dtype, a replaced function, a leak) ends with the process and
meets nothing else. A start takes tens of milliseconds instead of the seconds that importing PyTorch takes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

from penultimate.processes import with_variables

PRELOADED = ("torch", "penultimate.child")
"""The modules that the server imports before it forks."""
GRACE = 5.0
"""Seconds that a process has to end after it closed its connection."""


class Child:
    """A process that calls `function(connection, *arguments)` and ends; both ends of the connection can send.

    `variables` are added to the environment of this process, which the child is given whole. The child ends
    with this process, however that happens.
    """

    def __init__(
        self, function: Callable[..., None], *arguments: Any, variables: Mapping[str, str] | None = None
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*PRELOADED])
        self.connection, theirs = context.Pipe()
        environment = {**os.environ, **(variables or {})}
        self.process = context.Process(
            target=_call, args=(function, theirs, environment, str(Path.cwd()), arguments)
        )
        with _without_main(), _holding_interrupts(), theirs:
            self.process.start()

    def fate(self) -> str:
        """Return how the process ended, to continue "the process ...", after its connection has closed."""
        self.process.join(GRACE)
        code = self.process.exitcode
        if code is None:
            return "no longer answered"
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    def end(self) -> None:
        """End the process and all that it started."""
        self.connection.close()
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()


def _call(
    function: Callable[..., None],
    connection: Connection,
    environment: dict[str, str],
    folder: str,
    arguments: tuple[Any, ...],
) -> None:
    os.setsid()  # Ctrl-C is the parent's, and what the code starts can be ended together with it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.register_at_fork(after_in_child=connection.close)  # else a fork of the code would hide this one's end
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function(connection, *arguments)
    connection.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the code left running must not keep the process alive


def _end_with_parent() -> None:
    """End this process's group once the parent's end of the pipe closes: a killed parent sends nothing."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.killpg(0, signal.SIGKILL)


@contextlib.contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back: a server that starts here inherits that; else it may print a traceback."""
    resource_tracker.ensure_running()  # which lets Ctrl-C through when it has started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the caller's `__main__`, which every child would import again, and the current folder.

    The server would otherwise import a `types.py` that lies among somebody's data in place of Python's own.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with with_variables({"PYTHONSAFEPATH": "1"}):
            yield
    finally:
        sys.modules["__main__"] = main
