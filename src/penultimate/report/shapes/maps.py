"""Maps of the similarity of layers: the CKA of all pairs of layers, read from arrays.

The row of an architecture points to `matrix` [l l] and `standard_error` [l l], and to the objective, seed
(-1: none), epoch (-1: a finished network; 0: one at initialisation; otherwise a finished network as it was
after that epoch) and layer of each of their rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from penultimate.data.catalog import card
from penultimate.networks.key import NetworkKey
from penultimate.report.base import Cell, Column, ExhibitTable, Figure, Missing, Panel, Raster, TableRow
from penultimate.report.drawing.rasters import raster_size, short
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.sets import name_on
from penultimate.report.shapes.another import without_another
from penultimate.report.shapes.depth import PENULTIMATE, numbered
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import average
from penultimate.report.shapes.pairs import NEEDS_TWO, SEEDS_APART, pair_cell, square_table
from penultimate.report.spec import OURS, Piece
from penultimate.report.text import counted, fixed, listed, plain

Block: TypeAlias = list[list[float]]
"""The layers of one network (rows) against those of another (columns)."""

UNTRAINED = StudyObjective("", "At initialisation", "")
"""The stand-in objective of a network at initialisation."""
SCALE = tuple(round(0.1 * step, 1) for step in range(11))


class Likeness(NamedTuple):
    """The mean CKA of two objectives' layers over pairs of networks, its standard error, and their number."""

    mean: Block
    error: Block
    pairs: int


@dataclass(frozen=True)
class LayerMaps:
    """The CKA of all layers of all networks of one architecture, and of the given networks.

    `rows` are the positions of a network's layers in the arrays, from the input upwards.
    """

    measurements: Measurements
    arrays: Mapping[str, Any]
    rows: dict[NetworkKey, list[int]]

    @cached_property
    def objectives(self) -> tuple[StudyObjective, ...]:
        """The objectives that have a finished network."""
        return tuple(each for each in self.measurements.objectives if self.networks(each))

    @cached_property
    def reference(self) -> StudyObjective:
        """The paper's baseline, or the first objective that has a network."""
        return _first_or_baseline(self.measurements, self.objectives)

    @cached_property
    def layers(self) -> list[str]:
        """The layers of the reference."""
        return self.layers_of(self.networks(self.reference)[0])

    def layers_of(self, network: NetworkKey) -> list[str]:
        """Return the names of a network's layers."""
        return [self.arrays["layers"][row] for row in self.rows[network]]

    def networks(self, objective: StudyObjective) -> list[NetworkKey]:
        """Return the finished networks of an objective, or the one at initialisation."""
        return [network for network in self.rows if network.objective == objective.spec]

    def likeness(self, first: StudyObjective, second: StudyObjective) -> Likeness | None:
        """Return the means over pairs of two objectives' networks, or None if there is no pair.

        Pairs of different seeds are preferred, because networks of one seed share their initial weights. A
        network is not compared with itself.
        """
        every = [(a, b) for a in self.networks(first) for b in self.networks(second) if a != b]
        pairs = [(a, b) for a, b in every if a.seed != b.seed] or every
        if not pairs:
            return None
        mean, error = (
            _mean(_block(self.arrays[name], self.rows[a], self.rows[b]) for a, b in pairs)
            for name in ("matrix", "standard_error")
        )
        return Likeness(mean, error, len({frozenset(pair) for pair in pairs}))

    @cached_property
    def against_reference(self) -> list[tuple[str, str, Likeness]]:
        """Label, slug and CKA of the reference with another seed, the others, and the untrained network."""
        return [
            (f"{each.label}, another seed" if each == self.reference else each.label, each.slug, likeness)
            for each in (*self.objectives, UNTRAINED)
            if (likeness := self.likeness(self.reference, each))
        ]


def _first_or_baseline(measurements: Measurements, among: Sequence[StudyObjective]) -> StudyObjective:
    return next((each for each in among if each.slug == measurements.networks.baseline), among[0])


