"""The user's own networks: their features, similarity, transferability scores and classification."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penultimate.data.catalog import card
from penultimate.evaluation.boards import arrays_of, board_of, tasks_of
from penultimate.evaluation.outputs import not_given, order_of_classes
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Figure, Panel, Raster, TableRow
from penultimate.report.drawing.rasters import raster_size
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.remarks import not_validated
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.likeness import of_pairs
from penultimate.report.shapes.numbers import rank_correlation
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import as_name, fixed, in_words, plain

FEATURES = (
    Quantity("width", label="Features", key="width"),
    Quantity("class_separation", label="Class separation R²", key="class_separation"),
    Quantity(
        "class_separation_unbiased", label="without bias", key="class_separation_unbiased", optional=True
    ),
    Quantity("nonzero_share", label="Not zero, %", key="nonzero_percent"),
    Quantity("effective_rank", label="Effective rank", key="effective_rank"),
    Quantity("parameters", label="Parameters, million", key="parameters_million", factor=1e-6, decimals=1),
    Quantity("input_side", label="Input, pixels", key="input_side"),
)
SCORES = (
    Quantity("logme", "train", label="LogME"),
    Quantity("h_score", "train", label="H-score"),
    Quantity("transrate", "train", label="TransRate"),
    Quantity("target_nc1", "train", label="NC1"),
    Quantity("target_separation", "train", label="Class separation R²"),
    Quantity("nce", "train", label="NCE"),
    Quantity("leep", "train", label="LEEP"),
    Quantity("cdnv", "train", label="CDNV"),
    Quantity("rankme", "train", label="RankMe"),
    Quantity("stable_rank", "train", label="Stable rank"),
)
TUNED = Quantity("given_fine_tuned_{accuracy}", label="Fine-tuned, %")
TUNED_EDGES = Quantity("given_fine_tuned_edges", "train", target=TARGETS)
FROZEN = Quantity("linear_{accuracy}", label="Frozen, %")
OF_CKA, OF_OTHERS = "CKA, unbiased", "Other measures"
ALIKE = (
    Quantity("likeness_cka", label="CKA", key="cka", group=OF_CKA, optional=True),
    Quantity("likeness_cka_p", label="p", key="cka_p", group=OF_CKA, optional=True),
    Quantity(
        "mutual_neighbours", label="Neighbours in common", key="neighbours", group=OF_OTHERS, optional=True
    ),
    Quantity("procrustes", label="Procrustes", key="procrustes", group=OF_OTHERS, optional=True),
)
SCALED = "Temperature-scaled"
AS_CLASSIFIERS = (
    Quantity("top1", label="Top-1, %", key="top1_percent"),
    Quantity("top5", label="Top-5, %", key="top5_percent"),
    Quantity("nll", label="NLL", key="nll", group="As it comes"),
    Quantity("ece", label="ECE, %", key="ece_percent", group="As it comes"),
    Quantity("nll_scaled", label="NLL", key="nll_scaled", group=SCALED, optional=True),
    Quantity("ece_scaled", label="ECE, %", key="ece_scaled_percent", group=SCALED, optional=True),
    Quantity("temperature", label="Temperature", key="temperature", group=SCALED, optional=True),
)
CALIBRATED = (
    "ECE: the expected calibration error, over 15 bins of equal width. Temperature scaling: all logits"
    " divided by the number that makes the labels of held-out images most likely (above 1: the network is"
    " too sure). Without a holdout, each half of the test images is scaled by the temperature that suits the"
    " other half."
)


def _features(measurements: Measurements) -> Piece:
    columns = [run_column(quantity, measurements.values(quantity)) for quantity in FEATURES]
    title = f"Penultimate features of the test images of {measurements.title}"
    table = run_table(measurements, "features", title, columns)
    return Piece((replace(table, corner="Network"),) if table else ())


def _likeness(measurements: Measurements) -> Piece:
    networks, values = measurements.objectives, _between(measurements, "pair_cka")
    found = [each for each in networks if any(each.spec in pair for pair in values)]
    if not found:
        return Piece(notes=("CKA needs two networks or more, and four test images or more.",))
    labels, slugs = tuple(each.label for each in found), tuple(each.slug for each in found)
    cells = tuple(
        tuple(1.0 if one == other else values.get(frozenset((one.spec, other.spec))) for other in found)
        for one in found
    )
    raster = Raster(labels, labels, cells, slugs, slugs)
    size = raster_size(len(found), len(found), 330.0)
    panel = Panel("likeness", "Penultimate features", "", "", labelled=False, size=size, raster=raster)
    panels = [panel, *_layer_panels(measurements, found)]
    description = "Linear CKA of every two networks, of their penultimate features and of their layers."
    figures = (Figure("likeness", "How alike the networks are", description, tuple(panels), legend=True),)
    table = _alike(measurements)
    return Piece((table,) if table else (), figures, of_pairs(measurements))


def _alike(measurements: Measurements) -> ExhibitTable | None:
    """Return a row for each pair of networks: CKA with its p, and the other measures; or None."""
    found = {quantity: _between(measurements, quantity.metric) for quantity in ALIKE}
    rows = []
    for one, other in itertools.combinations(measurements.objectives, 2):
        values = [found[quantity].get(frozenset((one.spec, other.spec))) for quantity in ALIKE]
        if any(value is not None for value in values):
            cells = (Cell(MISSING) if value is None else Cell(fixed(value, 3), value) for value in values)
            rows.append(TableRow(f"{one.label} – {other.label}", tuple(cells)))
    columns = tuple(Column(quantity.key, quantity.label, quantity.group) for quantity in ALIKE)
    title = "Every two networks, by five measures on the same sample of test images"
    return ExhibitTable("likeness_measures", title, "Networks", columns, tuple(rows)) if rows else None


def _between(measurements: Measurements, metric: str) -> dict[frozenset[str], float]:
    """Return a number of each pair of networks, by their specs."""
    return {
        frozenset((str(row.objective), str(row.objective_b))): row.value
        for row in measurements.rows(metric)
        if row.objective_b is not None
    }


def _layer_panels(measurements: Measurements, networks: Iterable[StudyObjective]) -> list[Panel]:
    """Return maps of all layers for each pair of networks, at most six."""
    labels = {each.spec: each.label for each in networks}
    panels = []
    for row in measurements.rows("pair_layers"):
        arrays = arrays_of(measurements, row)
        one, other = map(str, arrays["networks"]) if arrays else ("", "")
        if not {one, other} <= {*labels}:
            continue
        matrix = arrays["matrix"].tolist()
        values = tuple(tuple(None if value != value else value for value in line) for line in matrix)
        rows, columns = (tuple(map(str, range(1, count + 1))) for count in (len(matrix), len(matrix[0])))
        panels.append(
            Panel(
                as_name("likeness", one, other),
                f"{labels[one]} (rows) and {labels[other]}",
                "",
                "",
                labelled=False,
                finding="layer by layer, from the image on",
                size=raster_size(len(rows), len(columns), 330.0),
                raster=Raster(rows, columns, values),
            )
        )
    return panels[:6]


def _foretold(measurements: Measurements) -> Piece:
    """Return the scores from each task's training images, and how well they rank the networks there."""
    tables = []
    for task in tasks_of(measurements):
        found = {quantity: measurements.on_target(quantity, task.name) for quantity in SCORES}
        shown = [quantity for quantity, runs in found.items() if runs]
        board = board_of((task,))
        if not shown or board is None:
            continue
        accuracy = {standing.network.spec: standing.interval.value for standing in board.standings}
        rows = [
            TableRow(
                standing.network.label,
                (
                    Cell(fixed(100 * standing.interval.value, 1), 100 * standing.interval.value),
                    *(run_cell(found[quantity].get(standing.network.spec), 3) for quantity in shown),
                ),
                standing.network.slug,
            )
            for standing in board.standings
        ]
        if len(rows) > 2:
            of_scores = [_correlation(found[quantity], accuracy) for quantity in shown]
            rows.append(TableRow("Rank correlation with accuracy", (Cell(MISSING), *of_scores)))
        columns = (
            Column("linear_percent", "Linear, %", "Measured", "%"),
            *(
                Column(quantity.metric, quantity.label, "Foretold, from training images")
                for quantity in shown
            ),
        )
        name = as_name("foretold", task.name)
        tables.append(ExhibitTable(name, task.title, "Network", columns, tuple(rows)))
    return Piece(tuple(tables))


