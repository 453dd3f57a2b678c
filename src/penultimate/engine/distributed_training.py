"""A training that processes of this machine share, each on its own GPU; torch's launcher starts them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.engine.devices import VISIBLE
from penultimate.engine.process import Source, limit_threads, plain, prepare, sources, unfit
from penultimate.errors import RequestError
from penultimate.measures.inputs import Inputs

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

    from penultimate.graph import Step
    from penultimate.training import TrainingResult

LOOK_EVERY = 0.2
"""The seconds between two looks at what the processes have sent."""
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": {"linux": "lo", "darwin": "lo0"}.get(sys.platform, "")}


def trained_together(
    inputs: Inputs, gpus: Sequence[str], train: Callable[[Inputs], TrainingResult]
) -> TrainingResult:
    """Call `train` for a step in one process on each of these GPUs, and return the first one's result.

    If one of them fails or dies, the others are ended and the launcher's exception is raised; a retry of the
    step continues from its last checkpoint.
    """
    import torch.multiprocessing as mp
    from torch.multiprocessing.spawn import start_processes

    messages: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="penultimate-") as folder:
        queue = mp.get_context("spawn").SimpleQueue()
        step = (inputs.step, inputs.folder, inputs.folders)
        given = train, sources(), step, gpus, (Path(folder) / "meeting").as_uri(), queue
        processes = start_processes(_train, given, nprocs=len(gpus), join=False)  # type: ignore[no-untyped-call]
        is_over = False
        while not is_over:
            is_over = processes.join(LOOK_EVERY)
            while not queue.empty():
                messages.append(queue.get())
                if isinstance(messages[-1], dict):
                    inputs.progress(messages.pop())
    (result,) = messages
    trained: TrainingResult = result
    return trained


def _train(
    index: int,
    train: Callable[[Inputs], TrainingResult],
    files: Sequence[Source],
    step: tuple[Step, Path, Mapping[str, Path]],
    gpus: Sequence[str],
    meeting: str,
    queue: SimpleQueue[Any],
) -> None:
    """Do one process's part of the training; the first one sends its progress and its result."""
    os.environ.update({**LOOPBACK, VISIBLE: gpus[index]})
    import torch.distributed as dist

    def progress(news: dict[str, Any]) -> None:
        if index == 0:
            queue.put(plain(news))

    limit_threads()
    prepare(step[0].resources)
    if refusal := unfit(files):
        raise RequestError(refusal.reason)
    inputs = Inputs(*step, progress)
    dist.init_process_group(BACKENDS[inputs.device], meeting, rank=index, world_size=len(gpus))
    result = train(inputs)
    dist.destroy_process_group()
    if index == 0:
        queue.put(result)
