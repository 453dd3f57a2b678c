"""The Ray engine, with one task per step, on a private Ray that ends with the run or on a cluster.

Processes exchange steps and the path of the store, but never arrays. The progress of a training is read from
a file beside its checkpoints, so that the nodes of a cluster need a shared folder.

A killed run ends most of its private Ray. A guard, a small process that waits for the end of the run, ends
the rest: `python -m penultimate.engine.ray FOLDER`. On a cluster, Ray itself ends the tasks of a finished
run.
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
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from penultimate.engine.devices import gpus
from penultimate.engine.messages import Died, Ending, Failed, Lost, Unfit
from penultimate.engine.nodes import Node, Nodes
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import Source, load, sources, variables
from penultimate.engine.schedule import ANY, Schedule, carry_out
from penultimate.engine.worker import attempt
from penultimate.errors import RequestError
from penultimate.files import atomic_write
from penultimate.graph import Step
from penultimate.processes import PATH, SAFE, command, environment, with_variables
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.userfile import first_line
from penultimate.variables import CUDA, DEVICE, device

OBJECT_STORE = 80 * 2**20
"""The bytes of Ray's shared memory, about the least that Ray accepts, because this engine does not use it."""
LOOPBACK = "127.0.0.1"
VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # without which Ray takes a public address in place of loopback
}
DEVICES = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""The setting that lets tasks without a requested device see the devices of local workers."""
CURRENT = "/tmp/ray/ray_current_cluster"
"""The file in which `ray start` records the address of this machine's cluster."""
ANSWER_WITHIN = 15
"""The seconds within which a cluster must answer."""
ENDING = 5
"""The seconds that interrupted steps have to end."""
LOOK_EVERY = 0.5
"""The seconds between two checks of the steps' progress."""
PROGRESS = "progress.tmp"
"""The file in a step's partial folder with its progress."""


