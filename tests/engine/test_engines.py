"""What every engine does alike, on chores in real processes: the same rows, and the same answers to grief."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engine.chores import Notes, chore, graph_of, rows_in

from penultimate.engine import load_engine
from penultimate.engine.observer import Summary
from penultimate.records.table import read_rows
from penultimate.store import Store

pytestmark = pytest.mark.usefixtures("chores")

FIRST = chore("first", number=1)
SECOND = chore("second", FIRST, number=2)
WIDE = chore("wide", number=3, threads=2)
TELLING = chore("telling", deed="tells")
UNLUCKY = chore("unlucky", deed="killed once")
WRONG = chore("wrong", deed="fails")
LOST = chore("lost", WRONG, SECOND)
STEPS = (FIRST, SECOND, WIDE, TELLING, UNLUCKY, WRONG, LOST)


@dataclass
class Outcome:
    """What a run came to, and what it was heard to say."""

    root: Path
    summary: Summary
    notes: Notes


def run_on(engine: str, root: Path) -> Outcome:
    store, notes = Store(root), Notes()
    store.prepare()
    summary = load_engine(engine, 2).run(graph_of(*STEPS), store, notes)
    return Outcome(root, summary, notes)


@pytest.fixture(scope="module")
def on_local(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_on("local", tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="module")
def on_ray(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    cluster.add_node(num_cpus=2)  # for the step of two threads
    return run_on(f"ray:{cluster.address}", tmp_path_factory.mktemp("ray"))


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.long)])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    result: Outcome = request.getfixturevalue(f"on_{request.param}")
    return result


def test_each_step_is_done_failed_or_skipped(outcome: Outcome) -> None:
    summary = outcome.summary
    assert set(summary.failed) == {WRONG.id}
    assert summary.skipped == [LOST.id]
    assert summary.computed == len(STEPS) - 2
    assert set(outcome.notes.done) == {"first", "second", "wide", "telling", "unlucky"}
    assert set(rows_in(outcome.root)) == {step.id for step in (FIRST, SECOND, WIDE, TELLING, UNLUCKY)}


def test_each_step_has_its_parents_and_its_threads(outcome: Outcome) -> None:
    found = {}
    for step in (FIRST, SECOND, WIDE):
        rows = read_rows(outcome.root / "steps" / step.id / "rows.jsonl")
        found[step.label] = [row.value for row in rows]
    assert found == {"first": [1, 0, 1, 0, 2], "second": [2, 1, 1, 0, 2], "wide": [3, 0, 2, 0, 2]}


def test_a_step_whose_process_is_killed_is_begun_once_more(outcome: Outcome) -> None:
    assert outcome.notes.begun.count("unlucky") == 2
    (notice,) = outcome.notes.notices
    assert notice.startswith(f"the process of {UNLUCKY.id} was killed")
    assert notice.endswith("the step is begun again")


def test_an_exception_is_told_with_its_place_and_not_tried_again(outcome: Outcome) -> None:
    reason, log = outcome.notes.failures["wrong"]
    assert reason.endswith("ValueError: no such luck")
    assert "the plug-in 'chores.py', line" in reason
    assert log.startswith("Traceback")
    assert outcome.notes.begun.count("wrong") == 1


def test_how_far_a_step_is_reaches_the_observer(outcome: Outcome) -> None:
    assert outcome.notes.news == [("telling", {"epoch": 1, "loss": math.inf})]


@pytest.mark.long
def test_rows_on_ray_are_those_of_local_processes_to_the_byte(on_local: Outcome, on_ray: Outcome) -> None:
    assert rows_in(on_ray.root) == rows_in(on_local.root)


@pytest.mark.long
def test_a_run_goes_on_where_it_was_and_mends_what_only_its_use_shows_is_damaged(tmp_path: Path) -> None:
    store, third = Store(tmp_path), chore("third", FIRST, number=3)
    store.prepare()
    graph = graph_of(FIRST, SECOND, third)
    assert load_engine("local", 1).run(graph_of(FIRST, SECOND), store, Notes()).computed == 2
    bulk = store.folder(FIRST.id) / "bulk.bin"
    content, when = bytearray(bulk.read_bytes()), bulk.stat()
    content[7] ^= 1
    bulk.write_bytes(content)
    os.utime(bulk, ns=(when.st_atime_ns, when.st_mtime_ns))
    notes = Notes()
    summary = load_engine("local", 1).run(graph, Store(tmp_path), notes)
    assert (summary.cached, notes.begun) == (2, ["third", "first", "third"])
    assert notes.notices == [
        f"step {FIRST.id}: bulk.bin is not what was written (its sha256 differs); it was set aside and is"
        " computed again"
    ]
    assert summary.complete
    assert Store(tmp_path).verify(FIRST.id)


@pytest.mark.long
def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    store, notes = Store(tmp_path), Notes()
    store.prepare()
    full, further = chore("full", deed="fills the disk"), chore("further")
    summary = load_engine("local", 1).run(graph_of(full, further), store, notes)
    assert notes.begun == ["full"]
    assert "No space left on device" in summary.failed[full.id]
    assert notes.notices == ["the disk is full: free some space, then repeat the command"]


@pytest.mark.long
def test_a_disk_that_numpy_finds_full_is_known_to_be(small_disk: Path) -> None:
    store, notes = Store(small_disk / "runs"), Notes()
    store.prepare()
    full, further = chore("full", deed="fills it by NumPy"), chore("further")
    summary = load_engine("local", 1).run(graph_of(full, further), store, notes)
    assert "requested and" in summary.failed[full.id]  # no word of a disk, and no error number
    assert notes.begun == ["full"]
    assert notes.notices == ["the disk is full: free some space, then repeat the command"]
