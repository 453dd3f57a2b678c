"""Figure D.1: accuracy on the pretraining classes against transfer, a panel a data set, a point a run."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import DATASET_TITLES, not_measured
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.exhibits.scatter import published_points, run_points

SIZE = (210.0, 176.0)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    panels = {target: _ours(measurements, target) for target in measurements.targets}
    drawn = tuple(panel for panel in panels.values() if panel)
    notes = [
        not_measured(f"Linear transfer to {card(target).title}")
        for target, panel in panels.items()
        if not panel
    ]
    if not panels:
        notes.append(not_measured("Linear transfer"))
    description = (
        "Scatter plots of linear transfer accuracy against accuracy on the pretraining test set, by data set."
    )
    figures = [Figure("figureD1", "This study's tasks", description, drawn, legend=True)] if drawn else []
    figures.append(
        Figure("figureD1-published", "The paper's tasks", description, _published(), legend=not drawn)
    )
    return Exhibit(
        "figureD1",
        "Every task by itself",
        "Linear transfer accuracy on each task (upwards, %) against top-1 accuracy on the pretraining test"
        " set (to the right, %). Each mark of ours is one run; the paper's panels show its printed means.",
        figures=tuple(figures),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _ours(measurements: Measurements, target: str) -> Panel | None:
    top1 = measurements.without(measurements.runs("top1"))
    points = run_points(measurements, top1, measurements.transfer("linear", target), 1, 100)
    if not points:
        return None
    return Panel(f"figureD1-{target}", card(target).title, "", "", points, labelled=False, size=SIZE)


def _published() -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"figureD1-published-{name}",
            title,
            "",
            "",
            published_points("table1_linear", "imagenet_top1_percent", "table1_linear", 1, f"{name}_percent"),
            labelled=False,
            source="published",
            size=SIZE,
        )
        for name, title in DATASET_TITLES.items()
    )
