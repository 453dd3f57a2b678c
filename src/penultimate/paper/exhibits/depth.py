"""Transfer from every depth: the best layer for each task, and how far objectives differ there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import stdev

from penultimate.paper import BASELINE
from penultimate.paper.layers import PROBES, LayerProbe, Served, mean_of_runs, served
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
from penultimate.report.measurements import Measurements, Seed, run_name
from penultimate.report.sets import short_title
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.depth import PENULTIMATE, numbered
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, plain, signed

LEAST_LEAD = 1.0
"""The smallest lead of softmax, in points, by which a gain is divided."""
LEAST_SPREAD, FLAT = 3, 1e-9
"""The fewest objectives that have a spread, and the smallest one, in points, by which another is divided."""
LONGEST_AXIS = 60
LAST = "last"
"""The name of the penultimate features in the table of layers."""


def _build(measurements: Measurements) -> Piece:
    """Return each probe's lines and tables, the gains from earlier layers, and how far all lie apart."""
    found = {probe: served(measurements, probe) for probe in PROBES}
    if not all(found.values()):
        asked = measurements.networks.requested("depth") is not None
        return Piece(missing=(Missing("Transfer from earlier layers"),), wanted=asked)
    panels = [_lines(measurements, probe, of_each) for probe, of_each in found.items()]
    gains = {probe: _gains(measurements, probe, of_each) for probe, of_each in found.items()}
    compared = [panel for panel in gains.values() if len(panel.points) >= LEAST_SPREAD]
    panels += compared
    scatter = " and scatter plots of what each gains by its own best layers against its penultimate transfer"
    figure = Figure(
        "depth",
        "Transfer over depth, and whom an earlier layer helps" if compared else "Transfer over depth",
        "Transfer accuracy over the layers, a line each, by linear and by kNN probes"
        f"{f';{scatter}' if compared else ''}.",
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
    said = _spread_sentence(found, _noun(measurements), few)
    notes = [_recovered(measurements, probe, of_each) for probe, of_each in found.items()]
    if measurements.networks.are_given:
        said = " ".join(filter(None, (_which_layer(measurements, found[PROBES[0]]), said)))
    return Piece(tuple(tables), (figure,), tuple(filter(None, (said, *notes))))


def _which_layer(measurements: Measurements, found: Mapping[str, Served]) -> str:
    """Return a sentence on how often an earlier layer is chosen, and what the best such choice gains."""
    gains = {
        (spec, task): one.by_task[task][layer] - one.by_task[task][PENULTIMATE]
        for spec, one in found.items()
        for task, layer in one.chosen.items()
        if layer != PENULTIMATE
    }
    pairs = sum(len(one.chosen) for one in found.values())
    every = f"all {counted(pairs, 'combination')}" if pairs > 1 else "the one combination"
    if not gains:
        return f"{OURS}: for {every} of network and task, validation chooses the penultimate features."
    spec, task = max(gains, key=gains.__getitem__)
    layer, gain = found[spec].chosen[task], gains[spec, task]
    last = f"{in_words(pairs - len(gains), 'none')} of {counted(pairs, 'combination')}"
    said = f"{OURS}: for {last} of network and task, validation chooses the penultimate features"
    where = f"{plain(measurements.objective(spec).label)} on {short_title(task)}, layer {plain(layer)}"
    if gain <= 0:
        return f"{said}; no earlier layer that it chooses gains anything on test images."
    return f"{said}; an earlier layer gains most for {where}: {signed(gain, 1)} points."


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
            (float(place), mean_of_runs(runs)) for place, runs in enumerate(one.layers.values(), start=first)
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
    return mean_of_runs(softmax.last) - mean_of_runs(one.last)


def _of_lead(one: Served, softmax: Served | None) -> tuple[Cell, Cell, Cell]:
    """Return softmax's lead, the share of it that an objective gains, and the lead at the best layers."""
    if softmax is None:
        return Cell(MISSING), Cell(MISSING), Cell(MISSING)
    lead, at_best = _lead(one, softmax), mean_of_runs(softmax.own) - mean_of_runs(one.own)
    recovered = Cell(MISSING, detail="softmax is not a point ahead")
    if lead >= LEAST_LEAD:
        share = 100 * mean_of_runs(one.gains) / lead
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


def _spread_sentence(found: Mapping[LayerProbe, Mapping[str, Served]], noun: str, few: str) -> str:
    """Return a sentence on how far apart all are at the penultimate layer, and at their own best layers.

    The spread is the standard deviation of their means.
    """
    told: list[str] = []
    for probe, of_each in found.items():
        last, own = (
            [mean_of_runs(getattr(one, place)) for one in of_each.values()] for place in ("last", "own")
        )
        if len(last) < LEAST_SPREAD or stdev(last) < FLAT:
            return ""
        ends = [f"{fixed(min(of), 1)} to {fixed(max(of), 1)} %" for of in (last, own)]
        told.append(
            f"by {probe.word} probes {ends[0]} from the penultimate layer and {ends[1]} from their own best"
            f" layers, a spread {fixed(stdev(own) / stdev(last), 2)} times as large"
        )
    of_few = f" ({few})" if few else ""
    return f"{OURS}: {counted(len(last), noun)} reach {'; '.join(told)}{of_few}."


def _recovered(measurements: Measurements, probe: LayerProbe, found: Mapping[str, Served]) -> str:
    """Return a sentence on the share of softmax's lead that objectives recover, in ascending order."""
    softmax = found.get(BASELINE)
    if softmax is None:
        return ""
    shares = {
        measurements.objective(spec).label: 100 * mean_of_runs(one.gains) / lead
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
    gain = signed(mean_of_runs(softmax.gains), 1)
    return f"By {probe.word} probes {said} own best layers; softmax itself gains {gain} points by its own."


EXHIBIT = Exhibit(
    name="depth",
    title="Do objectives differ less at their own best layers?",
    title_of_given="Which layer should I use?",
    caption="Each block's output, pooled over space, is probed as the penultimate features are. The"
    " best layer for a task is chosen by the accuracy on images of the task's training set"
    " (validation for linear probes, leave-one-out for kNN), never by a test image; of equals the later one."
    " Means over tasks and runs.",
    parts=(
        Bespoke(_build, tuple(quantity for probe in PROBES for quantity in (probe.tested, probe.validated))),
    ),
    method=(
        "No correlation of a gain with the accuracy that it is counted from is given: noise in that accuracy"
        " lowers the one and raises the other, so that they go together even where a layer helps all alike.",
    ),
    place=4,
    measured_by="full",
    summary="Linear and kNN transfer from every block, and which layer serves each task best",
    short="Transfer by layer",
)
