"""What was measured of networks: features, likeness, cost, transferability, fine-tuning, classification."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.standings import boards
from penultimate.evaluation.warnings import missing_numbers, order_of_classes
from penultimate.results.exhibit import Part
from penultimate.results.figure import Figure, Panel, Point, heat
from penultimate.results.means import table_of_means
from penultimate.results.rows import MEAN, Run, seeds, transfer
from penultimate.results.table import Cell, Column, Table, table_of_rows
from penultimate.results.text import as_name, counted, fixed, in_words, percent
from penultimate.statistics import holm, spearman

ALIKE = {
    "likeness_cka": Column("cka", "CKA", "CKA, unbiased", 3),
    "likeness_cka_p": Column("cka_p", "p", "CKA, unbiased", 3),
    "mutual_neighbours": Column("neighbours", "Neighbours in common", "Other measures", 3),
    "procrustes": Column("procrustes", "Procrustes", "Other measures", 3),
}
SCORES = {
    "logme": "LogME",
    "h_score": "H-score",
    "transrate": "TransRate",
    "target_nc1": "NC1",
    "target_separation": "Class separation R²",
    "nce": "NCE",
    "leep": "LEEP",
    "cdnv": "CDNV",
    "rankme": "RankMe",
    "stable_rank": "Stable rank",
}
MOST_PAIRS, FEWEST = 6, 3
"""The most pairs whose layers are drawn, and the fewest networks of a rank correlation."""
BYTES = 4
"""Bytes of a number of the features that are kept."""


def _table(run: Run, name: str, title: str, columns: Mapping[Column, pd.DataFrame]) -> Table | None:
    """Return a table of the columns that hold a number, by network."""
    there = {column: frame for column, frame in columns.items() if not frame.empty}
    return table_of_means(run, name, title, there, corner="Network") if there else None


@shows("features", "The features themselves", section="features")
def features(run: Run) -> Iterator[Part]:
    """The geometry of the penultimate features of {source}: how far its classes are apart (R², with equal
    weight for each class), how many activations are not zero, and over how many directions the variance is
    spread."""
    unbiased = seeds(run, "class_separation_unbiased")
    columns = {
        Column("width", "Features", digits=0): seeds(run, "width"),
        Column("class_separation", "Class separation R²", digits=3): seeds(run, "class_separation"),
        Column("class_separation_unbiased", "without bias", digits=3): unbiased,
        Column("nonzero_percent", "Not zero, %"): seeds(run, "nonzero_share", scale=100),
        Column("effective_rank", "Effective rank"): seeds(run, "effective_rank"),
        Column("parameters_million", "Parameters, million"): seeds(run, "parameters", scale=1e-6),
        Column("input_side", "Input, pixels", digits=0): seeds(run, "input_side"),
    }
    yield _table(run, "features", f"Penultimate features of the test images of {run.title}", columns)


@shows("likeness", "How alike the networks are", section="features")
def likeness(run: Run) -> Iterator[Part]:
    """Linear CKA on the same test images of {source}: 1 where two networks' features differ only by a
    rotation and a scale, near 0 where they have nothing in common. Below, with the p of a permutation of the
    images, beside nearest neighbours in common (of ten, by cosine) and the best rotation of one onto the
    other (Procrustes)."""
    cka, labels = _between(run, "pair_cka"), run.labels()
    slugs = tuple(slug for slug in labels if any(slug in pair for pair in cka))
    if not slugs:
        return
    cells = [[1.0 if one == other else cka.get(frozenset((one, other))) for other in slugs] for one in slugs]
    names = [labels[slug] for slug in slugs]
    matrix = pd.DataFrame(cells, names, names, dtype=float)
    panels = [heat("likeness", "Penultimate features", matrix, width=330.0, slugs=(slugs, slugs))]
    of_specs = {each.spec: each.label for each in run.objectives()}
    for step in run.rows("pair_layers", about="pairs")["step"].head(MOST_PAIRS):
        held = run.arrays(str(step), "pair_layers") if run.arrays else {}
        if held:
            one, other = map(str, held["networks"])
            numbers = ([str(at + 1) for at in range(size)] for size in held["matrix"].shape)
            name, title = as_name("likeness", one, other), f"{of_specs[one]} (rows) and {of_specs[other]}"
            finding = "layer by layer, from the image on"
            panels.append(
                heat(name, title, pd.DataFrame(held["matrix"], *numbers), width=330.0, finding=finding)
            )
    yield Figure("likeness", "How alike the networks are", tuple(panels), legend=True)
    found = {metric: _between(run, metric) for metric in ALIKE}
    rows = [
        (_named(pair, labels), [of.get(pair) for of in found.values()])
        for pair in cka
        if any(pair in of for of in found.values())
    ]
    title = "Every two networks, on the same sample of test images"
    yield table_of_rows("likeness_measures", title, [*ALIKE.values()], rows, corner="Networks")
    if ps := [*found["likeness_cka_p"].values()]:
        beyond = in_words(sum(p <= 0.05 for p in holm(ps)), "none")
        yield (
            f"CKA is above chance for {beyond} of {counted(len(ps), 'pair')} of networks (permutations,"
            " corrected by Holm)."
        )


def _between(run: Run, metric: str) -> dict[frozenset[str], float]:
    """Return a number of each pair of networks."""
    rows = run.rows(metric, about="pairs")
    pairs = zip(run.slugs(rows["objective"]), run.slugs(rows["objective_b"]), strict=True)
    return dict(zip(map(frozenset, pairs), rows["value"].tolist(), strict=True))


def _named(pair: frozenset[str], labels: Mapping[str, str]) -> str:
    return " – ".join(labels[slug] for slug in labels if slug in pair)


@shows("cost", "What the accuracy costs", section="cost")
def cost(run: Run) -> Iterator[Part]:
    """Parameters, multiply-adds and bytes of features of each network (and, with --speed, images a second),
    beside the accuracy of the linear probe; bold: on the front of accuracy against multiply-adds."""
    names = ("multiply_adds", "parameters", "width")
    adds, parameters, width = (seeds(run, name).mean().to_dict() for name in names)
    speeds = run.provenance.get("speed", {})
    if not adds and not speeds:
        return
    found = boards(run)[:1]
    accuracy: dict[str, float] = found[0].standings["accuracy"].to_dict() if found else {}
    both = {slug: (accuracy[slug], -adds[slug]) for slug in accuracy if slug in adds}

    def is_on_front(slug: str) -> bool:
        ahead = (
            all(a >= b for a, b in zip(of, both[slug], strict=True))
            for of in both.values()
            if of != both[slug]
        )
        return not any(ahead)

    rows, points = [], []
    for each in run.objectives():
        slug, speed = each.slug, speeds.get(each.spec, {}).get("images_a_second")
        billions = f"{adds[slug] / 1e9:.3g}" if slug in adds else None
        front = slug in both and is_on_front(slug)
        cells = [
            _scaled(accuracy.get(slug), 100)._replace(mark="best" if front else ""),
            _scaled(parameters.get(slug), 1e-6, 2),
            Cell(adds.get(slug, math.nan) / 1e9, billions),
            *([_scaled(speed, 1, 0)] if speeds else []),
            _scaled(width.get(slug), BYTES, 0),
        ]
        rows.append((each.label, cells))
        if slug in both:
            x, y = math.log10(adds[slug] / 1e9), 100 * accuracy[slug]
            points.append(Point(x, y, slug, each.label, f"{billions} billion, {percent(accuracy[slug])} %"))
    where = found[0].title if found and found[0].task else "mean"
    columns = [
        Column("linear_percent", f"Linear probe ({where}), %"),
        Column("parameters_million", "Parameters, million"),
        Column("multiply_adds_billion", "Multiply-adds, billion"),
        *([Column("images_a_second", "Images a second")] if speeds else []),
        Column("bytes", "Bytes of features, an image"),
    ]
    slugs = tuple(each.slug for each in run.objectives())
    title = "Accuracy and what it takes"
    yield table_of_rows("cost", title, columns, rows, corner="Network", slugs=slugs, own_marks=True)
    if len({point.x for point in points}) > 1:
        heads = (
            "Linear probe against multiply-adds",
            "Billion multiply-adds an image, log10",
            "Linear probe, %",
        )
        yield Figure("cost", "Accuracy against cost", (Panel("cost", *heads, tuple(points)),), legend=True)
    yield (
        "Multiply-adds: of convolutions and matrix products, for one image at the network's own size, up to"
        " its features; half of what PyTorch's FlopCounterMode counts."
    )
    for of in [*speeds.values()][:1]:
        machine = run.provenance.get("processor") or "this machine"
        yield (
            f"Images a second: from the median forward pass over {of['batch']} images in memory, float32,"
            f" {of['device']}, {counted(of['threads'], 'thread')}, on {machine}."
        )


def _scaled(value: float | None, factor: float, digits: int = 1) -> Cell:
    if value is None:
        return Cell()
    text = f"{factor * value:,.0f}" if digits == 0 else fixed(factor * value, digits)
    return Cell(factor * value, text)


@shows("foretold", "Can transfer be foretold without testing?", section="foretold")
def foretold(run: Run) -> Iterator[Part]:
    """Transferability scores, which predict transfer from the training images alone, beside what was
    measured. The better network should have the higher score, or the lower NC1 and CDNV."""
    measured = Column("linear_percent", "Linear, %", "Measured")
    for task, linear in transfer(run, "linear").items():
        if task == MEAN or linear.empty:
            continue
        columns = {
            Column(metric, label, "Foretold, from training images", 3): seeds(
                run, metric, "train", target=task
            )
            for metric, label in SCORES.items()
        }
        table = _table(run, as_name("foretold", task), card(task).title, {measured: linear, **columns})
        if table is not None and table.counts is not None and len(table.columns) > 1:
            table = replace(table, counts=table.counts.drop(columns=measured.key))
            yield _with_correlations(table) if len(table.values) >= FEWEST else table


def _with_correlations(table: Table) -> Table:
    """Return a table with a row of each score's rank correlation with accuracy."""
    values: dict[str, Any] = {}
    for column in table.columns[1:]:
        both = table.values[["linear_percent", column.key]].dropna()
        enough = len(both) >= FEWEST and both.nunique().min() > 1
        found = spearman(*both.to_numpy().T.tolist()) if enough else None
        values[column.key] = found.rho if found else None
    label = ["Rank correlation with accuracy"]
    texts = {key: None if value is None else fixed(value, 2) for key, value in values.items()}
    whole = pd.concat([table.values.astype(object), pd.DataFrame([values], label, dtype=object)])
    shown = pd.DataFrame([texts], label, dtype=object).reindex(whole.index)
    return replace(
        table,
        values=whole,
        texts=shown,
        errors=None,
        counts=None if table.counts is None else table.counts.reindex(whole.index),
        slugs=(*table.slugs, ""),
    )


