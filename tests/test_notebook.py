"""What a notebook shows of results, and the tutorial notebooks: they run, and give what they show."""

from __future__ import annotations

import importlib
import json
import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs import notebooks, site

import penultimate as pu
from penultimate.banks.files import ForeignBank
from penultimate.errors import RequestError
from penultimate.metrics.comparison import Comparison
from penultimate.results import read_reference, show
from tests.html_page import Page
from tests.plugged import released

LABELS = np.arange(60) % 3
FEATURES = np.random.default_rng(0).normal(size=(60, 5)) + 2 * np.eye(3, 5)[LABELS]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
MOST = 150_000
"""The most bytes of a notebook."""
every_notebook = pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)


def cells(source: str) -> dict[str, str]:
    """The rows of a table of facts."""
    rows = [element for element in Page(source).elements if element.tag == "tr"]
    return {row.children[0].all_text: row.children[1].all_text for row in rows if len(row.children) == 2}


@pytest.mark.parametrize("form", [pu.FeatureBank, ForeignBank])
def test_a_bank_is_shown_in_a_few_lines(form: type[pu.FeatureBank]) -> None:
    bank = form(FEATURES, LABELS, logits=FEATURES, provenance={"a\nb": "<script>" * 1000})
    assert len(repr(bank)) < 400
    assert "\n" not in repr(bank)
    expected = f"{form.__name__}(60 examples, 5 features (float32), 3 classes, with logits, 3 kB)"
    assert repr(bank).startswith(expected)
    assert cells(bank._repr_html_())["labels"] == "3 classes"
    assert "<script>" not in bank._repr_html_()
    several = pu.FeatureBank(FEATURES, np.eye(3, dtype=int)[LABELS])
    assert "3 labels, without logits and ids" in repr(several)


def test_a_linear_probe_shows_its_accuracy_its_certificate_and_what_was_chosen() -> None:
    probe = pu.LinearProbe([0.1, 1.0, 10.0])
    assert "not fitted yet" in probe._repr_html_()
    with pytest.raises(RequestError, match="not fitted yet"):
        probe.to_pandas()
    probe.fit(FEATURES, LABELS)
    told = cells(probe._repr_html_())
    assert told["validation top1"] == f"{100 * probe.validation_accuracy_.max():.2f} %"
    assert told["lambda"].startswith(f"{probe.lambda_:.4g}, of 3 values")
    assert f"{probe.certificate_:.1e}" in told["certificate"]
    assert probe._repr_mimebundle_() == {"text/plain": repr(probe), "text/html": probe._repr_html_()}
    frame = probe.to_pandas()
    assert frame["lambda"].tolist() == [0.1, 1.0, 10.0]
    assert frame[frame.chosen]["lambda"].tolist() == [probe.lambda_]
    assert frame["certificate"].max() <= 1e-4


def test_other_probes_show_what_they_chose() -> None:
    knn = pu.KNNProbe(max_k=7).fit(FEATURES, LABELS)
    assert cells(knn._repr_html_())["k"] == f"{knn.k_}, of 1 to 7"
    frame = knn.to_pandas()
    assert frame.loc[frame.chosen, "k"].tolist() == [knn.k_]
    assert frame["leave_one_out_top1"].max() == frame.loc[frame.chosen, "leave_one_out_top1"].item()
    several = pu.MultiLabelProbe([1.0], names=["<b>", "c"]).fit(FEATURES, np.eye(3, dtype=int)[LABELS][:, :2])
    assert [*cells(several._repr_html_())] == ["<b>", "c"]
    assert several.to_pandas()["lambda"].tolist() == several.lambda_.tolist()


def test_a_comparison_is_a_frame_of_pairs() -> None:
    products = np.array([[[4.0, 3.0], [3.0, 9.0]]])
    pairs = Comparison([("a", "x"), ("b", "y")], products, np.array([5]), np.array([0])).to_pandas()
    assert pairs["cka"].tolist() == [1.0, 0.5, 0.5, 1.0]
    assert pairs[["network", "other_layer"]].values.tolist()[1] == ["a", "y"]


