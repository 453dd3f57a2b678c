"""Where numbers of images differ the unbiased R² is shown, and where it was not measured that is said."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.measures.class_separation import UNBIASED
from penultimate.records.table import Table
from penultimate.report import StudyResults, exhibit
from tests.report.reading import column_of, glyphs, panels, table_of

GAP = 0.02


def with_unbiased(epochs: bool) -> StudyResults:
    """A kept run with unbiased rows beside the paper's of the penultimate features."""
    results = glyphs()
    unbiased = [
        dataclasses.replace(row, metric=UNBIASED, value=row.value - GAP)
        for row in results.table
        if row.metric == "class_separation" and not row.layer and (row.epoch is not None) == epochs
    ]
    assert unbiased
    return dataclasses.replace(results, table=Table([*results.table, *unbiased]))


def test_table_3_has_both_kinds_where_both_were_measured() -> None:
    table = table_of(exhibit("table3", with_unbiased(epochs=False)), "table3")
    for split in ("train", "test"):
        paper, unbiased = (
            column_of(table, f"{kind}_r2_{split}") for kind in ("class_separation", "unbiased")
        )
        for name, cell in paper.items():
            assert unbiased[name].value == pytest.approx((cell.value or 0) - GAP)
    assert not any("was not measured" in note for note in exhibit("table3", with_unbiased(False)).notes)
    fallback = exhibit("table3", glyphs())
    assert "unbiased_r2_train" not in [column.key for column in table_of(fallback, "table3").columns]
    assert any(
        "The unbiased R² was not measured: all R² are by the paper's" in note for note in fallback.notes
    )


def test_the_lines_over_the_epochs_are_unbiased_or_say_that_they_are_not() -> None:
    paper, unbiased = (exhibit("figureE4", one) for one in (glyphs(), with_unbiased(True)))
    assert paper.caption.startswith("Class separation R², by the paper's formula, of the penult")
    assert unbiased.caption.startswith("Class separation R², unbiased, of the penultimate features")
    assert sum("Drawn is R² by the paper's formula" in note for note in paper.notes) == 1
    assert not any("by the paper's formula" in note for note in unbiased.notes)
    for name, panel in panels(unbiased).items():
        assert panel.y_label == "Class separation R², unbiased"
        ends = [curve.points[-1][1] for curve in panel.curves]
        theirs = [curve.points[-1][1] for curve in panels(paper)[name].curves]
        assert ends == pytest.approx([end - GAP for end in theirs])
