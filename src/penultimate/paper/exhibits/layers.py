"""Networks layer by layer: activations, class separation (figures 3 and 4), and transfer from every depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper import BASELINE
from penultimate.paper.printed import figure
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Panel, lines, scatter
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import Run, layers, mean_of
from penultimate.results.table import MISSING, Column, Table, table_of_rows
from penultimate.results.text import plain, signed

PENULTIMATE, LAST = "Penultimate", "last"
"""The penultimate features in tables, and in the table of chosen layers."""
LONGEST_AXIS = 70
"""The most characters of layer names on an axis; a longer axis has numbers only."""
PROBES = {"linear": "linear", "knn": "kNN"}
VALIDATION = {"linear": "linear_validation_accuracy", "knn": "knn_leave_one_out"}
"""The accuracies on training images that choose a layer."""
LEAST_LEAD = 1.0
"""The smallest lead of softmax, in points, by which a gain is divided."""
FEWEST_DRAWN = 3
"""The fewest objectives whose gains are drawn."""
LEADS = (
    Column("lead", "Penultimate", "Lead of softmax"),
    Column("recovered_percent", "Recovered", "Lead of softmax", 0),
    Column("lead_at_best", "At best", "Lead of softmax"),
)
SAID_IN_TEXT = {"softmax": "92.8", "logit_norm": "< 25", "cosine_softmax": "< 25", "squared_error": "< 25"}
"""Non-zero penultimate activations in per cent; only these are printed, in the text of section 3.2."""


@exhibit("figure3", "How many activations are not zero?", section="3.2")
def figure3(run: Run) -> Iterator[Part]:
    """The share of activations that are not zero, on the test images of the pretraining set, from the first
    block to the penultimate features. Where the share is low, each image uses few of them. The paper says
    that the share falls with depth down to the last convolutional layer, and that only the last stage and
    the penultimate features depend on the objective."""
    found, group = layers_of(run, "nonzero_share", scale=100), "Not zero, %"
    if len(found) > 1:
        columns = {Column(f"{layer}_percent", layer, group): frame for layer, frame in found.items()}
        yield table_of_means(run, "figure3", f"Share of non-zero activations on {run.title}", columns)
        share = Axis("Share of non-zero activations, %", 1, "%")
        panel = over_layers(run, "figure3-ours", f"{run.title}, test images", found, share)
        yield figure("figure3", "Non-zero activations over the layers", panel, legend=True)
    index = printed("neurips_table1_linear").index
    yield table_of_printed(
        "figure3",
        "What the paper's text says of ResNet-50 on ImageNet's validation images",
        "",
        {Column("penultimate_percent", PENULTIMATE, group): "said"},
        rows=pd.DataFrame({"said": [SAID_IN_TEXT.get(slug, "") for slug in index]}, index),
        notes=["The paper draws the other values of its Figure 3 without printing them."],
    )


@exhibit("figure4", "In which layers do the classes come apart?", section="3.3")
def figure4(run: Run) -> Iterator[Part]:
    """Class separation R² of every layer of the pretraining set: 0 where the classes lie on top of each
    other, 1 where each is a single point. Maps are flattened over space. R² is by the paper's formula, which
    counts an image with itself. The paper draws its Figure 4 (training images, eight networks an objective)
    without printing its numbers, but for the last layer's. It says that in the penultimate features every
    other objective separates the classes further than softmax."""
    for split, images in (("train", "training images"), ("test", "test images")):
        found = layers_of(run, "class_separation", split)
        if len(found) > 1:
            columns = {Column(layer, layer, "R²", 3): frame for layer, frame in found.items()}
            yield table_of_means(run, "figure4", f"Class separation R² on {run.title}, {images}", columns)
            axis = Axis("Class separation R²", 3)
            panel = over_layers(run, "figure4-ours", f"{run.title}, {images}", found, axis)
            yield figure("figure4", "Class separation over the layers", panel, legend=True)
            break
    yield table_of_printed(
        "figure4",
        "The last layer in the paper, ImageNet's training images",
        "neurips_table3_class_separation",
        {Column("penultimate", PENULTIMATE, "R²"): "class_separation_r2"},
    )


def layers_of(run: Run, metric: str, split: str = "test", **where: object) -> dict[str, pd.DataFrame]:
    """Return `results.rows.layers`, with the penultimate features under a name for readers."""
    found = layers(run, metric, split, **where)  # type: ignore[arg-type]
    return {PENULTIMATE if name == PENULTIMATE.lower() else name: frame for name, frame in found.items()}


def over_layers(
    run: Run, name: str, title: str, found: Mapping[str, pd.DataFrame], axis: Axis
) -> Panel | None:
    """Return a panel with a line for each objective: its means over runs in each layer."""
    y = pd.DataFrame({place: frame.unstack() for place, frame in enumerate(found.values(), 1)}).T
    panel = lines(run, name, title, y, axis, x_label=axis_of([*found]), early=0.0)
    return panel and replace(panel, points=tuple(point._replace(y_error=None) for point in panel.points))


def numbered(names: Sequence[str]) -> str:
    """Return layers with the numbers that stand for them on axes.

    >>> numbered(["block1", "Penultimate"])
    '1 block1, 2 Penultimate'
    """
    return ", ".join(f"{number} {plain(name)}" for number, name in enumerate(names, 1))


def axis_of(names: Sequence[str]) -> str:
    """Return the label of an axis of layers."""
    axis = f"Layer: {numbered(names)}"
    return axis if names and len(axis) <= LONGEST_AXIS else "Layer, from the first block to the last"


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
    panels = [transfer_over_layers(run, probe, of_each) for probe, of_each in found.items()]
    drawn = {probe: of_each for probe, of_each in found.items() if len(of_each) >= FEWEST_DRAWN}
    panels += [gains(run, probe, of_each) for probe, of_each in drawn.items()]
    yield figure("depth", "Transfer over depth", *panels, legend=True)


class Served(NamedTuple):
    """Transfer from the layers of an objective's networks, by one probe, in per cent, means over tasks.

    `layers` is a frame [seed, layer]; `last`, by seed, is of the penultimate features, `own` of each task's
    chosen layer, and `gain` their difference. `chosen` has the layer of each task that is best on validation
    images, the later of equal ones.
    """

    layers: pd.DataFrame
    last: pd.Series
    own: pd.Series
    gain: pd.Series
    chosen: Mapping[str, str]


def served(run: Run, probe: str) -> dict[str, Served]:
    """Return the transfer of each objective whose layers were probed on every task, by its short name."""
    tested = {
        task: found
        for task in run.targets
        if (found := layers_of(run, f"{probe}_{card(task).accuracy}", target=task, scale=100))
    }
    validated = {task: layers_of(run, VALIDATION[probe], "train", target=task) for task in tested}
    served = {}
    for slug in run.labels():
        tasks, best, chosen = [], [], dict[str, str]()
        for task in tested:
            seen, accuracy = _whole(validated[task], slug), _whole(tested[task], slug)
            accuracy = accuracy[[layer for layer in accuracy if layer in seen]]
            if len(accuracy.columns) > 1 and PENULTIMATE in accuracy:
                chosen[task] = str(seen[accuracy.columns[::-1]].mean().idxmax())
                tasks.append(accuracy)
                best.append(accuracy[[chosen[task]]].set_axis([""], axis=1))
        if tasks and len(tasks) == len(tested):
            layers, own = mean_of(tasks), mean_of(best)[""]
            last = layers[PENULTIMATE].dropna()
            served[slug] = Served(layers, last, own, (own - last).dropna(), chosen)
    return {slug: one for slug, one in served.items() if len(one.gain)}


def _whole(found: Mapping[str, pd.DataFrame], slug: str) -> pd.DataFrame:
    """Return the values of an objective [seed, layer] in the layers that most of its runs have."""
    frame = pd.DataFrame({layer: values[slug] for layer, values in found.items() if slug in values})
    counts = frame.count()
    return frame[[layer for layer in frame if counts[layer] == counts.max()]]


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
    for key, label, read in (("own_percent", "Accuracy", "own"), ("gain", "Gained", "gain")):
        runs = {slug: getattr(one, read) for slug, one in found.items()}
        columns[Column(key, label, "Each task’s best")] = pd.DataFrame(runs)
    title = f"Transfer by layer, {PROBES[probe]} probe, means over tasks"
    note = (
        "Accuracies in per cent, gains and leads in points. Recovered: the gain as a share of softmax's lead"
        " in per cent, where that is a point or more."
    )
    table = table_of_means(run, f"depth_{probe}", title, columns, corner=corner_of(run), notes=[note])
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
    return replace(
        table, texts=values[of_signs].map(lambda cell: cell if isinstance(cell, str) else signed(cell, 1))
    )


def lead_of(one: Served, softmax: Served) -> dict[str, float]:
    """Return softmax's lead, the share of it that an objective gains, and the lead at the best layers."""
    lead = softmax.last.mean() - one.last.mean()
    found = {"lead": lead, "lead_at_best": softmax.own.mean() - one.own.mean()}
    return found | ({"recovered_percent": 100 * one.gain.mean() / lead} if lead >= LEAST_LEAD else {})


