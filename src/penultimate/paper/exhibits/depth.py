"""Transfer from every depth: the best layer for each task, and how far objectives differ there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper import BASELINE
from penultimate.paper.layers import PENULTIMATE, PROBES, Served, axis_of, numbered, served
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Curve, Figure, Panel, Point, scatter
from penultimate.results.means import table_of_means
from penultimate.results.rows import Run
from penultimate.results.table import MISSING, Column, Table, table_of_rows
from penultimate.results.text import counted, fixed, plain, signed

LEAST_LEAD = 1.0
"""The smallest lead of softmax, in points, by which a gain is divided."""
FEWEST_DRAWN = 3
"""The fewest objectives whose gains are drawn."""
LAST = "last"
"""The name of the penultimate features in the table of layers."""
LEADS = (
    Column("lead", "Penultimate", "Lead of softmax"),
    Column("recovered_percent", "Recovered", "Lead of softmax", 0),
    Column("lead_at_best", "At best", "Lead of softmax"),
)


@exhibit("depth", "Which layer serves each task best, and do objectives differ there?", of_given=True)
def depth(run: Run) -> Iterator[Part]:
    """Each block's output, pooled over space, is probed as the penultimate features are. The best layer for a
    task is chosen by the accuracy on images of the task's training set (validation for linear probes,
    leave-one-out for kNN), never by a test image; of equals the later one. Means over tasks and runs. No
    correlation of a gain with the accuracy that it is counted from is given: noise in that accuracy lowers
    the one and raises the other."""
    found = {probe: served(run, probe) for probe in PROBES}
    if not all(found.values()):
        return
    for probe, of_each in found.items():
        yield by_layer(run, probe, of_each)
        yield best_layers(run, probe, of_each)
    panels = [over_layers(run, probe, of_each) for probe, of_each in found.items()]
    panels += [
        panel
        for probe, of_each in found.items()
        if len(of_each) >= FEWEST_DRAWN and (panel := gains(run, probe, of_each))
    ]
    yield Figure("depth", "Transfer over depth", tuple(panels), legend=True)


def corner_of(run: Run) -> str:
    """Return the heading of the rows."""
    return "Network" if run.are_given else "Objective"


def shared_layers(found: Mapping[str, Served]) -> list[str]:
    """Return the layers of the networks if all have the same, or else none."""
    of_each = {tuple(one.layers.columns) for one in found.values()}
    return [*of_each.pop()] if len(of_each) == 1 else []


def by_layer(run: Run, probe: str, found: Mapping[str, Served]) -> Table | None:
    """Return the mean over tasks from each layer and from each task's best, and the lead of softmax."""
    columns = {
        Column(f"{layer}_percent", plain(layer), "One layer for all tasks"): pd.DataFrame(
            {slug: one.layers[layer] for slug, one in found.items()}
        )
        for layer in shared_layers(found)
    }
    own, gained = (
        Column(key, label, "Each task’s best")
        for key, label in (("own_percent", "Accuracy"), ("gain", "Gained"))
    )
    columns[own] = pd.DataFrame({slug: one.own for slug, one in found.items()})
    columns[gained] = pd.DataFrame({slug: one.gain for slug, one in found.items()})
    title = f"Transfer by layer, {PROBES[probe]} probe, means over tasks"
    notes = [
        "Accuracies in per cent, gains and leads in points. Recovered: the gain as a share of softmax's lead"
        " in per cent, where that is a point or more."
    ]
    table = table_of_means(run, f"depth_{probe}", title, columns, corner=corner_of(run), notes=notes)
    if table is None:
        return None
    values = table.values
    if BASELINE in found:
        leads = [lead_of(found[slug], found[BASELINE]) if slug != BASELINE else {} for slug in table.slugs]
        for column in LEADS:
            cells = [lead.get(column.key, MISSING) for lead in leads]
            values = values.assign(**{column.key: pd.Series(cells, values.index, dtype=object)})
        table = replace(table, columns=(*table.columns, *LEADS), values=values)
    of_signs = [key for key in ("gain", "lead", "lead_at_best") if key in values]
    texts = values[of_signs].map(lambda cell: cell if isinstance(cell, str) else signed(cell, 1))
    return replace(table, texts=texts)


def lead_of(one: Served, softmax: Served) -> dict[str, float]:
    """Return softmax's lead, the share of it that an objective gains, and the lead at the best layers."""
    lead = softmax.last.mean() - one.last.mean()
    found = {"lead": lead, "lead_at_best": softmax.own.mean() - one.own.mean()}
    return found | ({"recovered_percent": 100 * one.gain.mean() / lead} if lead >= LEAST_LEAD else {})


def best_layers(run: Run, probe: str, found: Mapping[str, Served]) -> Table | None:
    """Return the best layer for each task: its number if all networks have the same layers, or its name."""
    layers, labels = shared_layers(found), run.labels()
    numbers = {layer: str(number) for number, layer in enumerate(layers, 1)} | {PENULTIMATE: LAST}
    tasks = [*next(iter(found.values())).chosen]
    names = f"{numbered(layers[:-1])}; {LAST}" if layers else LAST
    slugs = [slug for slug in labels if slug in found]
    rows = [
        (labels[slug], [numbers.get(layer, plain(layer)) for layer in found[slug].chosen.values()])
        for slug in slugs
    ]
    table = table_of_rows(
        f"depth_{probe}_layers",
        f"The layer that serves each task best, {PROBES[probe]} probe",
        [Column(task, card(task).title, "Task") for task in tasks],
        rows,
        corner=corner_of(run),
        slugs=tuple(slugs),
        notes=(f"{names}: the penultimate features. Bold: an earlier layer.",),
        own_marks=True,
    )
    return table and replace(table, marks=table.values.map(lambda layer: "" if layer == LAST else "best"))


def over_layers(run: Run, probe: str, found: Mapping[str, Served]) -> Panel:
    """Return a panel of transfer over the layers, whose lines all end with the penultimate features."""
    curves, points = [], []
    deepest = max(len(one.layers.columns) for one in found.values())
    labels = run.labels()
    for slug, one in found.items():
        means = one.layers.mean()
        first = deepest - len(means) + 1
        line = tuple((float(place), float(mean)) for place, mean in enumerate(means, first))
        detail = f"{counted(len(one.last), 'run')}: {fixed(line[-1][1], 1)} % from the penultimate layer"
        error = float(one.last.sem()) if len(one.last) > 1 else None
        curves.append(Curve(line, slug, f"{labels[slug]}, {detail}"))
        points.append(Point(*line[-1], slug, labels[slug], detail, y_error=error))
    word = PROBES[probe]
    return Panel(
        f"depth-{probe}",
        f"Transfer from each layer, {word}",
        axis_of(shared_layers(found)),
        f"Mean {word} transfer accuracy, %",
        tuple(points),
        tuple(curves),
        labelled=False,
    )


def gains(run: Run, probe: str, found: Mapping[str, Served]) -> Panel | None:
    """Return a panel of the gain from each objective's best layers against its penultimate transfer."""
    last, gain = (
        pd.DataFrame({slug: getattr(one, name) for slug, one in found.items()}) for name in ("last", "gain")
    )
    word = PROBES[probe]
    axes = (
        Axis(f"Mean {word} transfer from the penultimate layer, %"),
        Axis("Gained by its own best layers, points"),
    )
    title = f"Gained by its own best layers, {word}"
    return scatter(run, f"depth-{probe}-gain", title, last, gain, axes, drawn="means", finding="")
