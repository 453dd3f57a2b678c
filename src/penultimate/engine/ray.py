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

LOOK_EVERY = 0.5
"""The seconds between two looks at the progress of the steps."""
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
    return {"Python": platform.python_version(), **packages, "penultimate": digest.hexdigest()[:12]}


def _run(ray: Any, schedule: Schedule, places: int, common: tuple[list[Source], dict[str, str], str]) -> None:
    fresh, reused = ray.remote(max_calls=1, max_retries=0)(_do), ray.remote(max_retries=0)(_do)
    tasks: dict[Any, Step] = {}
    heard: dict[str, bytes] = {}
    root, waits = schedule.store.root.resolve(), set[Resources]()
    while not schedule.is_over:
        total = ray.cluster_resources()
        # Ray runs tasks in the order in which they come, so it is given no more than it has room for.
        while len(tasks) < min(places, total.get("CPU", 0)):
            if (step := schedule.next(_free_gpus(tasks, total.get("GPU", 0)))) is None:
                break
            needs = {"num_cpus": step.resources.cores, "num_gpus": step.resources.gpus}
            remote = fresh if runs_user_code(step, schedule.graph) else reused
            tasks[remote.options(**needs).remote(str(root), step, *common)] = step
        if not tasks:
            time.sleep(LOOK_EVERY)
            continue
        for task in ray.wait(list(tasks), timeout=LOOK_EVERY)[0]:
            ended = tasks.pop(task)
            ending, notices = _ending(ray, task)
            for notice in notices:
                schedule.progressed(ended.id, {"notice": notice})
            schedule.ended(ended.id, ending)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        for step in tasks.values():
            with contextlib.suppress(FileNotFoundError):
                news = (root / "partial" / step.id / PROGRESS).read_bytes()
                if heard.get(step.id) != news:
                    heard[step.id] = news
                    schedule.progressed(step.id, json.loads(news))
            if step.resources not in waits and not any(_has_room(node, step.resources) for node in nodes):
                waits.add(step.resources)
                words = f"{step.resources.cores} cores and {step.resources.gpus:g} GPUs"
                schedule.observer.noticed(f"no node of the cluster has {words}; such steps wait for one")


def _free_gpus(tasks: dict[Any, Step], total: float) -> float:
    """Return the GPUs that no task has whole; without any, what needs one waits for a node that has."""
    used = sum(step.resources.gpus for step in tasks.values())
    return math.ceil(total - used - 1e-6) if total else math.inf


def _has_room(node: dict[str, float], needs: Resources) -> bool:
    return node.get("CPU", 0) >= needs.cores and node.get("GPU", 0) >= needs.gpus


def _do(
    root: str, step: Step, files: list[Source], expected: dict[str, str], mark: str
) -> tuple[Ending | Unfit, list[str]]:
    """Do a step in a Ray task; return its ending and its notices."""
    if step.resources.gpus:
        os.environ[DEVICE] = device(CUDA)
    node, notices, here = platform.node(), list[str](), versions()
    others = {name: there for name, there in expected.items() if here[name] != there}
    differing = [f"{name} is {here[name]} and not {there}" for name, there in others.items()]
    if not Path(mark).exists():
        differing.append(f"'{root}' is not the folder of the run, which all nodes need in the same place")
    if differing:
        return Unfit(f"node {node} cannot do the steps of this run: there, {'; '.join(differing)}"), notices
    if refusal := unfit(files):
        return Unfit(f"node {node}: {refusal.reason}"), notices
    progress = Path(root) / "partial" / step.id / PROGRESS
    progress.unlink(missing_ok=True)

    def report(news: dict[str, Any]) -> None:
        if "notice" in news:
            notices.append(news["notice"])
        else:
            atomic_write(progress, json.dumps(news, default=float).encode(), durable=False)

    placed = step.placed(gpus()) if step.resources.gpus > 1 else step
    return attempt(Store(root), placed, report), notices


def _ending(ray: Any, task: Any) -> tuple[Ending, list[str]]:
    errors = ray.exceptions
    nodes = (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError)
    try:
        ending, notices = ray.get(task)
    except errors.OutOfMemoryError:
        return Died("was ended by Ray, for the machine had no memory left"), []
    except errors.WorkerCrashedError:
        return Died("was killed or crashed"), []
    except (*nodes, errors.TaskUnschedulableError):
        return Lost("a node of the cluster"), []
    except errors.RayError as error:
        return Failed(f"Ray: {first_line(error)}", str(error)), []
    if isinstance(ending, Unfit):
        raise RequestError(ending.reason)
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
