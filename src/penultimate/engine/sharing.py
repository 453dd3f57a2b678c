"""Share a training among several processes of this machine, each on its own GPU."""

from __future__ import annotations

import contextlib
import math
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.engine.devices import VISIBLE
from penultimate.engine.messages import Died, EndedError, Failed
from penultimate.engine.process import sources
from penultimate.measures.inputs import Inputs
from penultimate.processes import command, environment

if TYPE_CHECKING:
    from penultimate.training import TrainingResult

MEETING = "meeting"
"""The file through which the processes find each other."""
GRACE = 2.0
"""The seconds that the other processes have to report after one has failed."""
CAUSE, REFUSED, CONSEQUENCE = range(3)
"""The kinds of failure, most informative first, because a survivor may be the first to report one."""
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": {"linux": "lo", "darwin": "lo0"}.get(sys.platform, "")}


class _Member:
    """A process of the shared training, and the socket to it."""

    def __init__(self, gpu: str) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                command("penultimate.engine.rank", str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                env=environment({**LOOPBACK, VISIBLE: gpu}),
                stdin=subprocess.DEVNULL,
            )
            self.connection = Connection(ours.detach())

    def fate(self) -> str:
        """Return how the process ended, after it has closed its socket."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(GRACE)
            return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return "no longer answered"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


def trained_together(inputs: Inputs, gpus: Sequence[str]) -> TrainingResult:
    """Train a step's network with one process on each of these GPUs.

    Raises EndedError if one of them fails or dies; the others are then ended, and a retry of the step
    continues from its last checkpoint.
    """
    members: list[_Member] = []
    with tempfile.TemporaryDirectory(prefix="penultimate-") as folder:
        try:
            members += [_Member(gpu) for gpu in gpus]
            for index, member in enumerate(members):
                place = index, len(gpus), str(Path(folder) / MEETING)
                with contextlib.suppress(OSError):  # the process is dead, which is handled below
                    member.connection.send((sources(), inputs.step, inputs.folder, inputs.folders, place))
            return _result(inputs, members)
        finally:
            for member in members:
                member.end()


def _result(inputs: Inputs, members: Sequence[_Member]) -> TrainingResult:
    """Return the first process's result, after all of them have ended."""
    waiting = {member.connection: (index, member) for index, member in enumerate(members)}
    results: dict[int, TrainingResult] = {}
    endings: list[tuple[int, Died | Failed]] = []
    until = math.inf
    while waiting and time.monotonic() < until:
        for connection in wait(list(waiting), GRACE if endings else None):
            assert isinstance(connection, Connection)
            index, member = waiting[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                name = f"number {index + 1} of {len(members)} that share the training"
                message = CAUSE, Died(f"lost {name}, which {member.fate()}")
            if isinstance(message, dict):
                inputs.progress(message)
                continue
            del waiting[connection]
            if isinstance(message, tuple):
                endings.append(message)
                until = min(until, time.monotonic() + GRACE)
            else:
                results[index] = message
    if endings:
        raise EndedError(min(endings, key=lambda ending: ending[0])[1])
    return results[0]
