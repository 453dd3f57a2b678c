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
from penultimate.report import exhibit, read_study, render_exhibit_text, render_report
from penultimate.report.base import StudyResults
from penultimate.report.networks import is_further
from penultimate.study import load_study
from tests.inprocess import InProcess
from tests.report.html import Page
from tests.report.planted import as_in_the_paper, planted

FILE = Path(__file__).with_name("paper.py")
OF_THE_FIRST = re.compile(
    r"kornblith|neurips|iclr|imagenet|\bnine\b|cosine|squared error|table [A-F.]*\d", re.IGNORECASE
)
"""Words of the first paper that the second one's page has no use for."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyResults]:
    out = tmp_path_factory.mktemp("second")
    plugin = load_plugin(FILE)
    run(load_study("forgetting"), out, observer=None, engine=InProcess())
    yield read_study(out, "forgetting")
    for entry in plugin.entries:
        registry.forget(entry.kind, entry.name)


def ids_of(page: Page) -> set[str]:
    return {element.attributes["id"] for element in page.elements if "id" in element.attributes}


def test_its_exhibits_are_shown_from_its_rows(results: StudyResults) -> None:
    built = exhibit("memories", results, allow_limited=True)
    table, printed = built.tables
    assert [row.cells[0].text for row in printed.rows] == ["99.0", "91.5", "88.0"]
    assert [row.label for row in printed.rows] == ["Softmax", "Dropout", "an objective of its own"]
    assert [row.objective for row in table.rows] == ["softmax", "dropout", "label_smoothing"]
    assert all(cell.value is not None for row in table.rows for cell in row.cells)
    assert built.missing == ()
    assert registry.entry("exhibit", "memories").resolve().study == "forgetting"
    with pytest.raises(RequestError, match="run a full study: penultimate run forgetting"):
        exhibit("memories", results)
    assert "holds" in render_exhibit_text(exhibit("verdict", results, allow_limited=True))


def test_its_page_has_its_own_chapters_headline_and_words_alone(results: StudyResults) -> None:
    page = Page(render_report(results)[""].decode())
    text = " ".join(element.text for element in page.elements)
    for said in ("remembers least", "What networks remember", "To be right on a training image", "made up"):
        assert said in text
    assert {"memories", "verdict"} <= ids_of(page)
    assert OF_THE_FIRST.findall(text) == []


def test_its_further_architectures_are_its_own(results: StudyResults) -> None:
    assert is_further("glyphwide(width=4)", "forgetting")
    assert not is_further("glyphwide(width=4)", "usual")
    assert not is_further("inception_v3", "forgetting")


def test_the_first_papers_page_does_not_draw_its_exhibits(results: StudyResults) -> None:
    page = Page(render_report(planted(as_in_the_paper()))[""].decode())
    assert "memories" not in ids_of(page)
    assert "claims" in ids_of(page)
