"""Relearned heads: exactly the rows' numbers beside the original heads', the paper's digit for digit."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.objectives.presets import PRESETS
from penultimate.paper import published
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit
from penultimate.report.base import Point
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from tests.oracles import claims as oracle
from tests.report.planted import NINE
from tests.report.reading import column_of, glyphs, panels, runs_of, table_of, with_rows
from tests.report.synthetic import TARGETS, study

RELEARNED = "imagenet_50k_relearned_top1_percent"


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    return glyphs()


def mean(results: StudyResults, slug: str, **columns: str) -> float:
    """The mean of an objective's rows, read one by one."""
    found = runs_of(results, slug, **columns)
    return sum(found) / len(found)


@pytest.mark.parametrize("shots", [5, 10, 40])
def test_figure6_joins_the_relearned_heads_to_the_original(shots: int, reference: StudyResults) -> None:
    panel = panels(exhibit("figure6", reference))[f"figure6-{shots}"]
    assert sum(not point.faint for point in panel.points) == len(NINE)
    for slug in NINE:
        separation = mean(reference, slug, metric="class_separation", split="train")
        original = 100 * mean(reference, slug, metric="top1")
        relearned = 100 * mean(reference, slug, metric="relearn_top1", setting=f"shots={shots}")
        drawn = {point.faint: point for point in panel.points if point.objective == slug}
        assert (drawn[True].x, drawn[True].y) == pytest.approx((separation, original))
        assert (drawn[False].x, drawn[False].y) == pytest.approx((separation, relearned))
        (line,) = [curve for curve in panel.curves if curve.objective == slug]
        assert line.points == ((drawn[True].x, drawn[True].y), (drawn[False].x, drawn[False].y))
    told = panel.finding.replace("\N{MINUS SIGN}", "-")
    heads, own = ([point for point in panel.points if point.faint is faint] for faint in (False, True))
    x, gaps = [point.x for point in heads], _gaps(own, heads)
    assert f"Relearned: Spearman ρ = {oracle.rho(x, [point.y for point in heads]):.2f}," in told
    assert f"Relearned less original: ρ = {oracle.rho(x, gaps):.2f}," in told


def _gaps(own: list[Point], heads: list[Point]) -> list[float]:
    heights = {point.objective: point.y for point in own}
    return [point.y - heights[point.objective] for point in heads]


def test_the_original_head_is_that_on_the_same_images_where_it_was_measured(reference: StudyResults) -> None:
    heads = reference.table.where(metric="relearn_top1", setting="shots=5")
    originals = [
        dataclasses.replace(row, metric="relearn_original_top1", value=row.value / 2) for row in heads
    ]
    built = exhibit("figure6", with_rows(reference, originals))
    drawn, others = panels(built)["figure6-5"], panels(built)["figure6-10"]
    marks_of = {(point.objective, point.faint): point.y for point in drawn.points}
    for slug in NINE:
        assert marks_of[slug, True] == pytest.approx(marks_of[slug, False] / 2)
    assert any("the original heads on all test images" in note for note in built.notes)
    assert others == panels(exhibit("figure6", reference))["figure6-10"]


def test_the_table_has_the_sweep_below_the_objectives(reference: StudyResults) -> None:
    table = table_of(exhibit("figure6", reference), "figure6")
    assert [column.key for column in table.columns] == [
        "class_separation_r2",
        "top1_percent",
        "relearned_5_percent",
        "relearned_10_percent",
        "relearned_40_percent",
    ]
    assert [row.objective for row in table.rows[:9]] == list(NINE)
    assert [row.label for row in table.rows[9:]] == [
        f"Cosine softmax (τ = {t}, scale = {t})" for t in (0.02, 0.03, 0.04, 0.05, 0.08)
    ]


def test_the_papers_relearned_heads_are_those_of_its_iclr_version() -> None:
    built = exhibit("figure6", study())
    assert {table.source for table in built.tables} == {"published"}
    printed = {row["objective"]: row[RELEARNED] for row in published.printed("iclr_table3_linear")}
    column = column_of(table_of(built, "figure6_published"), RELEARNED)
    assert {slug: cell.text for slug, cell in column.items()} == printed
    panel = panels(built)["figure6-published"]
    assert {point.objective: point.y for point in panel.points if not point.faint} == {
        name: float(text) for name, text in printed.items()
    }
    assert [str(gap) for gap in built.missing] == [
        "Relearned heads: not measured: run `penultimate run glyphs`"
    ]


