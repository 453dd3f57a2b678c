"""How an objective's strength was searched for, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from penultimate.portrait.exhibits import shows
from penultimate.portrait.traits import subject_of
from penultimate.progress import seconds_text
from penultimate.records.tuning import Tuned, Tuning, accuracy_text, budget_text, searches_held
from penultimate.results.exhibit import Part
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.rows import Objective, Run
from penultimate.results.table import MISSING, Cell, Column, table_of_cells
from penultimate.results.text import counted, fixed, plain


def own_search(run: Run) -> tuple[Tuning, Tuned] | None:
    """Return the search for the objective of a portrait, or None if there was nothing to search for."""
    for tuning in searches_held(run.description):
        if tuning.study == run.name and tuning.objectives:
            return tuning, tuning.objectives[0]
    return None


@shows("portrait_search", "How it was tuned, and what that cost")
def portrait_search(run: Run) -> Iterator[Part]:
    """Hyperparameters are chosen by accuracy on held-out pretraining images alone, by no test image and no
    transfer task, as those of the other objectives were."""
    subject, found = subject_of(run), own_search(run)
    if subject is None:
        return
    panels = _panels(found[1], subject) if found else []
    if lost(run, subject) and (loss := loss_panel(run, subject)):
        panels.append(loss)
    if panels:
        yield Figure("portrait_search", "How it was tuned", tuple(panels))
    told, seconds = run.provenance.get("steps", {}), run.provenance.get("seconds", {})
    rest = math.fsum(value for kind, value in seconds.items() if kind != "train")
    steps = sum(pair[0] for kind, pair in told.items() if kind != "train")
    costs = [
        ("The networks", counted(told.get("train", (0, 0))[0], "training"), float(seconds.get("train", 0.0))),
        ("The measurements", counted(steps, "step"), rest),
    ]
    if found:
        tuning, tuned = found
        rows = [(plain(str(cell)), _cells(cell, cell is tuned.best)) for cell in tuned.cells]
        heads = {"accuracy": "Holdout top-1, %", "chosen": "Chosen", "told": "Remark"}
        columns = [Column(key, label) for key, label in heads.items()]
        yield table_of_cells("portrait_search", "What was tried", columns, rows, corner="Setting")
        runs = counted(sum(len(cell.runs) for cell in tuned.cells), "training")
        costs.insert(0, ("The search", runs, float(tuning.provenance.get("seconds", 0.0))))
    columns = [Column("what", "What"), Column("seconds", "Work on one core")]
    cost_rows = [(part, [what, Cell(took, seconds_text(took))]) for part, what, took in costs]
    yield table_of_cells("portrait_cost", "What it cost", columns, cost_rows, corner="Part")
    if not found:
        yield "The objective has no strength to search for."
        return
    chosen = f"{tuned.best} is chosen" if tuned.best else "Nothing is chosen, because every value diverged"
    yield f"{chosen}. The search: {budget_text(tuning)}."
    yield from map(plain, tuned.remarks)
    for of in [of for of in searches_held(run.description) if of.study != tuning.study][:1]:
        yield f"The other objectives' search had {budget_text(of)}."


def _cells(cell: Any, is_best: bool) -> list[Cell]:
    reasons = "; ".join(dict.fromkeys(plain(run.reason) for run in cell.diverged))
    mean = 100 * cell.mean if math.isfinite(cell.mean) else None
    told = f"diverged ({reasons})" if cell.diverged else MISSING
    return [Cell(mean, accuracy_text(cell)), Cell("yes" if is_best else ""), Cell(told)]


def _panels(tuned: Tuned, subject: Objective) -> list[Panel]:
    """Return accuracy against each hyperparameter that was searched, the others as they were chosen."""
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
            name = f"portrait-search-{place}"
            panels.append(Panel(name, title, label, "Holdout top-1, %", marks, (curve,)))
    return panels


def lost(run: Run, subject: Objective) -> int:
    """Return how many runs of the objective diverged."""
    told = run.provenance.get("diverged_networks", {})
    seeds = [
        of["seed"]
        for step in run.provenance.get("diverged", {})
        for of in told.get(step, ())
        if of["objective"] == subject.spec
    ]
    rows = run.frame[(run.frame["objective"] == subject.spec) & (run.frame["status"] == "diverged")]
    return len({*seeds, *rows["seed"].dropna().astype(int)})


def loss_panel(run: Run, subject: Objective) -> Panel | None:
    """Return the loss over the epochs of the objective's runs, for as long as it was a number."""
    rows = run.frame[(run.frame["objective"] == subject.spec) & (run.frame["unit"] == "loss")]
    rows = rows[rows["epoch"].notna() & rows["value"].notna() & (rows["value"].abs() < math.inf)]
    curves = []
    for seed, of in rows.groupby("seed"):
        points = dict(zip(of["epoch"].astype(int), of["value"].astype(float), strict=True))
        last = max(points)
        label = f"seed {seed}: {fixed(points[last], 3)} in epoch {last}"
        if len(points) > 1:
            curves.append(Curve(tuple((float(at), points[at]) for at in sorted(points)), subject.slug, label))
    title = "Training loss, until it is no number"
    return (
        Panel("portrait-loss", title, "Epoch", "Loss", curves=tuple(curves), labelled=False)
        if curves
        else None
    )
