"""The page: whole in one file, every label escaped, the same bytes from the same results."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.paper.page import SECTIONS
from penultimate.records.table import Table
from penultimate.report import render_report, write_report
from penultimate.report.base import Cell, Column, ExhibitTable, StudyResults, TableRow
from penultimate.report.page import page as page_of_report
from penultimate.report.page.page import _typeset as typeset_on_page
from penultimate.report.page.provenance import provenance
from penultimate.report.spec import all_exhibits
from tests.html_page import Page
from tests.report.reading import glyphs, only
from tests.report.synthetic import HOSTILE, MEASURED, picture, study


@pytest.fixture(scope="module")
def results() -> StudyResults:
    return study((0, 1, 2), diverged=("dropout(keep=0.9)", 1), label=HOSTILE, sheet=picture())


@pytest.fixture(scope="module")
def files(results: StudyResults) -> dict[str, bytes]:
    return render_report(results)


@pytest.fixture(scope="module")
def page(files: dict[str, bytes]) -> Page:
    return Page(files[""].decode())


@pytest.mark.long
def test_an_unfinished_study_whose_parts_were_joined_names_no_command_that_goes_on(
    results: StudyResults,
) -> None:
    joined = {"command": "penultimate join a b", "networks": (1, 2), "steps": {"knn": (3, 3)}}
    elements = Page(render_report(dataclasses.replace(results, provenance=joined))[""].decode()).elements
    (said,) = (one.all_text for one in elements if "notice" in one.classes and "Unfinished" in one.all_text)
    assert "Unfinished: 1 of 2 networks." in said
    labels = {one.text for one in elements}
    assert {"Networks, of how many", "Steps done, of how many (in each part that needs it)"} <= labels
    assert said.split(".")[0].endswith("is in no number on this page")  # and a stop, not what to type


@pytest.mark.long
def test_the_page_needs_nothing_from_outside(page: Page) -> None:
    for element in page.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset", "data", "poster"):
            address = element.attributes.get(name, "")
            assert not re.match(r"(?i)\s*(https?:|//|file:|javascript:)", address), (element.tag, address)
        assert not any(name.startswith("on") for name in element.attributes), element.attributes
    styles = "".join(element.text for element in page.all("style"))
    assert "@import" not in styles
    assert "url(" not in styles
    assert {element.tag for element in page.elements}.isdisjoint(
        {"iframe", "object", "embed", "base", "form"}
    )


def test_only_its_own_script_may_run(page: Page) -> None:
    policy = next(
        element.attributes["content"]
        for element in page.all("meta")
        if element.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    (script,) = page.all("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert re.search(r"script-src ([^;]*);", policy)[1] == f"'sha256-{digest}'"  # type: ignore[index]


def test_two_seeds_are_not_read_as_a_share() -> None:
    told = dict(provenance(study((0, 1), epochs=2)))
    assert told["Seeds"] == "0, 1"
    assert dict(told["Steps done, of how many"])["train"] == "9 of 9"


def test_durations_are_told_without_the_noise_of_their_sums() -> None:
    described = study((0, 1), epochs=2)
    seconds = {"train": sum([0.1] * 3), "linear": 12}
    told = provenance(dataclasses.replace(described, provenance={**described.provenance, "seconds": seconds}))
    assert dict(told)["Seconds of work, by kind of step"] == [("train", "0.3"), ("linear", "12")]


def test_the_label_is_shown_as_it_was_written(page: Page) -> None:
    shown = [element for element in page.elements if HOSTILE in element.text]
    assert {"th", "text", "button", "dt"} <= {element.tag for element in shown}


def test_the_same_results_give_the_same_bytes(results: StudyResults, files: dict[str, bytes]) -> None:
    assert render_report(results) == files


def test_ids_are_unique_and_references_lead_somewhere(page: Page) -> None:
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    for element in page.elements:
        references = [element.attributes.get("aria-labelledby", "")]
        if element.attributes.get("href", "").startswith("#"):
            references.append(element.attributes["href"].removeprefix("#"))
        references += re.findall(r"url\(#([^)]*)\)", " ".join(element.attributes.values()))
        assert all(reference in ids for reference in references if reference), references


@pytest.mark.long
def test_every_download_lies_beside_the_page(tmp_path: Path) -> None:
    results = study(objectives=tuple(MEASURED)[:3], targets=("digits", "maths"), epochs=2)
    path = tmp_path / "a # report?.html"
    written = write_report(results, path)
    assert written[0] == path
    assert all(file.is_file() for file in written)
    links = [
        element.attributes["href"]
        for element in Page(path.read_text(encoding="utf-8")).all("a")
        if not element.attributes["href"].startswith("#")
    ]
    assert len(links) > 20
    linked = {(tmp_path / unquote(link)).resolve() for link in links}
    assert linked <= {file.resolve() for file in written}
    suffixes = {file.name for file in written}
    for table in ("table1_linear", "table1_knn", "table3", "tableE1", "tableA2", "table1_linear_published"):
        assert {f"{table}.csv", f"{table}.tex"} <= suffixes


def test_published_tables_and_panels_look_different_and_hold_no_run_of_ours(page: Page) -> None:
    boxes = [element for element in page.elements if {"table-box"} <= set(element.classes)]
    boxes = [box for box in boxes if {"ours", "published"} & set(box.classes)]
    for box in boxes:
        published = "published" in box.classes
        assert published != ("ours" in box.classes)
        tags = [tag for tag in page.elements if "tag" in tag.classes and box in tag.ancestors]
        assert [tag.text for tag in tags] == ["published" if published else "measured here"]
        if "Every number in the rules" in box.all_text or "The paper’s line at the R²" in box.all_text:
            continue  # The reasons quote the paper, and the simulation is of its line.
        if "Claim by claim" in box.all_text:
            # The one table that names the paper beside us: in a column of its own.
            labels = [tag.text for tag in page.elements if tag.tag == "th" and box in tag.ancestors]
            assert {"The paper’s evidence", "This study’s evidence"} <= set(labels)
            continue
        assert ("paper" in box.all_text) == published
    assert {True, False} == {"published" in box.classes for box in boxes}
    for panel in (element for element in page.elements if "panel" in element.classes):
        assert ("seed " in panel.all_text) <= ("ours" in panel.classes)


def test_everyone_can_read_it(page: Page) -> None:
    assert page.all("html")[0].attributes["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert all(image.attributes.get("alt") for image in page.all("img"))
    for drawing in page.all("svg"):
        described = drawing.attributes.get("role") == "img" and drawing.attributes.get("aria-label")
        assert described or drawing.attributes.get("aria-hidden") == "true"
    for region in (element for element in page.elements if "scroll" in element.classes):
        assert region.attributes["tabindex"] == "0"
        assert region.attributes.get("aria-labelledby") or region.attributes.get("aria-label")
    assert all(head.attributes.get("scope") for head in page.all("th") if head.all_text.strip())
    assert all(equation.attributes.get("aria-label") for equation in page.all("math"))


@pytest.mark.long
def test_a_limited_study_says_so_at_the_top_and_at_every_exhibit() -> None:
    small: dict[str, Any] = {"objectives": tuple(MEASURED)[:3], "targets": ("digits",), "epochs": 2}
    page = Page(render_report(study(limited=True, **small))[""].decode())
    notice = next(element for element in page.elements if "notice" in element.classes)
    assert "limited run" in notice.all_text
    articles = page.all("article")
    assert len(articles) >= 7
    assert all("limited run" in article.all_text for article in articles)
    whole = Page(render_report(study(**small))[""].decode())
    assert "limited run" not in whole.all("body")[0].all_text.lower()


def test_exhibits_stand_under_the_papers_sections_and_those_in_parts_that_ask(page: Page) -> None:
    sections = [element for element in page.all("section") if element.attributes["id"].startswith("section-")]
    assert sections.pop(0).attributes["id"] == "section-claims"
    numbers = [element.attributes["id"].removeprefix("section-") for element in sections]
    own = {name: name.lower().replace(".", "-") or "beyond" for name in SECTIONS}
    assert numbers == [number for number in own.values() if number in numbers]
    (main,) = page.all("main")
    heads = {child.text: place for place, child in enumerate(main.children) if "part" in child.classes}
    parts = dict.fromkeys(section.part for section in SECTIONS.values() if section.part)
    assert len(parts) == 4
    assert list(heads) == list(parts)
    for part, place in heads.items():
        first = next(own[name] for name in own if SECTIONS[name].part == part and own[name] in numbers)
        assert main.children[place + 1].attributes["id"] == f"section-{first}"
    assert [element.text for element in page.all("li") if "part" in element.classes] == list(heads)
    exhibits = {name: registry.entry("exhibit", name).resolve() for name in registry.names("exhibit")}
    articles = [
        article for article in page.all("article") if any(one in article.ancestors for one in sections)
    ]
    shown = [article.attributes["id"] for article in articles]
    for one in sections:
        inside = [article.attributes["id"] for article in articles if one in article.ancestors]
        assert inside == [name for name in exhibits if name in inside]
    for article in articles:
        (section,) = [element for element in sections if element in article.ancestors]
        number = exhibits[article.attributes["id"]].section.lower().replace(".", "-")
        assert (number or "beyond").startswith(section.attributes["id"].removeprefix("section-"))
    contents = next(element for element in page.elements if "contents" in element.classes)
    links = [link for link in page.all("a") if contents in link.ancestors]
    by_name = {link.attributes["href"].removeprefix("#"): link.text for link in links}
    assert [name for name in by_name if name in shown] == shown
    assert not any(re.match("(Table|Figure|ICLR)", text) for text in by_name.values())


def test_what_contents_call_an_exhibit_is_short_and_its_own() -> None:
    shorts = [each.short for each in all_exhibits()]
    assert all(0 < len(short) <= 28 for short in shorts)
    assert len(set(shorts)) == len(shorts)


def test_the_answer_comes_first_then_the_verdicts_then_the_figure_then_the_claims(page: Page) -> None:
    answer, claims = page.all("section")[:2]
    assert (answer.attributes["id"], claims.attributes["id"]) == ("answer", "section-claims")
    inside = [element for element in page.elements if answer in element.ancestors]
    places = [
        next(place for place, element in enumerate(inside) if name in element.classes)
        for name in ("deck", "tally", "lead", "facts")
    ]
    assert places == sorted(places)
    tally, lead = inside[places[1]], inside[places[2]]
    verdicts = [row for row in page.all("tr") if claims in row.ancestors]
    counted = sum(int(count) for count in re.findall(r"(\d+) (?:hold|do|undecided)", tally.all_text))
    (table, *_) = (box for box in page.elements if "table-box" in box.classes and claims in box.ancestors)
    assert counted == len([row for row in verdicts if table in row.ancestors]) - 2  # two heads
    panels = [
        element.classes[1] for element in inside if "panel" in element.classes and lead in element.ancestors
    ]
    assert panels == ["ours", "published"]


def test_every_section_asks(page: Page) -> None:
    for section in page.all("section"):
        if section.attributes["id"].startswith("section-"):
            assert [child.tag for child in section.children][:2] == ["h2", "p"], section.attributes["id"]


@pytest.mark.long
def test_what_came_out_stands_once_and_before_what_shows_it() -> None:
    shares = only(glyphs(), lambda row: row.metric == "nonzero_share")
    page = Page(render_report(shares)[""].decode())
    (article,) = (one for one in page.all("article") if one.attributes["id"] == "figure3")
    finding, paper = (child for child in article.children[0].children if "finding" in child.classes)
    assert paper.all_text.startswith("The paper says that the share falls with depth")
    assert article.all_text.count(paper.all_text) == 1
    assert finding.all_text.startswith("Ours: in block1 the share of non-zero activations runs from")
    assert article.all_text.count(finding.all_text) == 1


def test_what_was_not_measured_is_folded_at_the_end(page: Page) -> None:
    last = page.all("section")[-1]
    assert last.attributes["id"] == "unmeasured"
    (folded,) = (element for element in last.children if element.tag == "details")
    assert "open" not in folded.attributes
    for article in page.all("article"):
        shows = {"ours"} <= {
            name for element in page.elements if article in element.ancestors for name in element.classes
        }
        assert (folded in article.ancestors) != shows, article.attributes["id"]
    said = [element for element in page.elements if "not-measured" in element.classes]
    assert said
    assert all(folded in element.ancestors for element in said)
    assert all("penultimate " in element.all_text for element in said)


def test_a_wide_table_says_that_it_scrolls_and_print_is_short(page: Page) -> None:
    (styles, script) = ("".join(element.text for element in page.all(tag)) for tag in ("style", "script"))
    assert "scrollWidth > target.clientWidth" in script
    assert 'content: "scrolls sideways' in styles
    printed = styles.partition("@media print {\n")[2]
    assert re.search(r"\.appendix, [^{]*\{ display: none; \}", printed)
    assert "beforeprint" not in script
    outside = [each.attributes["id"] for each in page.all("section") if "appendix" not in each.classes]
    assert outside[:3] == ["answer", "section-claims", "asked"]
    assert {name.partition("-")[2][:1] for name in outside if name.startswith("section-")} == {"c", "3"}


def test_what_further_networks_have_of_their_own_is_told() -> None:
    described = study((0, 1), epochs=2)
    (grid,) = described.description["networks"]
    further = {**grid, "arm": "temperature", "seeds": [0], "recipe": {**grid["recipe"], "learning_rate": 1.7}}
    given = {"given": {"ours": "timm:resnet18"}, "classifies": False, "measure": None}
    description = {**described.description, "networks": [grid, further, given]}
    told = dict(provenance(dataclasses.replace(described, description=description)))
    further = dict(told["Further networks"])
    assert dict(further["Grid 2"]) == {
        "arm": "temperature",
        "seeds": "0",
        "recipe": [("learning_rate", "1.7")],
    }
    assert further["ours"] == "timm:resnet18"


def test_diverged_runs_are_named_at_the_top(page: Page) -> None:
    notice = next(element for element in page.elements if "notice" in element.classes)
    assert "Dropout, seed 1" in notice.all_text


def test_a_study_of_nothing_still_has_a_report() -> None:
    empty = study(objectives=(), targets=())
    text = Page(render_report(dataclasses.replace(empty, provenance={}))[""].decode()).all("body")[0].all_text
    assert "not measured" in text
    assert "cannot say yet" in text


def test_provenance_is_told(page: Page) -> None:
    section = next(element for element in page.elements if element.attributes.get("id") == "provenance")
    for fact in (
        "penultimate run quickstart",
        "0f3c2a9e1b7d",
        "torch",
        "2.15.0",
        "a1" * 32,
        "301.4",
        "9 of 9",
        "64",
    ):
        assert fact in section.all_text


def test_the_contact_sheet_is_inside(page: Page) -> None:
    (image,) = page.all("img")
    assert image.attributes["src"] == "data:image/png;base64," + base64.b64encode(picture()).decode()


def test_a_report_cannot_be_a_folder_nor_its_folder_a_file(tmp_path: Path) -> None:
    results = study(objectives=("softmax",), targets=())
    with pytest.raises(RequestError, match="is a folder"):
        write_report(results, tmp_path)
    (tmp_path / "report_files").write_text("in the way")
    with pytest.raises(RequestError, match="a file has that name"):
        write_report(results, tmp_path / "report.html")
    (tmp_path / "report_files").unlink()
    (tmp_path / "mine").mkdir()
    (tmp_path / "report_files").symlink_to(tmp_path / "mine")
    with pytest.raises(RequestError, match="report_files' is a link, which nothing is written through"):
        write_report(results, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    assert not [*(tmp_path / "mine").iterdir()]


@pytest.mark.long
def test_the_caption_of_the_curves_names_only_what_is_drawn(
    results: StudyResults, files: dict[str, bytes]
) -> None:
    words = "dashed on the training images"
    assert words in files[""].decode()
    kept = [row for row in results.table if row.epoch is None or row.split != "train"]
    without = render_report(dataclasses.replace(results, table=Table(kept)))[""].decode()
    assert words not in without
    assert "solid on the holdout images" in without


def test_code_is_set_to_the_letter_and_prose_is_not() -> None:
    said = typeset_on_page(
        "the paper's; to go on: `penultimate run --set 'measure=\"linear\"' = 1`, isn't it"
    )
    assert "paper’s" in said
    assert "isn’t" in said
    assert "<code>penultimate run <span>--set</span> &#39;measure=&#34;linear&#34;&#39; = 1</code>" in said


def test_no_line_ends_inside_an_option() -> None:
    styles = (Path(page_of_report.__file__).parent / "page.css").read_text(encoding="utf-8")
    assert "code span { white-space: nowrap; }" in styles
    for text, code in (
        ("`--grid`", "<code><span>--grid</span></code>"),
        ("`run --a-b=<1> -x --`", "<code>run <span>--a-b</span>=&lt;1&gt; -x --</code>"),
        ("a --grid", "a --grid"),
    ):
        assert typeset_on_page(text) == code


def test_the_rules_numbers_wait_folded_below_the_verdicts(files: dict[str, bytes]) -> None:
    page = files[""].decode()
    claims = page[page.index('id="claims"') :]
    folded = claims.index('<details class="more-panels"><summary>Every number in the rules')
    assert claims.index("Claim by claim") < folded < claims.index("These rules are of")


def test_undecided_claims_are_folded_and_a_verdict_stands_below_its_claim(files: dict[str, bytes]) -> None:
    page = files[""].decode()
    claims = page[page.index('id="claims"') :]
    shown, folded = claims[: claims.index("are undecided</summary>")], claims.index("are undecided</summary>")
    assert '<td role="cell" data-head="Verdict" class="">undecided</td>' not in shown
    assert '<td role="cell" data-head="Verdict" class="">undecided</td>' in claims[folded:]
    rows = re.findall(r'<tr role="row"><th scope="row"[^>]*>[^<]+</th><td[^>]*data-head="([^"]+)"', claims)
    assert len(rows) > 20
    assert {*rows} == {"Verdict"}


def test_a_table_whose_rows_are_all_undecided_is_shown_whole() -> None:
    rows = tuple(TableRow(name, (Cell("undecided"),), folded=True) for name in ("a", "b"))
    table = ExhibitTable("t", "T", "", (Column("verdict", "Verdict"),), rows)
    assert (table.open_rows, table.folded_rows) == (rows, ())
    some = dataclasses.replace(table, rows=(dataclasses.replace(rows[0], folded=False), rows[1]))
    assert ([row.label for row in some.open_rows], [row.label for row in some.folded_rows]) == (["a"], ["b"])


def test_the_points_of_every_exhibit_can_be_copied_from_the_page_alone(files: dict[str, bytes]) -> None:
    packed = re.findall(r'<template class="points">([^<]+)</template>', files[""].decode())
    points = {files[name] for name in files if name.endswith("_points.csv")}
    assert {gzip.decompress(base64.b64decode(one)) for one in packed} == points
    assert len(points) > 5
