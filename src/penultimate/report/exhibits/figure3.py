"""Figure 3: the share of activations that are not zero, layer by layer.

Rows: `sparsity` on the split test; without a layer that of the penultimate features, with one that of a
block's output.
"""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Exhibit,
    ExhibitTable,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.depth import (
    PENULTIMATE,
    Quantity,
    depth_figure,
    depth_panel,
    depth_table,
    layers_of,
    spread_sentence,
)
from penultimate.report.exhibits.measurements import admit_compared

SPARSITY = Quantity("sparsity", "test", "non-zero activations", "%", 100, 1)
SAID_BY_THE_PAPER = {
    "softmax": "92.8",
    "logit_norm": "< 25",
    "cosine_softmax": "< 25",
    "squared_error": "< 25",
}
"""Non-zero penultimate activations in per cent: the text of section 3.2, which is all that is printed."""
PUBLISHED = (
    "The paper says that the share falls with depth down to the last convolutional layer, that the first"
    " three stages of ResNet-50 hardly depend on the objective, and that the last stage and the penultimate"
    " features do."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    layers = layers_of(results, measurements, SPARSITY)
    blocks = [name for name in layers if name != PENULTIMATE]
    source = card(measurements.source).title
    what = "The share of non-zero activations"
    missing = not_measured(f"{what}, block by block" if layers else what)
    panel = (
        depth_panel(measurements, layers, SPARSITY, "figure3-ours", f"{source}, test images")
        if blocks
        else None
    )
    group = "Not zero, %"
    title = f"Share of non-zero activations on {source}"
    ours = (depth_table(measurements, layers, SPARSITY, "figure3", title, group),) if layers else ()
    return Exhibit(
        "figure3",
        "How many activations does each objective leave at zero?",
        "The share of activations that are not zero, on the test images of the pretraining set, from the"
        " first block to the penultimate features. A low share: sparse, each image uses few of them.",
        (*ours, _published()),
        (depth_figure(panel, "figure3", "Sparsity over the layers", what),) if panel else (),
        notes=(
            *(() if blocks else (missing,)),
            *((spread_sentence(measurements, layers, SPARSITY),) if blocks else ()),
            PUBLISHED,
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _published() -> ExhibitTable:
    column = Column("penultimate_percent", PENULTIMATE, "Not zero, %", "%")
    rows = tuple(
        TableRow(preset.label, (_said(SAID_BY_THE_PAPER.get(slug)),), slug)
        for slug, preset in PRESETS.items()
    )
    note = "The paper draws the other values of its Figure 3 without printing them."
    title = "What the paper's text says of ResNet-50 on ImageNet's validation images"
    return ExhibitTable("figure3_published", title, "Objective", (column,), rows, "published", (note,))


def _said(text: str | None) -> Cell:
    if text is None:
        return Cell(MISSING, detail="not printed")
    return Cell(text, None if text.startswith("<") else float(text), detail="as printed in the text")