class RayEngine:
    """An engine of parallel Ray tasks, by default as many as the cores allow.

    address   the address of a running cluster, HOST:PORT, or "auto" for this machine's cluster; "" starts a
              private Ray on this machine for the run
    """

    def __init__(self, processes: int | None = None, address: str = "") -> None:
        self.processes, self.address = processes, address

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Run every unfinished step; Ctrl-C ends running steps and leaves everything resumable.

        Raises RequestError if Ray is not installed, if this process uses it already, if no cluster answers,
        and if none of its nodes is suitable.
        """
        if importlib.util.find_spec("ray") is None:
            raise RequestError("--on ray needs Ray, which is not installed: pip install 'penultimate[ray]'")
        if not self.address:
            return carry_out(graph, store, observer, self.processes, self._alone)
        return carry_out(graph, store, observer, self.processes or ANY, self._joined)

    def _alone(self, schedule: Schedule, places: int) -> None:
        with _started(places, schedule.threads) as ray:
            _work(ray, schedule, places, Nodes(ray, schedule.observer, schedule.store))

    def _joined(self, schedule: Schedule, places: int) -> None:
        address = _local_address() if self.address == "auto" else self.address
        with _joined(address, schedule.threads) as ray:
            nodes = Nodes(ray, schedule.observer, Store(schedule.store.root.resolve()), address)
            _work(ray, schedule, places or schedule.summary.total, nodes)


def _work(ray: Any, schedule: Schedule, places: int, nodes: Nodes) -> None:
    files, root = sources(), schedule.store.root.resolve()
    remote = ray.remote(max_retries=0)(_do)
    tasks: dict[Any, tuple[Step, Node]] = {}
    heard: dict[str, bytes] = {}
    told: dict[str, list[str]] = {}
    first: Step | None = None

    def tell(step_id: str, notices: list[str]) -> None:
        for notice in notices:
            if notice not in told[step_id]:
                told[step_id].append(notice)
                schedule.progressed(step_id, {"notice": notice})

    try:
        while not schedule.is_over:
            nodes.look()
            while len(tasks) < places and (first := first or schedule.next()) is not None:
                step, node = first, nodes.room_for(first.resources)
                if node is not None:
                    needs = {"num_cpus": step.resources.cores, "num_gpus": step.resources.gpus}
                    tasks[nodes.at(remote, node, **needs).remote(str(root), step, files)] = step, node
                    told[step.id] = []
                    node.taken.append(step.resources)
                elif lacking := nodes.lacks(step.resources):
                    schedule.ended(step.id, Failed(lacking))
                else:
                    break
                first = None
            if not tasks:
                time.sleep(LOOK_EVERY / 5)
                continue
            for task in ray.wait(list(tasks), timeout=LOOK_EVERY)[0]:
                step, node = tasks.pop(task)
                node.taken.remove(step.resources)
                ending, notices = _ending(ray, task, node)
                tell(step.id, notices)
                if isinstance(ending, Lost):
                    nodes.lose(node)
                schedule.ended(step.id, ending)
            running = {step.id for step, _ in tasks.values()}
            for path in (root / "partial").glob(f"*/{PROGRESS}"):
                step_id = path.parent.name
                with contextlib.suppress(FileNotFoundError):
                    if step_id in running and heard.get(step_id) != (news := path.read_bytes()):
                        heard[step_id] = news
                        latest = json.loads(news)
                        tell(step_id, latest.pop("notices", []))
                        if latest:
                            schedule.progressed(step_id, latest)
    finally:
        for task in tasks:
            ray.cancel(task)
        if tasks:
            ray.wait(list(tasks), num_returns=len(tasks), timeout=ENDING)


def _do(root: str, step: Step, files: list[Source]) -> tuple[Ending | Unfit, list[str]]:
    """Run a step in a Ray task; return its ending and all notices, since the polling may have missed some."""
    os.environ[DEVICE] = device(CUDA)  # which only a step with a share of a GPU looks at
    fitness = load(files)
    notices: list[str] = []
    if isinstance(fitness, Unfit):
        return fitness, notices
    if step.resources.gpus > 1:
        step = step.placed(gpus())
    store = Store(root)
    (store.partial(step.id) / PROGRESS).unlink(missing_ok=True)

    def tell(news: dict[str, Any]) -> None:
        if "notice" in news:
            notices.append(news["notice"])
        latest = {**{name: value for name, value in news.items() if name != "notice"}, "notices": notices}
        atomic_write(store.partial(step.id) / PROGRESS, json.dumps(latest, default=float).encode())

    return attempt(store, step, tell), notices


def _ending(ray: Any, task: Any, node: Node) -> tuple[Ending, list[str]]:
    errors = ray.exceptions
    try:
        ending: Ending | Unfit
        ending, notices = ray.get(task)
    except errors.OutOfMemoryError:
        return Died("was ended by Ray, for the machine had no memory left"), []
    except errors.WorkerCrashedError:
        return Died("was killed or crashed"), []
    except (errors.NodeDiedError, errors.TaskUnschedulableError, errors.ObjectLostError):
        return Lost(node.name), []
    except errors.RayError as error:
        return Failed(f"Ray: {first_line(error)}", str(error)), []
    if isinstance(ending, Unfit):
        raise ending.refusal()
    return ending, notices


@contextlib.contextmanager
def _joined(address: str, threads: int) -> Iterator[Any]:
    """Join a running cluster without changing it; raises RequestError if it does not answer in time.

    Ray tries for minutes and may end the process, so a separate process tries first.
    """
    if _authentication.cache_info().currsize and _authentication():
        raise RequestError(
            f"the Ray cluster at '{address}' cannot be joined by this process: it has run a Ray of its own,"
            " whose secret it keeps; join the cluster from a new process"
        )
    _probe(address)
    own = {name: value for name, value in os.environ.items() if name.startswith("PENULTIMATE_")}
    stop = signal.getsignal(signal.SIGTERM)
    with with_variables({"RAY_DEDUP_LOGS_SKIP_REGEX": "."}):
        ray = _imported()
    try:
        _begin(
            ray,
            f"the Ray cluster at '{address}' cannot be joined",
            "Is it still running, and is RAY_AUTH_TOKEN its own? A process keeps the first that it reads",
            address=address,
            runtime_env={"env_vars": {**DEVICES, **variables(threads), **own, SAFE: "1"}},
        )
        _heed(stop)
        yield ray
    finally:
        ray.shutdown()


def _local_address() -> str:
    """Return the address of this machine's cluster, as Ray itself finds it."""
    address = os.environ.get("RAY_ADDRESS") or (
        Path(CURRENT).read_text("utf-8").strip() if Path(CURRENT).is_file() else ""
    )
    if not address:
        raise RequestError(
            "no Ray cluster is known on this machine; start one (ray start --head), join one (ray start"
            " --address=HOST:PORT), or name one: --on ray:HOST:PORT"
        )
    return address


