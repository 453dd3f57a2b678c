"""How far long work is: heard by a listener, else said on a terminal, and nothing of short work."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penultimate import progress
from penultimate.engine import execute
from penultimate.graph import Step
from penultimate.probes import neighbours
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe
from penultimate.probes.multilabel import MultiLabelProbe
from penultimate.progress import Advance, listening
from penultimate.store import Store
from tests.probes.conftest import blobs

POINTS, LABELS = blobs(0, 300, 4, 3, 2.0)
TWO = np.stack([LABELS == 0, LABELS == 1], axis=1).astype(int)
FITS = {
    "linear probe: 6 fits": lambda: LinearProbe(np.logspace(-2, 2, 5)).fit(POINTS, LABELS),
    "kNN probe: 300 examples": lambda: KNNProbe(max_k=3).fit(POINTS, LABELS),
    "linear probes: 2 labels": lambda: MultiLabelProbe([0.1, 1.0]).fit(POINTS, TWO),
}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TOLD_EVERY", 0.0)
    monkeypatch.setattr(progress, "SAID_EVERY", 0.0)
    monkeypatch.setattr(neighbours, "BLOCK_DISTANCES", {"host": 300 * 64, "device": 300 * 64})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def expect_steady(heard: list[dict[str, Any]], what: str) -> None:
    """Several pieces of news of one piece of work, up to its end."""
    assert {f"{news['doing']}: {news['of']} {news['unit']}" for news in heard} == {what}
    done = [news["done"] for news in heard]
    assert len(set(done)) > 2
    assert done == sorted(done)
    assert done[-1] == heard[-1]["of"]
    assert heard[-1]["seconds_left"] == 0
    assert all(news["seconds_left"] > 0 for news in heard if news["done"] < news["of"])


@pytest.mark.parametrize("what", FITS)
def test_a_listener_hears_how_far_a_probe_is(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, Any]] = []
    with listening(heard.append):
        FITS[what]()
    expect_steady(heard, what)
    FITS[what]()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("what", FITS)
def test_without_a_listener_a_terminal_shows_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    FITS[what]()
    doing, _, size = what.partition(": ")
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 2
    assert all(line.startswith(f"{doing}: ") and line.endswith(" left") for line in lines)
    total, unit = size.split()
    assert lines[-1] == f"{doing}: {total} of {total} {unit}, about 0 s left"


def test_what_works_within_a_step_is_heard_by_its_observer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def works(inputs: object) -> execute.Outcome:
        Advance("long work", "pieces", 4).to(3)
        return execute.Outcome()

    monkeypatch.setitem(execute.CORE, "data", works)
    heard: list[dict[str, Any]] = []
    store = Store(tmp_path)
    (tmp_path / "steps").mkdir()
    execute.execute(store, Step("data", 1, {}, {}, label="data"), heard.append)
    ((done, total),) = ((news["done"], news["of"]) for news in heard)
    assert (done, total) == (3, 4)
