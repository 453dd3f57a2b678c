"""Chores: steps of a plug-in that cost nothing or come to grief, and an observer that keeps notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penultimate.engine.observer import Observer
from penultimate.graph import Resources, Step
from penultimate.registry import code_digest
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study

PLUGIN = '''
import errno, json, os, signal, sys, time
import numpy as np, torch
from penultimate import register
from penultimate.measures import Number, Yield

COUNTED = ("number", "parents", "threads", "reproducible", "most threads")

@register.measurement(version=1, per="network", needs=(), yields=[Yield(name, "count") for name in COUNTED])
def chore(inputs, *, number=0, deed=""):
    """A number, the number of the parents, and how many threads they had; or a misdeed."""
    begun_before = inputs.folder / "checkpoint"
    if deed == "killed once" and not begun_before.exists():
        begun_before.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if deed in ("forks", "forks once") and not begun_before.exists():
        if os.fork() == 0:
            time.sleep(600)
        begun_before.touch()
        if deed == "forks":
            time.sleep(600)
        os.kill(os.getpid(), signal.SIGKILL)
    if deed == "exits":
        sys.exit("enough")
    if deed == "fails":
        raise ValueError("no such luck")
    if deed == "fills the disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if deed == "fills it by NumPy":
        np.save(inputs.folder / "much.npy", np.zeros(10**6))
    if deed == "tells":
        inputs.progress({"epoch": 1, "loss": float("inf")})
        time.sleep(1.5)
    if deed == "tells nonsense":
        inputs.progress({"epoch": {1, 2}})
    if deed == "stays":
        began = time.time()
        time.sleep(0.4)
        place = [os.environ.get("CUDA_VISIBLE_DEVICES", ""), inputs.device, began, time.time()]
        (inputs.folder / "place.json").write_text(json.dumps(place))
    if deed.startswith("loses its GPU") and not begun_before.exists():
        if deed.endswith("once"):
            begun_before.touch()
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    if deed == "lists modules":
        (inputs.folder / "modules.json").write_text(json.dumps(sorted(sys.modules)))
    (inputs.folder / "bulk.bin").write_bytes(bytes(100_000))
    yield Number("number", number, "count")
    yield Number("parents", len(inputs.folders), "count")
    yield Number("threads", torch.get_num_threads(), "count")
    steady = torch.are_deterministic_algorithms_enabled() and "CUBLAS_WORKSPACE_CONFIG" in os.environ
    yield Number("reproducible", int(steady), "count")
    yield Number("most threads", int(os.environ["OMP_NUM_THREADS"]), "count")
'''


class Notes(Observer):
    """An observer that keeps what it is told, by the labels of the steps."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.news: list[tuple[str, dict[str, Any]]] = []
        self.done: list[str] = []
        self.failures: dict[str, tuple[str, str]] = {}
        self.notices: list[str] = []

    def started(self, step: Step) -> None:
        self.begun.append(step.label)

    def progressed(self, step: Step, news: dict[str, Any]) -> None:
        self.news.append((step.label, news))

    def finished(self, step: Step, meta: dict[str, Any]) -> None:
        self.done.append(step.label)

    def failed(self, step: Step, reason: str, log: str) -> None:
        self.failures[step.label] = reason, log

    def noticed(self, message: str) -> None:
        self.notices.append(message)


def chore(label: str, *parents: Step, threads: int = 1, gpus: float = 0.0, **settings: Any) -> Step:
    """A step that does what its settings say, by the code of a plug-in."""
    plugins = {"measurement:chore": code_digest(PLUGIN.encode())}
    config = {"number": 0, "deed": "", **settings, "plugins": plugins}
    above = tuple(parent.id for parent in parents)
    return Step("chore", 1, config, settings, above, label=label, resources=Resources(threads, gpus))


def graph_of(*steps: Step) -> Graph:
    """A graph of steps, which the smoke study lends its name."""
    return Graph(load_study("smoke"), {step.id: step for step in steps})


def rows_in(root: Path) -> Mapping[str, bytes]:
    """The rows of every finished step, by step."""
    return {path.parent.name: path.read_bytes() for path in (root / "steps").glob("*/rows.jsonl")}
