"""Accuracy on the pretraining classes, and transfer of features (section 3.1 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from penultimate.data.catalog import card
from penultimate.paper import printed
from penultimate.paper.printed import PAPER_TARGETS, mean_of_printed, printed_transfer
from penultimate.report.base import Figure, Missing, Panel, Point, Source
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.sets import name_on
from penultimate.report.shapes import findings
from penultimate.report.shapes.another import InAnother, in_another
from penultimate.report.shapes.scatter import PrintedPanel, Scatter, ScatterPanel, first_runs, run_points
from penultimate.report.shapes.table import Printed, PrintedTable, TableOfRuns
from penultimate.report.spec import Bespoke, Exhibit, Piece

SMALL = (210.0, 176.0)
MEAN_NOTE = "‡ Not printed: the mean of the eight printed values. The paper's bold is not recorded."


def _half(probe: str, word: str) -> tuple[TableOfRuns, PrintedTable]:
    """Return one half of Table 1: ours by one probe, and the paper's."""
    group = f"Transfer, {word}"
    ours = TableOfRuns(
        f"table1_{probe}",
        f"Classifiers on frozen features, {word}, %",
        (
            Quantity("top1", label="Top-1", key="top1_percent", group="{source}, test", bold=True),
            Quantity("top5", label="Top-5", key="top5_percent", group="{source}, test", bold=True),
            Quantity(
                f"{probe}_{{accuracy}}", key="{target}_percent", target="targets", group=group, bold=True
            ),
        ),
        missing=f"Transfer by {word} classifiers",
        needs=("{target}_percent",),
    )
    in_paper = PrintedTable(
        f"table1_{probe}",
        f"neurips_table1_{probe}",
        f"The paper's Table 1, {word} half: ResNet-50, ImageNet, eight runs, %",
        (
            Printed("imagenet_top1_percent", "Top-1", "ImageNet", "%"),
            Printed("imagenet_top5_percent", "Top-5", "ImageNet", "%"),
            *printed_transfer(group),
        ),
        (MEAN_NOTE,),
    )
    return ours, in_paper


TABLE1 = Exhibit(
    name="table1",
    title="Accuracy where trained, and accuracy elsewhere",
    caption="The first columns say how well each network knows the classes it was trained on; the others how"
    " well a simple classifier on its frozen features learns each new task. All numbers are test accuracies"
    " in per cent, means over runs.",
    parts=(*_half("linear", "linear"), *_half("knn", "kNN")),
    findings=(findings.beside_baseline(printed.TEST, printed.LINEAR),),
    section="3.1",
    summary="Pretraining accuracy, linear and kNN transfer",
    short="Accuracy and transfer",
)

ANOTHER = "Accuracy, class separation and transfer in another architecture"

TABLE_B1 = Exhibit(
    name="tableB1",
    title="Does another architecture say the same?",
    caption="Test accuracy, class separation R² on the training images, and linear transfer, of networks of a"
    " second architecture; means over runs.{beside}",
    parts=(
        InAnother(
            TableOfRuns(
                "tableB1",
                "A second architecture on {source}: {backbone}",
                (
                    Quantity("top1", label="Top-1", key="top1_percent", group="{source}, test", bold=True),
                    Quantity("top5", label="Top-5", key="top5_percent", group="{source}, test", bold=True),
                    Quantity("class_separation", "train", label="R²", key="r2", group="{source}, training"),
                    Quantity(
                        "linear_{accuracy}",
                        key="{target}_percent",
                        target="targets",
                        group="Transfer, linear",
                        bold=True,
                    ),
                ),
                missing=ANOTHER,
                needs=("{target}_percent",),
            ),
            missing=ANOTHER,
        ),
        PrintedTable(
            "tableB1",
            "neurips_tableB1_inception_v3",
            "The paper's Table B.1: Inception v3, ImageNet, three runs, %",
            (
                Printed("imagenet_top1_percent", "Top-1", "ImageNet", "%"),
                Printed("imagenet_top5_percent", "Top-5", "ImageNet", "%"),
                Printed("class_separation_r2", "R²", "ImageNet"),
                *printed_transfer("Transfer, linear"),
            ),
            (MEAN_NOTE,),
        ),
    ),
    findings=(
        in_another(
            findings.beside_baseline(
                *(
                    replace(one, printed=("neurips_tableB1_inception_v3", column))
                    for one, column in (
                        (printed.TEST, "imagenet_top1_percent"),
                        (printed.SEPARATION, "class_separation_r2"),
                        (printed.LINEAR, mean_of_printed),
                    )
                )
            )
        ),
    ),
    section="B",
    measured_by="full",
    of_another=True,
    summary=ANOTHER,
    short="Second architecture",
)

