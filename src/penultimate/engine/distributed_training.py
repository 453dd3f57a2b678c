"""A training that several processes of this machine share, each on its own GPU."""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.child import Child
from penultimate.engine.devices import VISIBLE
from penultimate.engine.messages import Died, EndedError, Failed
from penultimate.engine.process import Source, ending_of, limit_threads, plain, prepare, sources, unfit
from penultimate.measures.inputs import Inputs

if TYPE_CHECKING:
    from penultimate.graph import Step
    from penultimate.training import TrainingResult

GRACE = 2.0
"""The seconds that the other processes have to report after one has failed."""
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": {"linux": "lo", "darwin": "lo0"}.get(sys.platform, "")}


def trained_together(
    inputs: Inputs, gpus: Sequence[str], train: Callable[[Inputs], TrainingResult]
) -> TrainingResult:
    """Call `train` for a step in one process on each of these GPUs, and return the first one's result.

    Raises EndedError if one of them fails or dies; the others are then ended, and a retry of the step
    continues from its last checkpoint.
    """
    children: list[Child] = []
    with tempfile.TemporaryDirectory(prefix="penultimate-") as folder:
        try:
            for index, gpu in enumerate(gpus):
                place = index, len(gpus), (Path(folder) / "meeting").as_uri()
                given = train, sources(), inputs.step, inputs.folder, inputs.folders, place
                children.append(Child(_train, *given, variables={**LOOPBACK, VISIBLE: gpu}))
            return _result(inputs, children)
        finally:
            for child in children:
                child.end()


def _result(inputs: Inputs, children: Sequence[Child]) -> TrainingResult:
    """Return the first process's result, after all of them have ended."""
    waiting = {child.connection: index for index, child in enumerate(children)}
    results: dict[int, TrainingResult] = {}
    endings: list[Died | Failed] = []
    until = math.inf
    while waiting and time.monotonic() < until:
        for connection in wait(list(waiting), GRACE if endings else None):
            assert isinstance(connection, Connection)
            index = waiting[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                name = f"number {index + 1} of {len(children)} that share the training"
                message = Died(f"lost {name}, which {children[index].fate()}")
            if isinstance(message, dict):
                inputs.progress(message)
                continue
            del waiting[connection]
            if isinstance(message, Died | Failed):
                endings.append(message)
                until = min(until, time.monotonic() + GRACE)
            else:
                results[index] = message
    if endings:
        raise EndedError(min(endings, key=_is_consequence))
    return results[0]


def _is_consequence(ending: Died | Failed) -> int:
    """Rank the endings of the processes: one that lost the others says so by a RuntimeError, maybe first."""
    return 0 if isinstance(ending, Died) else 2 if ending.reason.startswith("RuntimeError") else 1


def _train(
    connection: Connection,
    train: Callable[[Inputs], TrainingResult],
    files: Sequence[Source],
    step: Step,
    folder: Path,
    folders: Mapping[str, Path],
    place: tuple[int, int, str],
) -> None:
    """Do one process's part of the training, and send its result or how it ended."""
    import torch.distributed as dist

    index, count, meeting = place

    def progress(news: dict[str, Any]) -> None:
        if index == 0:
            connection.send(plain(news))

    with contextlib.suppress(BrokenPipeError):
        limit_threads()
        prepare(step.resources)
        if refusal := unfit(files):
            return connection.send(Failed(refusal.reason))
        try:
            inputs = Inputs(step, folder, folders, progress)
            dist.init_process_group(BACKENDS[inputs.device], meeting, rank=index, world_size=count)
            result = train(inputs)
            dist.destroy_process_group()
        except (Exception, SystemExit) as error:
            return connection.send(ending_of(error, folder))
        connection.send(result)
