"""An objective beside the nine of the paper, and an arm of a new name, leave every page standing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

from penultimate.report import exhibit, render_report
from penultimate.report.base import StudyResults
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


def test_a_tenth_objective_of_the_package_leaves_every_page_and_verdict_standing() -> None:
    done = subprocess.run([sys.executable, "-c", A_TENTH], capture_output=True, text=True, encoding="utf-8")
    assert done.stderr == ""
    claims = exhibit("claims", planted(as_in_the_paper())).tables[0].rows
    of_nine, with_the_tenth, is_shown = done.stdout.splitlines()
    assert of_nine == str([[cell.text for cell in row.cells] for row in claims])
    assert with_the_tenth.count("holds") == of_nine.count("holds") > 10
    assert is_shown == "True"


def test_an_arm_of_a_name_that_no_exhibit_knows_leaves_the_page_as_it_is() -> None:
    results = planted(as_in_the_paper())
    with_another = _with_arm(results, "another optimiser")
    assert exhibit("claims", with_another) == exhibit("claims", results)
    assert exhibit("table1", with_another) == exhibit("table1", results)
    assert b"</html>" in render_report(with_another)[""]


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
