"""Drawings: text as text, the page's colours, no label over another; marks that everyone can tell apart."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate.objectives.sweeps import swept
from penultimate.report.base import Curve, Panel, Point
from penultimate.report.drawing import palette
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import PRESET_MARKS, SHAPES, marks
from penultimate.report.drawing.placement import Box, crosses, overlap, place
from penultimate.report.drawing.restyle import GROUP, TITLE
from tests.oracles.report import MACHADO, contrast, oklab

MARKS = marks(list(PRESET_MARKS))
POINTS = tuple(
    Point(0.35 + 0.02 * i, 80 + (i * 7) % 5, slug, slug.replace("_", " "), f"seed 0: {i}")
    for i, slug in enumerate(PRESET_MARKS)
)
PANEL = Panel("panel", "A title", "across", "up", POINTS, finding="a finding")


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_text_is_text_in_the_pages_font_and_colour() -> None:
    svg = draw_panel(PANEL, MARKS).styled("x")
    assert {"across", "up", *(point.label for point in POINTS)} <= set(texts(svg))
    assert "font-family" not in svg
    assert "DejaVu" not in svg
    assert not re.search(r"#0[1-4]0[1-4]0[1-4]", svg)
    assert "currentColor" in svg
    assert "var(--mark-cosine-softmax, #8573ee)" in svg
    assert "<style" not in svg
    assert "<metadata" not in svg


def test_a_file_stands_alone() -> None:
    svg = draw_panel(PANEL, MARKS).styled("x", page=False)
    assert "var(" not in svg
    assert "currentColor" not in svg
    assert palette.INK[0] in svg


def test_marks_say_what_they_are_and_whose() -> None:
    root = ElementTree.fromstring(draw_panel(PANEL, MARKS).styled("x"))
    titled = {
        group.attrib.get("data-mark"): [child.text for child in group if child.tag.endswith("title")]
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if "data-mark" in group.attrib
    }
    assert titled["cosine-softmax"] == ["cosine softmax: seed 0: 7"]
    assert len(titled) == len(POINTS)


def test_prefixes_keep_drawings_apart() -> None:
    drawing = draw_panel(PANEL, MARKS)
    for prefix in ("a", "b"):
        svg = drawing.styled(prefix)
        ids = re.findall(r'id="([^"]*)"', svg)
        assert len(ids) == len(set(ids))
        assert set(ids) == set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
        assert ids
        assert all(name.startswith(f"{prefix}-") for name in ids)


@pytest.mark.parametrize("page", [True, False])
def test_a_drawing_holds_all_that_was_drawn_and_no_idle_group(page: bool) -> None:
    curve = Curve(((0.4, 80), (0.5, 84), (0.5, 81)), "sigmoid", "sigmoid")
    panel = replace(PANEL, curves=(curve, replace(curve, dashed=True), replace(curve, faint=True)))
    drawing = draw_panel(panel, MARKS)

    def shapes(svg: str) -> list[str]:
        drawn = (element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter())
        return [tag for tag in drawn if tag not in ("svg", "g", "defs", "metadata", "style", "title")]

    svg = drawing.styled("x", page)
    raw = re.sub(r"(?s)<metadata>.*?</metadata>", "", drawing.raw)
    assert shapes(svg) == shapes(raw)
    titles = [element.text for element in ElementTree.fromstring(svg).iter(TITLE)]
    assert sorted(filter(None, titles)) == sorted(note.text for note in drawing.notes)
    for group in ElementTree.fromstring(svg).iter(GROUP):
        assert len(group) > 0
        assert group.attrib or group[0].tag == TITLE
    assert not re.search(r">\s+<", svg)


@pytest.mark.parametrize("label", ["$x^2$ & <b>", "日本語 ∀x", "a\nb\x00c", "\\frac{1}{2}$", "x" * 400])
def test_any_label_can_be_drawn_as_it_is(label: str) -> None:
    panel = Panel("p", label, label, label, (Point(1, 2, "softmax", label, label),))
    shown = texts(draw_panel(panel, MARKS).styled("x"))
    kept = " ".join(label.replace("\x00", " ").split())
    assert kept in shown
    assert any(kept.startswith(text.rstrip("…")) and len(text) <= 34 for text in shown if text)


def test_a_users_matplotlib_settings_change_nothing() -> None:
    import matplotlib

    before = draw_panel(PANEL, MARKS)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": False}):
        assert draw_panel(PANEL, MARKS).raw == before.raw


def test_limits_that_leave_no_room_are_widened() -> None:
    """The curve of a lone network over one epoch: its frame is a point, of which matplotlib would warn."""
    curve = Curve(((1.0, 9.6),), "softmax", "softmax")
    panel = Panel("panel", "", "", "", curves=(curve,), x_limits=(1.0, 1.0), y_limits=(9.6, 9.6))
    assert draw_panel(panel, MARKS).notes


@pytest.mark.parametrize("points", [((1.0, 1.0),), ((1.0, 1.0), (1.0, 1.0)), ((0.0, 0.0), (0.0, 5.0))])
def test_degenerate_clouds_can_be_drawn(points: tuple[tuple[float, float], ...]) -> None:
    drawn = tuple(Point(x, y, "softmax", f"p{i}") for i, (x, y) in enumerate(points))
    svg = draw_panel(Panel("p", "", "x", "y", drawn), MARKS).styled("x")
    assert {f"p{i}" for i in range(len(points))} <= set(texts(svg))


def test_a_label_keeps_off_the_interval_of_its_mark() -> None:
    """The interval is level and the mark at the right edge, so the label's first choice is on the line."""
    interval = Curve(((2.8, 1.0), (3.2, 1.0)), "softmax", "95 %")
    points = (Point(3.0, 1.0, "softmax", "the chosen one"),)
    panel = Panel("p", "", "x", "y", points, (interval,), x_limits=(0, 3.3), y_limits=(0, 2), size=(640, 420))

    def is_over(panel: Panel) -> bool:
        svg = draw_panel(panel, MARKS).styled("x")
        assert "M 540 202  L 612 202" in svg
        label = next(each for each in ElementTree.fromstring(svg).iter() if each.text == "the chosen one")
        return float(label.attrib["y"]) - 9 < 202 < float(label.attrib["y"]) + 3

    assert not is_over(panel)
    assert is_over(replace(panel, curves=(replace(interval, faint=True),)))


