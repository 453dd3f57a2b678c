"""Comparisons layer by layer: likeness, non-zero activations, class separation (figures 2, 3, 4 and B.1)."""

from __future__ import annotations

from dataclasses import replace

from penultimate.report.base import MISSING, Cell
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.cells import published_cell
from penultimate.report.shapes.depth import PENULTIMATE, OverLayers
from penultimate.report.shapes.table import Printed, PrintedRow, PrintedTable
from penultimate.report.spec import Exhibit

NONZERO = Quantity("nonzero_share", label="share of non-zero activations", group="Not zero, %", over="layers")
SEPARATION = Quantity("class_separation", over="layers", label="class separation R²", group="R²")
SAID_IN_TEXT = {"softmax": "92.8", "logit_norm": "< 25", "cosine_softmax": "< 25", "squared_error": "< 25"}
"""Non-zero penultimate activations in per cent; only these are printed, in the text of section 3.2."""


def _said_in_text(row: PrintedRow) -> Cell:
    text = SAID_IN_TEXT.get(row["objective"])
    if text is None:
        return Cell(MISSING, detail="not printed")
    return Cell(text, None if text.startswith("<") else float(text), detail="as printed in the text")


FIGURE_3 = Exhibit(
    name="figure3",
    title="How many activations are not zero?",
    caption="The share of activations that are not zero, on the test images of the pretraining set, from the"
    " first block to the penultimate features. Where the share is low, each image uses few of them.",
    parts=(
        OverLayers(
            "figure3",
            "Share of non-zero activations on {source}",
            "Non-zero activations over the layers",
            "The share of non-zero activations over the layers, a line an objective.",
            (NONZERO,),
            missing="The share of non-zero activations",
        ),
        PrintedTable(
            "figure3",
            "neurips_table1_linear",
            "What the paper's text says of ResNet-50 on ImageNet's validation images",
            (Printed("penultimate_percent", PENULTIMATE, "Not zero, %", "%", read=_said_in_text),),
            ("The paper draws the other values of its Figure 3 without printing them.",),
        ),
    ),
    paper_says="The paper says that the share falls with depth down to the last convolutional layer, that the"
    " first three stages of ResNet-50 hardly depend on the objective, and that the last stage and the"
    " penultimate features do.",
    section="3.2",
    summary="Non-zero activations, layer by layer",
    short="Non-zero activations",
)


def _separation(row: PrintedRow) -> Cell:
    return published_cell(row["class_separation_r2"], row["class_separation_r2_se"])


FIGURE_4 = Exhibit(
    name="figure4",
    title="In which layers do the classes come apart?",
    caption="Class separation R² of every layer, on the {images} of the pretraining set: 0 where the classes"
    " lie on top of each other, 1 where each is a single point. Maps are flattened over space. R² is by"
    " the paper's formula, which counts an image with itself, on as many images as Table 3's R² ({images}).",
    parts=(
        OverLayers(
            "figure4",
            "Class separation R² on {source}, {images}",
            "Class separation over the layers",
            "Class separation R² over the layers, a line an objective.",
            (replace(SEPARATION, split="train"), SEPARATION),
            missing="Class separation, layer by layer",
        ),
        PrintedTable(
            "figure4",
            "neurips_table3_class_separation",
            "The last layer in the paper, ImageNet's training images",
            (Printed("penultimate", PENULTIMATE, "R²", read=_separation),),
        ),
    ),
    paper_says="The paper draws its Figure 4 (training images, eight networks an objective) without printing"
    " its numbers, but for the last layer's, in its Table 3. It says that in the penultimate features every"
    " other objective separates the classes further than softmax.",
    section="3.3",
    summary="Class separation, layer by layer",
    short="Separation, layer by layer",
)
