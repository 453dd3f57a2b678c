"""Figure 4: class separation, layer by layer.

Rows: `class_separation` with a layer, on the split train where the study measured it there, else on test.
"""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Column, Exhibit, ExhibitTable, Figure, StudyResults
from penultimate.report.exhibits.cells import not_measured, printed, published_table
from penultimate.report.exhibits.depth import (
    PENULTIMATE,
    Quantity,
    depth_figure,
    depth_panel,
    depth_table,
    layers_of,
    spread_sentence,
)
from penultimate.report.exhibits.measurements import Measurements, admit_compared

WORDS = {"train": "training images", "test": "test images"}
PUBLISHED = (
    "The paper draws its Figure 4 (training images, eight networks an objective) without printing its"
    " numbers, but for the last layer's, in its Table 3. It says that in the penultimate features every other"
    " objective separates the classes further than softmax."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    quantity = _quantity(results, measurements)
    layers = layers_of(results, measurements, quantity) if quantity else {}
    name, source = "figure4", card(measurements.source).title
    words = WORDS[quantity.split] if quantity else WORDS["test"]
    ours: tuple[ExhibitTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    said: tuple[str, ...] = (not_measured("Class separation, layer by layer"),)
    if quantity:
        title = f"Class separation R² on {source}, {words}"
        panel = depth_panel(measurements, layers, quantity, "figure4-ours", f"{source}, {words}")
        ours = (depth_table(measurements, layers, quantity, name, title, "R²"),)
        figures = (depth_figure(panel, name, "Class separation over the layers", "Class separation R²"),)
        said = (spread_sentence(measurements, layers, quantity),)
    return Exhibit(
        name,
        "In which layers do the classes come apart?",
        f"Class separation R² of every layer, on the {words} of the pretraining set: 0 where the classes lie"
        " on top of each other, 1 where each is a single point. Maps are flattened over space.",
        (*ours, _published()),
        figures,
        notes=(*said, PUBLISHED, *measurements.notes()),
        limited=measurements.limited,
    )


def _quantity(results: StudyResults, measurements: Measurements) -> Quantity | None:
    """Of the splits on which layers were measured, the paper's, if it is one of them."""
    for split in WORDS:
        quantity = Quantity("class_separation", split, "class separation R²")
        if any(layer != PENULTIMATE for layer in layers_of(results, measurements, quantity)):
            return quantity
    return None


def _published() -> ExhibitTable:
    column = Column("penultimate", PENULTIMATE, "R²")
    cell = printed("class_separation_r2", "class_separation_r2_se")
    title = "The last layer in the paper, ImageNet's training images"
    return published_table("figure4", "table3_class_separation", title, [(column, cell)])
