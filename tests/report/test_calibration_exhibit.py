"""The reliability diagrams of Table C.3: the bins of all runs pooled, rare ones left out."""

from __future__ import annotations

import pytest

from penultimate.report import StudyResults, exhibit
from tests.report.reading import glyphs, only, panels, spec_of

LEAST = 0.005


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    return glyphs()


@pytest.mark.parametrize(("panel", "suffix"), [("reliability", ""), ("reliability-scaled", "_scaled")])
@pytest.mark.parametrize("slug", ["softmax", "sigmoid", "cosine_softmax"])
def test_a_line_pools_the_bins_of_all_runs_and_leaves_out_rare_ones(
    panel: str, suffix: str, slug: str, reference: StudyResults
) -> None:
    """Accuracy and confidence of a bin are means over its images, so that runs count by their shares."""
    own = reference.table.where(objective=spec_of(reference, slug), backbone="glyphnet")
    read = {
        name: {
            (row.seed, int(row.settings["bin"])): row.value
            for row in own.where(metric=f"reliability_{name}{suffix}")
        }
        for name in ("share", "confidence", "accuracy")
    }
    assert {bins for _, bins in read["share"]} > {15 - 1}
    expected = []
    for place in sorted({place for _, place in read["share"]}):
        seeds = [seed for seed, other in read["share"] if other == place]
        weights = [read["share"][seed, place] for seed in seeds]
        if sum(weights) / 5 < LEAST:
            continue
        pooled = {
            name: sum(w * read[name][seed, place] for w, seed in zip(weights, seeds, strict=True))
            / sum(weights)
            for name in ("confidence", "accuracy")
        }
        expected.append((100 * pooled["confidence"], 100 * (pooled["accuracy"] - pooled["confidence"])))
    drawn = panels(exhibit("tableC3", reference))[f"tableC3-{panel}"]
    (line,) = [curve for curve in drawn.curves if curve.objective == slug]
    assert [coordinate for point in line.points for coordinate in point] == pytest.approx(
        [coordinate for point in expected for coordinate in point]
    )
    marks = [(point.x, point.y) for point in drawn.points if point.objective == slug]
    assert marks == list(line.points)


def test_squared_error_is_left_out_and_it_is_said(reference: StudyResults) -> None:
    built = exhibit("tableC3", reference)
    assert any(note.startswith("Squared error is left out") for note in built.notes)
    assert "squared_error" not in {row.objective for row in built.tables[0].rows}
    assert "squared_error" not in {curve.objective for curve in panels(built)["tableC3-reliability"].curves}


def test_without_bins_there_is_no_diagram(reference: StudyResults) -> None:
    built = exhibit("tableC3", only(reference, lambda row: not row.metric.startswith("reliability")))
    assert built.figures == ()
    assert [table.name for table in built.tables] == ["tableC3", "tableC3_published"]
