"""Networks whose weights were all trained further on each task (Table 2, Figure D.3)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from penultimate.paper.printed import LINEAR as LINEAR_TRANSFER
from penultimate.paper.printed import printed_transfer
from penultimate.report.base import TableRow
from penultimate.report.measurements import ByRun, Measurements, Seed, mean_of
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.remarks import not_validated
from penultimate.report.sets import official_accuracy
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.findings import apart
from penultimate.report.shapes.maps import MapsOverTransfer
from penultimate.report.shapes.numbers import average
from penultimate.report.shapes.table import (
    Printed,
    PrintedTable,
    RunColumn,
    TableOfRuns,
    run_column,
    run_table,
)
from penultimate.report.spec import Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed, p_value
from penultimate.statistics import bold, two_way_anova
from penultimate.statistics.comparison import LEVEL

FRESH, PROBE = "head=fresh", "head=probe"
FINE_TUNED = Quantity("fine_tuned_{accuracy}", target=TARGETS, setting=FRESH)
FROM_PROBE = replace(FINE_TUNED, setting=PROBE)
LINEAR = Quantity("linear_{accuracy}", target=TARGETS)
FROM_SCRATCH = Quantity("from_scratch_{accuracy}", target=TARGETS)
STARTS = {
    "": ("fine_tuning", "fine_tuned", FRESH),
    "with the final layer trained first": ("fine_tuning", "fine_tuned", PROBE),
    "from scratch": ("from_scratch", "from_scratch", ""),
}
"""The starts of training all weights: the measurement, the prefix of its metrics, and its setting."""
SCRATCH = "From scratch"
GROUP = "Transfer, fine-tuned"


def from_scratch(measurements: Measurements, target: str) -> dict[Seed, float]:
    """Return the accuracies of networks that were trained on a target alone, by seed."""
    rows = measurements.rows(f"from_scratch_{official_accuracy(target)}", target=target)
    return {row.seed: row.value for row in rows if row.objective is None}


def _scratch_on_average(measurements: Measurements) -> dict[Seed, float]:
    by_target: list[ByRun] = [{SCRATCH: from_scratch(measurements, each)} for each in measurements.targets]
    return mean_of(by_target).get(SCRATCH, {})


@dataclass(frozen=True)
class FineTuned:
    """The accuracies of fine-tuned networks, with a row for each objective, and of networks from scratch.

    If no final layer was fresh, networks whose final layer was trained first are shown.
    """

    ours: TableOfRuns

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return (*self.ours.quantities, FROM_SCRATCH)

    def build(self, measurements: Measurements) -> Piece:
        piece = self.ours.build(measurements)
        if not piece.tables:
            from_probe = FROM_PROBE_BY_TASK.build(measurements)
            piece = from_probe if from_probe.tables else piece
        scratch = [from_scratch(measurements, target) for target in measurements.targets]
        if not piece.tables:
            return piece
        piece = replace(piece, method=(*_protocol(measurements), *not_validated(measurements)))
        if not any(scratch):
            return piece
        shown = (*scratch, _scratch_on_average(measurements))
        cells = tuple(run_cell(runs, FINE_TUNED.digits, FINE_TUNED.scale) for runs in shown)
        (table,) = piece.tables
        return replace(piece, tables=(replace(table, rows=(*table.rows, TableRow(SCRATCH, cells))),))


FROM_PROBE_BY_TASK = TableOfRuns(
    "table2_probe",
    "All weights fine-tuned, the final layer trained first, %",
    (replace(FROM_PROBE, key="{target}_percent", group=GROUP, bold=True),),
    missing="Fine-tuned networks whose final layer was trained first",
)


@dataclass(frozen=True)
class Starts:
    """The means over tasks for each extent and start of training; nothing if there is only one of them.

    A folded table shows, task by task, fine-tuning with a final layer that was trained first.
    """

    quantities: tuple[Quantity, ...] = tuple(
        replace(quantity, label=label, key=key, group="Mean over tasks, %", bold=True)
        for quantity, label, key in (
            (LINEAR, "Only a final layer", "linear_mean_percent"),
            (FINE_TUNED, "All weights, the final layer fresh", "fine_tuned_mean_percent"),
            (FROM_PROBE, "All weights, the final layer trained first", "probe_fine_tuned_mean_percent"),
        )
    )

    def build(self, measurements: Measurements) -> Piece:
        every = [_mean_column(measurements, quantity) for quantity in self.quantities]
        columns = [column for column in every if column.runs]
        tuned = [column for column in columns if column is not every[0]]
        if not tuned or len(columns) < 2:
            return Piece()
        table = run_table(measurements, "table2_starts", "What is trained, and from where", columns, tuned)
        by_task = FROM_PROBE_BY_TASK.build(measurements).tables if every[1].runs else ()
        return Piece((table, *(replace(one, folded=True) for one in by_task))) if table else Piece()


def _mean_column(measurements: Measurements, quantity: Quantity) -> RunColumn:
    per_target = [measurements.on_target(quantity, target) for target in measurements.targets]
    return run_column(quantity, mean_of(per_target))


def _gained(measurements: Measurements) -> str:
    """Return a sentence on the gain of fine-tuning over training from scratch."""
    means = [100 * average(list(runs.values())) for runs in measurements.values(FINE_TUNED).values()]
    scratch = _scratch_on_average(measurements)
    if not means or not scratch:
        return ""
    base = 100 * average(list(scratch.values()))
    gains = dict.fromkeys(fixed(end - base, 1) for end in (min(means), max(means)))
    asked = [measurements.networks.requested(name) for name in ("fine_tuning", "from_scratch")]
    steps = [*{one.settings["steps"] for one in asked if one}]
    begins = f"In the same {counted(steps[0], 'step')} training" if len(steps) == 1 else "Training"
    return (
        f"{begins} from scratch reaches {fixed(base, 1)} % in the mean over tasks; fine-tuning gains"
        f" {' to '.join(gains)} points on it."
    )


def _by_variance(measurements: Measurements) -> str:
    """Return the result of the paper's own test of averages: a two-way analysis of variance.

    Its factors are objective and task.
    """
    cells: dict[str, dict[str, list[float]]] = {}
    for target in measurements.targets:
        for spec, runs in measurements.on_target(FINE_TUNED, target).items():
            cells.setdefault(measurements.objective(spec).label, {})[target] = list(runs.values())
    cells = {label: of for label, of in cells.items() if of.keys() == {*measurements.targets}}
    if len(cells) < 2 or any(len(runs) < 2 for of in cells.values() for runs in of.values()):
        return ""
    found = two_way_anova(cells)
    means = {label: average([average(runs) for runs in of.values()]) for label, of in cells.items()}
    best = max(means, key=means.__getitem__)
    worse = [
        label
        for label in cells
        if label != best and two_way_anova({label: cells[label], best: cells[best]}).p < LEVEL
    ]
    told = f"worse than the best of them, {best}: {listed(worse)}" if worse else f"none is worse than {best}"
    return (
        "By the paper's test of averages, a two-way analysis of variance of objective and task, the"
        f" objectives {'differ' if found.p < LEVEL else 'do not differ'} beyond chance"
        f" (F({found.degrees_of_freedom}, {found.error_degrees_of_freedom}) = {found.f:.2f},"
        f" {p_value(found.p)}); two at a time, {told}. {_beside_bold(measurements)}"
    )


def _beside_bold(measurements: Measurements) -> str:
    """Return a sentence that reconciles the analysis of variance with the marks of the table."""
    columns = [measurements.on_target(FINE_TUNED, target) for target in measurements.targets]
    unbeaten = sum(len(bold(column).entries) for column in columns)
    cells = counted(sum(map(len, columns)), "cell")
    return (
        "The marks of the table answer, task by task, whether another objective is better beyond chance,"
        f" corrected for the number of pairs ({in_words(unbeaten, 'none')} of {cells} are unbeaten); the"
        " analysis of variance asks once of all objectives and tasks together, and takes a network's"
        " accuracies on several tasks to be independent, so that it can find a difference that no cell shows."
    )


def _choices(measurements: Measurements, start: str, name: str) -> dict[tuple[str | None, str], float]:
    """Return a number of the chosen cells by objective and task, or by task alone if from scratch."""
    _, prefix, setting = STARTS[start]
    found: dict[tuple[str | None, str], float] = {}
    for target in measurements.targets:
        for row in measurements.rows(f"{prefix}_{name}", "train", target):
            if (row.setting or "") == setting:
                key = (row.objective, target)
                found[key] = max(row.value, found.get(key, row.value))
    return found


def _grid(measurements: Measurements) -> tuple[str, ...]:
    """Return how many best cells of each start lie at the edge of the grid, or that it has a single cell."""
    said: list[str] = []
    edged: list[str] = []
    on_edge = 0
    for start in STARTS:
        edges = [count > 0 for count in _choices(measurements, start, "edges").values()]
        if set(_choices(measurements, start, "cells").values()) == {1}:
            where = f", {start}" if start else ""
            said.append(f"One learning rate and decay only{where}: nothing was chosen.")
        elif edges:
            cells = "" if edged else f" {'best cell' if len(edges) == 1 else 'best cells'}"
            count = f"{in_words(sum(edges), none='none')} of {in_words(len(edges))}{cells}"
            edged.append(f"{count} {start or '(one for each objective and task)'}")
            on_edge += sum(edges)
    if on_edge:
        said.append(
            "On the edge of the grid, beyond which a learning rate or decay may be better, lie"
            f" {listed(edged)}.{_wider(measurements)}"
        )
    return tuple(said)


def _wider(measurements: Measurements) -> str:
    """Return the command that widens each grid where a best cell lies on its edge."""
    changes = []
    for name in dict.fromkeys(measurement for measurement, *_ in STARTS.values()):
        asked = measurements.networks.requested(name)
        if asked is None:
            continue
        starts = [start for start, (measurement, *_) in STARTS.items() if measurement == name]
        for setting in ("learning_rate", "decay"):
            values = asked.settings[setting]
            chosen = [value for start in starts for value in _choices(measurements, start, setting).values()]
            wider = widened(values, chosen)
            if wider != tuple(values):
                changes.append(f" --set {shlex.quote(f'{name}.{setting}={wider}')}")
    if not changes:
        return ""
    description = measurements.results.description
    again = f"penultimate run {description['name']}"
    command = again if measurements.results.is_joined else description.get("command", again)
    return (
        " To widen the grid by one value there, which trains the new cells, and each network once more:"
        f" `{command}{''.join(changes)}`"
    )


def widened(values: Sequence[float], chosen: Collection[float]) -> tuple[float, ...]:
    """Return a grid with one more value beyond each end that was chosen, at the ratio of its neighbours.

    There is no value below 0. Beside a single value above 0, the new value is ten times that value.

    >>> widened((0.01, 0.1, 0.3), [0.3, 0.1]), widened((0.0, 1e-4, 1e-3), [0.0]), widened((0.0, 1e-3), [1e-3])
    ((0.01, 0.1, 0.3, 0.9), (0.0, 0.0001, 0.001), (0.0, 0.001, 0.01))
    """
    grid = sorted(values)
    positive = [value for value in grid if value > 0]
    low, high = min(chosen, default=math.nan), max(chosen, default=math.nan)
    if len(grid) > 1 and math.isclose(high, grid[-1]):
        factor = positive[-1] / positive[-2] if len(positive) > 1 else 10
        grid.append(_rounded(grid[-1] * factor))
    if len(values) > 1 and low > 0 and math.isclose(low, min(values)):
        grid.insert(0, _rounded(positive[0] ** 2 / positive[1]))
    return tuple(grid)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _protocol(measurements: Measurements) -> tuple[str, ...]:
    tuning, scratch_tuning = (
        measurements.networks.requested(name) for name in ("fine_tuning", "from_scratch")
    )
    if tuning is None:
        return ()
    asked, scratch = tuning.settings, scratch_tuning.settings if scratch_tuning else None
    rates, decays = len(asked["learning_rate"]), len(asked["decay"])
    by = (
        "one network" if asked["seeds"] == 1 else f"the mean over at most {in_words(asked['seeds'])} networks"
    )
    said = (
        f"Ours: {counted(asked['steps'], 'step')} of {asked['batch_size']} images, SGD with momentum 0.9, the"
        f" learning rate to zero as a cosine, softmax cross-entropy; {counted(rates, 'learning rate')} ×"
        f" {counted(decays, 'decay')}, chosen on a fifth of the training images by"
        f" {by} of the objective; then trained on all of them."
    )
    shared = ("steps", "batch_size", "learning_rate", "decay")
    if scratch and any(scratch[name] != asked[name] for name in shared):
        said += (
            f" From scratch: {counted(scratch['steps'], 'step')} of {scratch['batch_size']} images;"
            f" {counted(len(scratch['learning_rate']), 'learning rate')} ×"
            f" {counted(len(scratch['decay']), 'decay')}."
        )
    return (said,)


TABLE2 = Exhibit(
    name="table2",
    title="Does the objective still matter when all weights are trained further?",
    caption="Test accuracy on each task of networks all of whose weights were fine-tuned on it, in per cent,"
    " means over runs. Learning rate and decay are chosen for each objective and task.",
    parts=(
        FineTuned(
            TableOfRuns(
                "table2",
                "All weights fine-tuned, %",
                (replace(FINE_TUNED, key="{target}_percent", group=GROUP, bold=True),),
                missing="Fine-tuned networks",
            )
        ),
        Starts(),
        PrintedTable(
            "table2",
            "neurips_table2_finetune",
            "The paper's Table 2: ResNet-50, ImageNet, three runs, %",
            (*printed_transfer(GROUP)[:-1], Printed("avg_percent", "Mean", GROUP, "%")),
            ("The paper's bold is not recorded.",),
        ),
    ),
    findings=(
        apart(
            Asked("fine-tuned transfer", FINE_TUNED, ("neurips_table2_finetune", "avg_percent")),
            replace(LINEAR_TRANSFER, words="linear transfer"),
        ),
        _by_variance,
        _gained,
        _grid,
    ),
    paper_says="The paper says that the objective has little effect on fine-tuned networks: the best is 0.2"
    " points above softmax on average, which is not significant. Its table prints three objectives below"
    " softmax: squared error by 0.6 points, logit normalization by 1.0, cosine softmax by 1.1.",
    section="3.1",
    of_same_runs=True,
    measured_by="full",
    summary="Transfer of networks whose weights are all fine-tuned",
    short="Fine-tuning",
)

FIGURE_D3 = Exhibit(
    name="figureD3",
    title="Which layers does fine-tuning change?",
    caption="Linear CKA of the layers of a network before fine-tuning (rows, from the top) and after it"
    " (columns), on the test images of each task: 1 where they arrange these alike.{layers}",
    parts=(
        MapsOverTransfer(
            "figureD3",
            (
                Quantity(
                    "fine_tuned_layers",
                    target=TARGETS,
                    setting=FRESH,
                    arrays=("matrix", "standard_error", "layers", "sizes"),
                ),
            ),
            missing="CKA of a network's layers before and after fine-tuning",
        ),
    ),
    paper_says="The paper draws its Figure D.3 without printing a number: softmax networks before and after"
    " fine-tuning on transfer data sets. It says that later layers change more than earlier ones, and that"
    " how much they change differs greatly between data sets.",
    section="D.4",
    measured_by="full",
    summary="CKA of a network's layers before and after fine-tuning",
    short="CKA over fine-tuning",
)
