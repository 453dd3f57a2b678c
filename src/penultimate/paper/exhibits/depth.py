"""Transfer from every depth: the best layer for each task, and the objectives that an earlier layer helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penultimate.paper import BASELINE
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    ExhibitTable,
    Figure,
    Missing,
    Panel,
    Point,
    TableRow,
)
from penultimate.report.measurements import ByRun, Measurements, Seed, mean_of, run_name
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import short_title
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.depth import PENULTIMATE, layers_of, numbered
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.shapes.scatter import correlation_of, finding, leaning_on
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, p_value, plain, signed
from penultimate.statistics.comparison import LEVEL

LEAST_LEAD = 1.0
"""The smallest lead of softmax, in points, by which a gain is divided."""
LONGEST_AXIS = 60
LAST = "last"
"""The name of the penultimate features in the table of layers."""


@dataclass(frozen=True)
class LayerProbe:
    """A probe of layers: its accuracy on test images, and that on training images, which chooses a layer."""

    name: str
    word: str
    tested: Quantity
    validated: Quantity


def _validated(metric: str) -> Quantity:
    return Quantity(metric, "train", TARGETS, over="layers")


def _tested(probe: str) -> Quantity:
    return Quantity(f"{probe}_{{accuracy}}", target=TARGETS, over="layers")


PROBES = (
    LayerProbe("linear", "linear", _tested("linear"), _validated("linear_validation_accuracy")),
    LayerProbe("knn", "kNN", _tested("knn"), _validated("knn_leave_one_out")),
)


@dataclass(frozen=True)
class Served:
    """Transfer from the layers of an objective's networks to the tasks, by one probe; accuracies in per cent.

    layers  the mean over tasks in each layer, by seed, from the first block to the penultimate features
    chosen  the layer of each task: the best on validation images in the mean over runs, the last of equal
    ones own     the mean over tasks, each in its chosen layer, by seed by_task the test accuracy of each task
    in each layer, as the mean over runs
    """

    layers: Mapping[str, Mapping[Seed, float]]
    chosen: Mapping[str, str]
    own: Mapping[Seed, float]
    by_task: Mapping[str, Mapping[str, float]]

    @property
    def last(self) -> Mapping[Seed, float]:
        return self.layers[PENULTIMATE]

    @property
    def gains(self) -> dict[Seed, float]:
        return {seed: value - self.last[seed] for seed, value in self.own.items() if seed in self.last}


def served(measurements: Measurements, probe: LayerProbe) -> dict[str, Served]:
    """Return the transfer of each objective that was measured on every task, by the objective's spec."""
    tested = {target: layers_of(measurements, probe.tested, target) for target in measurements.targets}
    tested = {target: layers for target, layers in tested.items() if layers}
    validated = {target: layers_of(measurements, probe.validated, target) for target in tested}
    found: dict[str, Served] = {}
    for objective in measurements.objectives:
        choices = {target: _own(layers, objective.spec) for target, layers in validated.items()}
        of_tasks = {
            target: {layer: runs for layer, runs in of_task.items() if layer in choices[target]}
            for target, layers in tested.items()
            for of_task in [_own(layers, objective.spec, probe)]
        }
        last = mean_of([{"": layers.get(PENULTIMATE, {})} for layers in of_tasks.values()])
        if last and all(len(layers) > 1 for layers in of_tasks.values()):
            one = _served(of_tasks, choices)
            found |= {objective.spec: one} if one.gains else {}
    return found


def _own(layers: Mapping[str, ByRun], spec: str, probe: LayerProbe | None = None) -> ByRun:
    """Return the runs of an objective by layer, for the layers that all of its runs have."""
    scale = probe.tested.scale if probe else 1
    most = max((len(runs.get(spec, ())) for runs in layers.values()), default=0)
    return {
        layer: {seed: scale * value for seed, value in runs[spec].items()}
        for layer, runs in layers.items()
        if most and len(runs.get(spec, ())) == most
    }