@shows("tuned", "Fine-tuned on each task", section="tuned")
def tuned(run: Run) -> Iterator[Part]:
    """All weights trained further on the task, from the linear probe's final layer: SGD, a learning rate
    chosen on a fifth of the training images, no augmentation. Beside it the linear probe on frozen
    features."""
    both = {"tuned": ("Fine-tuned, %", "given_fine_tuned"), "frozen": ("Frozen, %", "linear")}
    found = {key: transfer(run, probe) for key, (_, probe) in both.items()}
    columns = {
        Column(f"{task}_{key}", label, card(task).title): found[key][task]
        for task in run.targets
        for key, (label, _) in both.items()
    }
    if all(frame.empty for frame in found["tuned"].values()):
        yield "Not measured (`--fine-tune`), or no task has images of one label each."
        return
    yield _table(run, "tuned", "Test accuracy, all weights trained on the task", columns)
    edges = [seeds(run, "given_fine_tuned_edges", "train", target=task).mean() for task in run.targets]
    if any((of_task > 0).any() for of_task in edges):
        yield (
            f"For {in_words(sum(int((of_task > 0).sum()) for of_task in edges))} of"
            f" {counted(sum(map(len, edges)), 'combination')} of network and task the learning rate or decay"
            " that was chosen is the lowest or highest tried; others may be better."
        )


