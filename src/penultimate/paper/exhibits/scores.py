"""Scores that are meant to predict transfer, beside measured transfer, and the objectives they would pick."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penultimate.paper import BASELINE
from penultimate.paper.exhibits.scored import BEFOREHAND, MEAN, ON_TASKS, SCORES, Score
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Figure, Missing, TableRow
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.networks import name_in
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import short_title
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import (
    average,
    best_of,
    rank_correlation,
    summarise,
)
from penultimate.report.shapes.scatter import ScatterPanel
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed, p_value

SMALL = (210.0, 176.0)
ROUNDING = 1e-12
"""The relative difference below which scores, or mean accuracies, are equal."""
LINEAR = Quantity(
    "linear_{accuracy}",
    label="Linear",
    key="linear_percent",
    target=TARGETS,
    group="Transfer",
)
BEST, ALWAYS, AT_RANDOM = "The best, as measured", "Always softmax", "At random"
STATIC = "Always the same list"
"""The pick of what transfers best to the other tasks in the mean, which looks at nothing of the task."""
NOT_OF_ALL = "not measured of every objective, so left out of this comparison."
OF_SCALE = "TransRate grows with the scale of the features, which objectives set; no other score does."


@dataclass(frozen=True)
class ScoredTask:
    """The accuracies on a task, or on all in the mean, and the objectives that are no worse than the best."""

    name: str
    measured: ByRun
    right: frozenset[str]

    @property
    def key(self) -> str:
        return self.name or "mean"

    @property
    def heading(self) -> str:
        return short_title(self.name) if self.name else "All, in the mean"

    @property
    def means(self) -> dict[str, float]:
        return {spec: summarise(list(runs.values())).mean for spec, runs in self.measured.items()}

    @property
    def best(self) -> tuple[str, ...]:
        return _highest(self.means)

    def loss(self, specs: Sequence[str]) -> float:
        """Return the points by which a pick among these objectives is below the best, in the mean."""
        means = self.means
        return LINEAR.scale * average([max(means.values()) - means[spec] for spec in specs])

    def share_right(self, specs: Sequence[str]) -> float:
        """Return the chance that a random pick among these objectives is right."""
        return sum(spec in self.right for spec in specs) / len(specs)

    def promise(self, measurements: Measurements, score: Score) -> dict[str, float]:
        """Return a score's mean over runs for objectives with both numbers, signed so that more is better."""
        values = score.of(measurements, self.name)
        sign = 1 if score.promises else -1
        return {
            spec: sign * summarise(list(values[spec].values())).mean
            for spec in self.measured
            if spec in values
        }


def _tasks(measurements: Measurements) -> list[ScoredTask]:
    """Return the tasks with transfer of objectives that have scores, and the mean if there are several."""
    scored = {spec for score in ON_TASKS for spec in measurements.values(score.quantity)}

    def among(runs: ByRun) -> ByRun:
        return {spec: of_spec for spec, of_spec in runs.items() if spec in scored}

    by_target = {target: among(measurements.on_target(LINEAR, target)) for target in measurements.targets}
    tasks = [ScoredTask(target, runs, _right(runs)) for target, runs in by_target.items() if runs]
    mean = among(measurements.values(LINEAR))
    if len(tasks) > 1 and mean:
        tasks.append(ScoredTask(MEAN, mean, _right(mean)))
    return tasks


def _right(runs: ByRun) -> frozenset[str]:
    """Return the right picks: objectives that none beats or, if that cannot be tested, the highest mean."""
    means = {spec: summarise(list(of_spec.values())).mean for spec, of_spec in runs.items()}
    return best_of(runs)[0] or frozenset(_highest(means))


