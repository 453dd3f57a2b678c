"""A study of 100,000 idle steps, a report of 5,000,000 rows, and what a step costs besides its work.

`python -m benchmarks growth [--quick] [--json=FILE]`. The study trains nine objectives with many seeds and
measures each network twenty times by a plug-in that yields one number. Its steps are left in a store by the
code that a study's processes run, without fsync; trainings are left undone, with a row. Then the commands are
timed, each as a process of its own, from its start to its end, with its largest memory: `plan` in an empty
store, `run` where everything is done, `status`. The rows are those of the reference run, once for each of
many copies of its seeds.

A thousand steps that do nothing are timed from the start of the first to the end of the last, with one
worker process, beside the bare write, fsync and rename of the same files in folders of the same names; the
rounds are interleaved, and the ratio is their median.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from penultimate.engine.execute import execute, row
from penultimate.engine.local import LocalEngine
from penultimate.engine.machine import machine
from penultimate.engine.observer import Observer
from penultimate.graph import Step
from penultimate.measures.inputs import Number
from penultimate.plugins import load_plugin
from penultimate.records.archive import reference
from penultimate.records.reading import STUDY_FILE
from penultimate.records.table import ROWS, Row, Table, encode_rows
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study
from penultimate.study.unfold import unfold

PLUGIN = '''
from penultimate import register
from penultimate.measures import Head, Number, Yield

IDLE = (Yield("idle", "count"),)

@register.measurement(version=1, per="network", needs=(Head(),), yields=IDLE, each=("number",))
def idle(inputs, *, number=tuple(range(20))):
    """A number that is known beforehand."""
    yield Number("idle", number, "count", setting={"number": number})
'''
STUDY = """
from penultimate.paper.studies.world import OBJECTIVES as NINE
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

STUDY = Study(
    name="growing",
    title="Steps that do nothing",
    question="What does a study cost besides its work?",
    source="glyphs_smoke",
    targets=(),
    networks=(Runs(NINE, Recipe(), seeds=tuple(range({seeds})), draws=0),),
    measure=("idle",),
    limited=True,
)
"""

COMMAND = """
import sys
from pathlib import Path
from penultimate.cli import main

code = main()
status = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in status if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""
"""The command, which says at last how much memory it had."""


class Clock(Observer):
    """An observer that records when the first step began and when the last ended."""

    def __init__(self) -> None:
        self.first = self.last = 0.0

    def started(self, step: Step) -> None:
        self.first = self.first or time.perf_counter()

    def finished(self, step: Step, meta: dict[str, Any]) -> None:
        self.last = time.perf_counter()


@contextlib.contextmanager
def unsynced() -> Iterator[None]:
    """Files are written without waiting for the disk."""
    with mock.patch("os.fsync"):
        yield


def commands(folder: Path, seeds: int) -> Graph:
    """Leave the study and its plug-in as files in a folder; the study's graph comes back."""
    (folder / "idle.py").write_text(PLUGIN)
    (folder / "growing.py").write_text(STUDY.format(seeds=seeds))
    load_plugin(folder / "idle.py")
    return unfold(load_study(str(folder / "growing.py")))


def leave(store: Store, step: Step, **facts: Any) -> None:
    """A step as a process of the study leaves it, its work undone."""
    folder = store.begin(step.id)
    point = Number("top1", 0.5, "fraction", "train", epoch=1)
    (folder / ROWS).write_bytes(encode_rows([row(step, point)]))
    columns = {name: value for name, value in step.columns.items() if name != "arm"}
    content = {"step": step.name, "version": step.version, "config": step.config, "columns": columns}
    times = {"status": "done", "seconds": 1.0, "cpu_seconds": 1.0, "threads": 1}
    store.finish(step.id, {**content, **times, "parents": list(step.parents), **facts, **machine()})


def fill(store: Store, graph: Graph) -> None:
    """Have every step in the store."""
    store.prepare()
    with unsynced():
        for step in graph.steps.values():
            if step.name == "train":
                leave(store, step)
            else:
                execute(store, step, lambda news: None)


def copied_rows(store: Store, copies: int) -> int:
    """The rows of the reference run, once for each of that many copies of its seeds; how many there are."""
    kept = reference()
    store.prepare()
    steps: list[str] = []
    count = 0
    frame = kept.table.frame()
    by_step: dict[str, list[Row]] = {}
    for (original, *_), rows in frame[frame["unit"] != "points"].groupby(
        ["step", "objective"], observed=True, dropna=False, sort=False
    ):
        by_step[f"{original}.{len(by_step)}"] = list(Table.of_frame(rows))
    with unsynced():
        for copy in range(copies):
            for original, rows in by_step.items():
                kind = original.partition(".")[0]
                step_id = f"{kind}.{original.partition('.')[2]}-{copy}.{len(steps):016x}"
                moved = [_moved(each, step_id, 5 * copy) for each in rows]
                folder = store.begin(step_id)
                (folder / ROWS).write_bytes(encode_rows(moved))
                columns = {"objective": moved[0].objective, "backbone": moved[0].backbone}
                facts = {"step": kind, "status": "done", "seconds": 1.0, "parents": [], "config": {}}
                store.finish(step_id, {**facts, "columns": columns, **machine(), "threads": 1})
                steps.append(step_id)
                count += len(moved)
    networks = [
        {**block, "seeds": [seed + 5 * copy for copy in range(copies) for seed in block["seeds"]]}
        for block in kept.description["networks"]
    ]
    folder = store.root / "studies" / str(kept.description["name"])
    folder.mkdir(parents=True)
    description = {**kept.description, "networks": networks, "steps": steps}
    (folder / STUDY_FILE).write_text(json.dumps(description))
    return count