def layer_maps(measurements: Measurements, quantity: Quantity) -> LayerMaps | None:
    """Return the comparisons of an architecture, or None without arrays of a finished network."""
    read = measurements.results.arrays
    step = next((row.step for row in measurements.rows(quantity.metric, quantity.split) if row.step), None)
    if read is None or step is None:
        return None
    arrays = {name: values.tolist() for name, values in read(step, quantity.metric).items()}
    known = {each.spec for each in (*measurements.objectives, UNTRAINED)}
    rows: dict[NetworkKey, list[int]] = {}
    columns = (arrays[name] for name in ("objectives", "seeds", "epochs"))
    for place, (spec, seed, epoch) in enumerate(zip(*columns, strict=True)):
        if epoch <= 0 and spec in known:
            rows.setdefault(NetworkKey(spec, seed=None if seed < 0 else seed), []).append(place)
    maps = LayerMaps(measurements, arrays, rows)
    return maps if maps.objectives else None


@dataclass(frozen=True)
class MapsOfLayers:
    """Maps of the reference's layers against each other objective's, and of objectives for each layer.

    The one quantity points to the arrays. If `of_another`, the maps show the first further architecture that
    was compared. In captions, {layers} and {architecture} explain the rows and columns of a map.
    """

    name: str
    quantities: tuple[Quantity, ...]
    missing: str
    of_another: bool = False

    def build(self, measurements: Measurements) -> Piece:
        backbones = measurements.further if self.of_another else (measurements.backbone,)
        compared = (layer_maps(measurements.with_backbone(name), *self.quantities) for name in backbones)
        maps = next((maps for maps in compared if maps), None)
        if maps is None:
            gap = without_another(measurements, self.missing) if self.of_another else Missing(self.missing)
            return Piece(missing=(gap,), words={"layers": "", "architecture": ""})
        halves = [_against_reference, _between] if len(maps.objectives) > 1 else [_against_reference]
        tables, figures = zip(*(half(maps, self.name) for half in halves), strict=True)
        here, first = plain(maps.measurements.backbone), plain(measurements.backbone)
        which = f"The architecture here is {here}; all other exhibits show {first}."
        base = maps.reference
        control = Missing(
            f"{base.label} from two seeds, which is the paper's control",
            f"penultimate run {measurements.words['name']} --seeds 0,1",
        )
        return Piece(
            tables,
            figures,
            notes=(*((which,) if here != first else ()), _finding(maps)),
            missing=() if len(maps.networks(base)) > 1 else (control,),
            words={
                "layers": f" Maps of layers: rows are layers of {base.label}, from the top, columns"
                f" those of the network that is named. Layers: {numbered(maps.layers)}.",
                "architecture": f"The architecture: {here}. " if self.of_another else "",
            },
            method=(_method_note(maps), *_constant_layers_note(maps), SEEDS_APART),
        )


@dataclass(frozen=True)
class MapsOverTransfer:
    """Maps of a network's layers before fine-tuning against those after it, one map per task.

    They are means over the networks of the paper's baseline or of the first objective. The quantity points to
    the arrays. The word {layers} lists the layers in captions.
    """

    name: str
    quantities: tuple[Quantity]
    missing: str

    def build(self, measurements: Measurements) -> Piece:
        (pointing,) = self.quantities
        read = measurements.results.arrays
        rows = {
            target: measurements.rows(pointing.metric, target=target).where(setting=pointing.setting)
            for target in measurements.targets
        }
        measured = {row.objective for of_target in rows.values() for row in of_target}
        present = [each for each in measurements.objectives if each.spec in measured]
        if read is None or not present:
            return Piece(missing=(Missing(self.missing),), words={"layers": ""})
        base = _first_or_baseline(measurements, present)
        blocks, layers, runs = {}, list[str](), 0
        for target, of_target in rows.items():
            steps = dict.fromkeys(str(row.step) for row in of_target if row.objective == base.spec)
            left = [read(step, pointing.metric) for step in steps]
            if left:
                blocks[target] = _mean(arrays["matrix"].tolist() for arrays in left)
                layers, runs = list(left[0]["layers"]), max(runs, len(left))
        title = f"{base.label}: before and after fine-tuning"
        panels = [_scale(self.name)]
        panels += [
            _layer_panel(name_on(self.name, target), card(target).title, block)
            for target, block in blocks.items()
        ]
        columns = tuple(Column(f"cka_{layer}", layer, "CKA of a layer with itself") for layer in layers)
        lines = tuple(
            TableRow(
                card(target).title, tuple(_cell(block[at][at], math.nan, "") for at in range(len(layers)))
            )
            for target, block in blocks.items()
        )
        return Piece(
            (ExhibitTable(self.name, title, "Task", columns, lines),),
            (Figure(self.name, title, "Maps of CKA between layers before and after.", tuple(panels)),),
            notes=(_change(base, layers, blocks, runs),),
            words={"layers": f" Means over {counted(runs, 'network')}. Layers: {numbered(layers)}."},
        )


