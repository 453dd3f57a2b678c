"""The documentation site: links that hold, warnings that are errors, nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from docs import gallery, site

from penultimate.results.beside import why_apart
from penultimate.results.exhibit import marks_of
from penultimate.results.table import Column, table_of_rows

ELSEWHERE = re.compile(
    r"""(?:<(?:script|img|iframe)[^>]* src|<link[^>]* href|url\(|@import)[="'( ]*https?://"""
)


@pytest.mark.parametrize(
    ("text", "page", "becomes"),
    [
        ("[a](data.md#your-own)", "docs/cluster.md", "[a](data.md#your-own)"),
        ("[a](../world.md)", "docs/explain/seeds.md", "[a](../world.md)"),
        ("[a](docs/house.md)", "CONTRIBUTING.md", "[a](house.md)"),
        ("[a](../CITATION.cff)", "docs/world.md", "a (`CITATION.cff`)"),
        ("[CITATION.cff](../CITATION.cff)", "docs/world.md", "CITATION.cff"),
        ("[a](../CONTRIBUTING.md)", "docs/house.md", "[a](contributing.md)"),
        ("[a](https://pypi.org)", "docs/peers.md", "[a](https://pypi.org)"),
    ],
)
def test_links_hold_on_the_site(text: str, page: str, becomes: str) -> None:
    path = site.ROOT / page
    to = Path(site.FROM_ROOT[page]) if page in site.FROM_ROOT else path.relative_to(site.PAGES)
    assert site.with_links(text, path, to) == becomes


def test_a_table_shows_hostile_text_as_it_is() -> None:
    table = table_of_rows("t", "<b>", [Column("a", "<i>")], [("<script>", ["<1"])])
    text = "\n".join(gallery.table(table))
    assert "&lt;1" in text
    assert "<script>" not in text
    assert gallery.plain("a_b*c[d]<e>|$f`") == r"a\_b\*c\[d\]\<e\>\|\$f\`"


def test_a_finished_portrait_stands_beside_the_reference_run_in_the_gallery() -> None:
    run = gallery.portraits()["focal"]
    assert why_apart(run) == ""
    assert gallery.exhibits_of(run)[0].name == "portrait_place"
    text = "\n".join(gallery.portrait(run, marks_of(gallery.exhibits_of(run))))
    assert text.startswith("# Portrait of Focal (gamma = 0.2)\n\n**Compared with softmax, Focal")
    assert text.count("<svg") >= 4
    assert len(text) < 300_000


@pytest.mark.long
def test_the_site_builds_without_a_warning_and_takes_nothing_from_elsewhere(tmp_path: Path) -> None:
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("make docs installs Sphinx")
    assert site.build(tmp_path) == 0
    pages = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "html").rglob("*.html")}
    assert len(pages) > 100
    assert [path.name for path, text in pages.items() if ELSEWHERE.search(text)] == []
    (tmp_path / "source/peers.md").write_text("# Peers\n\n[gone](removed.md)\n", encoding="utf-8")
    assert site.render(tmp_path) != 0


def test_a_button_copies_the_commands_of_a_block_without_the_comments_beside_them() -> None:
    """The script's own pattern, which reads the same in Python, against how a shell reads the lines."""
    script = (site.PAGES / "_static/copy.js").read_text(encoding="utf-8")
    comment = re.compile(re.findall(r"const comment = /(.*)/;", script)[0])
    block = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
    pages = [site.ROOT / "README.md", *site.PAGES.rglob("*.md")]
    lines = [
        line
        for page in pages
        for found in block.findall(page.read_text(encoding="utf-8"))
        for line in found.splitlines()
    ]
    assert len(lines) > 100
    for line in (*lines, 'a \'b # c\' \\" # "d"'):
        if not line.endswith("\\"):
            copied = comment.sub(r"\1", line)
            assert shlex.split(copied) == shlex.split(line, comments=True), line
            assert copied == copied.rstrip()
    assert comment.sub(r"\1", "a#b $#  # c") == "a#b $#"  # what begins within a word is no comment