def _served(tested: Mapping[str, ByRun], validated: Mapping[str, ByRun]) -> Served:
    chosen = {}
    for target, layers in tested.items():
        means = {layer: _mean(validated[target][layer]) for layer in layers}
        chosen[target] = max(reversed(means), key=means.__getitem__)
    shared = [layer for layer in next(iter(tested.values())) if all(layer in of for of in tested.values())]
    of_layers = {layer: mean_of([{"": of[layer]} for of in tested.values()]) for layer in shared}
    by_layer = {layer: found[""] for layer, found in of_layers.items() if found}
    own = mean_of([{"": tested[target][layer]} for target, layer in chosen.items()]).get("", {})
    by_task = {
        target: {layer: _mean(runs) for layer, runs in layers.items()} for target, layers in tested.items()
    }
    return Served(by_layer, chosen, own, by_task)


def _mean(runs: Mapping[Seed, float]) -> float:
    return summarise(list(runs.values())).mean


def _build(measurements: Measurements) -> Piece:
    """Return each probe's lines and tables, the gains from earlier layers, and a sentence about these."""
    found = {probe: served(measurements, probe) for probe in PROBES}
    if not all(found.values()):
        asked = measurements.networks.requested("depth") is not None
        return Piece(missing=(Missing("Transfer from earlier layers"),), wanted=asked)
    panels = [_lines(measurements, probe, of_each) for probe, of_each in found.items()]
    gains = {probe: _gains(measurements, probe, of_each) for probe, of_each in found.items()}
    panels += list(gains.values())
    figure = Figure(
        "depth",
        "Transfer over depth, and whom an earlier layer helps",
        "Transfer accuracy over the layers, a line each, by linear and by kNN probes; and scatter"
        " plots of what each gains by its own best layers against its penultimate transfer.",
        tuple(panels),
        legend=True,
    )
    tables = [
        table
        for probe, of_each in found.items()
        for table in (_by_layer(measurements, probe, of_each), _best_layers(measurements, probe, of_each))
    ]
    counts = [len(one.last) for of_each in found.values() for one in of_each.values()]
    few = "" if measurements.networks.are_given else direction(counts)
    said = _gains_sentence([(probe.word, gains[probe].points) for probe in PROBES], _noun(measurements), few)
    notes = [_recovered(measurements, probe, of_each) for probe, of_each in found.items()]
    return Piece(tuple(tables), (figure,), tuple(filter(None, (said, *notes))))


def _noun(measurements: Measurements) -> str:
    """Return the noun for what is compared."""
    return "network" if measurements.networks.are_given else "objective"


def _shared_layers(found: Mapping[str, Served]) -> tuple[str, ...]:
    """Return the layers of the networks if all networks have the same layers, and otherwise ()."""
    of_each = {tuple(one.layers) for one in found.values()}
    return next(iter(of_each)) if len(of_each) == 1 else ()


def _axis(found: Mapping[str, Served]) -> str:
    """Return the label of the x axis, with the numbers of the layers if all networks have the same layers."""
    names = f"Layer: {numbered(_shared_layers(found))}"
    fits = _shared_layers(found) and len(names) <= LONGEST_AXIS
    return names if fits else "Layer, from the first block to the penultimate features"


