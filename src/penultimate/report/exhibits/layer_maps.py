"""How alike the layers of networks are: the CKA of all pairs, read from the arrays that a row points to.

The row `layer_cka` (split test, no objective) of an architecture points to `matrix` [l l], `standard_error`
[l l], and of each of their rows its `objectives`, `seeds` (-1: a network at initialisation), `epochs` (-1:
finished; else the epoch after which a network that is compared with itself was kept) and `layers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    ExhibitTable,
    Figure,
    Panel,
    Raster,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.measurements import Measurements, Objective
from penultimate.report.rasters import raster_size, short
from penultimate.report.text import counted, fixed, plain

METRIC = "layer_cka"
UNTRAINED = "At initialisation"
NEEDS_TWO = "needs two seeds"
SCALE = tuple(round(0.1 * step, 1) for step in range(11))
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Network:
    """A network among those compared: its objective's spec and seed; untrained, neither."""

    spec: str
    seed: int

    @property
    def is_trained(self) -> bool:
        return self.seed >= 0


@dataclass(frozen=True)
class LayerMaps:
    """The CKA of all layers of all networks of one architecture.

    `earlier`: an epoch, and the rows of a network as it was after it.
    """

    backbone: str
    matrix: Doubles
    standard_error: Doubles
    rows: dict[Network, list[int]]
    layers: tuple[str, ...]
    batches: tuple[int, ...]
    passes: int
    earlier: tuple[int, Network, list[int]] | None = None

    def networks(self, spec: str) -> list[Network]:
        """The trained networks of an objective, by seed."""
        return sorted(
            (one for one in self.rows if one.spec == spec and one.is_trained), key=lambda one: one.seed
        )

    @property
    def untrained(self) -> list[Network]:
        return [one for one in self.rows if not one.is_trained]

    def mean(
        self, ones: Sequence[Network], others: Sequence[Network], errors: bool = False
    ) -> Doubles | None:
        """The mean over pairs of two networks of their layers' CKA [a b], or of its standard error.

        Pairs of different seeds where there are any, for networks of one seed share their first weights.
        Nothing where no two networks are left: a network is not compared with itself.
        """
        pairs = [(one, other) for one in ones for other in others if one != other]
        apart = [(one, other) for one, other in pairs if one.seed != other.seed] or pairs
        if not apart:
            return None
        read = self.standard_error if errors else self.matrix
        blocks = [read[np.ix_(self.rows[one], self.rows[other])] for one, other in apart]
        return np.asarray(np.mean(blocks, axis=0))

    def pairs(self, ones: Sequence[Network], others: Sequence[Network]) -> int:
        """How many pairs stand behind a mean."""
        pairs = {frozenset((one, other)) for one in ones for other in others if one != other}
        apart = [pair for pair in pairs if len({one.seed for one in pair}) == 2]
        return len(apart) or len(pairs)


def layer_maps(results: StudyResults, measurements: Measurements) -> dict[str, LayerMaps]:
    """What was compared, by architecture, in the study's order; nothing where no array was left."""
    if results.arrays is None:
        return {}
    found = {}
    for row in results.table:
        if (row.metric, row.split, row.target) == (METRIC, "test", measurements.source) and row.step:
            arrays: Any = results.arrays(row.step, METRIC)
            found[str(row.backbone)] = _maps(str(row.backbone), arrays, measurements)
    order = [str(name) for name in results.description.get("backbones", ())]
    place = {name: index for index, name in enumerate(order)}
    return {name: found[name] for name in sorted(found, key=lambda name: (place.get(name, len(place)), name))}


