"""Table B.1 shows the second architecture and never the first; figure D.2 the means of the tasks by epoch."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from penultimate.records.table import Row
from penultimate.report import exhibit, read_study
from penultimate.report.base import StudyResults
from tests.conftest import rows_in
from tests.report.reading import described, glyphs, only, panels, table_of, with_rows

PLAIN = "glyphplain"


def with_plain() -> StudyResults:
    """The reference run, its second architecture measured as the first is, every number a tenth of that."""
    results = glyphs()
    wanted = ("top1", "top5", "class_separation", "linear_top1", "linear_mean_per_class")
    of_first = [
        row
        for row in results.table
        if row.metric in wanted and row.backbone == "glyphnet" and row.arm is None and row.seed in (0, 1)
    ]
    rows = [dataclasses.replace(row, backbone=PLAIN, value=row.value / 10) for row in of_first]
    without = only(results, lambda row: row.backbone != PLAIN or row.metric not in wanted)
    assert len(without.table) < len(results.table)  # the run has four objectives of it
    return with_rows(without, rows)


def test_table_b1_is_of_the_second_architecture() -> None:
    shown = table_of(exhibit("tableB1", with_plain()), "tableB1")
    assert shown.title == "A second architecture on Glyphs: glyphplain"
    first = table_of(exhibit("table1", only(glyphs(), lambda row: row.seed in (0, 1, None))), "table1_linear")
    assert len(shown.rows) == 9
    keys = [head.key for head in shown.columns]
    assert keys[:3] == ["top1_percent", "top5_percent", "r2"]
    theirs = {
        row.objective: dict(zip([head.key for head in first.columns], row.cells, strict=True))
        for row in first.rows
    }
    for row in shown.rows:
        for key, cell in zip(keys, row.cells, strict=True):
            if key != "r2":
                assert cell.value == pytest.approx(theirs[row.objective][key].value / 10)


def test_table_b1_says_what_is_not_measured_and_never_shows_the_first_architecture() -> None:
    built = exhibit("tableB1", only(glyphs(), lambda row: row.backbone != PLAIN or row.metric == "layer_cka"))
    assert [gap.command for gap in built.missing] == ["penultimate run full"]  # a whole `glyphs` lacks it too
    assert [table.source for table in built.tables] == ["published"]
    alone = described(glyphs(), networks=[{**glyphs().description["networks"][0]}])
    one = exhibit("tableB1", only(alone, lambda row: row.backbone != PLAIN))
    assert [table.source for table in one.tables] == ["published"]
    assert "for a second" in " ".join(one.notes)


def test_figure_d2_has_a_panel_for_each_task_and_their_mean(finished_smoke: Path) -> None:
    results = read_study(finished_smoke / "runs")
    drawn = panels(exhibit("figureD2", results, allow_limited=True))
    assert list(drawn) == ["figureD2-mean", "figureD2-syllabics_smoke", "figureD2-digits_smoke"]
    rows: dict[tuple[str, int], list[Row]] = {}
    for row in rows_in(finished_smoke / "runs").where(metric="linear_top1"):
        if row.epoch is not None:
            rows.setdefault((str(row.objective), row.epoch), []).append(row)
    assert {epoch for _, epoch in rows} == {1, 2, 3}
    softmax = next(curve for curve in drawn["figureD2-mean"].curves if curve.objective == "softmax")
    for epoch, value in softmax.points:
        of_tasks = [row.value for row in rows["softmax", int(epoch)]]
        assert len(of_tasks) == 2
        assert value == pytest.approx(100 * sum(of_tasks) / 2)


def test_the_last_epochs_transfer_is_the_linear_probes(finished_smoke: Path) -> None:
    table = rows_in(finished_smoke / "runs").where(metric="linear_top1", split="test", layer=None)
    final = {(row.objective, row.target): row.value for row in table if row.epoch is None}
    last = {(row.objective, row.target): row.value for row in table if row.epoch == 3}
    assert final.keys() == last.keys()
    assert last == pytest.approx(final)
