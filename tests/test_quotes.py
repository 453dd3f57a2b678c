"""README and the documentation say what the runs that come with the package have."""

from __future__ import annotations

import re

import pytest
from docs import pictures, quotes
from docs.quoted import QUOTES, claims

from penultimate.paper.claims.stated import general_claims
from penultimate.study import load_study
from penultimate.study.unfold import unfold

PAGES = {str(path.relative_to(quotes.ROOT)): path.read_text(encoding="utf-8") for path in quotes.pages()}
QUOTING = [name for name, text in PAGES.items() if quotes.quoted(text)]


@pytest.mark.parametrize("name", QUOTING)
def test_a_page_says_what_the_kept_rows_have(name: str) -> None:
    text = PAGES[name]
    assert text == quotes.written(text), f"{name} is out of date: python -m docs.quotes"


def test_every_quotation_stands_on_a_page_and_every_block_is_closed() -> None:
    found = [name for text in PAGES.values() for name in quotes.quoted(text)]
    assert {"docs/results.md", "docs/world.md"} <= set(QUOTING)
    assert set(found) == set(QUOTES)
    for text in PAGES.values():
        assert text.count("<!-- numbers: ") == text.count("<!-- end -->") == len(quotes.quoted(text))
        assert not re.search(r"^<!-- numbers: \w+ -->\S", text, re.MULTILINE), "Markdown reads it as HTML"


def test_the_steps_of_the_quickstart_are_those_that_it_unfolds_into() -> None:
    """They stand in commands and in sentences, where no block can."""
    steps = len(unfold(load_study("quickstart")).steps)
    pages = (
        "README.md",
        "docs/tutorials/reproduce.md",
        "docs/start/study.md",
        "docs/world.md",
    )
    for name in pages:
        said = re.findall(r"(?:quickstart[^\n]{0,40}# |\(|machine: )(\d+) steps", PAGES[name])
        assert set(said) == {str(steps)}, name


def test_a_number_that_was_changed_by_hand_is_found() -> None:
    text = PAGES["docs/world.md"]
    changed = re.sub(r"(?<=softmax_test -->)77", "78", text)
    assert changed != text
    assert quotes.written(changed) == text
    with pytest.raises(KeyError, match=r"no quotation is called 'rhos'; known: .*of_overlap"):
        quotes.written("<!-- numbers: rhos -->0.3<!-- end -->")


def test_the_pictures_are_those_of_the_kept_rows() -> None:
    assert pictures.stale() == []
    drawn = re.findall(r"\]\((?:docs/)?pictures/([^)]+)\)", PAGES["README.md"] + PAGES["docs/results.md"])
    assert {*pictures.PICTURES} <= {*drawn}


def test_claims_are_those_that_the_page_itself_shows() -> None:
    assert {one["verdict"] for one in claims()} == {"holds", "does not hold", "undecided"}
    assert len(claims()) == len(general_claims())
