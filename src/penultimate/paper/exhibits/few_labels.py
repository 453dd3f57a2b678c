"""Transfer from few labels: curves over the size of the training set, and where they cross."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from penultimate.data.catalog import card
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
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective, name_in
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import name_on
from penultimate.report.shapes.episodes import METRIC, CurveOf, curves_of
from penultimate.report.shapes.numbers import average, rank_correlation
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, p_value, plain
from penultimate.statistics.crossed import CrossedMean, Crossing, crossings, told_apart

PROBES = {"ridge": "Ridge regression", "centroid": "Nearest centroid"}
OF_SHOTS, OF_SHARES = (
    tuple(
        Quantity(f"few_{probe}_{{accuracy}}", target=TARGETS, setting=kind, optional=kind != "shots")
        for probe in PROBES
    )
    for kind in ("shots", "percent")
)
ARRAYS = Quantity(METRIC, target=TARGETS, arrays=(*PROBES, *(f"{probe}_hits" for probe in PROBES)))
SEPARATION = Quantity("class_separation", "train", optional=True)
MOST_PANELS = 9
"""The greatest number of tasks that are drawn."""


def _build(measurements: Measurements) -> Piece:
    by_task = {
        target: {probe: found for probe in PROBES if (found := curves_of(measurements, target, probe))}
        for target in measurements.targets
    }
    by_task = {target: found for target, found in by_task.items() if found}
    if not by_task:
        asked = "few_labels" in set(map(name_in, measurements.networks.measured))
        return Piece(missing=(Missing("Transfer from few labels"),), wanted=asked)
    tables = [table for probe in PROBES if (table := _means(measurements, probe))]
    for target, of_probes in by_task.items():
        tables += [_values(measurements, target, probe, found) for probe, found in of_probes.items()]
    crossed, told = _crossed(measurements, by_task)
    ranks = _ranks(measurements)
    tables = [*tables[:1], *([ranks] if ranks else []), *([crossed] if crossed else []), *tables[1:]]
    panels = [
        _panel(measurements, target, of_probes["ridge"])
        for target, of_probes in itertools.islice(by_task.items(), MOST_PANELS)
    ]
    said = "Accuracy against the number of training images a class, a line for each, with 95 % intervals."
    title = "Transfer from few labels, ridge regression"
    figure = Figure("few_labels", title, said, tuple(panels), legend=True)
    return Piece(tuple(tables), (figure,), (*_finding(measurements), *told))


def _panel(measurements: Measurements, target: str, found: Mapping[str, CurveOf]) -> Panel:
    """Return the curves on a task: accuracy against training images a class."""
    classes = card(target).classes
    curves, points = [], []
    for spec, curve in found.items():
        objective = measurements.objective(spec)
        line = []
        for learnt in curve.values():
            mean, (low, high) = learnt.mean, learnt.mean.accuracy_interval(learnt.tested)
            x, y = learnt.images / classes, 100 * mean.value
            line.append((x, y))
            is_last = learnt is list(curve.values())[-1]
            text = (
                f"{_size_words(learnt.size)}: {fixed(y, 1)} % [{fixed(100 * low, 1)}, {fixed(100 * high, 1)}]"
            )
            points.append(
                Point(
                    x,
                    y,
                    objective.slug,
                    objective.label,
                    text,
                    y_span=(100 * low, 100 * high),
                    faint=not is_last,
                )
            )
        curves.append(Curve(tuple(line), objective.slug, f"{objective.label}, {points[-1].detail}"))
    return Panel(
        name_on("few_labels", target),
        card(target).title,
        "Training images a class",
        "Test accuracy, %",
        tuple(points),
        tuple(curves),
        labelled=False,
        x_log=True,
    )


def _size_words(size: str) -> str:
    """Return the size of a training set in words.

    >>> _size_words("shots=1"), _size_words("percent=30")
    ('1 image a class', '30 % of the images')
    """
    kind, _, value = size.partition("=")
    if kind == "percent":
        return f"{value} % of the images"
    return f"{value} image{'' if value == '1' else 's'} a class"


def _columns(sizes: list[str]) -> tuple[Column, ...]:
    groups = {"shots": "Images a class", "percent": "Of the training images, %"}
    heads = [(size, *size.partition("=")[::2]) for size in sizes]
    return tuple(Column(f"{kind}_{value}_percent", value, groups[kind], "%") for _, kind, value in heads)


def _in_order(sizes: list[str]) -> list[str]:
    """Return sizes with images a class first, then shares, each ascending, and each once."""
    return sorted(dict.fromkeys(sizes), key=lambda size: (size[0] != "s", int(size.partition("=")[2])))


def _values(
    measurements: Measurements, target: str, probe: str, found: Mapping[str, CurveOf]
) -> ExhibitTable:
    """Return the accuracies on a task with their intervals."""
    sizes = _in_order([size for curve in found.values() for size in curve])
    rows = []
    for spec, curve in found.items():
        cells = []
        for size in sizes:
            if size not in curve:
                cells.append(Cell(MISSING, detail="not measured"))
                continue
            mean = curve[size].mean
            low, high = mean.accuracy_interval(curve[size].tested)
            ends = f"[{fixed(100 * low, 1)}, {fixed(100 * high, 1)}]"
            value = 100 * mean.value
            cells.append(Cell(f"{fixed(value, 1)} {ends}", value, detail="95 % interval"))
        objective = measurements.objective(spec)
        rows.append(TableRow(objective.label, tuple(cells), objective.slug))
    title = f"{card(target).title}: {PROBES[probe].lower()}, test accuracy in % with 95 % intervals"
    name = f"{name_on('few_labels', target)}-{probe}"
    corner = _noun(measurements).capitalize()
    return ExhibitTable(name, title, corner, _columns(sizes), tuple(rows), folded=True)


def _means(measurements: Measurements, probe: str) -> ExhibitTable | None:
    """Return the means over tasks at each size that all tasks have, or None with a single task."""
    if len(measurements.targets) < 2:
        return None
    columns = []
    for size in _sizes(measurements, probe):
        kind, _, value = size.partition("=")
        (head,) = _columns([size])
        quantity = Quantity(
            f"few_{probe}_{{accuracy}}",
            target=TARGETS,
            setting=size,
            label=value,
            group=head.group,
            key=f"{kind}_{value}_percent",
            bold=True,
        )
        columns.append(run_column(quantity, measurements.values(quantity)))
    columns = [column for column in columns if column.runs]
    title = f"Transfer from few labels, {PROBES[probe].lower()}, mean of the tasks, %"
    table = run_table(measurements, f"few_labels_{probe}", title, columns) if columns else None
    return replace(table, corner=_noun(measurements).capitalize()) if table else None


def _sizes(measurements: Measurements, probe: str) -> list[str]:
    """Return every size for which a task has a number."""
    found: list[str] = []
    for target in measurements.targets:
        metric = Quantity(f"few_{probe}_{{accuracy}}").metric_on(target)
        found += [setting for setting in measurements.conditions(metric, target) if "=" in setting]
    return _in_order(found)


def _ranks(measurements: Measurements) -> ExhibitTable | None:
    """Return how class separation in pretraining ranks objectives beside transfer from each size."""
    separation = measurements.values(SEPARATION)
    rows = []
    sizes = _sizes(measurements, "ridge")
    for probe, label in PROBES.items():
        cells = []
        for size in sizes:
            quantity = Quantity(f"few_{probe}_{{accuracy}}", target=TARGETS, setting=size)
            runs = measurements.values(quantity)
            both = [spec for spec in runs if spec in separation]
            found = rank_correlation(
                *([average(list(of[spec].values())) for spec in both] for of in (separation, runs))
            )
            cells.append(
                Cell(MISSING, detail="too few different values")
                if found is None
                else Cell(fixed(found.rho, 2), found.rho, detail=f"{p_value(found.p)}, {found.n} of them")
            )
        rows.append(TableRow(label, tuple(cells)))
    if all(cell.value is None for row in rows for cell in row.cells):
        return None
    heads = tuple(
        replace(head, key=head.key.replace("_percent", "_rho"), unit="") for head in _columns(sizes)
    )
    title = (
        "Rank correlation of class separation in pretraining with transfer from few labels, mean of the tasks"
    )
    return ExhibitTable("few_labels_ranks", title, "Probe", heads, tuple(rows))


def _crossed(
    measurements: Measurements, by_task: Mapping[str, Mapping[str, Mapping[str, CurveOf]]]
) -> tuple[ExhibitTable | None, list[str]]:
    """Return where curves cross beyond chance, and a note that counts the pairs that do and that may."""
    rows, pairs, crossing, sure = [], 0, 0, 0
    for target, of_probes in by_task.items():
        for probe, found in of_probes.items():
            for one, other, differences, sizes, places in _pairs(measurements, found):
                pairs += 1
                crossing += bool(places)
                beyond = [place for place in places if place.is_sure]
                sure += bool(beyond)
                for place in beyond:
                    ahead, later = (one, other) if differences[place.before].value > 0 else (other, one)
                    cells = (
                        Cell(f"{ahead.label} – {later.label}"),
                        Cell(f"{_size_words(sizes[place.before])} and {_size_words(sizes[place.after])}"),
                        _lead(differences, ahead == one, first=True),
                        _lead(differences, ahead == one, first=False),
                    )
                    rows.append(TableRow(f"{card(target).title}, {PROBES[probe].lower()}", cells))
    if not pairs:
        return None, []
    columns = (
        Column("pair", "First ahead – later ahead"),
        Column("between", "Between"),
        Column("first", "Lead at the smallest size", "Points"),
        Column("last", "At the largest", "Points"),
    )
    title = "Where the curves of two cross, beyond chance on either side"
    told = (
        f"Of {counted(pairs, 'pair')} of curves {in_words(crossing, 'none')} cross,"
        f" {in_words(sure, 'none')} of them beyond chance on either side (paired on the same episodes and"
        " test images; p corrected for all pairs and sizes of a task by Holm)."
    )
    return (ExhibitTable("few_labels_crossed", title, "Task", columns, tuple(rows)) if rows else None), [told]


def _lead(differences: list[CrossedMean], is_first: bool, first: bool) -> Cell:
    each = differences[0 if first else -1]
    value = 100 * each.value * (1 if is_first else -1)
    return Cell(f"{'+' if value > 0 else ''}{fixed(value, 1)}", value, detail=p_value(each.p))


def _pairs(
    measurements: Measurements, found: Mapping[str, CurveOf]
) -> list[tuple[StudyObjective, StudyObjective, list[CrossedMean], list[str], list[Crossing]]]:
    """Return each pair of curves with the differences at their common sizes, and where these change sign."""
    made = []
    for one, other in itertools.combinations(found, 2):
        sizes = [size for size in found[one] if size in found[other]]
        differences = [(size, found[one][size].minus(found[other][size])) for size in sizes]
        there = [(size, each) for size, each in differences if each is not None]
        if there:
            made.append((one, other, [each for _, each in there], [size for size, _ in there]))
    told = told_apart([differences for _, _, differences, _ in made])
    return [
        (
            measurements.objective(one),
            measurements.objective(other),
            differences,
            sizes,
            crossings(differences, beyond),
        )
        for (one, other, differences, sizes), beyond in zip(made, told, strict=True)
    ]


def _finding(measurements: Measurements) -> list[str]:
    """Return a sentence on who transfers best from the fewest images, and who from the most."""
    sizes = _sizes(measurements, "ridge")
    told = []
    for size in (sizes[0], sizes[-1]) if len(sizes) > 1 else sizes:
        quantity = Quantity("few_ridge_{accuracy}", target=TARGETS, setting=size)
        means = {spec: average(list(runs.values())) for spec, runs in measurements.values(quantity).items()}
        if not means:
            return []
        best = max(means, key=means.__getitem__)
        label = plain(measurements.objective(best).label)
        told.append(f"from {_size_words(size)} {label} transfers best ({fixed(100 * means[best], 1)} %)")
    return [f"{OURS}: {', '.join(told)}, in the mean of {counted(len(measurements.targets), 'task')}."]


def _noun(measurements: Measurements) -> str:
    return "network" if measurements.networks.are_given else "objective"


METHOD = (
    "Episodes: in each, the images of every class are put into a random order that depends on the task and a"
    " seed alone; the first of each class are the smallest training set, and each larger one contains it. All"
    " networks learn from the same ones. A share of the images is at least one of each class; a class that"
    " has fewer images than are asked for gives all, and sizes that would take all images stand as 100 %.",
    "Ridge regression on the indicators of the classes is used instead of the certified logistic regression"
    " because one image a class leaves none for validation: its penalty is chosen by the squared error of"
    " leaving one image out, which has a closed form (with one image a class that leaves its class without"
    " any, and mostly chooses the strongest). The nearest centroid (Euclidean) has nothing to choose;"
    " with one image a class it is the nearest neighbour.",
    "Intervals are over episodes and test images together (the variances of both margins add up; t with the"
    " degrees of freedom of Welch and Satterthwaite), for these networks; of other trainings they say"
    " nothing.",
)

EXHIBIT = Exhibit(
    name="few_labels",
    title="Who transfers best from few labels, and do the curves cross?",
    caption="The frozen features of a task, classified from one to twenty training images a class and from 1"
    " to 100 % of them: the mean over episodes. Kornblith et al. find that what separates its own classes"
    " further transfers worse; Galanti et al. argue that for few labels collapsed classes transfer better."
    " Whiskers are 95 % intervals.",
    parts=(Bespoke(_build, (*OF_SHOTS, *OF_SHARES, ARRAYS)),),
    method=METHOD,
    place=8,
    measured_by="few_labels",
    summary="Transfer from 1 to 20 images a class and from 1 to 100 %: curves, and where they cross",
    short="Few labels",
)
