"""The time that is left of a running study: what is declared at first, then what its steps take."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
from rich.console import Console

from penultimate.engine.display import Display
from penultimate.engine.forecast.timings import Timings
from penultimate.engine.left import TimeLeft
from penultimate.engine.run import plan
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study
from penultimate.study.unfold import unfold


@pytest.fixture(scope="module")
def graph() -> Graph:
    return unfold(load_study("quickstart"))


def test_at_first_it_is_what_the_plan_says(graph: Graph, tmp_path: Path) -> None:
    planned = plan("quickstart", tmp_path, Timings(may_take=False)).seconds_left
    for processes in (1, 3):
        assert TimeLeft(graph, {}, processes).seconds == pytest.approx(planned / processes)
    assert TimeLeft(graph, {}, 0).seconds == math.inf


def test_then_it_follows_the_pace_of_what_is_done(graph: Graph) -> None:
    trainings = [step_id for step_id, step in graph.steps.items() if step.name == "train"]
    left = TimeLeft(graph, {}, 1)
    declared = left.waiting[trainings[0]].declared
    assert declared is not None
    others = left.seconds - len(trainings) * declared
    left.ended(trainings[0], 2 * declared)
    assert left.seconds == pytest.approx((len(trainings) - 1) * 2 * declared + 2 * others)
    for step_id in graph.steps:
        left.ended(step_id, 1.0)
    assert left.seconds == 0


def test_what_depends_on_a_training_that_diverged_is_not_waited_for(graph: Graph) -> None:
    training = next(step_id for step_id, step in graph.steps.items() if step.name == "train")
    left = TimeLeft(graph, {}, 1)
    left.ended(training, 1.0, diverged=True)
    assert left.waiting.keys() == graph.steps.keys() - {training} - {*graph.below({training})}


@pytest.mark.parametrize("terminal", [False, True])
def test_a_log_and_a_terminal_say_it(
    graph: Graph, terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    display = Display(
        Store(tmp_path), Console(file=written, width=200, highlight=False, force_terminal=terminal)
    )
    monkeypatch.setattr("penultimate.engine.display.COUNTED_EVERY", -1.0)
    display.opened(graph, 0, 2)
    assert "2 processes side by side, about " in written.getvalue()
    step = next(step for step in graph.steps.values() if step.name == "data")
    display.finished(step, {"status": "done", "seconds": 1.0})
    display.closed()
    assert " left" in written.getvalue().rpartition("side by side")[2]
    assert terminal or f"1 of {len(graph.steps)} steps are done, about " in written.getvalue()
