"""Figures C.1, C.2, C.3 and E.4: the lines hold the epochs that were recorded, and end where they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penultimate.paper.exhibits.training import LOSS
from penultimate.records.table import Row
from penultimate.report import exhibit
from penultimate.report.base import Panel, StudyResults
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.tables import points_csv
from penultimate.report.terminal import render_exhibit_text
from tests.oracles.report import mean_of, standard_error_of
from tests.report.reading import (
    described,
    glyphs,
    objectives_of,
    only,
    panels,
    part_of,
    values,
    with_rows,
)

NAMES = ("figureC1", "figureC2", "figureC3", "figureE4")
LINES = {
    "figureC1-ours": ("figureC1", "top1", "holdout", 100),
    "figureC2-ours": ("figureC2", "top1", "train", 100),
    "figureE4-train": ("figureE4", "class_separation", "train", 1),
    "figureE4-test": ("figureE4", "class_separation", "test", 1),
}


def epochs_of(metric: str, split: str) -> list[int]:
    rows = glyphs().table.where(metric=metric, split=split, objective="softmax", seed=0, arm=None)
    return sorted({row.epoch for row in rows if row.epoch is not None})


def panel_of(name: str, results: StudyResults, panel: str = "") -> Panel:
    return panels(exhibit(name, results))[panel or f"{name}-ours"]


@pytest.mark.parametrize("panel", LINES)
@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2, 3, 4)])
def test_lines_are_the_means_of_each_objectives_runs(panel: str, seeds: tuple[int, ...]) -> None:
    name, metric, split, scale = LINES[panel]
    results = part_of(glyphs(), seeds=seeds)
    built = exhibit(name, results)
    drawn = panels(built)[panel]
    assert [curve.objective for curve in drawn.curves] == list(objectives_of(results))
    epochs = epochs_of(metric, split)
    assert len(epochs) > 1
    for curve, end in zip(drawn.curves, drawn.points, strict=True):
        about = {"objective": objectives_of(results)[curve.objective], "metric": metric, "split": split}
        runs = [[scale * value for value in values(results, epoch=epoch, **about)] for epoch in epochs]
        assert curve.points == tuple(
            (epoch, pytest.approx(mean_of(of_epoch))) for epoch, of_epoch in zip(epochs, runs, strict=True)
        )
        assert (end.objective, end.x, end.y) == (curve.objective, *curve.points[-1])
        assert end.x_error is None
        assert end.y_error == (pytest.approx(standard_error_of(runs[-1])) if len(seeds) > 1 else None)
        assert drawn.y_limits is not None
        low, high, reach = *drawn.y_limits, end.y_error or 0.0
        assert low < end.y - reach
        assert end.y + reach < high
        assert ("mean of five runs" if len(seeds) > 1 else "seed 0") in end.detail
    said = "Each line is a run." if len(seeds) == 1 else "Each line is the mean of an objective's runs"
    assert said in built.caption


def test_without_a_holdout_figure_c1_shows_test_images_as_the_paper_does() -> None:
    """ImageNet's networks train on all training images; their snapshots are tested (`dynamics`)."""
    turned = [
        replace(row, split="test")
        for row in glyphs().table.where(metric="top1", split="holdout")
        if row.epoch
    ]
    results = with_rows(only(glyphs(), lambda row: row.split != "holdout" and not row.epoch), turned)
    built = exhibit("figureC1", results)
    (panel,) = panels(built).values()
    assert (panel.name, panel.title.startswith("Test images of ")) == ("figureC1-test", True)
    held = panel_of("figureC1", glyphs())
    assert [curve.points for curve in panel.curves] == [curve.points for curve in held.curves]
    assert built.missing == ()
    assert "in test accuracy halfway through training" in built.finding
    assert "in holdout accuracy halfway through training" in exhibit("figureC1", glyphs()).finding


def test_a_line_has_the_epochs_of_all_its_runs_and_runs_without_any_have_their_own() -> None:
    results, epochs = part_of(glyphs(), seeds=[0, 1]), epochs_of("top1", "holdout")

    def is_early(row: Row) -> bool:
        return row.epoch in epochs[:3]

    shorter = only(
        results,
        lambda row: (row.objective, row.seed, row.split) != ("softmax", 1, "holdout") or is_early(row),
    )
    curves = panel_of("figureC1", shorter).curves
    assert [[x for x, _ in curve.points] for curve in curves[:2]] == [epochs[:3], epochs]
    apart = only(
        results,
        lambda row: (row.objective, row.split) != ("softmax", "holdout") or is_early(row) == (row.seed == 1),
    )
    curves = panel_of("figureC1", apart).curves
    assert [curve.objective for curve in curves[:3]] == ["softmax", "softmax", "label_smoothing"]
    assert [[x for x, _ in curve.points] for curve in curves[:2]] == [epochs[3:], epochs[:3]]


