"""The data sets (section A.2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import DatasetCard, card, shifted
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import printed
from penultimate.results.rows import Run
from penultimate.results.table import MISSING, Column, Table, table_of_rows

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


@exhibit("tableA2", "The data sets", section="A.2", study="")
def tableA2(run: Run) -> Iterator[Part]:
    """What the networks were trained on, the new tasks that their features were tried on, and other images of
    the pretraining classes if robustness was measured. Sizes count images; the measure is the accuracy that
    counts there. The paper trains on ImageNet's 1,000 classes and transfers to eight tasks."""
    sets = {} if run.of_metric("corruption_error").empty else shifted(run.source)
    roles = {
        run.source: "pretraining",
        **dict.fromkeys((*run.targets, *run.several_labels), "transfer"),
        **dict.fromkeys(sets.values(), "shifted"),
    }
    cards = {name: card(name) for name in roles}
    hard = [cards[sets["a"]]] if "a" in sets else []
    notes = [f"{of.title}: the {of.images:,} images are those to choose from. {of.note}" for of in hard]
    yield sizes(roles, cards, tuple(notes))
    yield table_of_printed_sets()
    yield table_of_rows(
        "tableA2_licences",
        "What the data sets of this study are, and under which licence",
        [Column("relation", "How it stands to the pretraining classes"), Column("licence", "Licence")],
        [(of.title, [f"{of.relation}. {of.note}".removesuffix(". "), of.licence]) for of in cards.values()],
        corner="Data set",
    )


def sizes(roles: dict[str, str], cards: dict[str, DatasetCard], notes: tuple[str, ...]) -> Table | None:
    """Return the table of the numbers of classes and of images in each split."""
    splits = list(dict.fromkeys(split for of in cards.values() for split in of.sizes))
    columns = [Column("role", "Role"), Column("classes", "Classes", digits=0)]
    columns += [Column(f"{split}_images", SPLITS.get(split, split), "Images") for split in splits]
    rows = [
        (
            of.title,
            [
                roles[name],
                float(of.classes),
                *(float(of.sizes[split]) if split in of.sizes else MISSING for split in splits),
                MEASURES[of.accuracy],
            ],
        )
        for name, of in cards.items()
    ]
    table = table_of_rows(
        "tableA2", "The data sets of this study", [*columns, MEASURE], rows, corner="Data set", notes=notes
    )
    return table and replace(table, texts=whole_numbers(table.values))


def whole_numbers(values: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of a table as whole ones, with commas between thousands."""
    return values.map(lambda cell: f"{cell:,.0f}" if isinstance(cell, float) else cell)


def table_of_printed_sets() -> Table | None:
    """Return the paper's table, with its misprints corrected."""
    keys = {"classes": "Classes", "train_images": "Training", "test_images": "Test"}
    columns = [Column(key, label, "Images" * key.endswith("images")) for key, label in keys.items()]
    theirs = printed("neurips_tableA2_datasets").fillna("")
    rows = [
        (
            row["dataset_name"],
            [*(float(row[f"{key}_corrected"]) for key in keys), MEASURES[row[MEASURE.key]], row["note"]],
        )
        for _, row in theirs.iterrows()
    ]
    table = table_of_rows(
        "tableA2_published",
        "The paper's Table A.2: its transfer data sets",
        [*columns, MEASURE, Column("note", "Note")],
        rows,
        source="published",
        corner="Data set",
        notes=("Misprints are corrected where marked by ‡, and the note says what was printed.",),
    )
    assert table is not None
    texts = whole_numbers(table.values)
    for key in keys:
        differs = theirs[f"{key}_corrected"] != theirs[f"{key}_printed"]
        texts[key] += differs.map({True: " ‡", False: ""}).to_numpy()
    return replace(table, texts=texts)
