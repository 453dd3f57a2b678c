"""The Ray engine: one task per step on a running cluster, where Ray places them.

Steps and the path of the store travel, but never arrays, so all nodes need a shared folder. A step that is
begun again on another node continues from its checkpoints there. Ray itself ends the tasks of a run that has
ended, however that happened.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import logging
import math
import os
import platform
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from penultimate.engine.devices import gpus
from penultimate.engine.messages import Died, Ending, Failed, Lost, Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import Source, sources, unfit, variables
from penultimate.engine.schedule import ANY, Schedule, carry_out
from penultimate.engine.worker import attempt, runs_user_code
from penultimate.errors import RequestError
from penultimate.files import atomic_write
from penultimate.graph import Resources, Step
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.userfile import first_line
from penultimate.variables import CUDA, DEVICE, device

SOURCE = "the source of penultimate"
LOOK_EVERY = 0.5
"""The seconds between two looks at the progress of the steps."""
PATIENCE = 120.0
"""The seconds that a step waits for a node that is large enough."""
PROGRESS = "progress.tmp"
"""The file in a step's partial folder with its progress."""


class RayEngine:
    """An engine of tasks on a Ray cluster: HOST:PORT, or "auto" for the one of this machine.

    Raises RequestError without an address.
    """

    def __init__(self, processes: int | None = None, address: str = "") -> None:
        self.processes, self.address = processes, address
        if not address:
            raise RequestError(
                "--on ray needs the address of a running cluster: --on ray:HOST:PORT, or ray:auto for the one"
                " of this machine. Without a cluster leave --on away; processes of this machine do the same"
            )

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Run every unfinished step; Ctrl-C ends running steps and leaves everything resumable.

        Raises RequestError if Ray is not installed, if no cluster answers, and if a node differs.
        """
        return carry_out(graph, store, observer, self.processes or ANY, self._work)

    def _work(self, schedule: Schedule, places: int) -> None:
        mark = schedule.store.root.resolve() / "partial" / f".ray-{secrets.token_hex(8)}"
        try:
            with _joined(self.address, schedule.threads) as ray:
                mark.touch()
                _run(ray, schedule, places or schedule.summary.total, (sources(), versions(), str(mark)))
        finally:
            mark.unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """Return what has to be the same on all nodes, of this one."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".json")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    packages = {name: metadata.version(name) for name in ("torch", "numpy")}
    return {"Python": platform.python_version(), **packages, SOURCE: digest.hexdigest()[:12]}


def _run(ray: Any, schedule: Schedule, places: int, common: tuple[list[Source], dict[str, str], str]) -> None:
    once, again = ray.remote(max_calls=1, max_retries=0)(_do), ray.remote(max_retries=0)(_do)
    tasks: dict[Any, Step] = {}
    heard: dict[str, bytes] = {}
    root = schedule.store.root.resolve()
    step: Step | None = None
    patient_until = math.inf
    while not schedule.is_over:
        total = ray.cluster_resources()
        while len(tasks) < places and _cores(tasks) < total.get("CPU", 0):
            step = step or schedule.next(_free_gpus(tasks, total.get("GPU", 0)))
            if step is None:
                break
            if not _is_large_enough(ray, step.resources):
                patient_until = min(patient_until, time.monotonic() + PATIENCE)
                if time.monotonic() < patient_until:
                    break
                schedule.ended(step.id, Failed(f"no node of the cluster has {_words(step.resources)}"))
            else:
                remote = once if runs_user_code(step, schedule.graph) else again
                needs = {"num_cpus": step.resources.cores, "num_gpus": step.resources.gpus}
                tasks[remote.options(**needs).remote(str(root), step, *common)] = step
            step = None
        if not tasks:
            time.sleep(LOOK_EVERY)
            continue
        for task in ray.wait(list(tasks), timeout=LOOK_EVERY)[0]:
            ended = tasks.pop(task)
            ending, notices = _ending(ray, task)
            for notice in notices:
                schedule.progressed(ended.id, {"notice": notice})
            schedule.ended(ended.id, ending)
        for running in tasks.values():
            with contextlib.suppress(FileNotFoundError):
                news = (root / "partial" / running.id / PROGRESS).read_bytes()
                if heard.get(running.id) != news:
                    heard[running.id] = news
                    schedule.progressed(running.id, json.loads(news))