def test_an_exhibit_is_shown_whole_without_a_style_sheet() -> None:
    built = show("figure5", read_reference())
    assert len(repr(built)) < 200
    source = built._repr_html_()
    elements = Page(source).elements
    panels = [panel for figure in built.figures for panel in figure.panels]
    assert sum(element.attributes.get("role") == "img" for element in elements) == len(panels)
    assert not {"script", "style", "link", "iframe"} & {element.tag for element in elements}
    assert all("," in inside for inside in re.findall(r"var\(([^)]*)\)", source)), "no colour without a page"
    assert "http" not in source.replace('xmlns="http://www.w3.org/2000/svg"', "")
    identities = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(identities) == len(set(identities))
    frames = built.to_pandas()
    assert len(frames["figure5_points"]) == len(built.csv()["figure5_points.csv"].splitlines()) - 1


def test_a_table_as_a_frame_has_the_numbers_of_its_csv() -> None:
    table = show("table1", read_reference()).tables[0]
    frame = table.to_pandas()
    assert [*frame.columns] == table.csv().splitlines()[0].split(",")
    assert table.errors is not None
    assert frame["top1_percent"].tolist() == table.values["top1_percent"].tolist()
    assert frame["top1_percent_se"].tolist() == table.errors["top1_percent"].tolist()


@every_notebook
def test_a_notebook_is_whole_and_names_what_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["nbformat"] == 4
    assert len(text.encode()) < MOST
    text = re.sub(r"base64,[\w+/=]+", "", text)  # a drawing holds any letters
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)
    assert socket.gethostname() not in text
    counts = []
    for cell in document["cells"]:
        if cell["cell_type"] != notebooks.CODE:
            continue
        counts.append(cell["execution_count"])
        code = notebooks.source(cell)
        compile(code, path.name, "exec")
        for module, listed in re.findall(r"^from (penultimate[\w.]*) import (.+)$", code, re.MULTILINE):
            for name in listed.split(", "):
                assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
        assert all(hasattr(pu, name) for name in re.findall(r"\bpu\.(\w+)", code))
    assert counts == [*range(1, len(counts) + 1)], "run `python -m docs.notebooks`"


@every_notebook
def test_a_notebook_is_a_page_of_the_site(path: Path) -> None:
    page = notebooks.page(path)
    assert page.startswith("# ")
    assert page.count("```python") == sum(
        cell["cell_type"] == notebooks.CODE for cell in notebooks.cells(path)
    )
    outputs = sum(len(cell.get("outputs", ())) for cell in notebooks.cells(path))
    scrolled = '<div class="cell_output"><div class="output">'
    assert page.count(scrolled) == outputs > 0, "the theme's rules for frames name both classes"
    index = site.PAGES / "tutorials/index.md"
    link = f"[a]({path.name})"
    assert site.with_links(link, index, Path("tutorials/index.md")) == f"[a]({path.stem}.md)"


@pytest.mark.long
@every_notebook
def test_a_notebook_gives_what_it_shows(path: Path, tmp_path: Path) -> None:
    """Word for word, and number for number but for what another processor rounds in another way."""
    with released():
        shown = list(notebooks.run(path, tmp_path))
    for cell, outputs in shown:
        assert [kinds(output) for output in outputs] == [kinds(output) for output in cell["outputs"]]
        for here, there in zip(outputs, cell["outputs"], strict=True):
            here_text, there_text = notebooks.text_of(here), notebooks.text_of(there)
            assert words(here_text) == words(there_text)
            numbers = [np.array(NUMBER.findall(text), float) for text in (here_text, there_text)]
            np.testing.assert_allclose(*numbers, rtol=0.1, atol=0.05)


def kinds(output: dict[str, Any]) -> list[str]:
    return sorted(output.get("data", {"text/plain": ""}))


def words(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()