def _lines(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> Panel:
    """Return a panel of transfer over the layers, with a line for each objective."""
    curves, points = [], []
    deepest = max(len(one.layers) for one in found.values())
    for spec, one in found.items():
        objective = measurements.objective(spec)
        first = deepest - len(one.layers) + 1  # so that all lines end with the penultimate features
        line = tuple(
            (float(place), _mean(runs)) for place, runs in enumerate(one.layers.values(), start=first)
        )
        x, y = line[-1]
        detail = f"{_of_runs(list(one.last))}: {fixed(y, 1)} % from the penultimate layer"
        error = error_of(summarise(list(one.last.values())))
        curves.append(Curve(line, objective.slug, f"{objective.label}, {detail}"))
        points.append(Point(x, y, objective.slug, objective.label, detail, y_error=error))
    return Panel(
        f"depth-{probe.name}",
        f"Transfer from each layer, {probe.word}",
        _axis(found),
        f"Mean {probe.word} transfer accuracy, %",
        tuple(points),
        tuple(curves),
        labelled=False,
    )


def _gains(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> Panel:
    """Return a panel of the gain from each objective's own best layers against its penultimate transfer."""
    points = []
    for spec, one in found.items():
        objective = measurements.objective(spec)
        last, gain = (summarise(list(runs.values())) for runs in (one.last, one.gains))
        detail = f"{fixed(last.mean, 1)} %, {signed(gain.mean, 1)} points, {_of_runs(list(one.last))}"
        errors = error_of(last), error_of(gain)
        points.append(Point(last.mean, gain.mean, objective.slug, objective.label, detail, *errors))
    return Panel(
        f"depth-{probe.name}-gain",
        f"Gained by its own best layers, {probe.word}",
        f"Mean {probe.word} transfer from the penultimate layer, %",
        "Gained by its own best layers, points",
        tuple(points),
        finding=finding(points, _noun(measurements)),
    )


def _of_runs(seeds: list[Seed]) -> str:
    return run_name(seeds[0]) if len(seeds) == 1 else f"mean of {counted(len(seeds), 'run')}"


LEADS = (
    Column("lead", "Penultimate", "Lead of softmax", "points"),
    Column("recovered_percent", "Recovered", "Lead of softmax", "%"),
    Column("lead_at_best", "At best", "Lead of softmax", "points"),
)


def _by_layer(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> ExhibitTable:
    """Return the mean over tasks from each layer, then from each task's best, and softmax's lead."""
    layers, softmax = _shared_layers(found), found.get(BASELINE)
    columns = (
        *(Column(f"{layer}_percent", plain(layer), "One layer for all tasks", "%") for layer in layers),
        Column("own_percent", "Accuracy", "Each task’s best", "%"),
        Column("gain", "Gained", "Each task’s best", "points"),
        *(LEADS if softmax else ()),
    )
    rows = [
        TableRow(
            measurements.objective(spec).label,
            (
                *(run_cell(one.layers.get(layer), 1) for layer in layers),
                run_cell(one.own, 1),
                _points(one.gains),
                *(_of_lead(one, softmax if spec != BASELINE else None) if softmax else ()),
            ),
            measurements.objective(spec).slug,
        )
        for spec, one in found.items()
    ]
    title = f"Transfer by layer, {probe.word} probe, means over tasks"
    notes = ("Accuracies and what is recovered of a lead in per cent; leads, and what is gained, in points.",)
    corner = _noun(measurements).capitalize()
    return ExhibitTable(f"depth_{probe.name}", title, corner, columns, tuple(rows), notes=notes)


def _points(gains: Mapping[Seed, float]) -> Cell:
    cell = run_cell(gains, 1)
    assert cell.value is not None
    return replace(cell, text=signed(cell.value, 1))


def _lead(one: Served, softmax: Served) -> float:
    """Return the lead of softmax at the penultimate layer."""
    return _mean(softmax.last) - _mean(one.last)


def _of_lead(one: Served, softmax: Served | None) -> tuple[Cell, Cell, Cell]:
    """Return softmax's lead, the share of it that an objective gains, and the lead at the best layers."""
    if softmax is None:
        return Cell(MISSING), Cell(MISSING), Cell(MISSING)
    lead, at_best = _lead(one, softmax), _mean(softmax.own) - _mean(one.own)
    recovered = Cell(MISSING, detail="softmax is not a point ahead")
    if lead >= LEAST_LEAD:
        share = 100 * _mean(one.gains) / lead
        recovered = Cell(fixed(share, 0), share)
    return Cell(signed(lead, 1), lead), recovered, Cell(signed(at_best, 1), at_best)


def _best_layers(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> ExhibitTable:
    """Return the table of the best layer for each task."""
    tasks = list(next(iter(found.values())).chosen)
    layers = _shared_layers(found)
    columns = tuple(Column(task, short_title(task), "Task") for task in tasks)
    rows = []
    for spec, one in found.items():
        cells = []
        for task in tasks:
            layer = one.chosen[task]
            there, last = one.by_task[task][layer], one.by_task[task][PENULTIMATE]
            said = f"{fixed(there, 1)} % there, {fixed(last, 1)} % from the penultimate features"
            called = str(layers.index(layer) + 1) if layer in layers else plain(layer)
            is_last = layer == PENULTIMATE
            cells.append(Cell(LAST if is_last else called, detail=said, best=not is_last))
        objective = measurements.objective(spec)
        rows.append(TableRow(objective.label, tuple(cells), objective.slug))
    title = f"The layer that serves each task best, {probe.word} probe"
    names = f"{numbered(layers[:-1])}; {LAST}" if layers else LAST
    notes = (f"{names}: the penultimate features. Bold: an earlier layer.",)
    corner = _noun(measurements).capitalize()
    return ExhibitTable(f"depth_{probe.name}_layers", title, corner, columns, tuple(rows), notes=notes)


def _gains_sentence(panels: list[tuple[str, tuple[Point, ...]]], noun: str, few: str) -> str:
    """Return a sentence, for each probe, on whether objectives that transfer worse gain more."""
    told: list[str] = []
    for word, points in panels:
        found = correlation_of(points)
        if found is None:
            return ""
        answer = f"gain {'more' if found.rho < 0 else 'less'} from an earlier layer"
        if found.p >= LEVEL:
            answer = "gain no more from an earlier layer than chance would explain"
        who = "they" if told else f"{noun}s that transfer worse"
        leaning = leaning_on(points, named=False)
        told.append(
            f"by {word} probes {who} {answer} (ρ = {fixed(found.rho, 2)}, {p_value(found.p)}{leaning})"
        )
    of_few = f" ({few})" if few else ""
    return f"{OURS}: {'; '.join(told)}, over {counted(len(panels[0][1]), noun)}{of_few}."


def _recovered(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> str:
    """Return a sentence on the share of softmax's lead that objectives recover, in ascending order."""
    softmax = found.get(BASELINE)
    if softmax is None:
        return ""
    shares = {
        measurements.objective(spec).label: 100 * _mean(one.gains) / lead
        for spec, one in found.items()
        if (lead := _lead(one, softmax)) >= LEAST_LEAD
    }
    if not shares:
        return f"By {probe.word} probes softmax is a point ahead of none of the others."
    least, most = (pick(shares, key=shares.__getitem__) for pick in (min, max))
    behind = "at least a point behind softmax at the penultimate layer"
    low, high = (fixed(shares[one], 0) for one in (least, most))
    if len(shares) == 1:
        said = f"{least}, the only objective {behind}, recovers {low} % of softmax's lead by its"
    else:
        said = (
            f"{counted(len(shares), 'objective')} {behind} recover {low} % ({least}) to {high} % ({most}) of"
            " softmax's lead by their"
        )
    gain = signed(_mean(softmax.gains), 1)
    return f"By {probe.word} probes {said} own best layers; softmax itself gains {gain} points by its own."


EXHIBIT = Exhibit(
    name="depth",
    title="Do those that transfer worse gain more from an earlier layer?",
    caption="Each block's output, pooled over space, is probed as the penultimate features are. The"
    " best layer for a task is chosen by the accuracy on images of the task's training set"
    " (validation for linear probes, leave-one-out for kNN), never by a test image; of equals the later one."
    " Means over tasks and runs.",
    parts=(
        Bespoke(_build, tuple(quantity for probe in PROBES for quantity in (probe.tested, probe.validated))),
    ),
    method=(
        "Rank correlations of a gain with the accuracy that it is counted from lean to the negative: noise in"
        " that accuracy lowers the one and raises the other. Over few of them it also leans on single"
        " ones, so their range with any two left out stands beside them.",
    ),
    place=4,
    measured_by="full",
    summary="Linear and kNN transfer from every block, and which layer serves each task best",
    short="Transfer by layer",
)