def _cores(tasks: dict[Any, Step]) -> int:
    return sum(step.resources.cores for step in tasks.values())


def _free_gpus(tasks: dict[Any, Step], total: float) -> float:
    """Return the GPUs that no task has whole; without any, what needs one is told so."""
    used = sum(step.resources.gpus for step in tasks.values())
    return math.ceil(total - used - 1e-6) if total else math.inf


def _is_large_enough(ray: Any, needs: Resources) -> bool:
    alive = (node["Resources"] for node in ray.nodes() if node["Alive"])
    return any(has.get("CPU", 0) >= needs.cores and has.get("GPU", 0) >= needs.gpus for has in alive)


def _words(needs: Resources) -> str:
    """
    >>> _words(Resources(threads=8, gpus=0.5))
    '8 cores and 0.5 GPUs'
    """
    return f"{needs.cores} core{'s' * (needs.cores != 1)}" + f" and {needs.gpus:g} GPUs" * (needs.gpus > 0)


def _do(
    root: str, step: Step, files: list[Source], expected: dict[str, str], mark: str
) -> tuple[Ending | Unfit, list[str]]:
    """Do a step in a Ray task; return its ending and its notices."""
    if step.resources.gpus:
        os.environ[DEVICE] = device(CUDA)
    node, notices = platform.node(), list[str]()
    pairs = zip(versions().items(), expected.values(), strict=True)
    differing = [f"{name} is {here} and not {there}" for (name, here), there in pairs if here != there]
    if not Path(mark).exists():
        differing.append(f"'{root}' is not the folder of the run, which all nodes need in the same place")
    if differing:
        return Unfit(f"node {node} cannot do the steps of this run: there, {'; '.join(differing)}"), notices
    if refusal := unfit(files):
        return Unfit(f"node {node}: {refusal.reason}"), notices
    store, progress = Store(root), Path(root) / "partial" / step.id / PROGRESS
    progress.unlink(missing_ok=True)

    def tell(news: dict[str, Any]) -> None:
        if "notice" in news:
            notices.append(news["notice"])
        else:
            atomic_write(progress, json.dumps(news, default=float).encode())

    return attempt(store, step.placed(gpus()) if step.resources.gpus > 1 else step, tell), notices


def _ending(ray: Any, task: Any) -> tuple[Ending, list[str]]:
    errors = ray.exceptions
    try:
        ending, notices = ray.get(task)
    except errors.OutOfMemoryError:
        return Died("was ended by Ray, for the machine had no memory left"), []
    except errors.WorkerCrashedError:
        return Died("was killed or crashed"), []
    except (
        errors.NodeDiedError,
        errors.LocalRayletDiedError,
        errors.TaskUnschedulableError,
        errors.ObjectLostError,
    ):
        return Lost("a node of the cluster"), []
    except errors.RayError as error:
        return Failed(f"Ray: {first_line(error)}", str(error)), []
    if isinstance(ending, Unfit):
        raise ending.refusal()
    return ending, notices


@contextlib.contextmanager
def _joined(address: str, threads: int) -> Iterator[Any]:
    """Join a running cluster; raises RequestError if that is not possible."""
    own = {name: value for name, value in os.environ.items() if name.startswith("PENULTIMATE_")}
    stop = signal.getsignal(signal.SIGTERM)
    try:
        if address != "auto":  # Ray itself would try for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=15).close()
        ray: Any = importlib.import_module("ray")
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": {**variables(threads), **own}},
        )
    except ModuleNotFoundError:
        raise RequestError(
            "--on ray needs Ray, which is not installed: pip install 'penultimate[ray]'"
        ) from None
    except Exception as error:  # Ray raises many kinds
        raise RequestError(
            f"the Ray cluster at '{address}' cannot be joined: {first_line(error).rstrip('.')}. Is it"
            " running, is this machine one of its nodes (ray start --address=HOST:PORT), and is"
            " RAY_AUTH_TOKEN, if it has one, the same here?"
        ) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)  # which Ray has replaced
    try:
        yield ray
    finally:
        ray.shutdown()