def _maps(backbone: str, arrays: Any, measurements: Measurements) -> LayerMaps:
    known = {one.spec for one in measurements.compared}
    rows: dict[Network, list[int]] = {}
    layers: dict[Network, list[str]] = {}
    earlier: dict[tuple[int, Network], list[int]] = {}
    columns = (arrays[name].tolist() for name in ("objectives", "seeds", "epochs", "layers"))
    for index, (spec, seed, epoch, layer) in enumerate(zip(*columns, strict=True)):
        network = Network(str(spec), int(seed))
        if epoch > 0:
            earlier.setdefault((int(epoch), network), []).append(index)
        elif spec in known or not network.is_trained:
            rows.setdefault(network, []).append(index)
            layers.setdefault(network, []).append(str(layer))
    return LayerMaps(
        backbone,
        np.asarray(arrays["matrix"], float),
        np.asarray(arrays["standard_error"], float),
        rows,
        tuple(next(iter(layers.values()), ())),
        tuple(int(size) for size in arrays["sizes"]),
        len(set(arrays["passes"].tolist())),
        next(((epoch, network, places) for (epoch, network), places in earlier.items()), None),
    )


def reference(maps: LayerMaps, measurements: Measurements) -> Objective | None:
    """Whom the others are compared with: softmax, or the first objective that has a network."""
    there = [one for one in measurements.compared if maps.networks(one.spec)]
    return next((one for one in there if one.slug == "softmax"), there[0] if there else None)


def against_reference(maps: LayerMaps, measurements: Measurements) -> dict[str, tuple[str, Doubles, Doubles]]:
    """Layers of the reference (rows) and of every other network (columns): {label: (slug, CKA, error)}.

    The reference itself from another seed, the others, the network at initialisation; without the first where
    there is one seed only.
    """
    base = reference(maps, measurements)
    if base is None:
        return {}
    own = maps.networks(base.spec)
    others = {one.label: (one.slug, maps.networks(one.spec)) for one in measurements.compared}
    others[base.label] = (base.slug, own)
    found = {}
    for label, (slug, networks) in {**others, UNTRAINED: ("", maps.untrained)}.items():
        mean = maps.mean(own, networks)
        error = maps.mean(own, networks, errors=True)
        if mean is not None and error is not None:
            found[label] = (slug, mean, error)
    return found


def over_training(maps: LayerMaps) -> Doubles | None:
    """Layers of a network as it was (rows) and as it became (columns); nothing where it was not kept."""
    if maps.earlier is None or maps.earlier[1] not in maps.rows:
        return None
    _, network, before = maps.earlier
    return maps.matrix[np.ix_(before, maps.rows[network])]


def numbered(layers: tuple[str, ...]) -> str:
    """The layers by the numbers that maps have in their place."""
    return ", ".join(f"{number} {plain(layer)}" for number, layer in enumerate(layers, 1))


def figures(maps: LayerMaps, measurements: Measurements, name: str) -> tuple[Figure, ...]:
    """The two halves of the paper's figure: layers against layers, and objectives against objectives."""
    base = reference(maps, measurements)
    if base is None:
        return ()
    numbers = tuple(str(number) for number in range(1, len(maps.layers) + 1))
    panels = [_scale(name)]
    for number, (label, (slug, mean, _)) in enumerate(against_reference(maps, measurements).items(), 1):
        title = f"{label}, another seed" if slug == base.slug else label
        raster = Raster(numbers, numbers, _values(mean))
        panels.append(_panel(f"{name}-layers-{number}", title, raster))
    description = f"Maps of CKA between the layers of {base.label} and those of every other objective."
    first = Figure(f"{name}-layers", "Layers against layers", description, tuple(panels))
    return (first, *_between_objectives(maps, measurements, name))


def map_panels(maps: LayerMaps, name: str, title: str, block: Doubles) -> tuple[Panel, ...]:
    """The scale of colours, and one map of layers against layers."""
    numbers = tuple(str(number) for number in range(1, len(maps.layers) + 1))
    return _scale(name), _panel(f"{name}-layers-1", title, Raster(numbers, numbers, _values(block)))


