"""What was measured of networks: features, likeness, transferability, fine-tuning, classification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.warnings import missing_numbers, of_networks, order_of_classes
from penultimate.results.exhibit import Part
from penultimate.results.figure import Figure, Panel, heat
from penultimate.results.means import table_of_means
from penultimate.results.rows import MEAN, Run, seeds, transfer
from penultimate.results.table import Column, Table, table_of_cells
from penultimate.results.text import as_name, counted, fixed, in_words
from penultimate.statistics import holm, spearman

if TYPE_CHECKING:
    import pandas as pd

ALIKE = {
    "likeness_cka": "cka",
    "likeness_cka_p": "cka_p",
    "mutual_neighbours": "neighbours",
    "procrustes": "procrustes",
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


def _table(run: Run, name: str, title: str, columns: Mapping[Column, pd.DataFrame]) -> Table | None:
    """Return a table of the columns that hold a number, by network."""
    there = {column: frame for column, frame in columns.items() if not frame.empty}
    return table_of_means(run, name, title, there, corner="Network") if there else None


@shows("features", "The features themselves", section="features")
def features(run: Run) -> Iterator[Part]:
    """The geometry of the penultimate features of {source}: how far its classes are apart (R², with equal
    weight for each class), how many activations are not zero, and over how many directions the variance is
    spread."""
    columns = {
        Column("width", "Features", digits=0): seeds(run, "width"),
        Column("class_separation", "Class separation R²", digits=3): seeds(run, "class_separation"),
        Column("class_separation_unbiased", "without bias", digits=3): seeds(
            run, "class_separation_unbiased"
        ),
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
    import pandas as pd

    cka, labels = _between(run, "pair_cka"), run.labels()
    slugs = tuple(slug for slug in labels if any(slug in pair for pair in cka))
    if not slugs:
        return
    cells = [[1.0 if one == other else cka.get(frozenset((one, other))) for other in slugs] for one in slugs]
    names = [labels[slug] for slug in slugs]
    matrix = pd.DataFrame(cells, names, names, dtype=float)
    panels = [heat("likeness", "Penultimate features", matrix, width=330.0, slugs=(slugs, slugs))]
    yield Figure("likeness", "How alike the networks are", (*panels, *_layers(run)), legend=True)
    found = {metric: _between(run, metric) for metric in ALIKE}
    heads = ("CKA", "p", "Neighbours in common", "Procrustes")
    groups = ("CKA, unbiased", "CKA, unbiased", "Other measures", "Other measures")
    rows = [
        (" – ".join(labels[slug] for slug in labels if slug in pair), [of.get(pair) for of in found.values()])
        for pair in cka
        if any(pair in of for of in found.values())
    ]
    columns = [Column(*named, 3) for named in zip(ALIKE.values(), heads, groups, strict=True)]
    title = "Every two networks, on the same sample of test images"
    yield table_of_cells("likeness_measures", title, columns, rows, corner="Networks")
    if ps := [*found["likeness_cka_p"].values()]:
        beyond = in_words(sum(p <= 0.05 for p in holm(ps)), "none")
        pairs = counted(len(ps), "pair")
        yield f"CKA is above chance for {beyond} of {pairs} of networks (permutations, corrected by Holm)."


def _between(run: Run, metric: str) -> dict[frozenset[str], float]:
    """Return a number of each pair of networks."""
    rows = run.rows(metric, about="pairs")
    pairs = zip(run.slugs(rows["objective"]), run.slugs(rows["objective_b"]), strict=True)
    return dict(zip(map(frozenset, pairs), rows["value"].tolist(), strict=True))


def _layers(run: Run) -> list[Panel]:
    """Return maps of all layers of pairs of networks."""
    import pandas as pd

    panels, labels = [], {each.spec: each.label for each in run.objectives()}
    for step in run.rows("pair_layers", about="pairs")["step"].head(MOST_PAIRS):
        held = run.arrays(str(step), "pair_layers") if run.arrays else {}
        if held:
            one, other = map(str, held["networks"])
            of_rows, of_columns = ([str(at + 1) for at in range(size)] for size in held["matrix"].shape)
            matrix = pd.DataFrame(held["matrix"], of_rows, of_columns)
            name, title = as_name("likeness", one, other), f"{labels[one]} (rows) and {labels[other]}"
            panels.append(heat(name, title, matrix, width=330.0, finding="layer by layer, from the image on"))
    return panels


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
    import pandas as pd

    label, values = "Rank correlation with accuracy", {}
    for column in table.columns[1:]:
        both = table.values[["linear_percent", column.key]].dropna()
        enough = len(both) >= FEWEST and both.nunique().min() > 1
        found = spearman(*both.to_numpy().T.tolist()) if enough else None
        values[column.key] = found.rho if found else None
    texts = {key: None if value is None else fixed(value, 2) for key, value in values.items()}
    empty = pd.DataFrame(index=table.values.index, columns=table.values.columns, dtype=object)
    below = pd.DataFrame([values], [label])
    return replace(
        table,
        values=pd.concat([table.values.astype(object), below.astype(object)]),
        texts=pd.concat([empty, pd.DataFrame([texts], [label], dtype=object)]),
        errors=None,
        counts=pd.concat([table.counts, below * float("nan")]) if table.counts is not None else None,
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
    edges = [
        count > 0
        for task in run.targets
        for count in of_networks(run, "given_fine_tuned_edges", "train", target=task).values()
    ]
    if any(edges):
        yield (
            f"For {in_words(sum(edges))} of {counted(len(edges), 'combination')} of network and task the"
            " learning rate or decay that was chosen is the lowest or highest tried; others may be better."
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
    told = [*order_of_classes(run.description), *classifier_gaps(run)]
    if table is None and not told:
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
    same, labels = _between(run, "agreement_same"), run.labels()
    rows = [
        (" – ".join(labels[slug] for slug in labels if slug in pair), [100 * share])
        for pair, share in same.items()
    ]
    heads = [Column("same_percent", "Same class predicted, %")]
    title = "How often two networks predict the same class"
    yield table_of_cells("classifiers_alike", title, heads, rows, corner="Networks")
    yield from told
    yield (
        "ECE: the expected calibration error, over 15 bins of equal width. Temperature scaling: all logits"
        " divided by the number that makes the labels of held-out images most likely (without a holdout, each"
        " half of the test images by that of the other half)."
    )


def classifier_gaps(run: Run) -> list[str]:
    """Return the reasons for which networks have no accuracy as classifiers."""
    return [told for told in missing_numbers(run, of_tasks=False) if told.startswith("As a classifier")]