def test_only_finished_heads_of_the_first_architecture_count(reference: StudyResults) -> None:
    head = next(iter(reference.table.where(metric="relearn_top1", setting="shots=5", objective="softmax")))
    stray = dataclasses.replace(head, seed=9, value=0.01)
    strays = [
        dataclasses.replace(stray, status="diverged"),
        dataclasses.replace(stray, split="relearn"),
        dataclasses.replace(stray, setting="images=5"),
        dataclasses.replace(stray, setting=None),
        dataclasses.replace(stray, backbone="glyphplain"),
        dataclasses.replace(stray, arm="temperature"),
        Row(metric="top1", value=0.5, objective="softmax", backbone="glyphplain", seed=9, source="glyphs"),
    ]
    more = with_rows(reference, strays)
    before = table_of(exhibit("figure6", reference), "figure6")
    assert table_of(exhibit("figure6", more), "figure6").rows[:9] == before.rows[:9]


def test_iclr_figure5_is_drawn_at_the_judged_number_of_images(reference: StudyResults) -> None:
    built = exhibit("iclr_figure5", reference)
    assert [panel.name for panel in built.figures[0].panels] == [
        "iclr_figure5-ours",
        "iclr_figure5-objective-published",
        "iclr_figure5-temperature",
        "iclr_figure5-temperature-published",
    ]
    assert any("five images of each class" in note for note in built.notes)
    ours = {point.objective: point for point in panels(built)["iclr_figure5-ours"].points}
    assert set(ours) == set(NINE)
    for slug in NINE:
        heads = 100 * mean(reference, slug, metric="relearn_top1", setting="shots=5")
        tasks = [
            mean(
                reference,
                slug,
                metric="linear_mean_per_class" if task == "newfaces" else "linear_top1",
                target=task,
            )
            for task in TARGETS
        ]
        assert (ours[slug].x, ours[slug].y) == pytest.approx((heads, 100 * sum(tasks) / len(tasks)))
    sweep = panels(built)["iclr_figure5-temperature"].points
    assert [point.label for point in sweep] == [f"τ = {t}" for t in (0.02, 0.03, 0.04, 0.05, 0.08)]


def test_iclr_figure5_is_of_images_of_training_where_those_were_measured(reference: StudyResults) -> None:
    """They are its protocol in the paper; figure 6 draws fresh images, and tells the others in its table."""
    fresh = exhibit("iclr_figure5", reference)
    assert any("they are fresh ones, as in Figure 6" in note for note in fresh.notes)
    rows = [
        dataclasses.replace(row, metric="relearn_training_top1", value=row.value / 2)
        for row in reference.table
        if row.metric == "relearn_top1" and row.setting == "shots=5"
    ]
    more = with_rows(reference, rows)
    seen = exhibit("iclr_figure5", more)
    assert any("five images of each class that the network was trained on" in note for note in seen.notes)
    for name in ("iclr_figure5-ours", "iclr_figure5-temperature"):
        halves = {point.label: point.x for point in panels(seen)[name].points}
        assert halves == pytest.approx({point.label: point.x / 2 for point in panels(fresh)[name].points})
    before, after = exhibit("figure6", reference), exhibit("figure6", more)
    assert after.figures == before.figures
    assert {column.key for column in after.tables[0].columns} == {
        *(column.key for column in before.tables[0].columns),
        "relearned_training_5_percent",
    }


def test_iclr_figure5_shows_the_papers_two_tables() -> None:
    built = exhibit("iclr_figure5", study())
    objectives = panels(built)["iclr_figure5-objective-published"].points
    assert [point.label for point in objectives] == [PRESETS[name].label for name in NINE]
    assert (objectives[0].x, objectives[0].y) == pytest.approx((71.1, 75.95))
    temperatures = panels(built)["iclr_figure5-temperature-published"].points
    assert [point.x for point in temperatures] == [67.0, 70.8, 74.3, 75.7, 76.4, 76.6, 76.8, 77.0]
    assert len(built.missing) == 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["figure5", "figure6", "iclr_figure5"])
def test_every_panel_can_be_drawn(name: str, reference: StudyResults) -> None:
    panels = [panel for figure in exhibit(name, reference).figures for panel in figure.panels]
    known = marks([point.objective for panel in panels for point in panel.points if point.objective])
    for panel in panels:
        assert "<svg" in draw_panel(panel, known).styled(panel.name, page=False)
