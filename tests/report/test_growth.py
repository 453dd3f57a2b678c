"""One objective, arm, exhibit, claim or target more leaves every page standing, and kept runs whole."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest

from penultimate import register, registry
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.rules import Alike, Claim
from penultimate.paper.claims.verdicts import judge
from penultimate.report import exhibit, read_reference, render_report
from penultimate.report.base import StudyResults
from penultimate.report.later import additions_note
from penultimate.report.measurements import admit
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.table import TableOfRuns
from penultimate.report.spec import Exhibit
from tests.report.planted import as_in_the_paper, planted
from tests.report.reading import with_rows

A_TENTH = """
import dataclasses

from penultimate.objectives import presets

tenth = dataclasses.replace(presets.LABEL_SMOOTHING, name="tenth", label="Tenth objective")
presets.TENTH = presets.PRESETS["tenth"] = tenth  # before the report is imported, as if it stood there

from penultimate import registry

registry.declare("objective", "tenth", "penultimate.objectives.presets:TENTH", tenth.summary, tenth.paper)

from penultimate.report import exhibit, render_report
from tests.report.planted import as_in_the_paper, planted

truth = as_in_the_paper()
with_it = planted({**truth, "tenth": truth["label_smoothing"]})
for results in (planted(truth), with_it):
    print([[cell.text for cell in row.cells] for row in exhibit("claims", results).tables[0].rows])
print("Tenth objective" in render_report(with_it)[""].decode())
"""


@pytest.mark.long
def test_a_tenth_objective_of_the_package_leaves_every_page_and_verdict_standing() -> None:
    done = subprocess.run([sys.executable, "-c", A_TENTH], capture_output=True, text=True, encoding="utf-8")
    assert done.stderr == ""
    claims = exhibit("claims", planted(as_in_the_paper())).tables[0].rows
    of_nine, with_the_tenth, is_shown = done.stdout.splitlines()
    assert of_nine == str([[cell.text for cell in row.cells] for row in claims])
    assert with_the_tenth.count("holds") == of_nine.count("holds") > 10
    assert is_shown == "True"


@pytest.mark.long
def test_an_arm_of_a_name_that_no_exhibit_knows_leaves_the_page_as_it_is() -> None:
    results = planted(as_in_the_paper())
    with_another = _with_arm(results, "another optimiser")
    assert exhibit("claims", with_another) == exhibit("claims", results)
    assert exhibit("table1", with_another) == exhibit("table1", results)
    assert b"</html>" in render_report(with_another)[""]


@pytest.mark.long
def test_an_exhibit_more_is_drawn() -> None:
    column = Quantity("top1", label="Accuracy", key="accuracy")
    parts = (TableOfRuns("toy", "A toy", (column,), "Accuracy"),)
    register.exhibit(Exhibit("toy", "A toy", "Of {source}.", parts, summary="A toy"))
    try:
        assert b'id="toy"' in render_report(planted(as_in_the_paper()))[""]
    finally:
        registry.forget("exhibit", "toy")


def test_a_claim_more_is_judged_and_changes_no_other_verdict() -> None:
    evidence = gather(admit(planted(as_in_the_paper())))
    claim = Claim("knn_alike", "By nearest neighbours all are alike", "table 1", Alike("knn"))
    *others, last = judge(evidence, (*EVERY_CLAIM, claim))
    assert last.claim is claim
    assert [one.ours for one in others] == [one.ours for one in judge(evidence)]


@pytest.mark.long
def test_a_target_more_is_a_column_more() -> None:
    results = planted(as_in_the_paper())
    again = [dataclasses.replace(row, target="digits") for row in results.table if row.target == "newfaces"]
    description = {**results.description, "targets": [*results.description["targets"], "digits"]}
    grown = StudyResults(description, with_rows(results, again).table)
    before, after = (
        [column.label for column in exhibit("table1", one).tables[0].columns] for one in (results, grown)
    )
    assert {*after} == {*before, "Digits"}
    assert b"</html>" in render_report(grown)[""]


@pytest.fixture(scope="module")
def kept() -> StudyResults:
    return read_reference("shared_classes")


def _grown(kept: StudyResults, **more: Any) -> StudyResults:
    """A kept run whose study has more networks, objectives, targets or measurements today."""
    description = kept.description
    lists = {name: [*description[name], *more.pop(name)] for name in {*more} & {*LISTS}}
    block = {**description["networks"][0], **more}
    return dataclasses.replace(
        kept, today={**description, "networks": [*description["networks"], block], **lists}
    )


LISTS = ("targets", "objectives", "measure")
OWN = {"slug": "own", "label": "Half smoothing", "spec": "label_smoothing(alpha=0.5)"}


def test_a_kept_run_whose_study_is_as_it_was_says_nothing_of_it(kept: StudyResults) -> None:
    assert kept.today["name"] == "shared_classes"
    assert "This run was measured" not in " ".join(exhibit("table3", kept).notes)
    assert additions_note(dataclasses.replace(kept, today={})) == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"targets": ["digits"]}, "the data set Handwritten digits"),
        ({"objectives": [OWN]}, "the objective Half smoothing"),
        ({"arm": "short"}, "the arm short"),
        ({"backbones": ["glyphwide"]}, "the architecture glyphwide"),
        ({"seeds": [77]}, "further networks"),
        ({"measure": ["knn"]}, "the measurement knn"),
    ],
)
def test_what_a_study_has_only_since_its_run_was_kept_is_named_and_changes_no_number(
    more: dict[str, Any], said: str, kept: StudyResults
) -> None:
    built = exhibit("table3", _grown(kept, **more))
    assert f"This run was measured on 2026-11-23, before shared_classes had {said}." in built.notes
    assert built.tables == exhibit("table3", kept).tables


@pytest.mark.parametrize(("measured", "name"), [("knn", "table1"), ("calibration", "tableC3")])
def test_an_exhibit_that_a_study_asks_for_only_today_says_when_its_run_was_measured(
    measured: str, name: str, kept: StudyResults
) -> None:
    reason = "this run was measured on 2026-11-23, before shared_classes asked for it"
    grown, before = (exhibit(name, one).missing for one in (_grown(kept, measure=[measured]), kept))
    assert any(f"{reason}; run `penultimate run shared_classes`" in str(gap) for gap in grown)
    assert not any(reason in str(gap) for gap in before)


def _with_arm(results: StudyResults, arm: str) -> StudyResults:
    """The study with its main networks once more, under another condition that made all of them worse."""
    networks = [block for block in results.description["networks"] if not block["arm"]]
    description = {
        **results.description,
        "networks": [*results.description["networks"], *({**block, "arm": arm} for block in networks)],
    }
    again = [
        dataclasses.replace(row, arm=arm, value=None if row.value is None else row.value / 2)
        for row in results.table
        if not row.arm
    ]
    return StudyResults(description, with_rows(results, again).table)