Y_LABEL = "Mean linear transfer accuracy, %"
TOP1 = Quantity("top1", label="Top-1 accuracy on the pretraining test set, %")
LINEAR = Quantity("linear_{accuracy}", label=Y_LABEL, target="targets")

FIGURE1 = Exhibit(
    name="figure1",
    title="Is the better classifier the better source of features?",
    caption="Each mark of ours is one run{behind}. To the right: better on the classes trained on. Up: frozen"
    " features that serve the new tasks better. The paper's panel shows its printed means over eight runs.",
    parts=(
        Scatter(
            "figure1",
            "Pretraining accuracy against transfer",
            "Scatter plots of mean linear transfer accuracy against accuracy on the pretraining test set.",
            (
                ScatterPanel(
                    "figure1-ours",
                    "Trained on {source}",
                    TOP1,
                    LINEAR,
                    "Pretraining accuracy against linear transfer",
                    marks="runs",
                ),
                PrintedPanel(
                    "figure1-published",
                    "Trained on ImageNet (ResNet-50)",
                    ("neurips_table1_linear", "imagenet_top1_percent"),
                    ("neurips_table1_linear", mean_of_printed),
                    "ImageNet top-1 accuracy, %",
                    Y_LABEL,
                ),
            ),
        ),
    ),
    findings=(findings.goes_with(printed.TEST, printed.LINEAR),),
    section="3.1",
    summary="Pretraining accuracy against linear transfer, with a point for each run",
    short="Accuracy against transfer",
)


def _by_task(measurements: Measurements) -> Piece:
    """Return a small panel for each task: first ours, then the paper's."""
    top1 = measurements.values(TOP1)
    points = {
        target: run_points(measurements, top1, measurements.on_target(LINEAR, target), TOP1, LINEAR)
        for target in measurements.targets
    }
    drawn = tuple(
        _small_panel(name_on("figureD1", target), card(target).title, marks)
        for target, marks in points.items()
        if marks
    )
    table = "neurips_table1_linear"
    in_paper = tuple(
        PrintedPanel(
            f"figureD1-published-{name}",
            label,
            (table, "imagenet_top1_percent"),
            (table, f"{name}_percent"),
            "",
            "",
        )
        for name, label in PAPER_TARGETS.items()
    )
    theirs = tuple(_small_panel(shape.name, shape.title, shape.points(), "published") for shape in in_paper)
    said = (
        "Scatter plots of linear transfer accuracy against accuracy on the pretraining test set, by data set."
    )
    figures = [Figure("figureD1", "This study's tasks", said, drawn, legend=True)] if drawn else []
    figures.append(Figure("figureD1-published", "The paper's tasks", said, theirs, legend=not drawn))
    lacking = [f"Linear transfer to {card(target).title}" for target, marks in points.items() if not marks]
    gaps = lacking if points else ["Linear transfer"]
    notes = first_runs(measurements) if drawn else ()
    return Piece(figures=tuple(figures), notes=notes, missing=tuple(map(Missing, gaps)))


def _small_panel(name: str, title: str, points: tuple[Point, ...], source: Source = "ours") -> Panel:
    return Panel(name, title, "", "", points, labelled=False, source=source, size=SMALL, y_unit="%")


def _on(target: str, measurements: Measurements) -> ByRun:
    return measurements.on_target(LINEAR, target)


def _task_by_task(measurements: Measurements) -> str:
    """Return a sentence on the rank correlation of accuracy and transfer on each task, in ascending order."""
    ours = {
        card(target).title: replace(printed.LINEAR, read=partial(_on, target))
        for target in measurements.targets
    }
    theirs = {
        label: replace(printed.LINEAR, printed=(printed.LINEAR_TABLE, f"{name}_percent"))
        for name, label in PAPER_TARGETS.items()
    }
    return findings.correlations(printed.TEST, ours, theirs, "task")(measurements)


FIGURE_D1 = Exhibit(
    name="figureD1",
    title="Every task by itself",
    caption="Linear transfer accuracy on each task (upwards, %) against top-1 accuracy on the pretraining"
    " test set (to the right, %). Each mark of ours is one run; the paper's panels show its printed means.",
    parts=(Bespoke(_by_task, (TOP1, LINEAR)),),
    findings=(_task_by_task,),
    section="D.1",
    summary="Pretraining accuracy against linear transfer, a data set a panel",
    short="Transfer, task by task",
)
