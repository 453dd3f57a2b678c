"""Overlap of the tasks' classes with those of the pretraining set (section F of the paper)."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.paper import BASELINE
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.printed import PAPER_TARGETS, printed_correlations
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Missing, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import official_accuracy
from penultimate.report.shapes.cells import MEAN_PER_CLASS, published_cell, run_cell
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import printed_rows, summarise
from penultimate.report.shapes.scatter import correlation_of, mean_points
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed

CLASSES = Column("classes", "Classes")
SEMANTIC = Quantity(
    "semantic_overlap",
    "train",
    TARGETS,
    label="Shared by name",
    group="Classes",
    key="semantic_class_overlap_classes",
)
ASSIGNED = Quantity(
    "assignment_accuracy",
    label="As assigned",
    key="assignment_accuracy_percent",
    target=TARGETS,
    group="Accuracy, %",
)
LINEAR = Quantity(
    "linear_{accuracy}",
    label="Linear",
    key="linear_transfer_accuracy_percent",
    target=TARGETS,
    group="Accuracy, %",
)
SHOWN = (SEMANTIC, ASSIGNED, LINEAR)
SEPARATION = Quantity("class_separation", "train", optional=True)
OBJECTIVES = int(CRITERIA.least_objectives.value)
"""The number of objectives below which no rank correlation is shown, as no claim is judged."""
HEADS = (
    Column("classes", "All", "Classes"),
    *(Column(shown.key, shown.label, shown.group, shown.unit) for shown in SHOWN),
    Column("correlation", "R² with linear", "All objectives, ρ"),
)


def _build(measurements: Measurements) -> Piece:
    """Return a row for each task that the network of the softmax objective was measured on."""
    rows = []
    halves: dict[str, bool] = {}
    runs_behind = 0
    for target in measurements.targets:
        runs = [measurements.on_target(shown, target).get(BASELINE, {}) for shown in SHOWN]
        if not runs[1]:
            continue
        if runs[2]:
            assigned, linear = (summarise(list(one.values())).mean for one in runs[1:])
            halves[card(target).title] = assigned < linear / 2
            runs_behind = min(runs_behind or len(runs[1]), *map(len, runs[1:]))
        cells = [run_cell(one, shown.digits, shown.scale) for one, shown in zip(runs, SHOWN, strict=True)]
        mark = MEAN_PER_CLASS if official_accuracy(target) == "mean_per_class" else ""
        count = card(target).classes
        cells = [Cell(f"{count:,}", float(count)), *cells, _correlation(measurements, target)]
        rows.append(TableRow(card(target).title + mark, tuple(cells)))
    if not rows:
        return Piece(missing=(Missing("Class overlap of a softmax network"),))
    notes = [f"{MEAN_PER_CLASS} the linear accuracy is the mean over classes; all others top-1."]
    title = f"Softmax networks of {measurements.title} on each task"
    table = ExhibitTable("tableF1", title, "Task", HEADS, tuple(rows))
    has_mark = any(row.label.endswith(MEAN_PER_CLASS) for row in rows)
    return Piece((table,), notes=(*(notes if has_mark else []), *_finding(halves, runs_behind)))


def _correlation(measurements: Measurements, target: str) -> Cell:
    """Return Spearman's rho of the objectives' mean class separation with their mean accuracy on a task."""
    separation, linear = measurements.values(SEPARATION), measurements.on_target(LINEAR, target)
    points = mean_points(measurements, separation, linear, SEPARATION, LINEAR)
    found = correlation_of(points) if len(points) >= OBJECTIVES else None
    if found is None:
        why = f"{OBJECTIVES} objectives are needed, not all alike" if points else "not measured"
        return Cell(MISSING, detail=why)
    return Cell(fixed(found.rho, 2), found.rho, detail=f"of {counted(found.n, 'objective')}")


def _finding(halves: dict[str, bool], runs: int) -> list[str]:
    """Return on how many tasks the assigned classes do less than half as well, here and in the paper."""
    if not halves:
        return []
    few = f" ({said})" if (said := direction([runs])) else ""
    near = [title for title, is_less in halves.items() if not is_less]
    but = f", not on {listed(near)}" if 0 < len(near) < len(halves) else ""
    told = in_words(sum(halves.values()), "none")
    return [
        f"{OURS}: the accuracy as assigned is less than half of the linear one on {told} of"
        f" {counted(len(halves), 'task')}{but}; in the paper on all but CIFAR-10 and Pets{few}."
    ]


def _printed(_: Measurements) -> Piece:
    columns = ("classes", *(shown.key for shown in SHOWN))
    correlations = printed_correlations()
    computed = {
        task: Cell(fixed(rho, 2), rho, detail="computed from the printed Tables 1 and 3")
        for task, rho in correlations.items()
    }
    rows = tuple(
        TableRow(
            PAPER_TARGETS[row["dataset"]],
            (*(published_cell(row[key]) for key in columns), computed[row["dataset"]]),
        )
        for row in printed_rows("neurips_tableF1_class_overlap")
    )
    title = "The paper's Table F.1: a softmax ResNet-50 of ImageNet"
    return Piece((ExhibitTable("tableF1_published", title, "Data set", HEADS, rows, "published"),))


TABLE_F1 = Exhibit(
    name="tableF1",
    title="Are the new tasks' classes new?",
    caption="For each task: how many classes it has, and how many of them are pretraining classes, by name or"
    " as the study maps them; how often the network, as it is, names the right class when each pretraining"
    " class stands for one class of the task, assigned on the training images; and, beside it, a linear"
    " classifier on the frozen features. Last, how class separation and linear transfer to the task rank all"
    " objectives.",
    parts=(Bespoke(_build, (*SHOWN, SEPARATION)), Bespoke(_printed)),
    method=(
        "Several pretraining classes may be assigned to one class of the task. Accuracies are of test images;"
        " the paper does not say which images or which accuracy it has.",
        f"ρ: Spearman's rank correlation of the objectives' means, of {OBJECTIVES} objectives or more; the"
        " paper does not print it, and it is computed from its Tables 1 and 3.",
    ),
    section="F",
    measured_by="full",
    summary="Class overlap: by name, and by assignment of the predictions",
    short="Class overlap",
)
