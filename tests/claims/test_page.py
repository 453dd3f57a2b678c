"""The page of a study: the reference run's, a planted one's, and that of several studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate.paper.page import PAGE
from penultimate.paper.page.answers import answer
from penultimate.paper.page.came_out import POINTS, WORLD
from penultimate.paper.page.regime import settings
from penultimate.results.page import render_page, write_page
from penultimate.results.rows import joined, read_reference
from tests.claims import run_of
from tests.planted import ALIKE, NINE, as_in_the_paper, planted


def test_the_reference_run_answers_by_the_sentences_written_by_hand() -> None:
    told = answer(read_reference())
    assert (told.sentence, told.points) == (WORLD, tuple(POINTS))


@pytest.mark.parametrize(("slope", "verdict"), [(-1.0, "holds"), (1.0, "does not hold")])
def test_the_answer_of_a_planted_study_is_its_verdict(slope: float, verdict: str) -> None:
    truth = {
        name: {"separation": 0.3 + 0.05 * place, "linear": 80 + slope * place, "accuracy": 70.0 + place}
        for place, name in enumerate(NINE)
    }
    told = answer(run_of(planted(truth)))
    assert f"the worse its features transfer (linear classifiers): {verdict}. " in told.sentence
    assert told.panels == ("figure5-ours", "figure5-published")


def test_two_objectives_answer_nothing_and_say_what_to_run() -> None:
    told = answer(run_of(planted({name: {"accuracy": 70.0} for name in NINE[:3]})))
    assert "cannot say yet" in told.sentence
    assert "`penultimate run nine`" in told.sentence


def test_the_settings_stand_beside_the_papers() -> None:
    found = {what: (ours, paper) for what, ours, paper in settings(read_reference())}
    assert len(found) == 14
    assert found["Epochs"] == ("44", "146 to 196, chosen per objective")
    assert found["Softmax accuracy, test images"] == ("77.4 %", "77.0 %")
    assert found["Softmax R²"] == ("0.357", "0.349")


def test_a_page_has_the_answer_the_claims_and_the_glossary(tmp_path: Path) -> None:
    run = run_of(planted(as_in_the_paper(), alike=ALIKE[1]))
    files = write_page(run, tmp_path / "page.html", PAGE)
    text = files[0].read_text(encoding="utf-8")
    for part in ('id="answer"', 'id="claims"', 'id="regime"', 'id="objective-softmax"', "<math"):
        assert part in text
    assert {"claims.csv", "claims_numbers.csv"} <= {file.name for file in files}


def test_several_studies_answer_by_the_first_that_can() -> None:
    run = joined([read_reference("better_search"), read_reference("head_decay")])
    assert answer(run) == answer(run.parts[0])
    assert b'id="answer"' in render_page(run, page=PAGE)[""]
