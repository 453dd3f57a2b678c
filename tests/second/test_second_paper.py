"""The machine serves a second paper: it runs its study, shows its exhibits, and draws its page."""

import re
from pathlib import Path

from penultimate import registry
from penultimate.engine.run import run
from penultimate.plugins import load_plugin
from penultimate.results.exhibit import show
from penultimate.results.page import render_page
from penultimate.results.rows import read_run
from penultimate.study import load_study
from tests.inprocess import InProcess

OF_THE_FIRST = r"(?i)kornblith|neurips|iclr|imagenet|\bnine\b|cosine|squared error|table [A-F.]*\d"


def test_a_second_paper_has_its_exhibits_and_a_page_of_its_own_words(tmp_path: Path) -> None:
    plugin = load_plugin(Path(__file__).with_name("paper.py"))
    try:
        run(load_study("forgetting"), tmp_path, observer=None, engine=InProcess())
        finished = read_run(tmp_path, "forgetting")
        table, printed = show("memories", finished, allow_limited=True).tables
        assert (printed.shown()[0], printed.labels) == (["99.0"], ["Softmax", "an objective of its own"])
        assert table.slugs == ("softmax", "dropout", "label_smoothing")
        (line,) = show("verdict", finished, allow_limited=True).verdicts()
        assert line.startswith(("holds ", "does not hold "))
        page = render_page(finished)[""].decode()
        text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        assert all(said in text for said in ("Softmax remembers.", "What networks remember", "made up"))
        assert 'id="memories"' in page
        assert re.findall(OF_THE_FIRST, text) == []
        assert finished.further == []
    finally:
        for entry in plugin.entries:
            registry.forget(entry.kind, entry.name)
