"""The data sets (section A.2 of the paper)."""

from __future__ import annotations

from penultimate.data.catalog import DatasetCard, card, shifted
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import name_in
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.shapes.table import PrintedRow
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted

MEASURES = {"top1": "top-1", "mean_per_class": "mean per class", "auc": "AUC of each label"}
SPLITS = {
    "train": "Training",
    "holdout": "Holdout",
    "test": "Test",
    "relearn": "Relearning",
    "validation": "Validation",
    "further_test": "Further test",
}
MEASURE = Column("accuracy_measure", "Measure")


def _build(measurements: Measurements) -> Piece:
    """Return the data sets of this study, those of the paper, and the remarks on ours."""
    sets = (
        shifted(measurements.source) if "robustness" in map(name_in, measurements.networks.measured) else {}
    )
    roles = {
        measurements.source: "pretraining",
        **dict.fromkeys((*measurements.targets, *measurements.several_labels), "transfer"),
        **dict.fromkeys(sets.values(), "shifted"),
    }
    cards = {name: card(name) for name in roles}
    notes: tuple[str, ...] = ()
    if "a" in sets:
        hard = cards[sets["a"]]
        notes = (f"{hard.title}: the {hard.images:,} images are those to choose from. {hard.note}",)
    others = ", and other images of the pretraining classes, on which robustness was measured" if sets else ""
    tables = (_sizes(roles, cards, notes), _printed(), _licences(list(cards.values())))
    return Piece(tables, words={"others": others})


def _sizes(roles: dict[str, str], cards: dict[str, DatasetCard], notes: tuple[str, ...]) -> ExhibitTable:
    splits = list(dict.fromkeys(split for about in cards.values() for split in about.sizes))
    columns = (
        Column("role", "Role"),
        Column("classes", "Classes"),
        *(Column(f"{split}_images", SPLITS.get(split, split), "Images") for split in splits),
        MEASURE,
    )
    rows = tuple(
        TableRow(
            about.title,
            (
                Cell(roles[name]),
                _count(about.classes),
                *(_count(about.sizes.get(split)) for split in splits),
                Cell(MEASURES[about.accuracy]),
            ),
        )
        for name, about in cards.items()
    )
    return ExhibitTable("tableA2", "The data sets of this study", "Data set", columns, rows, notes=notes)


def _count(value: int | None) -> Cell:
    return Cell(MISSING, detail="no such split") if value is None else Cell(f"{value:,}", float(value))


def _licences(cards: list[DatasetCard]) -> ExhibitTable:
    columns = (Column("relation", "How it stands to the pretraining classes"), Column("licence", "Licence"))
    rows = tuple(
        TableRow(
            about.title, (Cell(f"{about.relation}. {about.note}".removesuffix(". ")), Cell(about.licence))
        )
        for about in cards
    )
    title = "What the data sets of this study are, and under which licence"
    return ExhibitTable("tableA2_licences", title, "Data set", columns, rows)


def _printed() -> ExhibitTable:
    columns = (
        Column("classes", "Classes"),
        Column("train_images", "Training", "Images"),
        Column("test_images", "Test", "Images"),
        MEASURE,
        Column("note", "Note"),
    )
    rows = tuple(
        TableRow(
            row["dataset_name"],
            (
                *(_corrected(row, column.key) for column in columns[:3]),
                Cell(MEASURES[row[MEASURE.key]]),
                Cell(row["note"]),
            ),
        )
        for row in printed_rows("neurips_tableA2_datasets")
    )
    note = "Misprints are corrected where marked by ‡, and the note says what was printed."
    title = "The paper's Table A.2: its transfer data sets"
    return ExhibitTable("tableA2_published", title, "Data set", columns, rows, "published", (note,))


def _corrected(row: PrintedRow, key: str) -> Cell:
    """Return the corrected count, marked and with the printed one in its detail if the two differ."""
    right, as_printed = int(row[f"{key}_corrected"]), int(row[f"{key}_printed"])
    if right == as_printed:
        return Cell(f"{right:,}", float(right), detail="as printed")
    return Cell(f"{right:,} ‡", float(right), detail=f"printed: {as_printed:,}")


def _sizes_told(measurements: Measurements) -> str:
    """Return a sentence about the numbers of classes and images here and in the paper."""
    source = card(measurements.source)
    tasks = [card(name) for name in (*measurements.targets, *measurements.several_labels)]
    images = f"{source.sizes.get('train', source.images):,} training images of {source.classes:,} classes"
    trained = f"{OURS}: the networks learn {images}"
    if not tasks:
        return f"{trained}, and there is no new task."
    rows = printed_rows("neurips_tableA2_datasets")
    return (
        f"{trained}, and their features are tried on {_span([each.classes for each in tasks])}; in the paper"
        f" on {_span([int(row['classes_corrected']) for row in rows])} after ImageNet's 1,000."
    )


def _span(classes: list[int]) -> str:
    low, high = min(classes), max(classes)
    of_each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{counted(len(classes), 'task')} of {of_each} classes"


TABLE_A2 = Exhibit(
    name="tableA2",
    title="The data sets",
    caption="What the networks were trained on, and the new tasks that their features were tried on{others}."
    " Sizes count images; the measure is the accuracy that counts there.",
    parts=(Bespoke(_build),),
    findings=(_sizes_told,),
    section="A.2",
    summary="The data sets",
    short="Data sets",
)
