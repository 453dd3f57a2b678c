"""Figure D.3's form: the layers of one network before and after further training."""

from __future__ import annotations

from penultimate.report.exhibits.base import (
    Cell,
    Column,
    Exhibit,
    ExhibitTable,
    Figure,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.layer_maps import (
    Doubles,
    LayerMaps,
    layer_maps,
    map_panels,
    numbered,
    over_training,
)
from penultimate.report.exhibits.measurements import admit
from penultimate.report.text import fixed

PUBLISHED = (
    "The paper draws its Figure D.3 without printing a number: a softmax network before and after fine-tuning"
    " on transfer data sets. It says that later layers change more than earlier ones, and that how much they"
    " change differs greatly between data sets."
)
OURS = (
    "The training that lies between is not the paper's: nothing is fine-tuned in this study. Drawn is one"
    " network during its pretraining, at the first epoch that was kept, and at the end."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    maps = layer_maps(results, measurements).get(measurements.backbone)
    block = over_training(maps) if maps else None
    title = "Which layers does further training change?"
    caption = "Linear CKA of the layers of one network, before (rows, from the top) and after (columns)."
    if maps is None or block is None:
        missing = not_measured("CKA of a network's layers before and after further training")
        notes = (missing, PUBLISHED, *measurements.notes())
        return Exhibit("figureD3", title, caption, notes=notes, limited=measurements.limited)
    assert maps.earlier is not None
    epoch, network, _ = maps.earlier
    label = measurements.objective(network.spec).label
    named = f"{label}, seed {network.seed}: after epoch {epoch}, and at the end"
    figure = Figure(
        "figureD3-layers",
        named,
        "A map of CKA between the layers of a network earlier in training and at its end.",
        map_panels(maps, "figureD3", named, block),
    )
    return Exhibit(
        "figureD3",
        title,
        f"{caption} Layers: {numbered(maps.layers)}.",
        (_table(maps, named, block),),
        (figure,),
        (_finding(maps, block), OURS, PUBLISHED, *measurements.notes()),
        measurements.limited,
    )


def _table(maps: LayerMaps, named: str, block: Doubles) -> ExhibitTable:
    columns = tuple(Column(f"cka_{layer}", layer, "At the end") for layer in maps.layers)
    rows = tuple(
        TableRow(layer, tuple(Cell(fixed(value, 3), float(value)) for value in row))
        for layer, row in zip(maps.layers, block.tolist(), strict=True)
    )
    return ExhibitTable("figureD3", named, "Earlier", columns, rows)


def _finding(maps: LayerMaps, block: Doubles) -> str:
    own = block.diagonal()
    return (
        f"Ours: CKA of a layer with itself, before and after, is {fixed(own[0], 2)} in {maps.layers[0]} and"
        f" {fixed(own[-1], 2)} in {maps.layers[-1]}."
    )
