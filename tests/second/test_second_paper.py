"""The machine serves a second paper: it runs its study, shows its exhibits, and draws its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate import registry
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.plugins import load_plugin
from penultimate.results.exhibit import show
from penultimate.results.page import render_page
from penultimate.results.rows import Run, read_run
from penultimate.study import load_study
from tests.inprocess import InProcess

FILE = Path(__file__).with_name("paper.py")
OF_THE_FIRST = re.compile(
    r"kornblith|neurips|iclr|imagenet|\bnine\b|cosine|squared error|table [A-F.]*\d", re.IGNORECASE
)
"""Words of the first paper that the second one's page has no use for."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    out = tmp_path_factory.mktemp("second")
    plugin = load_plugin(FILE)
    run(load_study("forgetting"), out, observer=None, engine=InProcess())
    yield read_run(out, "forgetting")
    for entry in plugin.entries:
        registry.forget(entry.kind, entry.name)


def test_its_exhibits_are_shown_from_its_rows(finished: Run) -> None:
    table, printed = show("memories", finished, allow_limited=True).tables
    assert printed.shown()[0] == ["99.0"]
    assert printed.labels == ["Softmax", "Dropout", "an objective of its own"]
    assert table.slugs == ("softmax", "dropout", "label_smoothing")
    assert not table.has_gaps
    with pytest.raises(RequestError, match="run a full study"):
        show("memories", finished)
    (line,) = show("verdict", finished, allow_limited=True).verdicts()
    assert line.startswith(("holds ", "does not hold "))


def test_its_page_has_its_own_chapters_answer_and_words_alone(finished: Run) -> None:
    page = render_page(finished)[""].decode()
    text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    for said in ("remembers least", "What networks remember", "made up"):
        assert said in text
    assert 'id="memories"' in page
    assert 'id="verdict"' in page
    assert OF_THE_FIRST.findall(text) == []


def test_its_further_architectures_are_its_own(finished: Run) -> None:
    assert finished.further == []
    assert "glyphwide" in registry.entry("page", "forgetting").facts["further"]
