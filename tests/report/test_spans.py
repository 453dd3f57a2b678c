"""Panels of different scales side by side: a bar of one length in each, and a sentence that says so."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from penultimate.report import exhibit
from penultimate.report.base import Figure, Panel, Point, Source
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.spans import with_bars
from tests.report.planted import as_in_the_paper, planted


def panel(
    name: str, heights: tuple[float, ...], source: Source = "ours", label: str = "Accuracy, %"
) -> Panel:
    points = tuple(Point(place, height, "softmax", f"{place}") for place, height in enumerate(heights))
    return Panel(name, name, "x", label, points, source=source)


OURS, THEIRS = panel("ours", (80.0, 82.1)), panel("theirs", (48.0, 76.4), "published")


def figure(*panels: Panel) -> Figure:
    return Figure("figure", "", "", panels)


def test_panels_of_two_spans_bear_one_bar_and_say_their_spans() -> None:
    (found,), said = with_bars([figure(OURS, THEIRS)])
    assert [one.bar and (one.bar.length, one.bar.label) for one in found.panels] == [(1.0, "1 point")] * 2
    assert "ours span 2.1 points upwards, and the paper's span 28.4 points" in said


def test_a_bar_is_that_of_all_figures_of_an_exhibit() -> None:
    figures, said = with_bars([figure(OURS, panel("wider", (70.0, 84.0))), figure(THEIRS)])
    assert {one.bar.label for each in figures for one in each.panels if one.bar} == {"1 point"}
    assert "ours span 2.1 to 14.0 points" in said


@pytest.mark.parametrize(
    "panels",
    [
        (OURS,),
        (OURS, panel("wider", (50.0, 80.0))),
        (THEIRS,),
        (OURS, panel("alike", (70.0, 72.9), "published")),
        (OURS, panel("another quantity", (0.1, 0.9), "published", "Class separation R²")),
        (panel("one mark", (80.0,)), THEIRS),
        (panel("no number", (float("nan"), 80.0)), THEIRS),
        (replace(OURS, numbered=False), THEIRS),
    ],
    ids=lambda panels: panels[0].name if len(panels) == 1 else panels[1].name,
)
def test_panels_that_need_no_bar_have_none(panels: tuple[Panel, ...]) -> None:
    figures, said = with_bars([figure(*panels)])
    assert said == ""
    assert figures == (figure(*panels),)


def test_the_bar_is_drawn_as_long_as_it_says() -> None:
    (found,), _ = with_bars([figure(OURS, THEIRS)])
    for one in found.panels:
        drawn = draw_panel(one, marks(["softmax"])).raw
        bare = draw_panel(replace(one, bar=None), marks(["softmax"])).raw
        assert "1 point" in drawn
        assert "1 point" not in bare
        ((bottom, top),) = re.findall(r'd="M [\d.]+ ([\d.]+) \nL [\d.]+ ([\d.]+) \n" clip-path', drawn)[-1:]
        heights = [point.y for point in one.points]
        inner = 340 - 24 - 40  # the panel's height without its margins, in points
        assert float(bottom) - float(top) == pytest.approx(
            inner / (1.18 * (max(heights) - min(heights))), rel=0.02
        )


def test_the_figure_of_the_papers_title_says_how_far_its_panels_span() -> None:
    built = exhibit("figure1", planted(as_in_the_paper()))
    ((said,), bars) = (
        [note for note in built.notes if "scales differ" in note],
        [one.bar for each in built.figures for one in each.panels],
    )
    assert all(bars)
    assert len({bar.label for bar in bars if bar}) == 1
    assert "the paper's span 27.6 points" in said
