"""In a terminal a curve is its course, and a tree its branches, not a row of end points or of zeros."""

from __future__ import annotations

import itertools

from penultimate.networks.key import NetworkKey
from penultimate.objectives.presets import resolve
from penultimate.report.base import Built, Curve, Figure, Panel, Point
from penultimate.report.measurements import admit
from penultimate.report.shapes.tree import tree_panel
from penultimate.report.terminal import course_table, render_exhibit_text
from tests.report.planted import planted

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


def test_a_tree_is_indented_and_objectives_that_keep_together_stand_in_one_line() -> None:
    names = ("softmax", "sigmoid", "squared_error")
    measured = admit(planted({name: {"accuracy": 70.0} for name in names}, (0, 1)))
    networks = [NetworkKey(resolve(name).canonical, seed=seed) for name in names for seed in (0, 1)]
    near = {frozenset(names[:2]): 0.7}
    share = {
        (a, b): 0.9 if a.objective == b.objective else near.get(frozenset((a.objective, b.objective)), 0.4)
        for a, b in itertools.combinations(networks, 2)
    }
    tree = tree_panel(measured, share, "tree", "Joined by mistakes", "%", "% of different answers")
    assert tree is not None
    lines = sorted(tree.outline, key=lambda line: (len(line) - len(line.lstrip()), line))
    assert [line for line in lines if "joined at" in line and line.endswith(":")] == [
        "joined at 60.0 % of different answers:",
        "  joined at 30.0 % of different answers:",
    ]
    own = "seed 0 and seed 1 (joined at 10.0 % of different answers)"
    kept = {line.strip() for line in lines if not line.endswith(":")}
    assert {line.replace("seed 1 and seed 0", "seed 0 and seed 1") for line in kept} == {
        f"{label}: {own}" for label in ("Softmax", "Sigmoid", "Squared error")
    }
    text = shown(tree)
    assert "    Softmax: " in text
    assert "0.000" not in text
