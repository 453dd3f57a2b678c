"""A training that several processes of this machine share, each on a GPU of its own."""

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
"""The file by which the processes find each other."""
GRACE = 2.0
"""Seconds in which the others say what they know, once one has failed."""
CAUSE, REFUSED, CONSEQUENCE = range(3)
"""What may be said of a failure, from the most telling: the first to notice that one is gone is another."""
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": {"linux": "lo", "darwin": "lo0"}.get(sys.platform, "")}


class _Member:
    """One of the processes, and the socket to it."""

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
        """Return what became of the process, which has closed its socket."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(GRACE)
            return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return "no longer answered"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


def trained_together(inputs: Inputs, gpus: Sequence[str]) -> TrainingResult:
    """Have a process on each of these GPUs take its part in the training of a step.

    Raises EndedError if one of them fails or dies; the others are ended, and the training goes on from its
    last checkpoint when the step is begun again.
    """
    members: list[_Member] = []
    with tempfile.TemporaryDirectory(prefix="penultimate-") as folder:
        try:
            members += [_Member(gpu) for gpu in gpus]
            for index, member in enumerate(members):
                place = index, len(gpus), str(Path(folder) / MEETING)
                with contextlib.suppress(OSError):  # of one that is dead, which shows below
                    member.connection.send((sources(), inputs.step, inputs.folder, inputs.folders, place))
            return _result(inputs, members)
        finally:
            for member in members:
                member.end()


def _result(inputs: Inputs, members: Sequence[_Member]) -> TrainingResult:
    """Return what the first of them comes to, once all have come to their end."""
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
