"""The Ray engine: a task a step, on a Ray of its own that ends with the run (no other file imports Ray).

Between the processes travel steps and the path of the store, never arrays; how far a training has come is
read from a file beside its checkpoints. So tasks may one day run on other machines: they need storage that
all of them share, and locks that hold across machines (`Store.step_lock` is a lock of one kernel).

A run that is killed takes most of Ray with it. What is left then is ended by a guard, a small process that
waits for the end of the run: `python -m penultimate.engine.ray FOLDER`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from penultimate.engine.messages import Died, Ending, Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import attempt, load, sources, thread_variables
from penultimate.errors import RequestError
from penultimate.store import Store, atomic_write
from penultimate.study.graph import Graph, Step

OBJECT_STORE = 80 * 2**20
"""Bytes of Ray's shared memory, about the least that Ray accepts: nothing of ours is put there."""
LOOPBACK = "127.0.0.1"
VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # without which Ray takes a public address in place of loopback
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # tasks see the devices that the local engine's workers see
}
LOOK_EVERY = 0.5
"""Seconds between two looks at how far the steps are."""
PROGRESS = "progress.tmp"
"""The file in a step's partial folder in which it says how far it is."""


class RayEngine:
    """Ray tasks on this machine: as many side by side as are asked for, else as the cores allow."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Do every step that is not done; Ctrl-C ends Ray and leaves all of it resumable.

        Raises RequestError where Ray is not installed, or is in use in this process.
        """
        if importlib.util.find_spec("ray") is None:
            raise RequestError("--on ray needs Ray, which is not installed: pip install 'penultimate[ray]'")
        return carry_out(graph, store, observer, self.processes, _work)


def _work(schedule: Schedule, places: int) -> None:
    files, root = sources(), schedule.store.root.resolve()
    tasks: dict[Any, Step] = {}
    heard: dict[str, bytes] = {}
    with _started(places, schedule.threads) as ray:
        remote = ray.remote(max_retries=0)(_do)
        while not schedule.is_over:
            while len(tasks) < places and (step := schedule.next()) is not None:
                needs = {"num_cpus": step.resources.threads, "num_gpus": step.resources.gpus}
                tasks[remote.options(**needs).remote(str(root), step, files)] = step
            for task in ray.wait(list(tasks), timeout=LOOK_EVERY)[0]:
                step = tasks.pop(task)
                schedule.ended(step.id, _ending(ray, task))
            for step in tasks.values():
                with contextlib.suppress(FileNotFoundError):
                    news = (schedule.store.partial(step.id) / PROGRESS).read_bytes()
                    if heard.get(step.id) != news:
                        heard[step.id] = news
                        schedule.progressed(step.id, json.loads(news))


def _do(root: str, step: Step, files: list[tuple[str, bytes]]) -> Ending | Unfit:
    """What a Ray task does."""
    fitness = load(files)
    if isinstance(fitness, Unfit):
        return fitness
    progress = Store(root).partial(step.id) / PROGRESS
    progress.unlink(missing_ok=True)
    return attempt(root, step, lambda news: atomic_write(progress, json.dumps(news, default=float).encode()))


def _ending(ray: Any, task: Any) -> Ending:
    try:
        ending: Ending | Unfit = ray.get(task)
    except ray.exceptions.OutOfMemoryError:
        return Died("was ended by Ray, for the machine had no memory left")
    except ray.exceptions.WorkerCrashedError:
        return Died("was killed or crashed")
    if isinstance(ending, Unfit):
        raise ending.refusal()
    return ending


@contextlib.contextmanager
def _started(places: int, threads: int) -> Iterator[Any]:
    """A Ray of its own, with so many places of so many cores; nothing of it is left afterwards."""
    folder = tempfile.mkdtemp(prefix="penultimate-ray-", dir="/tmp")  # Ray's sockets need short paths
    guard = subprocess.Popen(
        [sys.executable, "-m", __name__, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    variables = {**VARIABLES, **_authentication(), **thread_variables(threads)}
    try:
        with _environment(variables):
            ray: Any = importlib.import_module("ray")
            if ray.is_initialized():
                raise RequestError("Ray is in use in this process already; call ray.shutdown() first")
            try:
                ray.init(
                    address="local",
                    num_cpus=places * threads,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _node_ip_address=LOOPBACK,
                    _temp_dir=folder,
                )
                yield ray
            finally:
                ray.shutdown()
    finally:
        guard.communicate()


@cache
def _authentication() -> dict[str, str]:
    """A secret, one for all runs of this process, for Ray reads it once; none where Ray was there before."""
    return {} if "ray" in sys.modules else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _users(folder: str) -> set[int]:
    """The processes that have a file open in a folder."""
    processes = Path("/proc").glob("[0-9]*")
    return {
        int(process.name)
        for process in processes
        if any(file.is_relative_to(folder) for file in _open_files(process))
    }


def _open_files(process: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # it has ended, or is somebody else's
        for handle in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield handle.readlink()


def guard(folder: str) -> None:
    """Wait for the end of the run, however it ends; then end what its Ray has left, and remove its files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.read()
    for _ in range(20):
        users = _users(folder) - {os.getppid()}  # the run itself, where it goes on
        if not users:
            break
        for process in users:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.argv[1])