def _between_objectives(maps: LayerMaps, measurements: Measurements, name: str) -> tuple[Figure, ...]:
    there = [one for one in measurements.compared if maps.networks(one.spec)]
    if len(there) < 2:
        return ()
    labels, slugs = tuple(one.label for one in there), tuple(one.slug for one in there)
    panels = []
    for index, layer in enumerate(maps.layers):
        values = tuple(tuple(_at(maps, one, other, index)[0] for other in there) for one in there)
        raster = Raster(labels, labels, values, slugs, slugs)
        panels.append(_panel(f"{name}-between-{index + 1}", f"{index + 1}: {layer}", raster))
    description = "Maps of CKA between the objectives, a map a layer."
    return (
        Figure(
            f"{name}-objectives", "Objectives against objectives", description, tuple(panels), legend=True
        ),
    )


def _panel(name: str, title: str, raster: Raster) -> Panel:
    size = raster_size(len(raster.rows), len(raster.columns))
    return Panel(name, title, "", "", labelled=False, size=size, raster=raster)


def _scale(name: str) -> Panel:
    """The scale of colours, as a map of its own."""
    named = tuple(short(value) if value in (0, 0.5, 1) else "" for value in SCALE)
    raster = Raster(("CKA",), named, (SCALE,), is_scale=True)
    return _panel(f"{name}-scale", "The scale", raster)


def _values(block: Doubles) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(_number(value) for value in row) for row in block.tolist())


def _number(value: float) -> float | None:
    """A number to six digits; nothing for NaN (a layer that is the same for all images)."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _at(maps: LayerMaps, one: Objective, other: Objective, index: int) -> tuple[float | None, float | None]:
    """The mean CKA of one layer of two objectives' networks, and its standard error."""
    ones, others = maps.networks(one.spec), maps.networks(other.spec)
    mean, error = maps.mean(ones, others), maps.mean(ones, others, errors=True)
    if mean is None or error is None:
        return None, None
    return _number(mean[index, index]), _number(error[index, index])


def tables(maps: LayerMaps, measurements: Measurements, name: str) -> tuple[ExhibitTable, ...]:
    """Corresponding layers of the reference and the others; the last layer between all objectives."""
    base = reference(maps, measurements)
    if base is None:
        return ()
    columns = tuple(Column(f"cka_{layer}", layer, f"CKA with {base.label}") for layer in maps.layers)
    rows = [
        TableRow(
            f"{label}, another seed" if slug == base.slug else label,
            tuple(
                _cell(_number(a), _number(b)) for a, b in zip(mean.diagonal(), error.diagonal(), strict=True)
            ),
            slug,
        )
        for label, (slug, mean, error) in against_reference(maps, measurements).items()
    ]
    title = f"Corresponding layers: {base.label} and the others"
    first = ExhibitTable(name, title, "Objective", columns, tuple(rows))
    there = [one for one in measurements.compared if maps.networks(one.spec)]
    if len(there) < 2:
        return (first,)
    heads = tuple(Column(f"cka_{one.slug}", one.label) for one in there)
    last = len(maps.layers) - 1
    body = tuple(
        TableRow(one.label, tuple(_pair_cell(maps, one, other, last) for other in there), one.slug)
        for one in there
    )
    title = f"CKA of the last layer ({maps.layers[-1]}) between objectives"
    return first, ExhibitTable(f"{name}-last", title, "Objective", heads, body)


def _cell(value: float | None, error: float | None, detail: str = "") -> Cell:
    if value is None:
        return Cell(MISSING, detail="the layer is the same for all images")
    said = "" if error is None else f"standard error over batches of images {fixed(error, 4)}"
    return Cell(fixed(value, 3), value, error, detail=", ".join(part for part in (detail, said) if part))


def _pair_cell(maps: LayerMaps, one: Objective, other: Objective, index: int) -> Cell:
    ones, others = maps.networks(one.spec), maps.networks(other.spec)
    if maps.mean(ones, others) is None:
        return Cell(MISSING, detail=NEEDS_TWO)
    return _cell(*_at(maps, one, other, index), detail=f"mean of {counted(maps.pairs(ones, others), 'pair')}")
