"""Figure 3: the share of activations that are not zero, layer by layer.

Rows: `sparsity` on the split test; without a layer that of the penultimate features, with one that of a
block's output. Layers stand in the order of the study's description (`layers`), or of their names' numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import not_measured, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs, admit
from penultimate.report.exhibits.numbers import summarise
from penultimate.report.text import fixed

METRIC = "sparsity"
PENULTIMATE = "Penultimate"
SAID_BY_THE_PAPER = {
    "softmax": "92.8",
    "logit_norm": "< 25",
    "cosine_softmax": "< 25",
    "squared_error": "< 25",
}
"""Non-zero penultimate activations in per cent: the text of section 3.2, which is all that is printed."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    layers = _layers(results, measurements)
    blocks = [name for name in layers if name != PENULTIMATE]
    missing = (
        "Block by block: not measured: no study does so yet; ours is that of the penultimate features alone."
        if layers
        else not_measured("The share of non-zero activations")
    )
    return Exhibit(
        "figure3",
        "How many activations does each objective leave at zero?",
        "The share of activations that are not zero, on the test images of the pretraining set, from the"
        " first block to the penultimate features. A low share: sparse, each image uses few of them.",
        (_ours(measurements, layers), _published()) if layers else (_published(),),
        (_figure(measurements, layers),) if blocks else (),
        notes=(*(() if blocks else (missing,)), *measurements.notes()),
        limited=measurements.limited,
    )


def _layers(results: StudyResults, measurements: Measurements) -> dict[str, Runs]:
    """The measured layers, from the image to the penultimate features, each with its runs."""
    found: dict[str, Runs] = {}
    for row in results.table:
        if (
            (row.metric, row.split, row.target) == (METRIC, "test", measurements.source)
            and row.layer is not None
            and row.objective is not None
            and row.seed is not None
            and row.epoch is None
            and row.status != "diverged"
            and row.backbone not in measurements.other_backbones
        ):
            found.setdefault(row.layer, {}).setdefault(row.objective, {})[row.seed] = row.value
    described = [str(name) for name in results.description.get("layers", ())]
    place = {name: index for index, name in enumerate(described)}
    order = sorted(found, key=lambda name: (place.get(name, len(place)), _natural(name)))
    layers = {name: found[name] for name in order}
    penultimate = measurements.runs(METRIC)
    return {**layers, PENULTIMATE: penultimate} if penultimate else layers


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts block 2 before block 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _figure(measurements: Measurements, layers: Mapping[str, Runs]) -> Figure:
    panel = Panel(
        "figure3-ours",
        f"{card(measurements.source).title}, test images",
        f"Layer, from the first block (1) to the last, {list(layers)[-1].lower()} ({len(layers)})",
        "Non-zero activations, %",
        curves=tuple(
            Curve(points, objective.slug, f"{objective.label}: {fixed(points[-1][1], 1)} % at the end")
            for objective in measurements.compared
            if (points := _points(objective.spec, layers))
        ),
        labelled=False,
        size=(640, 340),
    )
    description = "The share of non-zero activations over the layers, a line an objective."
    return Figure("figure3", "Sparsity over the layers", description, (panel,), legend=True)


def _points(spec: str, layers: Mapping[str, Runs]) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(index), 100 * summarise(list(runs[spec].values())).mean)
        for index, runs in enumerate(layers.values(), start=1)
        if spec in runs
    )


def _ours(measurements: Measurements, layers: Mapping[str, Runs]) -> ExhibitTable:
    columns = tuple(Column(f"{name}_percent", name, "Not zero, %", "%") for name in layers)
    shown = list(layers.values())
    cells = [lambda spec, runs=runs: run_cell(runs.get(spec), 1, scale=100) for runs in shown]
    title = f"Share of non-zero activations on {card(measurements.source).title}"
    return ExhibitTable("figure3", title, "Objective", columns, run_rows(measurements, cells, shown))


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