def _probe(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()):
        raise RequestError(f"a Ray cluster is named --on ray:HOST:PORT or --on ray:auto, not ray:{address}")
    code = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level=50)"
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN).close()
        tried = subprocess.run(
            [sys.executable, "-P", "-c", code, address],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"what listens there did not within {ANSWER_WITHIN} seconds"
    except (OSError, OverflowError, ValueError) as error:  # a host of other letters may be none
        why = getattr(error, "strerror", None) or str(error)
    else:
        if tried.returncode == 0:
            return
        why = next((line for line in reversed(tried.stderr.splitlines()) if line.strip()), "").strip()
    raise RequestError(
        f"no Ray cluster answers at '{address}': {why}. Is it running, is this machine one of its nodes (ray"
        f" start --address={address}), and is RAY_AUTH_TOKEN, if it has one, the same here?"
    )


def _imported() -> Any:
    """Return the module of Ray; raises RequestError if this process uses Ray already."""
    ray: Any = importlib.import_module("ray")
    if ray.is_initialized():
        raise RequestError("Ray is in use in this process already; call ray.shutdown() first")
    return ray


def _begin(ray: Any, what: str, mend: str, **settings: Any) -> None:
    """Start or join a Ray whose tasks do not import modules from this process's current folder.

    Ray raises many kinds of error; this raises RequestError for all of them.
    """
    job = ray.job_config.JobConfig()
    job._runtime_env_has_working_dir = lambda: True  # else Ray puts that folder first on their path
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, job_config=job, **settings)
    except Exception as error:
        cause = error.__cause__ or error
        why = first_line(cause).rstrip(".") or type(cause).__name__
        raise RequestError(f"{what}: {why}. {mend}") from None


def _heed(stop: Any) -> None:
    """Restore the handler of SIGTERM that Ray has replaced."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


@contextlib.contextmanager
def _started(places: int, threads: int) -> Iterator[Any]:
    """Start a private Ray with the given places and threads, and remove all of it afterwards."""
    folder = tempfile.mkdtemp(prefix="penultimate-ray-", dir="/tmp")  # Ray's sockets need short paths
    inner = Path(folder) / "ray"  # which Ray opens to everybody; its folder stays this user's
    guard = subprocess.Popen(
        command("penultimate.engine.ray", folder),
        env=environment(),
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    safe = {SAFE: "1", PATH: environment()[PATH]}
    around = {**VARIABLES, **DEVICES, **_authentication(), **variables(threads), **safe}
    try:
        with with_variables(around):
            ray = _imported()
            stop = signal.getsignal(signal.SIGTERM)
            try:
                _begin(
                    ray,
                    "Ray cannot be started on this machine",
                    "Worker processes, without --on, need no Ray",
                    address="local",
                    num_cpus=places * threads,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE,
                    _node_ip_address=LOOPBACK,
                    _temp_dir=str(inner),
                )
                _heed(stop)
                yield ray
            finally:
                ray.shutdown()
    finally:
        guard.communicate()


@cache
def _authentication() -> dict[str, str]:
    """Return one secret for all runs of this process, as Ray reads it once; none if Ray ran before."""
    return {} if "ray" in sys.modules else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _users(folder: str) -> set[int]:
    """Return the processes that have a file open in a folder."""
    processes = Path("/proc").glob("[0-9]*")
    return {
        int(process.name)
        for process in processes
        if any(file.is_relative_to(folder) for file in _open_files(process))
    }


def _open_files(process: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # it has ended or belongs to another user
        for handle in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield handle.readlink()


def guard(folder: str) -> None:
    """Wait until the run ends in any way; then end the remaining processes of its Ray and remove its
    files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.read()
    for _ in range(20):
        users = _users(folder) - {os.getppid()}  # except the run itself, if it continues
        if not users:
            break
        for process in users:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.argv[1])
