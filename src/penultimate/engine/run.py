"""Plan and run a study."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.data.readers.prepared import expect_sound
from penultimate.engine import load_engine
from penultimate.engine.forecast.estimates import expected_seconds, guessed_seconds
from penultimate.engine.forecast.sizes import bytes_left
from penultimate.engine.forecast.timings import Timings
from penultimate.engine.observer import Engine, Observer, Silent, Summary, spans_machines
from penultimate.engine.watched import changes, read_by
from penultimate.errors import DamagedFileError, RequestError, counted
from penultimate.locks import BusyError, said_of
from penultimate.origin import Seen
from penultimate.records.reading import claim, write_study
from penultimate.store import Meta, Store
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.variables import expect_variables


@dataclass(frozen=True)
class StepCost:
    """The number of steps of one kind, the number of finished ones, and the expected cost of the rest.

    `is_guess`: whether the cost comes from a batch of each given network instead of from finished steps.
    """

    name: str
    total: int
    done: int
    seconds_each: float | None
    is_guess: bool = False

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds_each is None else self.seconds_each * (self.total - self.done)


@dataclass(frozen=True)
class Plan:
    """A study's graph, its finished steps (or those skipped after divergence), and the cost of the rest.

    `bytes_are_whole`: nothing is left out of `bytes_left` because its size is unknown.
    """

    graph: Graph
    done: frozenset[str]
    costs: tuple[StepCost, ...]
    bytes_left: int
    bytes_are_whole: bool

    @property
    def seconds_left(self) -> float:
        """The expected seconds of all remaining steps, one after another, without the `unknown` ones."""
        return sum(cost.seconds_left or 0.0 for cost in self.costs)

    @property
    def trainings(self) -> int:
        """The number of networks that remain to be trained."""
        return sum(cost.total - cost.done for cost in self.costs if cost.name == "train")

    @property
    def training_steps(self) -> int:
        """The number of their training steps, each on one batch."""
        study = self.graph.study
        images = study.card(study.source).sizes["train"]
        return sum(
            Recipe(**step.config["recipe"]).steps_on(images)
            for step_id, step in self.graph.steps.items()
            if step.name == "train" and step_id not in self.done
        )

    @property
    def unknown(self) -> int:
        """The number of remaining steps with unknown cost."""
        return sum(cost.total - cost.done for cost in self.costs if cost.seconds_left is None)


def _as_study(study: Study | str | Path) -> Study:
    """Return the study in a fresh state, because a study that was run before remembers its files."""
    return dataclasses.replace(study) if isinstance(study, Study) else load_study(study)


def plan(study: Study | str | Path, out: Path | str = "runs", timings: Timings | None = None) -> Plan:
    """Return the steps of a study, those that are finished in `out`, and the expected cost of the rest.

    Unknown costs are measured once on this machine, unless `timings` forbids it.

    >>> plan("smoke", out="no-such-folder").graph.study.name
    'smoke'
    """
    timings = timings or Timings()
    store = Store(out)
    graph = unfold(_as_study(study), Seen(store.root))
    done: dict[str, float] = {}
    diverged: set[str] = set()
    for step_id in graph.steps:
        meta = _finished(store, step_id)
        if meta is not None:
            done[step_id] = meta.content["seconds"]
            if meta.status == "diverged":
                diverged.add(step_id)
    over = {**done, **dict.fromkeys(graph.below(diverged), 0.0)}
    kinds: dict[str, list[str]] = {}
    for step in graph.steps.values():
        if step.id in done or step.id not in over:
            kinds.setdefault(step.name, []).append(step.id)
    guessed = guessed_seconds(graph, over, timings)
    costs = []
    for name, ids in kinds.items():
        seconds = [done[step_id] for step_id in ids if step_id in done]
        left = [guess for step_id in ids if (guess := guessed.get(step_id)) is not None]
        each: float | None = None
        if left:
            each = statistics.mean(left)
        elif seconds or not any(step_id in guessed for step_id in ids):
            kind = [graph.steps[step_id] for step_id in ids if step_id not in done]
            each = statistics.mean(seconds) if seconds else expected_seconds(graph.study, name, kind, timings)
            is_of_some = bool(seconds) or name in graph.study.expected_seconds
            if name == "train" and each is not None and is_of_some and len(seconds) < len(ids):
                each *= _longer(graph, done)
        costs.append(StepCost(name, len(ids), len(seconds), each, bool(left)))
    taken, whole = bytes_left(graph, over)
    return Plan(graph, frozenset(over), tuple(costs), taken, whole)


def _longer(graph: Graph, done: Mapping[str, float]) -> float:
    """Return the mean number of batches of remaining trainings divided by that of finished ones.

    If none is finished, the divisor is that of the study's first grid, whose seconds a study may state.
    """
    images = graph.study.card(graph.study.source).sizes["train"]
    trainings = [(step_id, step) for step_id, step in graph.steps.items() if step.name == "train"]
    of = {step_id: Recipe(**step.config["recipe"]).steps_on(images) for step_id, step in trainings}
    left, past = (
        [of[step_id] for step_id in of if (step_id in done) == is_done] for is_done in (False, True)
    )
    return statistics.mean(left) / statistics.mean(past or [graph.study.runs[0].recipe.steps_on(images)])


def _finished(store: Store, step_id: str) -> Meta | None:
    try:
        return store.finished(step_id)
    except DamagedFileError:
        return None


def run(
    study: Study | str | Path,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
    engine: Engine | str = "local",
    verify: bool = False,
) -> Summary:
    """Run each step of a study that `out` does not hold yet; another call runs the remaining steps.

    `verify` has every file of every finished step digested first, and damaged steps computed again; prepared
    copies of data are digested too, and a damaged one is refused.

    `engine` says how the steps are carried out: "local" or "ray", with that many `processes` (as many as the
    cores allow), or an engine of your own.
    Raises RequestError when the study or the folder cannot be used, or when another process runs the study.
    """
    graph = unfold(expect_located(_as_study(study), verify), Seen(Store(out).root))
    return run_graph(graph, out, processes, observer, command, engine, verify)


def run_graph(
    graph: Graph,
    out: Path | str,
    processes: int | None,
    observer: Observer | None,
    command: str,
    engine: Engine | str,
    verify: bool,
) -> Summary:
    """Run a study that is unfolded already, like `run`."""
    expect_variables()
    chosen = load_engine(engine, processes) if isinstance(engine, str) else engine
    observer = observer or Silent()
    store = Store(out, thorough=verify)
    store.prepare(shared=spans_machines(chosen))
    folder = store.study(graph.study.name)
    with exclusively(store, folder):
        description, order = _note(store, graph, command, observer)
        summary = chosen.run(graph, store, observer)
        failed = {step_id: _failure(graph, step_id, why) for step_id, why in summary.failed.items()}
        outcome = {**description, "failed": failed, "left_out": graph.below(summary.diverged)}
        if outcome != description:
            write_study(store, outcome, order)
        return summary


def _failure(graph: Graph, step_id: str, why: str) -> dict[str, Any]:
    """Return why a step failed, with the network and data set that it belongs to."""
    columns = graph.steps[step_id].columns
    return {"why": why, "network": columns.get("objective"), "target": columns.get("target")}


def expect_located(study: Study, thorough: bool = False) -> Study:
    """Return the study; raises RequestError if the place of its data is not given.

    A `thorough` check reads every byte of prepared copies, and raises DamagedFileError for a damaged one.
    """
    lacking = [study.card(name) for name in study.nowhere if name in (study.source, *study.targets)]
    if lacking:
        named = ", ".join(f"{card.title} (--data {card.name}=FOLDER)" for card in lacking)
        raise RequestError(
            f"the location of data of '{study.name}' is not given: {named}; --root FOLDER gives it for all"
            " data in one folder. penultimate data check NAME says what goes where"
        )
    if thorough:
        expect_sound(study.data.values())
    return study


@contextlib.contextmanager
def exclusively(store: Store, folder: Path) -> Iterator[None]:
    """Lock a study's folder; raises RequestError with the holder if another process has locked it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(store.lock(folder / ".lock"))
        except BusyError as error:
            raise RequestError(
                f"study '{folder.name}' is being run in '{store.root}' already, by {said_of(error.holder)};"
                " wait for it, or give --out another folder"
            ) from None
        yield


