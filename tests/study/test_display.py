"""What a running study says names the run it speaks of."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from penultimate.store import Store
from penultimate.study import load_study
from penultimate.study.display import Display
from penultimate.study.graph import unfold

PLAIN = "glyphplain(features=32, width=8)"


@pytest.mark.parametrize("several", [True, False])
def test_of_several_architectures_every_line_names_its_own(tmp_path: Path, several: bool) -> None:
    smoke = load_study("smoke")
    backbones = (*smoke.backbones, PLAIN) if several else (PLAIN,)
    graph = unfold(dataclasses.replace(smoke, backbones=backbones))
    written = io.StringIO()
    display = Display(Store(tmp_path), Console(file=written, width=200, highlight=False))
    display.opened(graph, 0, 1)
    step = next(
        step
        for step in graph.steps.values()
        if step.name == "train" and step.about["backbone"] == PLAIN and step.about["slug"] == "softmax"
    )
    display.started(step)
    display.failed(step, "no memory", "")
    display.finished(step, {"status": "done", "seconds": 3.0})
    failed, finished = written.getvalue().splitlines()[-2:]
    assert step.id in failed
    assert (PLAIN in failed, PLAIN in finished) == (several, several)
    assert "no memory" in failed
    assert "trained in 3 s" in finished