@pytest.mark.long
@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.floats(20, 380), st.floats(20, 280), st.floats(20, 110)), min_size=1, max_size=9)
)
def test_labels_stay_inside_and_apart(drawn: list[tuple[float, float, float]]) -> None:
    anchors = [(x, y) for x, y, _ in drawn]
    obstacles = [(Box(x - 5, y - 5, x + 5, y + 5), i) for i, (x, y) in enumerate(anchors)]
    frame = Box(0, 0, 400, 300)
    placed = place(anchors, [(width, 10) for _, _, width in drawn], obstacles, frame)
    assert place(anchors, [(width, 10) for _, _, width in drawn], obstacles, frame) == placed
    for i, one in enumerate(placed):
        left, bottom, right, top = one.box
        assert overlap(one.box, frame) == pytest.approx((right - left) * (top - bottom))
        assert not any(overlap(one.box, other.box) for other in placed[:i])
        x, y = anchors[i]
        near = min(max(x, left), right), min(max(y, bottom), top)
        assert one.leader is not None or math.dist(near, anchors[i]) <= 15


def test_a_leader_crosses_what_lies_on_it() -> None:
    through = [(0, 0, 10, 10), (0, 5, 10, 5), (5, 0, 5, 9)]
    beside = [(0, 7, 10, 7), (0, 0, 3, 3), (5, 0, 5, 3), (7, 0, 7, 9), (5, 5, 5, 5.1)]
    assert crosses([*through, *beside], Box(4, 4, 6, 6)).tolist() == [True] * 3 + [False] * 4 + [True]
    assert not crosses([(4, 5, 4, 9), (5, 5, 15, 5)], [Box(4, 4, 6, 6), Box(4, 4, 5.9, 6)]).any()


@pytest.mark.parametrize("theme", [0, 1], ids=["paper", "dark"])
def test_nine_marks_can_be_told_apart_by_anyone(theme: int) -> None:
    colours = [(mark.light, mark.dark)[theme] for mark in MARKS.values()]
    for colour in colours:
        assert contrast(colour, palette.PAPER[theme]) >= 3
    for vision in MACHADO:
        seen = [oklab(colour, vision) for colour in colours]
        nearest = min(math.dist(one, other) for i, one in enumerate(seen) for other in seen[:i])
        assert nearest >= 0.06
    assert len({mark.shape for mark in MARKS.values()}) == 9
    assert contrast(palette.INK[theme], palette.PAPER[theme]) >= 7
    assert contrast(palette.MUTED[theme], palette.PAPER[theme]) >= 4.5


def test_marks_do_not_depend_on_the_company() -> None:
    alone = marks(["sigmoid"])["sigmoid"]
    assert marks(["focal(gamma=2)", "sigmoid", "poly(e=1)"])["sigmoid"] == alone
    many = marks([f"plugin{i}" for i in range(20)])
    assert len({(mark.light, mark.shape) for mark in many.values()}) == 20
    assert len({mark.key for mark in marks(["a(b)", "a b", "A(B)"]).values()}) == 3


@pytest.mark.parametrize("theme", [0, 1], ids=["paper", "dark"])
def test_temperatures_are_graded_in_the_hue_of_cosine_softmax(theme: int) -> None:
    known = marks(["softmax", "cosine_softmax", *map(swept, (0.08, 0.02, 0.05, 0.03)), "focal(gamma=2)"])
    graded = [known[swept(temperature)] for temperature in (0.02, 0.03, 0.05, 0.08)]
    assert {mark.shape for mark in graded} == {"circle"}
    colours = [(mark.light, mark.dark)[theme] for mark in graded]
    contrasts = [contrast(colour, palette.PAPER[theme]) for colour in colours]
    assert contrasts == sorted(contrasts)
    assert contrasts[0] >= 3
    for vision in MACHADO:
        seen = [oklab(colour, vision) for colour in colours]
        assert min(math.dist(*pair) for pair in itertools.pairwise(seen)) >= 0.06
    (_, *hue), own = oklab(colours[1], "normal"), PRESET_MARKS["cosine_softmax"][theme]
    assert math.degrees(abs(math.atan2(*hue) - math.atan2(*oklab(own, "normal")[1:]))) < 20
    assert known["focal(gamma=2)"] == marks(["focal(gamma=2)"])["focal(gamma=2)"]


@pytest.mark.parametrize("slug", [*PRESET_MARKS, "focal(gamma=2)"])
def test_the_outline_of_a_shaded_mark_is_closed(slug: str) -> None:
    panel = Panel("p", "", "", "", (Point(1.0, 2.0, slug, "one", shade=0.0),))
    (outline,) = re.findall(
        r'<path id="m\w+" d="([^"]+)" style="stroke: #', draw_panel(panel, marks([slug])).raw
    )[-1:]
    assert outline.rstrip().lower().endswith("z")


def test_shapes_lie_in_the_unit_circle() -> None:
    for vertices, scale in SHAPES.values():
        assert all(math.hypot(x, y) <= 1.07 for x, y in vertices)
        assert 0.8 <= scale <= 1.3