def _changed(graph: Graph, before: Sequence[str]) -> list[str]:
    """Return the data sets on disk whose images have changed since they were in the study."""
    earlier = {step_id.rpartition(".")[0]: step_id for step_id in before}
    found = [step for step in graph.steps.values() if step.name == "data" and "where" in step.config]
    return [
        step.config["name"] for step in found if earlier.get(step.id.rpartition(".")[0], step.id) != step.id
    ]


def _note(store: Store, graph: Graph, command: str, observer: Observer) -> tuple[dict[str, Any], int]:
    """Record the steps of the study, so that results and reports can be read while it runs.

    Returns the record and the study's position in the order.
    """
    before = claim(store, graph.study.name, False, observer.noticed)
    command = command or f"penultimate run {graph.study.name}"
    reads = read_by(graph.steps.values(), Seen(store.root))
    if changed := changes(before.description.get("reads"), reads):
        observer.noticed(
            f"files that plug-ins read have changed since the study was last run ({', '.join(changed)}); what"
            " depends on them is computed again"
        )
    for name in _changed(graph, before.description["steps"]):
        observer.noticed(
            f"the images of '{name}' have changed since the study was last run; what depends on them is"
            " computed again"
        )
    left = sum(step_id not in graph.steps for step_id in before.description["steps"])
    if left:
        was = before.description["command"]
        again = f", and is part of it again after: {was}" if was != command else ""  # else its images changed
        observer.noticed(
            f"no longer part of the study: {counted(left, 'step')}; what is done of them is kept{again}"
        )
    content = {
        **graph.study.describe(),
        "command": command,
        "steps": list(graph.steps),
        "arms": {step_id: list(arms) for step_id, arms in graph.arms.items() if any(arms)},
        **({"reads": reads} if reads else {}),
        "failed": {},
        "left_out": [step_id for step_id in before.description.get("left_out", ()) if step_id in graph.steps],
    }
    write_study(store, content, before.order)
    return content, before.order
