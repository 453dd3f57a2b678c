"""The rules of a run, without any process: what is begun when, and what follows from how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.chores import Notes, graph_of

from penultimate.engine.messages import Damaged, Died, Done, Failed, Lost
from penultimate.engine.schedule import LOSSES, Schedule
from penultimate.errors import DamagedFileError
from penultimate.graph import Resources, Step

DONE, DIVERGED = Done({"status": "done"}), Done({"status": "diverged", "reason": "NaN"})


def step(name: str, *parents: Step, **settings: Any) -> Step:
    return Step(name, 1, {}, {}, tuple(parent.id for parent in parents), label=name, **settings)


class Shelf:
    """A store in memory: the statuses of the steps that it holds, those that are damaged, those set aside."""

    def __init__(self, held: Mapping[str, str] = {}, damaged: frozenset[str] = frozenset()) -> None:
        self.held, self.damaged = dict(held), set(damaged)
        self.aside: list[str] = []

    def finished(self, step_id: str) -> Any:
        if step_id in self.damaged:
            raise DamagedFileError(f"step {step_id}: rows.jsonl is not what was written")
        status = self.held.get(step_id)
        return None if status is None else SimpleNamespace(status=status, content={"reason": "NaN"})

    def set_aside(self, step_id: str) -> None:
        self.aside.append(step_id)


def scheduled(*steps: Step, store: Shelf | None = None, notes: Notes | None = None) -> Schedule:
    return Schedule(graph_of(*steps), store or Shelf(), notes or Notes())  # type: ignore[arg-type]


def begun(schedule: Schedule) -> list[str]:
    """Everything that can be begun now."""
    return [each.name for each in iter(schedule.next, None)]


def test_the_most_urgent_comes_first_then_the_order_of_the_graph() -> None:
    schedule = scheduled(step("later", priority=3), step("b", priority=1), step("a", priority=1))
    assert begun(schedule) == ["b", "a", "later"]


def test_what_the_store_holds_is_not_done_again() -> None:
    a = step("a")
    b = step("b", a)
    schedule = scheduled(a, b, store=Shelf({a.id: "done"}))
    assert begun(schedule) == ["b"]
    assert (schedule.summary.cached, schedule.summary.total) == (1, 2)
    everything = scheduled(a, b, store=Shelf({a.id: "done", b.id: "done"}))
    assert everything.is_over


def test_a_failure_is_told_and_costs_all_below_it_however_deep() -> None:
    steps = [step("first")]
    for depth in range(5000):
        steps.append(step(f"s{depth}", steps[-1]))
    steps.append(step("gathering", steps[-1], gathers=True))
    notes = Notes()
    schedule = scheduled(*steps, step("apart"), notes=notes)
    assert begun(schedule) == ["first", "apart"]
    schedule.ended(steps[0].id, Failed("no such file", "a traceback"))
    assert notes.failures == {"first": ("no such file", "a traceback")}
    assert len(schedule.summary.skipped) == 5001
    assert not schedule.summary.complete
    assert not schedule.is_over
    schedule.ended(step("apart").id, DONE)
    assert schedule.is_over


@pytest.mark.parametrize("earlier", [False, True])
def test_what_gathers_goes_on_without_a_run_that_diverged(earlier: bool) -> None:
    good, bad = step("good"), step("bad")
    banks = [step("bank of good", good), step("bank of bad", bad)]
    own = step("measured", banks[1])
    all_of_them = step("together", good, bad, *banks, gathers=True)
    schedule = scheduled(
        good, bad, *banks, own, all_of_them, store=Shelf({bad.id: "diverged"} if earlier else {})
    )
    assert begun(schedule) == (["good"] if earlier else ["good", "bad"])
    if not earlier:
        schedule.ended(bad.id, DIVERGED)
    assert schedule.summary.diverged == {bad.id: "NaN"}
    assert set(schedule.summary.skipped) == {banks[1].id, own.id}
    assert begun(schedule) == []
    schedule.ended(good.id, DONE)
    assert begun(schedule) == ["bank of good"]
    schedule.ended(banks[0].id, DONE)
    gathering = schedule.next()
    assert gathering is not None
    assert (gathering.id, gathering.absent) == (all_of_them.id, (bad.id, banks[1].id))
    schedule.ended(gathering.id, DONE)
    assert schedule.is_over
    assert schedule.summary.complete


PARENT = step("parent")
READERS = [step(f"reader {number}", PARENT) for number in range(3)]


def reading(count: int) -> tuple[Schedule, Shelf, Notes]:
    """A parent that is done, and three steps that read it, that many of them begun."""
    store, notes = Shelf({PARENT.id: "done"}), Notes()
    schedule = scheduled(PARENT, *READERS, store=store, notes=notes)
    for reader in READERS[:count]:
        assert schedule.next() is reader
    return schedule, store, notes


DAMAGED = Damaged(PARENT.id, f"step {PARENT.id}: weights are not what was written")


@pytest.mark.parametrize("ending", [DONE, Failed("no reason"), Died("was killed"), DAMAGED])
def test_a_damaged_parent_is_computed_again_however_its_other_readers_end(ending: Any) -> None:
    schedule, store, notes = reading(2)
    schedule.ended(READERS[0].id, DAMAGED)
    assert "it was set aside and is computed again" in notes.notices[0]
    assert store.aside == [PARENT.id]
    assert begun(schedule) == ["parent"]  # the third reader waits
    schedule.ended(READERS[1].id, ending)
    assert begun(schedule) == []
    schedule.ended(PARENT.id, DONE)
    over = {READERS[1].name} if isinstance(ending, Done | Failed) else set()
    assert set(begun(schedule)) == {reader.name for reader in READERS} - over
    assert store.aside == [PARENT.id]


def test_a_parent_that_is_damaged_again_fails_its_reader() -> None:
    schedule, _, notes = reading(1)
    schedule.ended(READERS[0].id, DAMAGED)
    assert begun(schedule) == ["parent"]
    schedule.ended(PARENT.id, DONE)
    assert schedule.next() is READERS[0]
    schedule.ended(READERS[0].id, DAMAGED)
    assert notes.failures == {READERS[0].label: (DAMAGED.reason, "")}
    assert begun(schedule) == [READERS[1].name, READERS[2].name]


def test_a_step_whose_process_dies_is_begun_once_more() -> None:
    notes = Notes()
    schedule = scheduled(PARENT, notes=notes)
    assert begun(schedule) == ["parent"]
    schedule.ended(PARENT.id, Died("was killed by signal 9"))
    assert notes.notices == [f"the process of {PARENT.id} was killed by signal 9; the step is begun again"]
    assert begun(schedule) == ["parent"]
    schedule.ended(PARENT.id, Died("was killed by signal 9"))
    reason = "its process was killed by signal 9 2 times; is there enough memory?"
    assert schedule.summary.failed == {PARENT.id: reason}


def test_machines_that_go_use_up_none_of_a_steps_attempts() -> None:
    notes = Notes()
    schedule = scheduled(PARENT, notes=notes)
    for _ in range(LOSSES - 1):
        assert begun(schedule) == ["parent"]
        schedule.ended(PARENT.id, Lost("node7"))
    assert set(notes.notices) == {f"node7, where {PARENT.id} was, is gone; the step is begun again"}
    assert begun(schedule) == ["parent"]
    schedule.ended(PARENT.id, Died("was killed"))
    assert begun(schedule) == ["parent"]
    schedule.ended(PARENT.id, Lost("node7"))
    reason = f"it was {LOSSES} times on a machine that went, at last on node7"
    assert schedule.summary.failed == {PARENT.id: reason}


def test_on_a_full_disk_nothing_more_is_begun_and_what_runs_is_let_finish() -> None:
    steps = [step(name) for name in "abcd"]
    notes = Notes()
    schedule = scheduled(*steps, notes=notes)
    for each in steps[:3]:
        assert schedule.next() is each
    schedule.ended(steps[0].id, Failed("No space left on device", "", disk_full=True))
    schedule.ended(steps[1].id, Failed("No space left on device", "", disk_full=True))
    assert [notice for notice in notes.notices if "the disk is full" in notice] == notes.notices
    assert len(notes.notices) == 1
    assert begun(schedule) == []
    assert not schedule.is_over
    schedule.ended(steps[2].id, DONE)
    assert schedule.is_over
    assert notes.done == [steps[2].label]


def test_processes_times_threads_stay_within_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penultimate.engine.schedule.usable_cores", lambda: 8)
    steps = [step(f"s{number}", resources=Resources(threads=1 + number % 3)) for number in range(20)]
    schedule = scheduled(*steps)
    assert (schedule.threads, schedule.places(None), schedule.places(5)) == (3, 2, 5)
    assert scheduled(steps[0]).places(None) == 1
    assert scheduled(*steps, store=Shelf({each.id: "done" for each in steps[1:]})).threads == 1


ENDINGS = st.sampled_from(["done", "done", "done", "diverged", "failed", "died", "damaged"])


@given(st.data())
def test_whatever_happens_each_step_is_done_failed_or_skipped_and_never_begun_too_early(
    data: st.DataObject,
) -> None:
    steps: list[Step] = []
    for number in range(data.draw(st.integers(1, 12))):
        parents = (
            data.draw(st.lists(st.sampled_from(steps), unique_by=lambda each: each.id, max_size=4))
            if steps
            else []
        )
        gathers = bool(parents) and data.draw(st.booleans())
        steps.append(step(f"s{number}", *parents, gathers=gathers))
    held = {each.id for each in steps if data.draw(st.integers(0, 5)) == 0}
    store = Shelf(dict.fromkeys(held, "done"))
    schedule = scheduled(*steps, store=store)
    done, running = set(held), list[Step]()
    while not schedule.is_over:
        while len(running) < 3 and (begun_step := schedule.next()) is not None:
            assert {parent for parent in begun_step.parents if parent not in begun_step.absent} <= done
            assert begun_step.gathers or not begun_step.absent
            running.append(begun_step)
        ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
        ending = data.draw(ENDINGS)
        readable = [parent for parent in ended.parents if parent not in ended.absent]
        if ending == "damaged" and readable:
            schedule.ended(ended.id, Damaged(readable[0], "damaged"))
        elif ending == "died":
            schedule.ended(ended.id, Died("was killed"))
        elif ending == "failed":
            schedule.ended(ended.id, Failed("no reason"))
        else:
            done.add(ended.id)
            schedule.ended(ended.id, DIVERGED if ending == "diverged" else DONE)
        while store.aside:
            done.discard(store.aside.pop())
    summary = schedule.summary
    over = done | set(summary.failed) | set(summary.skipped)
    assert over == {each.id for each in steps}
    assert len(summary.skipped) == len(set(summary.skipped))
    assert not set(summary.failed) & (done | set(summary.skipped))
