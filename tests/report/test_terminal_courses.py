"""In a terminal a curve is its course, not a row of end points."""

from __future__ import annotations

from penultimate.report.base import Built, Curve, Figure, Panel, Point
from penultimate.report.terminal import course_table, render_exhibit_text

RISE = ((1.0, 0.10), (2.0, 0.40), (3.0, 0.25), (4.0, 0.35))


def panel(*curves: Curve, **more: object) -> Panel:
    """A panel whose marks stand at the ends of its curves."""
    ends = tuple(Point(*curve.points[-1], curve.objective, curve.label) for curve in curves)
    return Panel("a", "A course", "Epoch", "R²", ends, curves, labelled=False, **more)  # type: ignore[arg-type]


def shown(one: Panel) -> str:
    return render_exhibit_text(Built("figureE4", "A title", "", figures=(Figure("f", "", "", (one,)),)))


def test_a_curve_is_drawn_in_blocks_with_its_first_lowest_highest_and_last_value() -> None:
    text = shown(panel(Curve(RISE, "softmax", "Softmax")))
    (line,) = [line for line in text.splitlines() if line.startswith("Softmax")]
    assert " ".join(line.split()) == "Softmax ▁█▄▇ 0.100 at 1 0.100 at 1 0.400 at 2 0.350 at 4"
    assert "At: Epoch." in text


def test_two_curves_that_end_at_one_point_keep_their_courses() -> None:
    other = ((1.0, 0.50), (2.0, 0.45), (3.0, 0.40), RISE[-1])
    text = shown(panel(Curve(RISE, "softmax", "Softmax"), Curve(other, "sigmoid", "Sigmoid")))
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("S")]
    assert lines == [
        "Softmax ▁█▄▇ 0.100 at 1 0.100 at 1 0.400 at 2 0.350 at 4",
        "Sigmoid █▆▃▁ 0.500 at 1 0.350 at 4 0.500 at 1 0.350 at 4",
    ]


def test_a_long_curve_is_thinned_out_and_keeps_its_ends() -> None:
    line = tuple((float(epoch), epoch / 1000) for epoch in range(1, 201))
    made = course_table(panel(Curve(line, "softmax", "Softmax")))
    assert made is not None
    course, first, *_, last = (cell.text for cell in made.rows[0].cells)
    assert len(course) == 24
    assert (course[0], course[-1]) == ("▁", "█")
    assert (first, last) == ("0.001 at 1", "0.200 at 200")


def test_marks_with_a_line_through_them_are_still_a_table_of_marks() -> None:
    marks = tuple(Point(x, y, "softmax", f"Number {x:g}") for x, y in RISE)
    fitted = Panel("b", "Marks", "x", "y", marks, (Curve(RISE, "", "A line"),))
    assert course_table(fitted) is None
    assert "Number 3" in shown(fitted)