def _correlation(runs: Mapping[str, Mapping[int | None, float]], accuracy: Mapping[str, float]) -> Cell:
    both = [(next(iter(of.values())), accuracy[spec]) for spec, of in runs.items() if spec in accuracy]
    found = rank_correlation([score for score, _ in both], [value for _, value in both])
    return Cell(MISSING) if found is None else Cell(fixed(found.rho, 2), found.rho)


def _tuned(measurements: Measurements) -> Piece:
    """Return accuracy after fine-tuning all weights, beside the linear probe on the frozen features."""
    columns = [
        run_column(quantity, measurements.on_target(quantity, target))
        for target in measurements.targets
        for group in [card(target).title]
        for quantity in (
            replace(TUNED, key=f"{target}_tuned", group=group),
            replace(FROZEN, key=f"{target}_frozen", group=group),
        )
    ]
    needs = [column for column in columns if column.quantity.metric == TUNED.metric]
    title = "Test accuracy, all weights trained on the task"
    table = run_table(measurements, "tuned", title, columns, needs)
    if table is None:
        return Piece(wanted=False)
    on_edge = [
        count > 0
        for target in measurements.targets
        for runs in measurements.on_target(TUNED_EDGES, target).values()
        for count in runs.values()
    ]
    note = (
        f"For {in_words(sum(on_edge))} of {in_words(len(on_edge))} (one for each network and task) the"
        " learning rate or decay that was chosen is the lowest or highest tried; others may be better."
    )
    notes = (*([note] if any(on_edge) else ()), *not_validated(measurements))
    return Piece((replace(table, corner="Network"),), notes=notes)


