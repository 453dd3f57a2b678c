"""Names that would be markup, formulas, commands or escape sequences, through every way out of a study."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from penultimate.cli import main
from penultimate.data.catalog import card
from penultimate.data.images import ImageSet, load_images, save_images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.probes.multilabel import MultiLabelProbe
from penultimate.records.table import Table
from penultimate.registry import entry
from penultimate.report import StudyResults, render_exhibit_text, render_report
from penultimate.report.measurements import admit
from penultimate.report.spec import all_exhibits, assemble
from penultimate.report.tables import latex_escape
from penultimate.report.text import plain
from penultimate.study import Given, Runs
from tests.records.stores import SOFTMAX, described, finished, prepared
from tests.report.html import Page
from tests.report.synthetic import MEASURED, study

NAMES = {
    "all at once": "<script>alert(1)</script>\x1b[31m\u202e\\input{x}%$#&_{}~^\n\t\0"
    "../../x,\"><img src=x onerror=alert(2)></style><script>'`{{ 7*7 }}]]>\udcff",
    "script": "<script>alert(1)</script>",
    "end of style": "</style><script>alert(2)</script>",
    "element": '"><img src=x onerror=alert(1)>',
    "brackets": "]]>" + "]" * 300 + "'''",
    "attribute": "\" onload='alert(1)' x=\"",
    "entity": "&lt;b&gt; &amp; <!-- ]]> -->",
    "formula": "=cmd()",
    "full-width formula": "＝cmd()",
    "plus": "+1",
    "at": "@x",
    "minus": "-2+3",
    "tab and formula": "\t=1+1",
    "LaTeX specials": "%$#&_{}~^\\",
    "LaTeX command": "\\input{x}\\end{tabular}",
    "template": "{{ 7*7 }} {% raw %} {source}",
    "new lines": "a\nb\r\nc\u2028d",
    "tabs": "a\tb",
    "nul": "a\0b",
    "escape codes": "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "right to left": "a\u202egnp.exe\u2066b",
    "emoji": "👩‍💻🙂",
    "unpaired": "a\udcff\ud800b",
    "very long": "name " * 2000,
    "very long word": "n" * 10_000,
    "empty": "",
    "above": "..",
    "path": "/etc/passwd",
    "upper case": "A WORD",
    "comma and quotes": "a,\"b\",'c';d|e",
}
BENIGN = "a word"
WRAPPED = {r"\raggedright", r"\arraybackslash", r"\linewidth"}
"""The commands of a column of sentences, which a long name is."""
DRAWN = {"svg", "g", "defs", "path", "use", "text", "title", "clippath", "rect", "p"}
"""The elements of drawings, and of sentences, whose number follows from what is said."""
SOONER = ("all at once", "formula")
"""Those that are tried when there is little time."""


@functools.cache
def told(text: str) -> StudyResults:
    """A small study in which every free text is this one: names, labels, titles, reasons, steps."""
    results = study((0, 1), objectives=tuple(MEASURED)[:3], label=text, targets=("digits",), epochs=2)
    (grid,) = results.description["networks"]
    given = {"given": {f"given {text}": text}, "classifies": False, "measure": None}
    about = {**card("digits").described(), "name": "digits", "title": text, "note": text, "citation": text}
    own = {**about, "name": f"set {text}", "sizes": [["train", 4], ["test", 4]], "accuracy": "top1"}
    description = {
        **results.description,
        "title": text,
        "question": text,
        "command": text,
        "targets": ["digits", own["name"]],
        "cards": [own],
        "networks": [{**grid, "backbones": [f"net {text}"], "recipe": {text: text}}, given],
    }
    rows = [dataclasses.replace(row, backbone=f"net {text}", step=text) for row in results.table]
    rows += [dataclasses.replace(row, target=own["name"]) for row in rows if row.metric == "linear_top1"]
    provenance = {f"a {text}": {text: [text]}, "command": text, "diverged": {text: text}, **about_steps(text)}
    return StudyResults(description, Table(rows), None, provenance)


def about_steps(text: str) -> dict[str, object]:
    """What an evaluation says of its data, networks and steps, in free texts all of it."""
    given, step = f"given {text}", f"probed.{text}.0"
    return {
        "left_out": {text: [text]},
        "remarks": {text: [text]},
        "copies": {text: [text]},
        "images": {text: {text: 3}},
        "noted": {given: {text: text}},
        "prepared": {
            given: {
                **{"resize": 256, "crop": 224, "interpolation": text, "squash": False, "from": text},
                "statistics": {"mean": [0.5], "std": [0.25]},
            }
        },
        "classes_not_validated": {text: [text]},
        "undefined": {step: f"for {text}", f"dynamics.{text}.0": f"for {text}"},
        "undefined_of": {step: {"network": text, "target": text}},
        "failed": {f"given.{text}.0": {"why": text, "network": text, "target": None}},
        "lacking": [text],
    }


@functools.cache
def files(text: str) -> dict[str, bytes]:
    return render_report(told(text))


def is_clean(text: str) -> bool:
    """Whether text holds nothing that a terminal or XML acts on, and nothing that turns what is read."""
    turning = {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}
    return not any(
        (unicodedata.category(sign) in ("Cc", "Cs") and sign != "\n")
        or unicodedata.bidirectional(sign) in turning
        for sign in text
    )


@functools.cache
def structure(text: str) -> list[tuple[str, list[str]]]:
    """The elements of the page outside of drawings, with the names of their attributes."""
    elements = Page(files(text)[""].decode()).elements
    return [
        (element.tag, sorted(element.attributes))
        for element in elements
        if "svg" not in (element.tag, *(above.tag for above in element.ancestors))
    ]


def commands(source: str) -> set[str]:
    return set(re.findall(r"\\[A-Za-z]+", source))


every_name = pytest.mark.parametrize(
    "name", [name if name in SOONER else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)


@pytest.mark.long
@every_name
def test_on_the_page_a_name_is_text_and_changes_no_element(name: str) -> None:
    text = NAMES[name]
    page = Page(files(text)[""].decode())
    if text:
        assert structure(text) == structure(BENIGN)
    assert len(page.all("script")) == 1
    assert not any(key.startswith("on") for element in page.elements for key in element.attributes)
    whole = "".join(element.text for element in page.elements if element.tag not in ("style", "script"))
    assert is_clean(whole.replace("\r", ""))
    words = plain(text).replace("'", "’")[:30]
    assert (
        words in " ".join(whole.replace("'", "’").replace("\N{NO-BREAK SPACE}", " ").split()) or "`" in text
    )


NUMBER = r"-?inf|[+-]?[\d.,]*\d(e[+-]?\d+)?( ?%)?( [^\W\d_][^|!\"]*| \([^|!\"]*)?"
"""A number, with the words or the interval that follow it."""


@every_name
def test_in_csv_a_name_is_one_cell_and_no_formula(name: str) -> None:
    for file, content in files(NAMES[name]).items():
        if not file.endswith(".csv"):
            continue
        lines = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
        assert len({len(line) for line in lines}) == 1, file
        for cell in (cell for line in lines for cell in line):
            is_number = re.fullmatch(NUMBER, cell)
            assert is_number or not cell.startswith((*"=+-@＝＋－＠", "\t", "\r", "\n")), (file, cell)
    table = list(csv.DictReader(io.StringIO(files(NAMES[name])["table1_linear.csv"].decode())))
    assert plain(NAMES[name]) in ["", *(row["Objective"].removeprefix("'") for row in table)]


@every_name
def test_in_latex_a_name_is_text(name: str) -> None:
    """Tables have their rows and columns, braces their pairs; a name adds what stands for its signs."""
    own = files(BENIGN)
    for file, content in files(NAMES[name]).items():
        if not file.endswith(".tex") or file not in own:
            continue
        source = content.decode()
        bare = re.sub(r"\\[\\&%$#_{}]", "", source)
        balance = 0
        for sign in bare:
            balance += (sign == "{") - (sign == "}")
            assert balance >= 0, file
        assert balance == 0, file
        if NAMES[name]:
            expected = own[file].decode()
            for count in ("\n", "\\\\\n", "%"):
                unescaped = source.replace("\\%", ""), expected.replace("\\%", "")
                assert unescaped[0].count(count) == unescaped[1].count(count), (file, count)
        of_name, of_benign = commands(latex_escape(NAMES[name])), commands(own[file].decode())
        assert commands(source) <= of_name | of_benign | WRAPPED, file
        assert is_clean(source)
    assert r"\input" not in "".join(latex_escape(NAMES[name]).split(r"\textbackslash{}"))


@every_name
def test_in_drawings_a_name_is_text(name: str) -> None:
    for file, content in files(NAMES[name]).items():
        if file.endswith(".svg"):
            elements = list(ElementTree.fromstring(content).iter())
            tags = {element.tag.rpartition("}")[2] for element in elements}
            assert tags <= {"svg", "g", "defs", "path", "use", "text", "title", "clipPath", "rect"}
            assert not any(key.startswith("on") for element in elements for key in element.attrib)
            assert is_clean("".join(element.text or "" for element in elements))


@every_name
def test_in_a_notebook_a_name_is_text_and_changes_no_element(name: str) -> None:
    shown = []
    for text in (NAMES[name], BENIGN):
        measurements = admit(told(text), allow_limited=True)
        drawn = [assemble(entry("exhibit", each).resolve(), measurements) for each in ("table1", "figure5")]
        bank = FeatureBank(np.eye(2), np.arange(2), provenance={text: text})
        labels = np.tile(np.eye(2, dtype=int), (9, 1))
        probe = MultiLabelProbe([1.0], names=(text, "b")).fit(np.arange(18.0)[:, None] % 7, labels)
        shown.append([each._repr_html_() for each in (*drawn, bank, probe)])
    for source, benign in zip(*shown, strict=True):
        page, expected = Page(source), Page(benign)
        assert not any(key.startswith("on") for element in page.elements for key in element.attributes)
        tags = [[each.tag for each in one.elements if each.tag not in DRAWN] for one in (page, expected)]
        assert not NAMES[name] or tags[0] == tags[1]
        assert is_clean("".join(element.text for element in page.elements).replace("\r", ""))


@every_name
def test_files_are_called_by_what_they_show_not_by_names(name: str) -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+\.(csv|tex|svg)", file) for file in files(NAMES[name]) if file)
    assert len(files(NAMES[name])) == len(files(BENIGN))


@every_name
def test_in_a_terminal_a_name_is_text_of_one_line(name: str) -> None:
    measurements, benign = (admit(told(text), allow_limited=True) for text in (NAMES[name], BENIGN))
    for exhibit in all_exhibits():
        shown = render_exhibit_text(assemble(exhibit, measurements))
        assert is_clean(shown)
        if len(NAMES[name]) < 60 and exhibit.name == "table1":
            assert plain(NAMES[name]) in shown
            lines = [line for line in shown.splitlines() if line.startswith("─")]
            expected = render_exhibit_text(assemble(exhibit, benign)).splitlines()
            assert len(lines) == sum(line.startswith("─") for line in expected)


@pytest.mark.long
@every_name
def test_the_commands_print_nothing_that_a_terminal_acts_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = NAMES[name]
    store = prepared(tmp_path)
    facts = {"metric": "top1", "split": "test", "value": 0.5, "target": "glyphs"}
    objective = {**SOFTMAX, "objective": text, "source": "glyphs"}
    step = finished(store, "accuracy.x", objective, [facts], status="diverged", reason=text)
    listed = [{"slug": text, "label": text, "spec": text}]
    described(store, "mine", [step], objectives=listed, command=text, title=text, arms={step: [text]})
    out = ["--out", str(tmp_path)]
    for command in ("status", "why", "show", "list", "report"):
        about = {"why": ["--", "table1", text], "show": ["table1"], "list": ["exhibits"]}
        main([command, *out, *about.get(command, [])])
        said = capsys.readouterr()
        assert is_clean(said.out + said.err), command


@every_name
def test_arms_and_given_networks_are_printable_or_refused(name: str) -> None:
    text = NAMES[name]
    fits = len(text) <= 100 and text.isprintable() and not set(text) & set("|,=")
    for make in (lambda: Runs(("softmax",), arm=text), lambda: Given({text: "timm:resnet18"})):
        if fits and text:
            make()
        elif text:
            with pytest.raises(RequestError, match="a word or two of at most 100 printable characters"):
                make()


def test_blanks_alone_name_no_network() -> None:
    with pytest.raises(RequestError, match="a word or two of at most 100 printable characters"):
        Given({" ": "timm:resnet18"})


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("unpaired", "all at once")])
def test_a_class_of_any_name_is_kept(tmp_path: Path, name: str) -> None:
    classes = (NAMES[name], BENIGN, BENIGN.upper() + "!")
    images = ImageSet(np.zeros((3, 8, 8, 3), np.uint8), np.arange(3), np.arange(3), classes)
    save_images(tmp_path, "test", images)
    assert tuple(load_images(tmp_path, "test").class_names) == classes
