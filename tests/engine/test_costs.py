"""What a study costs: what is declared at first, then what its steps take; bytes against the free disk."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.engine.chores import Notes

from penultimate.engine.plan import Costs, bytes_left, plan
from penultimate.engine.run import run
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study
from penultimate.study.unfold import unfold


@pytest.fixture(scope="module")
def graph() -> Graph:
    return unfold(load_study("quickstart"))


def of_kind(graph: Graph, kind: str) -> list[str]:
    return [step_id for step_id, step in graph.steps.items() if step.name == kind]


def test_at_first_it_is_what_is_declared_and_what_the_plan_says(graph: Graph, tmp_path: Path) -> None:
    costs, planned = Costs(graph, {}), plan("quickstart", tmp_path)
    assert costs.seconds(of_kind(graph, "train")[0]) == graph.study.expected_seconds["train"]
    for processes in (1, 3):
        assert costs.left(processes) == pytest.approx(planned.seconds_left / processes)
    assert costs.left(0) == math.inf
    assert planned.unknown == 0


def test_then_it_follows_the_steps_of_a_kind_and_else_the_pace(graph: Graph) -> None:
    trainings, others = of_kind(graph, "train"), of_kind(graph, "extract")
    costs = Costs(graph, {})
    declared, extraction = costs.seconds(trainings[0]), costs.seconds(others[0])
    assert declared is not None
    assert extraction is not None
    costs.ended(trainings[0], 2 * declared)
    assert costs.seconds(trainings[1]) == pytest.approx(2 * declared)
    assert costs.seconds(others[0]) == pytest.approx(2 * extraction)
    for step_id in graph.steps:
        costs.ended(step_id, 1.0)
    assert costs.left(1) == 0


def test_a_longer_training_takes_longer(graph: Graph) -> None:
    longer = graph.study.with_runs(
        lambda block: dataclasses.replace(block, recipe=block.recipe.changed({"epochs": 88}))
    )
    usual = graph.study.main.recipe.epochs
    other = unfold(longer)
    declared = Costs(graph, {}).seconds(of_kind(graph, "train")[0])
    assert declared is not None
    done = Costs(graph, {of_kind(graph, "train")[0]: 10.0})
    assert done.seconds(of_kind(graph, "train")[1]) == pytest.approx(10.0)
    mixed = Graph(graph.study, {**graph.steps, **other.steps})
    costs = Costs(mixed, {of_kind(graph, "train")[0]: 10.0})
    assert costs.seconds(of_kind(other, "train")[0]) == pytest.approx(10.0 * 88 / usual)


def test_what_depends_on_a_training_that_diverged_is_not_waited_for(graph: Graph) -> None:
    training = of_kind(graph, "train")[0]
    lost = graph.below({training})
    costs, whole = Costs(graph, {}), Costs(graph, {})
    gone = sum(whole.seconds(step_id) or 0.0 for step_id in (training, *lost))
    before = costs.left(1)
    costs.ended(training, 1.0, diverged=True)
    assert costs.left(1) == pytest.approx(before - gone)


def test_nothing_is_declared_for_images_on_disk(tmp_path: Path) -> None:
    planned = plan("imagenet_resnet50", tmp_path)
    assert planned.unknown == len(planned.graph.steps)
    assert planned.bytes_left > 1e12


def test_a_disk_that_may_fill_up_is_told_and_the_study_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = unfold(load_study("smoke"))
    needed = bytes_left(smoke, ())
    assert 0 < bytes_left(smoke, of_kind(smoke, "train")) < needed

    class NoEngine:
        def run(self, graph, store, observer):  # type: ignore[no-untyped-def]
            return SimpleNamespace(failed={}, diverged={})

    for free, expected in ((needed - 1, 1), (needed, 0)):
        monkeypatch.setattr("shutil.disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        observer = Notes()
        run("smoke", tmp_path / str(free), observer=observer, engine=NoEngine())
        assert sum("still to be written" in told for told in observer.notices) == expected
