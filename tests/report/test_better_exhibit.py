"""The exhibit of the search for an objective that is better in both, and the page that shows it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from penultimate.paper.page.statements import headline

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.both import BOTH_CLAIMS, CANDIDATES, NEW_CANDIDATES, STUDY, candidates
from penultimate.paper.exhibits import better
from penultimate.report import StudyResults, exhibit, read_reference, render_exhibit_text, write_report
from penultimate.report.measurements import admit
from tests.report.html import Page
from tests.report.reading import glyphs
from tests.report.test_better_claims import OTHER, SEEDS, forged, pair, search

LABEL = "Projector (depth = 1, width = 512)"
HOSTILE = "<script>alert(1)</script> {0} & {answer}"


@pytest.fixture(scope="module")
def all_candidates() -> tuple[better.CandidateGains, ...]:
    """Those of a forged search and of the kept sweep."""
    return tuple(candidates([admit(search()), admit(read_reference("sweep"))]))


@pytest.fixture
def searched(
    all_candidates: tuple[better.CandidateGains, ...], monkeypatch: pytest.MonkeyPatch
) -> tuple[better.CandidateGains, ...]:
    monkeypatch.setattr(better, "kept_candidates", lambda: (all_candidates, ()))
    return all_candidates


def of_best(found: tuple[better.CandidateGains, ...]) -> StudyResults:
    """The study of the candidate with the highest score."""
    return forged({found[0].spec: {"accuracy": 1.0, "linear": 1.0, "knn": -1.0}})


def test_every_candidate_is_shown_by_score_and_the_chosen_one_is_marked(
    searched: tuple[better.CandidateGains, ...],
) -> None:
    built = exhibit("better", of_best(searched))
    assert [table.name for table in built.tables] == ["better_candidates", "better_confirmed", "better"]
    rows = built.tables[0].rows
    assert len(rows) == len(CANDIDATES)
    for place, (row, one) in enumerate(zip(rows, searched, strict=True), 1):
        assert row.label == f"{place}. {resolve(one.spec).detailed_label}"
        assert [cell.value for cell in row.cells[:4]] == [
            one.accuracy,
            one.transfer,
            one.score,
            len(one.gains),
        ]
        assert row.cells[4].text == one.study
    assert [row.cells[5].text for row in rows] == ["chosen", *["–"] * (len(rows) - 1)]
    assert " was chosen among 12 candidates by the other half of the tasks, where it gained +" in str(
        built.notes
    )


def test_the_confirmation_has_means_gains_and_verdicts(searched: tuple[better.CandidateGains, ...]) -> None:
    results = of_best(searched)
    built = exhibit("better", results)
    assert built.finding == f"Ours: {headline(admit(results)).answer}"
    measures = {row.label: row.cells for row in built.tables[1].rows}
    assert list(measures) == [
        "Test accuracy, %",
        "Linear transfer, %",
        "kNN transfer, %",
        "Class separation R²",
    ]
    for softmax, other, gain, _ in measures.values():
        assert None not in (softmax.value, other.value, gain.value)
        assert gain.value == pytest.approx((other.value or 0) - (softmax.value or 0))
        assert "±" in softmax.text
    assert measures["Class separation R²"][3].text == "–"
    assert [(row.label, row.cells[0].text) for row in built.tables[2].rows] == [
        (BOTH_CLAIMS[0].says, "holds"),
        (BOTH_CLAIMS[1].says, "does not hold"),
    ]


def test_the_figure_has_seeds_candidates_and_the_intervals_of_the_chosen(
    searched: tuple[better.CandidateGains, ...],
) -> None:
    (figure,) = exhibit("better", of_best(searched)).figures
    (panel,) = figure.panels
    faint = [point for point in panel.points if point.faint]
    *means, chosen = (point for point in panel.points if not point.faint)
    assert len(faint) == sum(len(one.gains) for one in searched)
    assert [(point.x, point.y) for point in means] == [(one.accuracy, one.transfer) for one in searched]
    assert chosen.label == "1 on the other tasks"
    across, up = (curve.points for curve in panel.curves if not curve.faint)
    assert across[0][0] < chosen.x < across[1][0]
    assert up[0][1] < chosen.y < up[1][1]
    assert {point[1] for point in across} == {chosen.y}
    zero = [curve.points for curve in panel.curves if curve.faint]
    assert [{x for x, _ in zero[0]}, {y for _, y in zero[1]}] == [{0.0}, {0.0}]
    for limits, places in (
        (panel.x_limits, [point.x for point in panel.points]),
        (panel.y_limits, [point.y for point in panel.points]),
    ):
        assert limits is not None
        assert limits[0] < min(0.0, *places) < max(0.0, *places) < limits[1]


def test_another_objective_than_the_best_candidate_is_told(
    searched: tuple[better.CandidateGains, ...],
) -> None:
    assert searched[0].spec != resolve(OTHER).canonical
    built = exhibit("better", pair(1.0, 1.0, 1.0))
    assert (
        f"The candidate with the highest score is {resolve(searched[0].spec).detailed_label}, and not"
        in str(built.notes)
    )
    assert "chosen" not in [row.cells[5].text for row in built.tables[0].rows][:1]


def test_a_search_that_is_not_kept_is_named_and_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(better, "references", lambda: {"sweep": None})
    better.kept_candidates.cache_clear()
    built = exhibit("better", pair(1.0, 1.0, 1.0))
    assert len(built.tables[0].rows) == 5
    assert "The candidates of better_search are not shown: no such run comes" in str(built.notes)
    monkeypatch.setattr(better, "references", dict)
    better.kept_candidates.cache_clear()
    built = exhibit("better", pair(1.0, 1.0, 1.0))
    assert [table.name for table in built.tables] == ["better_confirmed", "better"]
    assert built.figures[0].panels[0].points[0].label == "chosen, on the other tasks"
    better.kept_candidates.cache_clear()


def test_other_studies_do_not_have_it_and_one_of_other_seeds_does() -> None:
    for results in (
        glyphs(),
        search(),
        pair(1.0, 1.0, name="mine"),
        forged({OTHER: {}, "sigmoid": {"accuracy": 1.0, "linear": 1.0}}),
    ):
        assert not exhibit("better", results).wanted
    changed = pair(1.0, 1.0, name="better-seeds-230-232", seeds=SEEDS[:3])
    changed = dataclasses.replace(changed, description={**changed.description, "changed_from": STUDY})
    assert exhibit("better", changed).wanted


def test_what_the_study_lacks_is_told_instead(searched: tuple[better.CandidateGains, ...]) -> None:
    built = exhibit("better", forged({OTHER: {"accuracy": 1.0}}))
    assert (built.tables, built.figures) == ((), ())
    assert [gap.what for gap in built.missing] == ["Linear transfer, of both objectives"]
    few = exhibit("better", pair(1.0, 1.0, 1.0, seeds=SEEDS[:1]))
    assert few.tables[1].rows[0].cells[2].text.startswith("+")
    assert len([curve for curve in few.figures[0].panels[0].curves if not curve.faint]) == 0
    gone = exhibit("better", pair(1.0, 1.0, 1.0, without=[(OTHER, SEEDS[0])]))
    assert "seven runs each" in gone.tables[2].rows[0].cells[1].text


@pytest.mark.long
def test_the_page_opens_with_the_answer_and_shows_a_label_as_it_is(
    searched: tuple[better.CandidateGains, ...], tmp_path: Path
) -> None:
    results = pair(1.0, 1.0, 1.0, label=HOSTILE)
    write_report(results, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "lead-better-gains" in text
    page = Page(text)
    body = " ".join(page.all("body")[0].all_text.split())
    assert f"{HOSTILE} is better than softmax in both" in body
    assert "alert(1)" not in "".join(script.all_text for script in page.all("script"))
    assert "Gains on softmax: accuracy and transfer" in body


def test_a_label_is_shown_as_it_is_in_a_terminal(searched: tuple[better.CandidateGains, ...]) -> None:
    text = render_exhibit_text(exhibit("better", pair(1.0, 1.0, 1.0, label="=cmd()\x1b[31m{0}")))
    assert "=cmd()" in text
    assert "{0} is better than softmax in both: +" in " ".join(text.split())
    assert "\x1b" not in text


def test_the_kept_run_tries_the_candidate_with_the_highest_score() -> None:
    results = read_reference(STUDY)
    found, absent = better.kept_candidates()
    assert absent == ()
    assert len(found) == len(CANDIDATES) > len(NEW_CANDIDATES)
    built = exhibit("better", results)
    assert [row.cells[5].text for row in built.tables[0].rows] == ["chosen", *["–"] * (len(CANDIDATES) - 1)]
    assert headline(admit(results)).decides
