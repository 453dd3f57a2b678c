"""A mean over fewer runs than the study has says so, in every exhibit that shows it and in no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from penultimate.records.archive import references
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit, read_reference, render_exhibit_text, render_report
from penultimate.report.measurements import admit
from penultimate.report.spec import EVALUATE, all_exhibits, assemble
from tests.report.html import Page
from tests.report.reading import only
from tests.report.synthetic import study

SEEDS = (0, 1, 2, 3, 4)
SIGMOID = "sigmoid"


def said(results: StudyResults) -> dict[str, str]:
    """What exhibits say of means over fewer runs, by exhibit."""
    measurements = admit(results, allow_limited=True)
    notes = {each.name: assemble(each, measurements).notes for each in all_exhibits()}
    begins = ("Means over", "One of the study's")
    found = {name: [note for note in of if note.startswith(begins)] for name, of in notes.items()}
    return {name: note for name, (note, *more) in ((n, f) for n, f in found.items() if f) if not more}


def lost(results: StudyResults, gone: Callable[[Row], bool]) -> StudyResults:
    return only(results, lambda row: not gone(row))


ONE = "One of the study's nine runs of each objective."
OF_SAME_RUNS = ("table2", "tableC4", "tableC5", "tableE3")
"""What compares its columns, and so is of the runs that have them all."""
THREE = "Means over three of the study's nine runs of each objective."
LACKS = "Means over fewer runs than the study asks for: Sigmoid "
BOTH = "Means over as many runs of each objective as the study asks for: nine or three."
ASKED = {
    **dict.fromkeys(("figureD2", "depth"), ONE),
    **dict.fromkeys(("tableD1", "figureD3", *OF_SAME_RUNS), THREE),
    "tableF1": BOTH,
    "claims": BOTH.replace("nine or three", "nine, three or one"),
}
"""Where the whole study asks for fewer seeds than it has."""
ASKED_OF_FULL = {
    **dict.fromkeys(
        ("table2", "tableC4", "tableC5", "tableE3", "figureD2", "figureD3", "depth"),
        "One of the study's two runs of each objective.",
    ),
    **dict.fromkeys(
        ("tableB1", "iclr_table1"),
        "Means over as many runs of each objective as the study asks for: one.",
    ),
    "claims": "Means over as many runs of each objective as the study asks for: two or one.",
}


COLLAPSED = "Means over fewer runs than the study asks for: Center loss (weight = 0.064)"
ASKED_OF_STRENGTHS = {"doses": f"{COLLAPSED} 2 of 5."}
"""The features of three of the five networks collapsed to a point."""
ASKED_OF = {"evidence": ASKED, "full": ASKED_OF_FULL, "sweep": ASKED_OF_STRENGTHS}


@pytest.mark.long
@pytest.mark.parametrize("name", references())
def test_where_no_seed_is_missing_it_is_said_how_many_are_asked_for(name: str) -> None:
    assert said(read_reference(name)) == ASKED_OF.get(name, {})
    assert said(study(SEEDS)) == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "seed", "missing"),
    [
        ("fine_tuning", 1, {"table2": f"{LACKS}2 of 3. Here all are over the two runs that lack nothing."}),
        ("linear", 8, {"table1": f"{LACKS}8 of 9.", "table2": THREE}),
    ],
)
def test_a_run_is_missing_where_the_study_asks_for_it(step: str, seed: int, missing: dict[str, str]) -> None:
    less = lost(
        read_reference("evidence"),
        lambda row: (
            (row.objective, row.seed, row.arm) == (SIGMOID, seed, None)
            and (row.step or "").startswith(f"{step}.")
        ),
    )
    told = said(less)
    assert missing.items() <= told.items()
    assert told["depth"] == ASKED["depth"]


@pytest.mark.long
def test_training_from_scratch_is_of_the_same_runs_as_what_stands_beside_it() -> None:
    whole = read_reference("evidence")
    less = lost(whole, lambda row: (row.step or "").startswith("from_scratch.") and row.seed in (1, 2))
    table = next(one for one in exhibit("table2", less).tables if one.name == "table2")
    assert {cell.count for row in table.rows for cell in row.cells} == {1}
    assert said(less)["table2"] == ONE


def test_where_no_run_has_every_number_it_is_said() -> None:
    """Fine-tuned are softmax's first network and sigmoid's second."""
    whole = read_reference("evidence")
    kept = {("softmax", 0), (SIGMOID, 1)}
    less = lost(
        whole,
        lambda row: (row.step or "").startswith("fine_tuning.") and (row.objective, row.seed) not in kept,
    )
    told = "No run has all of these numbers: the means are of different runs."
    assert told in exhibit("table2", less).notes


def test_a_diverged_run_is_named_where_its_seed_is_left_out() -> None:
    results = study(SEEDS, diverged=(SIGMOID, 3))
    for name in ("table1", *OF_SAME_RUNS):
        (told,) = (note for note in exhibit(name, results).notes if note.startswith("Diverged, "))
        assert "Sigmoid" in told
        assert "seed 3" in told


@pytest.mark.long
@pytest.mark.parametrize("how", ["lost", "diverged", "not a number"])
def test_a_run_that_is_missing_is_counted_wherever_its_numbers_would_stand(how: str) -> None:
    whole = study(SEEDS)
    less = {
        "lost": lost(whole, lambda row: (row.objective, row.seed) == (SIGMOID, 3)),
        "diverged": study(SEEDS, diverged=(SIGMOID, 3)),
        "not a number": dataclasses.replace(
            whole,
            table=type(whole.table)(
                dataclasses.replace(row, value=float("nan"))
                if (row.objective, row.seed) == (SIGMOID, 3)
                else row
                for row in whole.table
            ),
        ),
    }[how]
    showing = {
        each.name
        for each in all_exhibits()
        if each.measured_by != EVALUATE
        and any(each.shows(row, "glyphnet") for row in whole.table if row.objective == SIGMOID)
    }
    told = said(less)
    assert {"table1", "table3", "figure1", "figureC1", "tableE1"} <= showing <= told.keys()
    shared = " Here all are over the four runs that lack nothing."
    assert told == {name: f"{LACKS}4 of 5.{shared if name in OF_SAME_RUNS else ''}" for name in told}
    shown = exhibit("table1", less)
    assert told["table1"] in " ".join(render_exhibit_text(shown).split())


def test_a_mean_over_targets_counts_the_runs_that_have_them_all() -> None:
    places = {("georgian", 1), ("digits", 2)}
    less = lost(study(SEEDS), lambda row: row.objective == SIGMOID and (row.target, row.seed) in places)
    told = said(less)
    assert told["table1"] == f"{LACKS}3 of 5."
    assert "table3" not in told


@pytest.mark.long
def test_an_unfinished_study_says_how_far_it_has_come_everywhere() -> None:
    whole = study((0, 1))
    steps = {"train": [9, 9], "linear": [71, 72]}
    results = dataclasses.replace(whole, provenance={**whole.provenance, "steps": steps})
    far = "80 of 81 steps"
    for each in all_exhibits():
        assert render_exhibit_text(exhibit(each.name, results)).startswith(f"UNFINISHED, {far}. ")
    files = render_report(results)
    page = Page(files[""].decode())
    notices = [element.all_text for element in page.elements if "notice" in element.classes]
    assert any(far in notice and "penultimate run quickstart" in notice for notice in notices)
    assert all(far in article.all_text for article in page.all("article"))
    assert far in page.all("title")[0].text
    assert far in files["table1_linear.tex"].decode()
    assert " steps" not in render_exhibit_text(exhibit("table1", whole))


@pytest.mark.long
def test_what_an_unfinished_study_has_yet_to_measure_is_measured_by_its_own_command() -> None:
    whole = lost(study((0, 1)), lambda row: row.metric.startswith(("linear_", "cka")))
    own = "penultimate run mine.py"

    def told(**steps: tuple[int, int]) -> list[str]:
        results = dataclasses.replace(whole, provenance={"command": own, "steps": steps})
        gaps = [gap.command for name in ("table1", "figure2") for gap in exhibit(name, results).missing]
        way = render_report(results)[""].decode().partition("To measure them: <code>")[2]
        return [*gaps, way.partition("</code>")[0]]

    usual = ["penultimate run nine"] * 2
    assert told(linear=(8, 8)) == [*usual, usual[0]]
    assert told(linear=(0, 8)) == [own, usual[0], own]
    assert told(linear=(0, 8), similarity=(0, 1)) == [own, own, own]
    left = {"command": own, "steps": {"train": (0, 9), "accuracy": (0, 9), "linear": (0, 8)}}
    results = dataclasses.replace(whole, provenance=left)
    for name in ("tableB1", "tableC4", "tableC5"):  # an architecture and arms that it does not have
        gaps = exhibit(name, results).missing
        assert gaps
        assert own not in {gap.command for gap in gaps}
