"""Table E.2 and figure E.2 of a run whose cosine heads were measured without scaling their rows say so."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.records.table import Table
from penultimate.report import exhibit
from tests.report.reading import column_of, glyphs, table_of


@pytest.mark.parametrize("name", ["tableE2", "figureE2"])
def test_rows_taken_as_they_lie_are_told_as_such(name: str) -> None:
    results = glyphs()
    lengths = column_of(table_of(exhibit("tableE2", results), "tableE2"), "weight_norm_cv")["cosine_softmax"]
    (said,) = [note for note in exhibit(name, results).notes if "as they lie" in note]
    assert f"(Std/Avg |w| {lengths.value:.3f}, in the paper 0.000)" in said
    scaled = [
        dataclasses.replace(row, value=1e-8)
        if row.metric == "nc_weight_norm_cv" and str(row.objective).startswith("cosine_softmax")
        else row
        for row in results.table
    ]
    again = dataclasses.replace(results, table=Table(scaled))
    assert not any("as they lie" in note for note in exhibit(name, again).notes)
