"""Run a study."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penultimate.engine import load_engine
from penultimate.engine.costs import bytes_left
from penultimate.engine.observer import Engine, Observer, Silent, Summary
from penultimate.errors import RequestError, counted
from penultimate.files import size_text
from penultimate.locks import BusyError, locked
from penultimate.records.reading import claim, write_study
from penultimate.store import Store
from penultimate.study import acceptance
from penultimate.study.foundation import filled
from penultimate.study.graph import Graph
from penultimate.study.selection import as_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.variables import expect_variables


def run(
    study: Study | str | Path,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
    engine: Engine | str = "local",
    verify: bool = False,
    accept: bool = False,
) -> Summary:
    """Run each step of a study that `out` does not hold yet; another call runs the remaining steps.

    `verify` has every file of every finished step digested first, and damaged steps computed again; prepared
    copies of data are digested too, and a damaged one is refused. `accept` keeps the results of plug-ins that
    have changed since the study was last run; whether a change is harmless only you can know.

    `engine` says how the steps are carried out: "local" or "ray", with that many `processes` (as many as the
    cores allow), or an engine of your own.
    Raises RequestError when the study or the folder cannot be used, or when another process runs the study.
    """
    study, store = expect_located(as_study(study)), Store(out)
    if accept:
        acceptance.accept(store, study.name)
    graph = unfold(study, acceptance.accepted(store, study.name))
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
    store.prepare()
    folder = store.study(graph.study.name)
    with exclusively(store, folder):
        _warn_of_disk(store, graph, observer)
        description, order = _note(store, graph, command, observer)
        summary = chosen.run(graph, store, observer)
        failed = {step_id: _failure(graph, step_id, why) for step_id, why in summary.failed.items()}
        left_out, plugins = graph.below(summary.diverged), acceptance.plugins_of(graph)
        outcome = {**description, "failed": failed, "left_out": left_out, **filled(plugins=plugins)}
        if outcome != description:
            write_study(store, outcome, order)
        return summary


def _warn_of_disk(store: Store, graph: Graph, observer: Observer) -> None:
    """Say if what is still to be written is larger than the free disk; what is done would be kept."""
    needed = bytes_left(graph, {step_id for step_id in graph.steps if store.holds(step_id)})
    free = shutil.disk_usage(store.root).free
    if needed > free:
        observer.noticed(
            f"about {size_text(needed)} of files are still to be written, and the disk of"
            f" '{store.root}' has {size_text(free)} free; if it fills up, what is done is kept, and the same"
            " command continues"
        )


def _failure(graph: Graph, step_id: str, why: str) -> dict[str, Any]:
    """Return why a step failed, with the network and data set that it belongs to."""
    columns = graph.steps[step_id].columns
    return {"why": why, "network": columns.get("objective"), "target": columns.get("target")}


def expect_located(study: Study) -> Study:
    """Return the study; raises RequestError if the place of its data is not given."""
    lacking = [study.card(name) for name in study.nowhere if name in (study.source, *study.targets)]
    if lacking:
        named = ", ".join(f"{card.title} (--data {card.name}=FOLDER)" for card in lacking)
        raise RequestError(
            f"the location of data of '{study.name}' is not given: {named}; --root FOLDER gives it for all"
            " data in one folder. penultimate data check NAME says what goes where"
        )
    return study


@contextlib.contextmanager
def exclusively(store: Store, folder: Path) -> Iterator[None]:
    """Lock a study's folder; raises RequestError if another process has locked it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / ".lock"))
        except BusyError:
            raise RequestError(
                f"study '{folder.name}' is being run in '{store.root}' already; wait for it, or give --out"
                " another folder"
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
    before = claim(store, graph.study.name, observer.noticed)
    command = command or f"penultimate run {graph.study.name}"
    plugins = acceptance.plugins_of(graph)
    last = {name: digest for name, digest in before.description.get("plugins", {}).items() if name in plugins}
    for plugin in last:
        if last[plugin] != plugins[plugin]:
            kind, _, name = plugin.partition(":")
            observer.noticed(
                f"the {kind} '{name}' has changed since the study was last run; what depends on it is"
                " computed again (if you know that the change is harmless, stop and run it with --accept)"
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
        **filled(plugins={**plugins, **last}),  # until the end, so that a stopped run can still accept them
        "failed": {},
        "left_out": [step_id for step_id in before.description.get("left_out", ()) if step_id in graph.steps],
    }
    write_study(store, content, before.order)
    return content, before.order
