"""How an objective's strength was searched for, what that cost, and how it diverged if it did."""

from __future__ import annotations

import math

from penultimate.portrait.traits import subject_of
from penultimate.progress import seconds_text
from penultimate.records.tuning import Tuned, Tuning, accuracy_text, budget_text, searches_held
from penultimate.report.base import MISSING, Cell, Column, Curve, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.networks import StudyObjective
from penultimate.report.spec import OURS, PORTRAIT, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, plain

COLUMNS = (
    Column("accuracy", "Holdout top-1, %"),
    Column("chosen", "Chosen"),
    Column("told", "Remark"),
)


def own_search(measurements: Measurements) -> tuple[Tuning, Tuned] | None:
    """Return the search for the objective of a portrait, or None if there was nothing to search for."""
    for tuning in searches_held(measurements.results.description):
        if tuning.study == measurements.results.name and tuning.objectives:
            return tuning, tuning.objectives[0]
    return None


def diverged_everywhere(measurements: Measurements) -> bool:
    """Return whether every value of the search diverged."""
    found = own_search(measurements)
    return found is not None and found[1].best is None


def _panels(tuned: Tuned, subject: StudyObjective) -> list[Panel]:
    panels = []
    for place, axis in enumerate(tuned.axes):
        centre = (tuned.best or tuned.cells[0]).values
        line = sorted(
            (cell.values[place], cell)
            for cell in tuned.cells
            if math.isfinite(cell.mean)
            and all(value == centre[other] for other, value in enumerate(cell.values) if other != place)
        )
        is_log = all(value > 0 for value, _ in line) and not axis.from_above
        marks = tuple(
            Point(
                math.log2(value) if is_log else float(value),
                100 * cell.mean,
                subject.slug,
                f"{axis.symbol} = {value:g}",
                f"{accuracy_text(cell)} %",
            )
            for value, cell in line
        )
        if len(marks) > 1:
            curve = Curve(tuple((mark.x, mark.y) for mark in marks), subject.slug, axis.key)
            label = f"{axis.key}{' (powers of two)' if is_log else ''}"
            title = f"Accuracy on the holdout against {axis.key}"
            panels.append(
                Panel(f"portrait-search-{place}", title, label, "Holdout top-1, %", marks, (curve,))
            )
    return panels


def _cells(tuned: Tuned) -> ExhibitTable:
    rows = []
    for cell in tuned.cells:
        reasons = "; ".join(dict.fromkeys(plain(run.reason) for run in cell.diverged))
        told = f"diverged ({reasons})" if cell.diverged else MISSING
        cells = (
            Cell(accuracy_text(cell), 100 * cell.mean if math.isfinite(cell.mean) else None),
            Cell("yes" if cell is tuned.best else ""),
            Cell(told),
        )
        rows.append(TableRow(plain(str(cell)), cells))
    return ExhibitTable("portrait_search", "What was tried", "Setting", COLUMNS, tuple(rows))


def loss_panel(measurements: Measurements, subject: StudyObjective) -> Panel | None:
    """Return the loss over the epochs of the objective's runs, for as long as it was a number."""
    by_seed: dict[int | None, dict[int, float]] = {}
    for row in measurements.results.table.where(objective=subject.spec):
        if row.unit == "loss" and row.epoch is not None and math.isfinite(row.value):
            by_seed.setdefault(row.seed, {})[row.epoch] = row.value
    curves = tuple(
        Curve(
            tuple((float(epoch), value) for epoch, value in sorted(points.items())),
            subject.slug,
            f"{run_name(seed)}: {fixed(points[max(points)], 3)} in epoch {max(points)}",
        )
        for seed, points in by_seed.items()
        if len(points) > 1
    )
    if not curves:
        return None
    return Panel(
        "portrait-loss",
        "Training loss, until it is no number",
        "Epoch",
        "Loss",
        curves=curves,
        labelled=False,
    )


def _costs(measurements: Measurements) -> ExhibitTable:
    provenance = measurements.results.provenance
    rows = []
    found = own_search(measurements)
    if found is not None:
        tuning, tuned = found
        seconds = float(tuning.provenance.get("seconds", 0.0))
        runs = sum(len(cell.runs) for cell in tuned.cells)
        rows.append(
            TableRow("The search", (Cell(counted(runs, "training")), Cell(seconds_text(seconds), seconds)))
        )
    seconds = provenance.get("seconds", {})
    trained = provenance.get("steps", {}).get("train", (0, 0))[0]
    each = float(seconds.get("train", 0.0))
    rows.append(
        TableRow("The networks", (Cell(counted(trained, "training")), Cell(seconds_text(each), each)))
    )
    rest = math.fsum(value for kind, value in seconds.items() if kind != "train")
    steps = sum(pair[0] for kind, pair in provenance.get("steps", {}).items() if kind != "train")
    rows.append(TableRow("The measurements", (Cell(counted(steps, "step")), Cell(seconds_text(rest), rest))))
    columns = (Column("what", "What"), Column("seconds", "Work on one core"))
    return ExhibitTable("portrait_cost", "What it cost", "Part", columns, tuple(rows))


def _search(measurements: Measurements) -> Piece:
    subject = subject_of(measurements)
    if subject is None:
        return Piece(wanted=False)
    found = own_search(measurements)
    tables, panels, notes = [_costs(measurements)], list[Panel](), list[str]()
    if found is not None:
        tuning, tuned = found
        panels += _panels(tuned, subject)
        tables.insert(0, _cells(tuned))
        chosen = (
            f"{OURS}: {tuned.best} is chosen"
            if tuned.best
            else f"{OURS}: nothing is chosen, because every value diverged"
        )
        notes += [f"{chosen}. The search: {budget_text(tuning)}.", *map(plain, tuned.remarks)]
        known = [of for of in searches_held(measurements.results.description) if of.study != tuning.study]
        if known:
            notes.append(f"The other objectives' search had {budget_text(known[0])}.")
    elif measurements.diverged or not panels:
        notes.append("The objective has no strength to search for.")
    loss = loss_panel(measurements, subject)
    if loss is not None and any(run.objective == subject.label for run in measurements.diverged):
        panels.append(loss)
    figure = Figure("portrait_search", "How it was tuned", "Curves of the search.", tuple(panels))
    return Piece(tuple(tables), (figure,) if panels else (), notes=tuple(notes))


SEARCH = Exhibit(
    name="portrait_search",
    title="How it was tuned, and what that cost",
    caption="Hyperparameters are chosen by accuracy on held-out pretraining images alone, by no test image"
    " and no transfer task, as those of the other objectives were.",
    parts=(Bespoke(_search),),
    page="portrait",
    measured_by=PORTRAIT,
    place=5,
    of_given=False,
    summary="Of a portrait: the search for the objective's strength, and the cost",
    short="Search and cost",
)