def _highest(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return all names that share the highest value, to within rounding."""
    most = max(values.values())
    return tuple(spec for spec, value in values.items() if math.isclose(value, most, rel_tol=ROUNDING))


def _build(measurements: Measurements) -> Piece:
    """Return how each score ranks the objectives, and which objectives it would have picked."""
    scores = [score for score in ON_TASKS if measurements.values(score.quantity)]
    tasks = _tasks(measurements)
    if not scores or not tasks:
        asked = set(map(name_in, measurements.networks.measured)) & {
            "transferability",
            "leep",
            "nce",
            "compactness",
        }
        probed = any(measurements.on_target(LINEAR, target) for target in measurements.targets)
        is_probed = bool(tasks) if scores else probed  # for objectives that have scores
        lacking = ["Transferability scores"] * (not scores) + ["Linear transfer"] * (not is_probed)
        return Piece(missing=tuple(map(Missing, lacking)), wanted=bool(asked or scores))
    scores += [score for score in BEFOREHAND if measurements.values(score.quantity)]
    columns = tuple(Column(task.key, task.heading, "Task") for task in tasks)
    ranks = tuple(
        TableRow(score.label, tuple(_correlation(measurements, score, task) for task in tasks))
        for score in scores
    )
    ranks += _static_ranks(tasks)
    ranked = ExhibitTable(
        "scores_ranks", "Rank correlation of each score with linear transfer", "Score", columns, ranks
    )
    picks, said = _picks(measurements, scores, tasks)
    lacks = _lacking(measurements, scores, tasks)
    notes = [f"{listed(lacks)}: {NOT_OF_ALL}"] if lacks else []
    notes += [OF_SCALE] if any(score.label == "TransRate" for score in scores) else []
    shown = [(score.quantity, score.of(measurements, MEAN)) for score in ON_TASKS if score in scores]
    shown.append((LINEAR, measurements.values(LINEAR)))
    values = run_table(
        measurements,
        "scores",
        "The scores and linear transfer, means over the tasks",
        [run_column(quantity, values) for quantity, values in shown],
    )
    return Piece((ranked, picks, *([values] if values else [])), notes=(*said, *notes))


def _elsewhere(tasks: Sequence[ScoredTask]) -> dict[str, dict[str, float]]:
    """Return for each task the mean transfer of each objective to all the other tasks."""
    single = [task for task in tasks if task.name]
    found = {}
    for task in single:
        others = [other.means for other in single if other.name != task.name]
        shared = [spec for spec in task.measured if all(spec in means for means in others)]
        found[task.name] = {spec: average([means[spec] for means in others]) for spec in shared if others}
    return found


def _static_ranks(tasks: Sequence[ScoredTask]) -> tuple[TableRow, ...]:
    """Return the rank correlation of transfer to the other tasks with that to each, if there are several."""
    listed_by = _elsewhere(tasks)
    if len(listed_by) < 2:
        return ()
    cells = [
        _ranked(listed_by[task.name], task.means) if task.name else Cell(MISSING, detail="of single tasks")
        for task in tasks
    ]
    return (TableRow(STATIC, tuple(cells)),)


def _lacking(measurements: Measurements, scores: list[Score], tasks: list[ScoredTask]) -> list[str]:
    """Return the scores that some objective lacks, so that this objective could not be picked by them."""
    return [score.label for score in scores if len(score.of(measurements, MEAN)) < len(tasks[0].measured)]


def _correlation(measurements: Measurements, score: Score, task: ScoredTask) -> Cell:
    return _ranked(task.promise(measurements, score), task.means)


def _ranked(promise: Mapping[str, float], means: Mapping[str, float]) -> Cell:
    found = rank_correlation(list(promise.values()), [means[spec] for spec in promise])
    if found is None:
        return Cell(MISSING, detail="too few different values")
    return Cell(fixed(found.rho, 2), found.rho, detail=f"{p_value(found.p)}, {counted(found.n, 'objective')}")


def _picks(
    measurements: Measurements, scores: list[Score], tasks: list[ScoredTask]
) -> tuple[ExhibitTable, list[str]]:
    """Return which objective each score would have picked for each task, its cost, and the best scores."""
    single = [task for task in tasks if task.name]
    over = f"Over {counted(len(single), 'task')}"
    columns = (
        Column("right", "Right", over),
        Column("loss", "Lost, points", over),
        *(Column(task.key, task.heading, "Picked for the task") for task in tasks),
    )
    rows = []
    outcome: dict[str, tuple[float, float]] = {}
    for label, specs in _chosen(measurements, scores, tasks).items():
        of_tasks = [(task, of_task) for task, of_task in zip(single, specs, strict=False) if of_task]
        if len(of_tasks) == len(single):
            outcome[label] = _over(of_tasks)
        picked = [
            _name(measurements, task, of_task) if of_task else Cell(MISSING)
            for task, of_task in zip(tasks, specs, strict=True)
        ]
        rows.append(TableRow(label, (*_outcome(outcome.get(label)), *picked)))
    chance = _over([(task, tuple(task.measured)) for task in single])
    anybody = Cell(MISSING, detail="any objective, as likely as any other")
    rows.append(TableRow(AT_RANDOM, (*_outcome(chance), *[anybody] * len(tasks))))
    title = "Which objective each score would have picked"
    table = ExhibitTable("scores_picks", title, "Score", columns, tuple(rows))
    runs = min(len(of_spec) for task in single for of_spec in task.measured.values())
    for label in _lacking(measurements, scores, tasks):
        outcome.pop(label, None)
    return table, _outcome_sentences(outcome, len(single), chance, runs)


def _over(picks: Sequence[tuple[ScoredTask, Sequence[str]]]) -> tuple[float, float]:
    """Return for how many tasks a pick is right, and the points that it loses in the mean over tasks."""
    return (
        math.fsum(task.share_right(specs) for task, specs in picks),
        average([task.loss(specs) for task, specs in picks]),
    )


def _chosen(
    measurements: Measurements, scores: list[Score], tasks: list[ScoredTask]
) -> dict[str, list[tuple[str, ...]]]:
    """Return, for each task, the best measured objective, the picks of scores (if any), a list and softmax.

    The list is that of the other tasks: whoever transfers best to them in the mean.

    If several objectives share the highest score, each of them is equally likely to be picked.
    """
    chosen = {BEST: [task.best for task in tasks]}
    for score in scores:
        promises = [task.promise(measurements, score) for task in tasks]
        chosen[score.label] = [_highest(one) if one else () for one in promises]
    elsewhere = _elsewhere(tasks)
    if len(elsewhere) > 1:
        of_lists = [elsewhere.get(task.name) for task in tasks]
        chosen[STATIC] = [_highest(means) if means else () for means in of_lists]
    if all(BASELINE in task.measured for task in tasks):
        chosen[ALWAYS] = [(BASELINE,)] * len(tasks)
    return chosen


def _name(measurements: Measurements, task: ScoredTask, specs: Sequence[str]) -> Cell:
    detail = "the best" if {*specs} <= {*task.best} else f"{fixed(task.loss(specs), 1)} points below the best"
    names = " or ".join(measurements.objective(spec).label for spec in specs)
    if len(specs) > 2:
        names = f"any of {counted(len(specs), 'objective')}"
    return Cell(names, best={*specs} <= task.right, detail=detail)


def _outcome(found: tuple[float, float] | None) -> tuple[Cell, Cell]:
    """Return the cells for the number of tasks with a right pick, and for the points lost in the mean."""
    if found is None:
        return Cell(MISSING), Cell(MISSING)
    right, lost = found
    return Cell(_count(right), right), Cell(fixed(lost, 1), lost)


def _outcome_sentences(
    outcome: dict[str, tuple[float, float]], tasks: int, chance: tuple[float, float], runs: int
) -> list[str]:
    """Return a sentence on the scores that lose least and those that are right most often.

    Only scores of all objectives count, beside picks made without any score.
    """
    of_scores = {label: found for label, found in outcome.items() if label not in (BEST, ALWAYS, STATIC)}
    if not of_scores:
        return []
    most = max(right for right, _ in of_scores.values())
    least = min(lost for _, lost in of_scores.values())
    surest = [label for label, (right, _) in of_scores.items() if right == most]
    cheapest = [label for label, (_, lost) in of_scores.items() if lost == least]
    always = "", ""
    if ALWAYS in outcome:
        right, lost = outcome[ALWAYS]
        always = f", softmax throughout {fixed(lost, 1)}", f", softmax on {_in_words(right)}"
    few = f" ({said})" if (said := direction([runs])) else ""
    best = "the best" if few else "not significantly below the best"
    return [
        f"{OURS}: least is lost by a pick by {listed(cheapest)}, {fixed(least, 1)} points of accuracy in the"
        f" mean over tasks; a pick at random loses {fixed(chance[1], 1)}{always[0]}. Most often"
        f" {best} is a pick by {listed(surest)}, on {_in_words(most)} of"
        f" {counted(tasks, 'task')}; one at random is so on {_count(chance[0])}{always[1]}{few}."
    ]


def _in_words(tasks: float) -> str:
    return in_words(int(tasks), "none") if tasks.is_integer() else _count(tasks)


def _count(tasks: float) -> str:
    """Return a count of tasks, with a fraction if several objectives share a pick."""
    return fixed(tasks, 0 if tasks.is_integer() else 1)


def _figure(measurements: Measurements) -> Piece:
    """Return a small panel for each score: its mean over tasks against the mean of transfer."""
    if not _tasks(measurements):
        return Piece(wanted=False)
    panels = [
        ScatterPanel(f"scores-{score.quantity.key}", score.label, score.quantity, up, score.label, "means")
        for score in ON_TASKS
        if not score.terms
        for up in [replace(LINEAR, label="")]
    ]
    drawn = [panel for panel in (shape.panel(measurements) for shape in panels) if panel]
    if not drawn:
        return Piece(wanted=False)
    small = tuple(replace(panel, x_label="", labelled=False, size=SMALL) for panel in drawn)
    said = "Scatter plots of mean linear transfer accuracy against each score, means over the tasks."
    title = "Each score against linear transfer, means over the tasks"
    return Piece(figures=(Figure("scores", title, said, small, legend=True),))


EXHIBIT = Exhibit(
    name="scores",
    title="Would a score have picked the right objective?",
    caption="Scores that promise to tell, from the frozen features or the predictions of a network on a"
    " task's training images, how well it will transfer, beside the linear transfer that was measured; and"
    " numbers that are known before any task is seen. Objectives are compared by their means over"
    " runs. A rank correlation of 1 means that a score ranks them as transfer does: NC1 and CDNV on"
    " the task, intrinsic dimensions, α-ReQ and pretraining R² promise more where they are lower, and are"
    " turned round. The list is that of the other tasks: their mean transfer, whatever the task. Right, and"
    " bold: an objective that is not significantly worse than the task's best; the best itself, of too few"
    " runs for a test.",
    parts=(
        Bespoke(_build, (*dict.fromkeys(one for score in SCORES for one in score.quantities), LINEAR)),
        Bespoke(_figure),
    ),
    place=3,
    of_same_runs=True,
    measured_by="full",
    summary="LogME, H-score, LEEP, NCE, NC1, CDNV, NCTI, ranks and others beside measured transfer",
    short="Transferability scores",
)