@shows("classifiers", "As classifiers of the source", section="classifiers")
def classifiers(run: Run) -> Iterator[Part]:
    """Accuracy and calibration of the networks' own final layers on {source}, as they are and after
    temperature scaling."""
    scaled = "Temperature-scaled"
    columns = {
        Column("top1_percent", "Top-1, %"): seeds(run, "top1", scale=100),
        Column("top5_percent", "Top-5, %"): seeds(run, "top5", scale=100),
        Column("nll", "NLL", "As it comes", 3): seeds(run, "nll"),
        Column("ece_percent", "ECE, %", "As it comes"): seeds(run, "ece", scale=100),
        Column("nll_scaled", "NLL", scaled, 3): seeds(run, "nll_scaled"),
        Column("ece_scaled_percent", "ECE, %", scaled): seeds(run, "ece_scaled", scale=100),
        Column("temperature", "Temperature", scaled, 2): seeds(run, "temperature"),
    }
    title = f"The networks' own final layers on the test images of {run.title}"
    table = _table(run, "classifiers", title, columns)
    remarks = [*order_of_classes(run.description), *classifier_gaps(run)]
    if table is None and not remarks:
        yield "Not measured: it needs the networks' classes (`--source FOLDER --classifies all`)."
        return
    yield table
    overlap = {}
    for task in run.targets:
        group = card(task).title
        assigned = seeds(run, "assignment_accuracy", target=task, scale=100)
        overlap[Column(f"{task}_assigned", "As assigned, %", group)] = assigned
        shared = seeds(run, "semantic_overlap", "train", target=task)
        overlap[Column(f"{task}_shared", "Shared classes", group, 0)] = shared
    yield _table(run, "overlap", "The tasks' classes among those of the source", overlap)
    labels, same = run.labels(), _between(run, "agreement_same")
    rows = [(_named(pair, labels), [100 * share]) for pair, share in same.items()]
    heads = [Column("same_percent", "Same class predicted, %")]
    title = "How often two networks predict the same class"
    yield table_of_rows("classifiers_alike", title, heads, rows, corner="Networks")
    yield from remarks
    yield (
        "ECE: the expected calibration error, over 15 bins of equal width. Temperature scaling: all logits"
        " divided by the number that makes the labels of held-out images most likely (without a holdout, each"
        " half of the test images by that of the other half)."
    )


def classifier_gaps(run: Run) -> list[str]:
    """Return the reasons for which networks have no accuracy as classifiers."""
    return [said for said in missing_numbers(run, of_tasks=False) if said.startswith("As a classifier")]
