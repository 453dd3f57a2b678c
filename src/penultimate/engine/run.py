"""Run a study."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penultimate.engine import load_engine
from penultimate.engine.observer import Engine, Observer, Summary
from penultimate.engine.plan import bytes_left
from penultimate.errors import DamagedFileError, RequestError, counted
from penultimate.files import size_text
from penultimate.locks import BusyError, locked
from penultimate.records.reading import STUDY_FILE, read_study, write_study
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
    observer = observer or Observer()
    store = Store(out, thorough=verify)
    store.prepare()
    with exclusively(store, store.study(graph.study.name)):
        _warn_of_disk(store, graph, observer)
        description = _note(store, graph, command, observer)
        summary = chosen.run(graph, store, observer)
        failed = {}
        for step_id, why in summary.failed.items():
            columns = graph.steps[step_id].columns
            facts = {"why": why, "network": columns.get("objective"), "target": columns.get("target")}
            failed[step_id] = facts
        left_out, plugins = graph.below(summary.diverged), acceptance.plugins_of(graph)
        outcome = {**description, "failed": failed, "left_out": left_out, **filled(plugins=plugins)}
        if outcome != description:
            write_study(store, outcome)
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


def _note(store: Store, graph: Graph, command: str, observer: Observer) -> dict[str, Any]:
    """Record the steps of the study, so that results can be read while it runs, and return the record.

    What has changed since the last run is noticed.
    """
    before: dict[str, Any] = {"steps": []}
    folder = store.root / "studies" / graph.study.name
    if (folder / STUDY_FILE).is_file():
        try:
            before = read_study(store, folder).description
        except DamagedFileError as error:
            observer.noticed(str(error))
    earlier: dict[str, str] = before.get("plugins", {})
    plugins = acceptance.plugins_of(graph)
    last = {name: digest for name, digest in earlier.items() if name in plugins}
    for plugin in (name for name in last if last[name] != plugins[name]):
        kind, _, name = plugin.partition(":")
        observer.noticed(
            f"the {kind} '{name}' has changed since the study was last run; what depends on it is"
            " computed again (if you know that the change is harmless, stop and run it with --accept)"
        )
    known = {step_id.rpartition(".")[0]: step_id for step_id in before["steps"]}
    for step in graph.steps.values():
        if "where" in step.config and known.get(step.id.rpartition(".")[0], step.id) != step.id:
            observer.noticed(
                f"the images of '{step.config['name']}' have changed since the study was last run; what"
                " depends on them is computed again"
            )
    left = sum(step_id not in graph.steps for step_id in before["steps"])
    if left:
        observer.noticed(
            f"no longer part of the study: {counted(left, 'step')}; what is done of them is kept"
        )
    left_out = [step_id for step_id in before.get("left_out", ()) if step_id in graph.steps]
    content = {
        **graph.study.describe(),
        "command": command or f"penultimate run {graph.study.name}",
        "steps": list(graph.steps),
        "arms": {step_id: list(arms) for step_id, arms in graph.arms.items() if any(arms)},
        **filled(plugins={**plugins, **last}),  # until the end, so that a stopped run can still accept them
        "failed": {},
        "left_out": left_out,
    }
    write_study(store, content)
    return content