def best_layers(run: Run, probe: str, found: Mapping[str, Served]) -> Table | None:
    """Return the best layer for each task: its number if all networks have the same layers, or its name."""
    shared, labels = shared_layers(found), run.labels()
    numbers = {layer: str(number) for number, layer in enumerate(shared, 1)} | {PENULTIMATE: LAST}
    names = f"{numbered(shared[:-1])}; {LAST}" if shared else LAST
    slugs = [slug for slug in labels if slug in found]
    table = table_of_rows(
        f"depth_{probe}_layers",
        f"The layer that serves each task best, {PROBES[probe]} probe",
        [Column(task, card(task).title, "Task") for task in next(iter(found.values())).chosen],
        [
            (labels[slug], [numbers.get(layer, plain(layer)) for layer in found[slug].chosen.values()])
            for slug in slugs
        ],
        corner=corner_of(run),
        slugs=tuple(slugs),
        notes=(f"{names}: the penultimate features. Bold: an earlier layer.",),
        own_marks=True,
    )
    return table and replace(table, marks=table.values.map(lambda layer: "" if layer == LAST else "best"))


def transfer_over_layers(run: Run, probe: str, found: Mapping[str, Served]) -> Panel | None:
    """Return a panel of transfer over the layers, whose lines all end with the penultimate features."""
    deepest, word = max(len(one.layers.columns) for one in found.values()), PROBES[probe]
    layers = {
        slug: one.layers.T.set_axis(range(deepest - len(one.layers.columns) + 1, deepest + 1))
        for slug, one in found.items()
    }
    title, axis = f"Transfer from each layer, {word}", Axis(f"Mean {word} transfer accuracy, %", unit="%")
    y, x_label = pd.concat(layers, axis=1), axis_of(shared_layers(found))
    return lines(run, f"depth-{probe}", title, y, axis, x_label=x_label, early=0.0)


def gains(run: Run, probe: str, found: Mapping[str, Served]) -> Panel | None:
    """Return a panel of the gain from each objective's best layers against its penultimate transfer."""
    last, gain = (
        pd.DataFrame({slug: getattr(one, name) for slug, one in found.items()}) for name in ("last", "gain")
    )
    word, up = PROBES[probe], Axis("Gained by its own best layers, points")
    axes = Axis(f"Mean {word} transfer from the penultimate layer, %"), up
    title = f"Gained by its own best layers, {word}"
    return scatter(run, f"depth-{probe}-gain", title, last, gain, axes, drawn="means", finding="")
