"""The exhibit of the number of classes, and the answer that its page opens with."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate.paper.claims.quick import is_quick
from penultimate.paper.page.statements import headline
from penultimate.report import StudyResults, exhibit, write_report
from penultimate.report.measurements import admit
from tests.report.reading import glyphs
from tests.report.test_class_claims import SEEDS, of_counts


@pytest.fixture(scope="module")
def shrinking() -> StudyResults:
    return of_counts(lambda classes: {16: -3.0, 32: -2.5, 64: -2.0, 128: -1.5}[classes])


def test_it_shows_the_price_of_each_number_with_its_interval(shrinking: StudyResults) -> None:
    built = exhibit("classes", shrinking)
    assert [table.name for table in built.tables] == [
        "classes",
        "classes_prices",
        "classes_networks",
        "classes_numbers",
    ]
    prices = built.tables[1]
    assert [row.label for row in prices.rows] == ["16", "32", "64", "128"]
    assert [row.cells[2].value for row in prices.rows] == pytest.approx([-3, -2.5, -2, -1.5], abs=0.1)
    assert prices.rows[0].cells[1].value == pytest.approx(0.09, abs=0.001)
    (figure,) = built.figures
    price, lines = figure.panels
    assert (price.points[0].x, round(price.points[0].y)) == (4.0, -3)
    upright = [curve for curve in price.curves if not curve.faint]
    for point, curve in zip(price.points, upright, strict=True):
        (x, low), (also, high) = curve.points
        assert (x, also) == (point.x, point.x)
        assert low < point.y < high
    faint = [curve for curve in price.curves if curve.faint]
    assert [curve.label for curve in faint] == [f"seed {seed}" for seed in SEEDS]
    assert [len(curve.points) for curve in lines.curves] == [3] * 4
    assert len(lines.points) == 12


def test_it_says_the_verdict_and_lists_every_network(shrinking: StudyResults) -> None:
    built = exhibit("classes", shrinking)
    assert built.finding.startswith("Ours: With few classes as with many")
    networks = built.tables[2]
    assert len(networks.rows) == 12
    assert networks.rows[0].label.startswith("16 classes: Softmax")
    assert networks.rows[0].cells[0].text.startswith(("69.", "70."))


def test_a_diverged_network_is_named_and_the_rest_is_shown() -> None:
    results = of_counts(lambda _: -2.0, without=[(16, "squared_error", SEEDS[0])])
    built = exhibit("classes", results)
    assert "squared error at 16 classes, seed 210" in built.tables[0].rows[0].cells[2].text
    assert built.tables[1].rows[0].cells[0].text == "8"
    assert len(built.figures[0].panels[0].curves) == 4 + 3


def test_a_study_with_one_number_of_classes_has_no_such_exhibit() -> None:
    assert not exhibit("classes", glyphs()).wanted
    assert not exhibit("classes", of_counts(lambda _: -2.0, counts=(128,))).wanted


@pytest.mark.long
def test_the_page_opens_with_the_price_and_its_change(shrinking: StudyResults, tmp_path: Path) -> None:
    study = admit(shrinking)
    assert not is_quick(study)
    said = headline(study)
    assert said.answer.startswith("With few classes as with many, the further an objective pulls them apart,")
    assert "Each doubling of the classes changes that by +0.5" in said.answer
    assert said.answer.endswith("with more classes it costs less.")
    assert said.facts[0].value.startswith("−3.0")
    write_report(shrinking, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "The price of class separation, by the number of classes" in text
    assert "lead-classes-price" in text


def test_the_answer_says_what_is_open_and_what_is_too_few() -> None:
    noisy = headline(admit(of_counts(lambda _: -1.0, noise=3.0))).answer
    assert noisy.startswith("Whether features transfer worse the further an objective pulls the classes")
    assert noisy.endswith("whether it costs less with more classes is open.")
    few = headline(admit(of_counts(lambda _: -2.0, seeds=SEEDS[:2]))).answer
    assert few.startswith("Whether the number of classes matters cannot be said yet: Fewer than three draws.")