def _classifiers(measurements: Measurements) -> Piece:
    """Return accuracy and calibration on the source, agreement, and overlap of the tasks' classes with it."""
    columns = [run_column(quantity, measurements.values(quantity)) for quantity in AS_CLASSIFIERS]
    title = f"The networks' own final layers on the test images of {measurements.title}"
    table = run_table(measurements, "classifiers", title, columns)
    order = order_of_classes(measurements.results.description)
    withheld = not_given(measurements.results)
    notes = tuple(plain(note) for note in (order, *withheld) if note)
    if table is None and not withheld:
        return Piece(wanted=False)
    overlap = [
        run_column(quantity, measurements.on_target(quantity, target))
        for target in measurements.targets
        for group in [card(target).title]
        for quantity in (
            Quantity("assignment_accuracy", label="As assigned, %", key=f"{target}_assigned", group=group),
            Quantity(
                "semantic_overlap", "train", label="Shared classes", key=f"{target}_shared", group=group
            ),
        )
    ]
    shared = run_table(measurements, "overlap", "The tasks' classes among those of the source", overlap)
    labels = {each.spec: each.label for each in measurements.objectives}
    same = {
        (str(row.objective), str(row.objective_b)): row.value
        for row in measurements.rows("agreement_same")
        if row.objective_b is not None
    }
    rows = tuple(
        TableRow(f"{labels[one]} – {labels[other]}", (Cell(fixed(100 * value, 1), 100 * value),))
        for (one, other), value in same.items()
    )
    heads = (Column("same_percent", "Same class predicted, %", "", "%"),)
    alike = ExhibitTable(
        "classifiers_alike", "How often two networks predict the same class", "Networks", heads, rows
    )
    tables = [replace(each, corner="Network") for each in (table, shared) if each]
    return Piece((*tables, *([alike] if rows else [])), notes=notes, method=(CALIBRATED,))


FEATURES_OF_ALL = Exhibit(
    name="features",
    title="The features themselves",
    caption="The geometry of the penultimate features of {source}: how far its classes are apart (R², with"
    " equal weight for each class), how many activations are not zero, and over how many directions the"
    " variance is spread.",
    parts=(Bespoke(_features, FEATURES),),
    place=15,
    measured_by=EVALUATE,
    summary="The features of networks of your own: separation, sparsity, rank",
    short="The features",
)
LIKENESS = Exhibit(
    name="likeness",
    title="How alike the networks are",
    caption="Linear CKA on the same test images of {source}: 1 where two networks' features differ only by a"
    " rotation and a scale, near 0 where they have nothing in common. Below, with the p of a permutation of"
    " the images and beside four measures of other kinds: nearest neighbours in common (of ten, by"
    " cosine), the best rotation of one onto the other (Procrustes), and how distances between images"
    " correlate (RSA).",
    parts=(Bespoke(_likeness, (Quantity("pair_cka"), *ALIKE)),),
    place=16,
    measured_by=EVALUATE,
    summary="CKA of every two networks of your own, layer by layer",
    short="Likeness (CKA)",
)
FORETOLD = Exhibit(
    name="foretold",
    title="Can transfer be foretold without testing?",
    caption="Transferability scores, which predict transfer from the training images alone, beside what was"
    " measured. The better network should have the higher score, or the lower NC1, CDNV, α-ReQ and intrinsic"
    " dimension.",
    parts=(Bespoke(_foretold, (*SCORES, *(replace(one, target=TARGETS) for one in SCORES))),),
    place=17,
    measured_by=EVALUATE,
    summary="Transferability scores of networks of your own, beside measured transfer",
    short="Transfer, foretold",
)
FINE_TUNED = Exhibit(
    name="tuned",
    title="Fine-tuned on each task",
    caption="All weights trained further on the task, from the linear probe's final layer: SGD, a learning"
    " rate"
    " chosen on a fifth of the training images, no augmentation. Beside it the linear probe on frozen"
    " features.",
    parts=(Bespoke(_tuned, (replace(TUNED, target=TARGETS), TUNED)),),
    place=14,
    measured_by=EVALUATE,
    summary="Networks of your own, fine-tuned on each task",
    short="Fine-tuned",
)
CLASSIFIERS = Exhibit(
    name="classifiers",
    title="As classifiers of the source",
    caption="Accuracy and calibration of the networks' own final layers on {source}, as they are and after"
    " temperature scaling.",
    parts=(Bespoke(_classifiers, AS_CLASSIFIERS),),
    place=18,
    measured_by=EVALUATE,
    summary="Accuracy, calibration and agreement of networks of your own on the source",
    short="As classifiers",
)
