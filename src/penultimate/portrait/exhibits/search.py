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
from penultimate.results.table import MISSING, Cell, Column, table_of_rows
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
    counts, seconds = run.provenance.get("steps", {}), run.provenance.get("seconds", {})
    rest = math.fsum(value for kind, value in seconds.items() if kind != "train")
    steps = sum(pair[0] for kind, pair in counts.items() if kind != "train")
    costs = [
        (
            "The networks",
            counted(counts.get("train", (0, 0))[0], "training"),
            float(seconds.get("train", 0.0)),
        ),
        ("The measurements", counted(steps, "step"), rest),
    ]
    if found:
        tuning, tuned = found
        rows = [(plain(str(cell)), _cells(cell, cell is tuned.best)) for cell in tuned.cells]
        heads = {"accuracy": "Holdout top-1, %", "chosen": "Chosen", "told": "Remark"}
        columns = [Column(key, label) for key, label in heads.items()]
        yield table_of_rows("portrait_search", "What was tried", columns, rows, corner="Setting")
        runs = counted(sum(len(cell.runs) for cell in tuned.cells), "training")
        costs.insert(0, ("The search", runs, float(tuning.provenance.get("seconds", 0.0))))
    columns = [Column("what", "What"), Column("seconds", "Work on one core")]
    cost_rows = [(part, [what, Cell(took, seconds_text(took))]) for part, what, took in costs]
    yield table_of_rows("portrait_cost", "What it cost", columns, cost_rows, corner="Part")
    if found:
        chosen = (
            f"{tuned.best} is chosen" if tuned.best else "Nothing is chosen, because every value diverged"
        )
        yield f"{chosen}. The search: {budget_text(tuning)}."
        yield from map(plain, tuned.remarks)
    else:
        yield "The objective has no strength to search for."


def _cells(cell: Any, is_best: bool) -> list[Cell]:
    reasons = "; ".join(dict.fromkeys(plain(run.reason) for run in cell.diverged))
    mean = 100 * cell.mean if math.isfinite(cell.mean) else None
    remark = f"diverged ({reasons})" if cell.diverged else MISSING
    return [Cell(mean, accuracy_text(cell)), Cell("yes" if is_best else ""), Cell(remark)]


def _panels(tuned: Tuned, subject: Objective) -> list[Panel]:
    """Return accuracy against each hyperparameter that was searched, the others as they were chosen."""
    panels, centre = [], (tuned.best or tuned.cells[0]).values
    for place, axis in enumerate(tuned.axes):
        line = {}
        for cell in tuned.cells:
            others = [*cell.values[:place], *cell.values[place + 1 :]]
            if math.isfinite(cell.mean) and others == [*centre[:place], *centre[place + 1 :]]:
                line[cell.values[place]] = cell
        is_log = all(value > 0 for value in line) and not axis.from_above
        marks = []
        for value, cell in sorted(line.items()):
            x, y = math.log2(value) if is_log else float(value), 100 * cell.mean
            marks.append(Point(x, y, subject.slug, f"{axis.symbol} = {value:g}", f"{accuracy_text(cell)} %"))
        if len(marks) > 1:
            curve = Curve(tuple((mark.x, mark.y) for mark in marks), subject.slug, axis.key)
            label = f"{axis.key}{' (powers of two)' if is_log else ''}"
            head = f"portrait-search-{place}", f"Accuracy on the holdout against {axis.key}"
            panels.append(Panel(*head, label, "Holdout top-1, %", tuple(marks), (curve,)))
    return panels


def lost(run: Run, subject: Objective) -> int:
    """Return how many runs of the objective diverged."""
    rows = run.frame[(run.frame["objective"] == subject.spec) & (run.frame["status"] == "diverged")]
    seeds = {*rows["seed"].dropna().astype(int)}
    networks = run.provenance.get("diverged_networks", {})
    for step in run.provenance.get("diverged", {}):
        seeds |= {of["seed"] for of in networks.get(step, ()) if of["objective"] == subject.spec}
    return len(seeds)


def loss_panel(run: Run, subject: Objective) -> Panel | None:
    """Return the loss over the epochs of the objective's runs, for as long as it was a number."""
    rows = run.frame[(run.frame["objective"] == subject.spec) & (run.frame["unit"] == "loss")]
    rows = rows[rows["epoch"].notna() & (rows["value"].abs() < math.inf)]
    curves = []
    for seed, of in rows.groupby("seed"):
        points = sorted(zip(of["epoch"].astype(float), of["value"], strict=True))
        label = f"seed {seed}: {fixed(points[-1][1], 3)} in epoch {points[-1][0]:g}"
        curves += [Curve(tuple(points), subject.slug, label)] if len(points) > 1 else []
    heads = "Training loss, until it is no number", "Epoch", "Loss"
    return Panel("portrait-loss", *heads, curves=tuple(curves), labelled=False) if curves else None