def _moved(row: Any, step_id: str, by: int) -> Any:
    seeds = {
        name: getattr(row, name) + by for name in ("seed", "draw", "seed_b") if getattr(row, name) is not None
    }
    return dataclasses.replace(row, step=step_id, arm=row.arm, **seeds)


def measured(arguments: list[str], folder: Path) -> tuple[float, float, str]:
    """Seconds of a command, the most memory that it had (MB), and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"penultimate {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return seconds, int(done.stderr.split()[-2]) / 1024, done.stdout


def bare(root: Path, contents: dict[str, dict[str, bytes]]) -> float:
    """Seconds of writing, syncing and renaming files, a folder a step, with nothing else."""
    began = time.perf_counter()
    for step_id, files in contents.items():
        folder = root / step_id
        folder.mkdir(parents=True)
        for name, content in files.items():
            with (folder / f".{name}.tmp").open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            (folder / f".{name}.tmp").rename(folder / name)
    return time.perf_counter() - began


def graph_of(steps: list[Step]) -> Graph:
    """A graph of steps that belong to no study."""
    return Graph(None, {step.id: step for step in steps})  # type: ignore[arg-type]


def stepped(root: Path, graph: Graph) -> tuple[float, dict[str, dict[str, bytes]]]:
    """Seconds of the steps of a graph in one process, after its start, and the files that they left."""
    store, clock = Store(root), Clock()
    store.prepare()
    summary = LocalEngine(1).run(graph, store, clock)
    assert summary.complete
    contents = {
        folder.name: {path.name: path.read_bytes() for path in sorted(folder.iterdir(), reverse=True)}
        for folder in (root / "steps").iterdir()
    }
    return clock.last - clock.first, contents


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps and rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    seeds, copies, some, rounds = (5, 2, 50, 1) if options.quick else (529, 200, 1000, 3)
    numbers: dict[str, Any] = {"benchmark": "growth", "cores": os.cpu_count()}

    def told(what: str, limit: str, command: list[str], folder: Path, says: str = "") -> None:
        seconds, megabytes, said = measured(command, folder)
        assert says in said, said
        numbers[what] = {"seconds": seconds, "megabytes": megabytes}
        print(f"  {what:<34}{seconds:8.1f} s{megabytes:8.0f} MB   asked: {limit}", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        graph = commands(folder, seeds)
        numbers["steps"] = len(graph.steps)
        print(f"a study of {len(graph.steps):,} steps:")
        study = ["growing.py", "--plugin", "idle.py"]
        told("planned, in an empty store", "10 s, 1000 MB", ["plan", *study, "--out", "empty"], folder)
        fill(Store(folder / "runs"), graph)
        told("run, everything done; with a report", "-", ["run", *study], folder)
        told("run, everything done", "10 s", ["run", *study], folder, says="Everything is done already.")
        told("status", "2 s", ["status"], folder)
        numbers["rows"] = copied_rows(Store(folder / "copied"), copies)
        print(f"a study of {numbers['rows']:,} rows:")
        told("report", "finishes", ["report", "--out", "copied", "--to", "report.html"], folder)
        numbers["page_bytes"] = (folder / "report.html").stat().st_size
        print(f"  its page has {numbers['page_bytes'] / 1e6:.1f} MB")

        idle = [step for step in graph.steps.values() if step.name == "idle"]
        pairs = []
        for number in range(rounds):
            steps = [dataclasses.replace(step, parents=(), supplies=()) for step in idle[:some]]
            ours, contents = stepped(folder / f"stepped-{number}", graph_of(steps))
            pairs.append((ours, bare(folder / f"bare-{number}", contents)))
    ratio = statistics.median(ours / plain for ours, plain in pairs)
    each = [1e3 * statistics.median(times) / some for times in zip(*pairs, strict=True)]
    numbers["step"] = {"milliseconds": each[0], "bare_milliseconds": each[1], "ratio": ratio}
    print(
        f"{rounds} x {some} idle steps: {each[0]:.2f} ms each, {ratio:.2f} x the bare write, fsync and rename"
        f" of their files ({each[1]:.2f} ms); asked: 2 x"
    )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
