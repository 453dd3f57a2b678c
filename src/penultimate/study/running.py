"""Plan a study, and run it."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError
from penultimate.store import BusyError, Store, atomic_write, lock
from penultimate.study.choosing import load_study
from penultimate.study.graph import Graph, unfold
from penultimate.study.local import Observer, Summary, run_graph
from penultimate.study.spec import Study

STUDY_FILE = "study.json"


@dataclass(frozen=True)
class StepCost:
    """How many steps of one kind a study has, how many are done, and what the rest is expected to cost."""

    name: str
    total: int
    done: int
    seconds_each: float | None

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds_each is None else self.seconds_each * (self.total - self.done)


@dataclass(frozen=True)
class Plan:
    """A study's graph, beside what the store already holds of it."""

    graph: Graph
    done: frozenset[str]
    costs: tuple[StepCost, ...]

    @property
    def seconds_left(self) -> float | None:
        """The expected seconds of all remaining steps, one after another; None where nothing is known."""
        parts = [cost.seconds_left for cost in self.costs if cost.total > cost.done]
        return None if any(part is None for part in parts) else sum(part or 0.0 for part in parts)


class Silent:
    """An observer that says nothing."""

    def opened(self, graph: Graph, cached: int, processes: int) -> None: ...
    def started(self, step: Any) -> None: ...
    def progressed(self, step: Any, news: dict[str, Any]) -> None: ...
    def finished(self, step: Any, meta: dict[str, Any]) -> None: ...
    def failed(self, step: Any, reason: str, log: str) -> None: ...
    def noticed(self, message: str) -> None: ...
    def closed(self) -> None: ...


def _as_study(study: Study | str) -> Study:
    return study if isinstance(study, Study) else load_study(study)


def plan(study: Study | str, out: Path | str = "runs") -> Plan:
    """The steps of a study, which of them are done in `out`, and what the rest is expected to cost.

    >>> plan("smoke", out="no-such-folder").graph.study.name
    'smoke'
    """
    graph = unfold(_as_study(study))
    store = Store(out)
    done = frozenset(step_id for step_id in graph.steps if store.is_whole(step_id))
    costs = []
    for name in dict.fromkeys(step.name for step in graph.steps.values()):
        ids = [step.id for step in graph.steps.values() if step.name == name]
        metas = [store.meta(step_id) for step_id in ids if step_id in done]
        seconds = [meta.content["seconds"] for meta in metas if meta is not None]
        each = statistics.mean(seconds) if seconds else graph.study.expected_seconds.get(name)
        costs.append(StepCost(name, len(ids), sum(step_id in done for step_id in ids), each))
    return Plan(graph, done, tuple(costs))


def run(
    study: Study | str,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
) -> Summary:
    """Run a study: do each step that `out` does not hold yet; called again, it does what is left.

    Raises RequestError when the study or the folder cannot be used, or when another process runs the study.
    """
    graph = unfold(_as_study(study))
    store = Store(out)
    store.prepare()
    folder = store.root / "studies" / graph.study.name
    folder.mkdir(parents=True, exist_ok=True)
    with exclusively(folder, graph.study.name, out):
        _note(folder, graph, command)
        return run_graph(store, graph, observer or Silent(), processes)


@contextlib.contextmanager
def exclusively(folder: Path, name: str, out: Path | str) -> Iterator[None]:
    """Hold a study's folder; raises RequestError with the holder when another process does."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock(folder / ".lock"))
        except BusyError as error:
            holder = json.loads(str(error) or "{}")
            raise RequestError(
                f"study '{name}' is being run in '{out}' already, by process {holder.get('pid', '?')}"
                f" on {holder.get('host', '?')}; wait for it, or give --out another folder"
            ) from None
        yield


def _note(folder: Path, graph: Graph, command: str) -> None:
    """Record which steps make up the study, so that results and reports can be read while it runs."""
    content = {
        **graph.study.describe(),
        "command": command or f"penultimate run {graph.study.name}",
        "steps": list(graph.steps),
    }
    atomic_write(folder / STUDY_FILE, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