def _change(base: StudyObjective, layers: Sequence[str], blocks: Mapping[str, Block], runs: int) -> str:
    """Return a sentence on how similar the first and the last layer stay, over the tasks."""
    ends = []
    for end in (0, -1):
        kept = [block[end][end] for block in blocks.values() if math.isfinite(block[end][end])]
        if kept:
            ends.append(f"{fixed(min(kept), 2)} to {fixed(max(kept), 2)} in {_layer_name(layers[end])}")
    few = f" ({said})" if (said := direction([runs])) else ""
    return (
        f"{OURS}: the CKA of {base.label} networks before and after fine-tuning is, from task to task,"
        f" {listed(ends)}{few}."
    )


def _layer_name(layer: str) -> str:
    """Return the name of a layer within a sentence."""
    return "the penultimate features" if layer == PENULTIMATE.lower() else layer


def _block(values: Block, rows: Sequence[int], columns: Sequence[int]) -> Block:
    return [[values[row][column] for column in columns] for row in rows]


def _mean(blocks: Iterable[Block]) -> Block:
    return [[average(values) for values in zip(*rows, strict=True)] for rows in zip(*blocks, strict=True)]


def _against_reference(maps: LayerMaps, name: str) -> tuple[ExhibitTable, Figure]:
    """Return the first half of the figure, layers against layers, and a table of corresponding layers."""
    base = maps.reference.label
    columns = tuple(Column(f"cka_{layer}", layer, f"CKA with {base}") for layer in maps.layers)
    rows, panels = [], [_scale(name)]
    for number, (label, slug, likeness) in enumerate(maps.against_reference, 1):
        rows.append(TableRow(label, _cells(maps, likeness), slug))
        panels.append(_layer_panel(f"{name}-layers-{number}", label, likeness.mean))
    title = f"Corresponding layers: {base} and the others"
    description = f"Maps of CKA between the layers of {base} and those of every other objective."
    return (
        ExhibitTable(name, title, "Objective", columns, tuple(rows)),
        Figure(f"{name}-layers", "Layers against layers", description, tuple(panels)),
    )


def _between(maps: LayerMaps, name: str) -> tuple[ExhibitTable, Figure]:
    """Return the second half, a map of objectives for each layer, and a table of the last layer."""
    labels, slugs = zip(*((each.label, each.slug) for each in maps.objectives), strict=True)
    cells = {}
    for row, column in itertools.product(maps.objectives, repeat=2):
        likeness = maps.likeness(row, column)
        about = f"mean of {counted(likeness.pairs, 'pair')}" if likeness else ""
        cells[row, column] = _cells(maps, likeness, about)
    panels = []
    for at, layer in enumerate(maps.layers):
        values = ((cells[row, column][at].value for column in maps.objectives) for row in maps.objectives)
        raster = Raster(labels, labels, tuple(map(tuple, values)), slugs, slugs)
        panels.append(_panel(f"{name}-between-{at + 1}", f"{at + 1}: {layer}", raster))
    last = f"CKA of the last layer ({maps.layers[-1]}) between objectives"
    table = square_table(f"{name}-last", last, maps.objectives, lambda *pair: cells[pair][-1], "cka_{}")
    title, description = "Objectives against objectives", "Maps of CKA between the objectives, a map a layer."
    return table, Figure(f"{name}-objectives", title, description, tuple(panels), legend=True)


def _layer_panel(name: str, title: str, block: Block) -> Panel:
    rows, columns = (tuple(map(str, range(1, count + 1))) for count in (len(block), len(block[0])))
    return _panel(name, title, Raster(rows, columns, tuple(tuple(map(_number, values)) for values in block)))