def test_figure_c2_falls_back_on_the_loss_and_says_so() -> None:
    recorded = exhibit("figureC2", glyphs())
    assert panels(recorded)["figureC2-ours"].y_label == "Top-1 accuracy, %"
    assert LOSS.note not in recorded.notes
    bare = only(glyphs(), lambda row: (row.metric, row.split) != ("top1", "train"))
    facts = {"backbone": "glyphnet", "source": "glyphs", "target": "glyphs", "split": "train", "unit": "loss"}
    losses = [
        Row(objective="sigmoid", seed=0, draw=0, epoch=epoch, metric="mean_loss", value=8 / epoch, **facts)
        for epoch in (1, 2, 4)
    ]
    built = exhibit("figureC2", with_rows(bare, losses))
    (panel,) = panels(built).values()
    assert (panel.title, panel.y_label) == ("Training loss on Glyphs", "Loss, % of the first epoch's")
    assert panel.curves[0].points == ((1, 100), (2, 50), (4, 25))
    assert built.notes[0] == LOSS.note


def test_figure_c3_joins_equal_epochs_and_ends_at_the_means() -> None:
    built = exhibit("figureC3", glyphs())
    assert list(panels(built)) == ["figureC3-epochs", "figureC3-ours", "figureC3-published"]
    along = panels(built)["figureC3-epochs"]
    epochs = epochs_of("top1", "test")
    for place, epoch in enumerate(epochs):
        about = {"objective": "softmax", "metric": "top1", "epoch": epoch}
        means = [100 * mean_of(values(glyphs(), split=split, **about)) for split in ("train", "test")]
        assert along.curves[0].points[place] == pytest.approx(means)
    assert {len(curve.points) for curve in along.curves} == {len(epochs)}
    assert along.y_label == "Top-1 accuracy on the test images, %"
    assert all(point.x_error and point.y_error for point in along.points)
    assert "Epoch by epoch: each line is the mean" in built.caption
    assert "at the end of training (five runs per objective). Of two" in built.caption
    means_of = {point.objective: point for point in panels(built)["figureC3-ours"].points if not point.faint}
    for slug, spec in objectives_of(glyphs()).items():
        for split, at in (("train", means_of[slug].x), ("test", means_of[slug].y)):
            runs = values(glyphs(), objective=spec, metric="top1", split=split)
            assert at == pytest.approx(100 * mean_of(runs))
    paper = {point.objective: point for point in panels(built)["figureC3-published"].points}
    assert (paper["softmax"].x, paper["softmax"].y) == (93.61, 77.0)


def test_figure_c3_takes_the_holdout_where_the_test_images_were_not_followed() -> None:
    unfollowed = only(glyphs(), lambda row: row.split != "test" or row.epoch is None)
    along = panel_of("figureC3", unfollowed, "figureC3-epochs")
    assert along.y_label == "Top-1 accuracy on the holdout images, %"
    shared = sorted(set(epochs_of("top1", "train")) & set(epochs_of("top1", "holdout")))
    assert {len(curve.points) for curve in along.curves} == {len(shared)}


def test_figure_c3_without_epochs_shows_the_finished_networks() -> None:
    built = exhibit("figureC3", only(glyphs(), lambda row: row.epoch is None))
    assert list(panels(built)) == ["figureC3-ours", "figureC3-published"]
    assert built.notes[0].startswith("Training accuracy over the epochs was not recorded")
    assert "Epoch by epoch" not in built.caption


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_measured_is_said_and_never_drawn_empty(name: str) -> None:
    bare = only(glyphs(), lambda row: row.metric.startswith("linear"))
    built = exhibit(name, bare)
    assert built.tables == ()
    assert all(panel.source == "published" for panel in panels(built).values())
    assert all(figure.panels for figure in built.figures)
    assert len(built.missing) == 1
    assert built.notes[0] == f"{built.missing[0].what}: not measured: run `penultimate run nine`"


@pytest.mark.parametrize("name", NAMES)
def test_exhibits_are_printed_and_drawn(name: str) -> None:
    results = part_of(glyphs(), ["softmax", "squared_error"], [0])
    built = exhibit(name, results)
    assert built.number in render_exhibit_text(built)
    assert points_csv(built)
    known = marks(list(objectives_of(glyphs())))
    for panel in panels(built).values():
        assert "<svg" in draw_panel(panel, known).styled(panel.name)


@pytest.mark.parametrize(
    ("asked", "count"), [("dynamics", "5,120"), ("dynamics(images=64)", "64"), ("accuracy", "5,120")]
)
def test_figure_e4_says_how_many_images_its_study_measured_on(asked: str, count: str) -> None:
    networks = [{**block, "measure": [asked]} for block in glyphs().description["networks"]]
    built = exhibit("figureE4", described(glyphs(), networks=networks, measure=[asked]))
    assert f"on {count} images of each split (or all there are)" in built.caption
