"""What a running study says names the network it speaks of, and each number once."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from penultimate.engine.display import Display
from penultimate.graph import Step
from penultimate.records.table import ROWS, Row, encode_rows
from penultimate.store import Store
from penultimate.study.blocks import Given, Runs
from penultimate.study.graph import Graph
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

NET, PLAIN = "glyphnet(features=32, width=8)", "glyphplain(features=32, width=8)"
OURS = Given({"ours": "timm:resnet18"})


def graph_of(*networks: Runs | Given) -> Graph:
    study = Study(
        "small", "A title", "A question?", "glyphs_smoke", ("digits_smoke", "syllabics_smoke"), networks
    )
    return unfold(study)


def opened(graph: Graph, store: Store, terminal: bool = False) -> tuple[Display, Callable[[], list[str]]]:
    """A display of a graph, and what it has said since it was last asked."""
    written = io.StringIO()
    console = Console(file=written, width=200, highlight=False, force_terminal=terminal)
    display = Display(store, console)
    display.opened(graph, 0, 1)

    def said() -> list[str]:
        lines = [line.partition("s  ")[2] for line in written.getvalue().splitlines()]
        written.truncate(0)
        written.seek(0)
        return lines

    said()
    return display, said


def measure(store: Store, step: Step, *rows: Row) -> None:
    """Leave a step's rows in the store."""
    (store.begin(step.id) / ROWS).write_bytes(encode_rows(rows))
    store.finish(step.id, {"step": step.name, "status": "done", "seconds": 1.0})


LONGER = Runs(("cosine_softmax",), Recipe(epochs=3), backbones=(NET,), arm="longer")


@pytest.mark.parametrize(
    ("networks", "names"),
    [
        ((Runs(("softmax",), backbones=(NET,)),), ["softmax"]),
        ((Runs(("softmax",), backbones=(NET,)), OURS), ["softmax", "ours"]),
        ((Runs(("softmax",), backbones=(NET,), seeds=(0, 3)),), ["softmax seed 0", "softmax seed 3"]),
        (
            (Runs(("softmax",), backbones=(NET, PLAIN)), OURS),
            [f"softmax {NET}", f"softmax {PLAIN}", "ours"],
        ),
        (
            (Runs(("softmax", "cosine_softmax"), backbones=(NET,)), LONGER),
            ["softmax", "cosine_softmax", "cosine_softmax longer"],
        ),
    ],
)
def test_a_network_is_named_by_what_tells_it_from_the_others(
    tmp_path: Path, networks: tuple[Runs | Given, ...], names: list[str]
) -> None:
    graph = graph_of(*networks)
    display, said = opened(graph, Store(tmp_path))
    for step in graph.steps.values():
        if step.name in ("train", "given"):
            display.started(step)
            display.finished(step, {"status": "done", "seconds": 3})
    assert said() == [f"{name} {'loaded' if name == 'ours' else 'trained'} in 3 s" for name in names]


@pytest.mark.parametrize(
    ("measure", "kind", "network"),
    [
        ("from_scratch", "scratch_cell", "seed 3"),
        ("fine_tuning", "fine_tune_cell", "softmax seed 3"),
        ("accuracy", "train", "softmax seed 3"),
    ],
)
def test_what_is_trained_is_named_by_its_step_and_target_unless_it_is_a_network_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str, kind: str, network: str
) -> None:
    monkeypatch.setattr("penultimate.engine.display.LOG_EVERY", -1.0)
    graph = graph_of(Runs(("softmax",), backbones=(NET,), measure=(measure,), seeds=(0, 3)))
    display, said = opened(graph, Store(tmp_path))
    step = next(step for step in graph.steps.values() if step.name == kind and step.columns["seed"] == 3)
    display.started(step)
    display.progressed(
        step, {"epoch": 1, "epochs": 2, "loss": 0.5, "images_per_second": 9.0, "seconds_left": 3.0}
    )
    display.finished(step, {"status": "diverged", "reason": "loss is nan", "seconds": 1})
    name = network if kind == "train" else f"{kind} {network} {step.columns['target']}"
    assert said() == [
        f"{name} epoch 1 of 2, loss 0.500, 9 img/s, 3 s left",
        f"{name} diverged: loss is nan; the study goes on without it",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_log_in_which_nothing_else_is_said_tells_how_many_steps_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    graph = graph_of(Runs(("softmax",), backbones=(NET,)))
    display, said = opened(graph, Store(tmp_path), terminal)
    first, second, third = [step for step in graph.steps.values() if step.name == "extract"][:3]
    display.finished(first, {"status": "done", "seconds": 1})
    monkeypatch.setattr("penultimate.engine.display.COUNTED_EVERY", -1.0)
    display.finished(second, {"status": "done", "seconds": 1})
    monkeypatch.undo()
    display.finished(third, {"status": "done", "seconds": 1})
    display.closed()
    lines = [line for line in said() if "steps are done" in line]
    assert lines == ([] if terminal else [f"2 of {len(graph.steps)} steps are done"])


def test_a_networks_accuracy_is_told_as_soon_as_it_is_known(tmp_path: Path) -> None:
    store, graph = Store(tmp_path), graph_of(Runs(("softmax",), backbones=(NET,)))
    store.prepare()
    display, said = opened(graph, store)
    step = next(step for step in graph.steps.values() if step.name == "accuracy")
    top1 = [Row(metric="top1", value=value, split=split) for split, value in (("train", 0.5), ("test", 0.25))]
    measure(store, step, *top1)
    display.finished(step, {"status": "done", "seconds": 1})
    assert said() == ["softmax train 50.0  test 25.0"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_probe_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr("penultimate.engine.display.LOG_EVERY", -1.0)
    graph = graph_of(Runs(("softmax",), backbones=(NET,)))
    display, said = opened(graph, Store(tmp_path), terminal)
    step = next(step for step in graph.steps.values() if step.name == "linear")
    display.started(step)
    news = {"doing": "linear probe", "done": 12, "of": 46, "unit": "fits", "seconds_left": 80.0}
    display.progressed(step, news)
    task = display.progress.tasks[-1] if display.progress else None
    display.closed()
    expected = "linear probe: 12 of 46 fits, about 1:20 left"
    if task is None:
        assert said() == [f"linear softmax {step.columns['target']} {expected}"]
    else:
        assert (task.completed, task.total, task.fields["note"]) == (12, 46, expected)


def test_what_has_no_value_is_said_once_with_the_reason(tmp_path: Path) -> None:
    graph = graph_of(Runs(("softmax", "sigmoid"), backbones=(NET,)))
    display, said = opened(graph, Store(tmp_path))
    one, other = [step for step in graph.steps.values() if step.name == "extract"][:2]
    for step in (one, other):
        display.finished(step, {"status": "done", "seconds": 1, "undefined": "one class [only]"})
    target = one.columns["target"]
    assert said() == [f"extract softmax {target}: no value: one class [only]"]