def _scale(name: str) -> Panel:
    """Return the colour scale as a separate map."""
    named = tuple(short(value) if value in (0, 0.5, 1) else "" for value in SCALE)
    return _panel(f"{name}-scale", "The scale", Raster(("CKA",), named, (SCALE,), is_scale=True))


def _panel(name: str, title: str, raster: Raster) -> Panel:
    size = raster_size(len(raster.rows), len(raster.columns))
    return Panel(name, title, "", "", labelled=False, size=size, raster=raster)


def _number(value: float) -> float | None:
    """Return a number to six digits, or None for NaN (a layer that is the same for all images)."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _cells(maps: LayerMaps, likeness: Likeness | None, detail: str = "") -> tuple[Cell, ...]:
    """Return the CKA of corresponding layers, as many as the reference has."""
    count = len(maps.layers)
    if likeness is None or not len(likeness.mean) == len(likeness.mean[0]) == count:
        return (pair_cell([], "it has another number of layers" if likeness else NEEDS_TWO),) * count
    return tuple(_cell(likeness.mean[at][at], likeness.error[at][at], detail) for at in range(count))


def _cell(mean: float, standard_error: float, detail: str) -> Cell:
    value, error = _number(mean), _number(standard_error)
    if value is None:
        return pair_cell([], "the layer is the same for all images")
    of_error = "" if error is None else f"standard error over batches of images {fixed(error, 4)}"
    return Cell(fixed(value, 3), value, error, detail=", ".join(filter(None, (detail, of_error))))


def _finding(maps: LayerMaps) -> str:
    """Return a finding on the first and the last layer of the maps."""
    base = maps.reference
    if len(maps.objectives) == 1:
        return f"{OURS}: one objective only, so there is none to compare it with."
    ends = {}
    for _, slug, likeness in maps.against_reference:
        first, last = (_cells(maps, likeness)[end].value for end in (0, -1))
        if first is not None and last is not None:
            ends[slug] = first, last
    others = [ends[slug] for slug in ends if slug not in (UNTRAINED.slug, base.slug)]
    if not others:
        return ""
    parts = [
        f"{fixed(average(values), 2)} (at least {fixed(min(values), 2)}) in {_layer_name(maps.layers[end])}"
        for end, values in zip((0, -1), zip(*others, strict=True), strict=True)
    ]
    controls = {base.slug: f"two seeds of {base.label}:", UNTRAINED.slug: "a network at initialisation:"}
    told = [
        f"{controls[slug]} {fixed(ends[slug][0], 2)} and {fixed(ends[slug][1], 2)}"
        for slug in controls
        if slug in ends
    ]
    compared = f"; for comparison, {'; '.join(told)}" if told else ""
    few = direction([len({network.seed for network in maps.rows if network.objective})])
    of_few = f" ({few})" if few else ""
    means = f"the mean CKA of the other objectives with {base.label} is {listed(parts)}"
    return f"{OURS}: {means}{compared}{of_few}."


def _method_note(maps: LayerMaps) -> str:
    """Return a note on the method of measurement."""
    sizes, passes = maps.arrays["sizes"], len(set(maps.arrays["passes"]))
    least, most = min(sizes), max(sizes)
    return (
        f"Unbiased HSIC of minibatches of {least if least == most else f'{least} to {most}'} of"
        f" {sum(sizes) // passes:,} test images, {counted(passes, 'pass', 'passes')}; standard errors, in the"
        " tables' tooltips and CSV files, by jackknife over batches. The network at initialisation has the"
        " moments of its batch normalisation set on the training images."
    )


def _constant_layers_note(maps: LayerMaps) -> tuple[str, ...]:
    """Return a note on the layers that have no CKA."""
    matrix, constant = maps.arrays["matrix"], []
    for network, rows in maps.rows.items():
        whose = UNTRAINED.label.lower()
        if network.objective:
            label = maps.measurements.objective(network.objective).label
            whose = f"of {label}, {run_name(network.seed)}"
        constant += [f"{maps.arrays['layers'][row]} {whose}" for row in rows if not matrix[row][row] > 0]
    return (f"No CKA, being the same for all images: {listed(constant)}.",) if constant else ()
