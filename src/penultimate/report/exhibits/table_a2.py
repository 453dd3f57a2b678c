"""Table A.2: the data sets."""

from __future__ import annotations

from collections.abc import Mapping

from penultimate.data.catalog import DatasetCard, card, shifted
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Exhibit,
    ExhibitTable,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.measurements import admit
from penultimate.report.exhibits.numbers import published_rows

MEASURES = {"top1": "top-1", "mean_per_class": "mean per class"}


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    instruments = results.description.get("instruments", ())
    sets = shifted(measurements.source) if "robustness" in instruments else {}
    cards = [card(name) for name in (measurements.source, *measurements.targets, *sets.values())]
    return Exhibit(
        "tableA2",
        "The data sets",
        "What the networks were trained on, and the new tasks that their features were tried on"
        + (", and other images of the pretraining classes, on which robustness was measured" if sets else "")
        + ". Sizes count images; the measure is the accuracy that counts there.",
        (_ours(cards, _candidates(sets)), _published(), _words(cards)),
        notes=measurements.notes(),
        limited=measurements.limited,
    )


def _count(value: int | None) -> Cell:
    return Cell(MISSING, detail="no such split") if value is None else Cell(f"{value:,}", float(value))


def _candidates(sets: Mapping[str, str]) -> tuple[str, ...]:
    """What the count of the set in ImageNet-A's role is of: which of it are hard, each study finds out."""
    if "a" not in sets:
        return ()
    one = card(sets["a"])
    return (f"{one.title}: the {one.images:,} images are those to choose from. {one.note}",)


def _ours(cards: list[DatasetCard], notes: tuple[str, ...]) -> ExhibitTable:
    splits = list(dict.fromkeys(split for one in cards for split in one.sizes))
    headings = {"train": "Training", "holdout": "Holdout", "test": "Test", "relearn": "Relearning"}
    columns = (
        Column("role", "Role"),
        Column("classes", "Classes"),
        *(Column(f"{split}_images", headings.get(split, split), "Images") for split in splits),
        Column("accuracy_measure", "Measure"),
    )
    rows = tuple(
        TableRow(
            one.title,
            (
                Cell(one.role),
                _count(one.classes),
                *(_count(one.sizes.get(split)) for split in splits),
                Cell(MEASURES[one.accuracy]),
            ),
        )
        for one in cards
    )
    title = "The data sets of this study"
    return ExhibitTable("tableA2", title, "Data set", columns, rows, notes=notes)


def _words(cards: list[DatasetCard]) -> ExhibitTable:
    columns = (Column("relation", "How it stands to the pretraining classes"), Column("licence", "Licence"))
    rows = tuple(
        TableRow(one.title, (Cell(f"{one.relation}. {one.note}".removesuffix(". ")), Cell(one.licence)))
        for one in cards
    )
    title = "What the data sets of this study are, and under which licence"
    return ExhibitTable("tableA2_licences", title, "Data set", columns, rows)


def _published() -> ExhibitTable:
    columns = (
        Column("classes", "Classes"),
        Column("train_images", "Training", "Images"),
        Column("test_images", "Test", "Images"),
        Column("accuracy_measure", "Measure"),
        Column("note", "Note"),
    )
    rows = tuple(
        TableRow(
            printed["dataset_name"],
            (
                *(_corrected(printed, key) for key in ("classes", "train_images", "test_images")),
                Cell(MEASURES[printed["accuracy_measure"]]),
                Cell(printed["note"]),
            ),
        )
        for printed in published_rows("tableA2_datasets")
    )
    note = "Misprints are corrected where marked by ‡, and the note says what was printed."
    title = "The paper's Table A.2: its transfer data sets"
    return ExhibitTable("tableA2_published", title, "Data set", columns, rows, "published", (note,))


def _corrected(printed: Mapping[str, str], key: str) -> Cell:
    """The corrected count; where it differs from the printed one, marked, with what was printed."""
    right, as_printed = int(printed[f"{key}_corrected"]), int(printed[f"{key}_printed"])
    if right == as_printed:
        return Cell(f"{right:,}", float(right), detail="as printed")
    return Cell(f"{right:,} ‡", float(right), detail=f"printed: {as_printed:,}")
