"""Maps of the similarity of layers: figures 2, B.1 and D.3."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.printed import figure
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Panel, heat
from penultimate.results.means import name_on
from penultimate.results.rows import Objective, Run, arrays_of
from penultimate.results.table import Column, table_of_rows

UNTRAINED = Objective("", "At initialisation", "")


@exhibit("figure2", "Up to which layer do networks with different objectives agree?", section="3.2")
def figure2(run: Run) -> Iterator[Part]:
    """Linear CKA of two layers: 1 where they arrange the test images alike, whatever the directions and the
    scale of their activations, 0 where they have nothing in common. Only pairs of different seeds are
    compared where there are several. The paper draws its Figure 2 (ResNet-50 on ImageNet) without printing
    a number. It says that most layers hardly depend on the objective, and that the objectives part in the
    last third."""
    yield from layer_maps(run, "figure2", ONE_DRAW if ONE_DRAW in run.arms else "", run.backbone)


@exhibit("figureB1", "Do the layers of another architecture say the same?", section="B", study="glyphs")
def figureB1(run: Run) -> Iterator[Part]:
    """Linear CKA of two layers of networks of a second architecture, as in Figure 2. The paper draws its
    Figure B.1 (Inception v3 on ImageNet) without printing a number. It says that there, too, the objective
    changes the later layers only."""
    for backbone in run.further:
        yield from layer_maps(run, "figureB1", "", backbone)


@exhibit("figureD3", "Which layers does fine-tuning change?", section="D.4")
def figureD3(run: Run) -> Iterator[Part]:
    """Linear CKA of the layers of a network before fine-tuning (rows, from the top) and after it (columns),
    on the test images of each task: 1 where they arrange these alike. Networks of the baseline, means over
    runs. The paper draws its Figure D.3 without printing a number. It says that later layers change more
    than earlier ones, and that how much they change differs greatly between data sets."""
    means: dict[str, np.ndarray] = {}
    layers, base = list[str](), ""
    for task in run.targets:
        where = {"setting": "head=fresh", "target": task}
        held = list(arrays_of(run, "fine_tuned_layers", ("matrix", "layers"), **where))
        base = base or next((slug for slug, *_ in held if slug == run.baseline), held[0][0] if held else "")
        of_base = [arrays for slug, _, arrays in held if slug == base]
        if of_base:
            means[task] = rounded(np.mean([arrays["matrix"] for arrays in of_base], axis=0))
            layers = [str(layer) for layer in of_base[0]["layers"]]
    if means:
        title = f"{run.labels()[base]}: before and after fine-tuning"
        columns = [Column(f"cka_{layer}", layer, "CKA of a layer with itself", 3) for layer in layers]
        rows = [(card(task).title, block.diagonal().tolist()) for task, block in means.items()]
        yield table_of_rows("figureD3", title, columns, rows, corner="Task")
        panels = (map_of(name_on("figureD3", task), card(task).title, block) for task, block in means.items())
        yield figure("figureD3", title, *panels)


def layer_maps(run: Run, name: str, arm: str, backbone: str) -> Iterator[Part]:
    """Yield the maps of the baseline's layers against each objective's, and of objectives for each layer."""
    rows = run.rows("layer_cka", arm=arm, backbone=backbone, about="all")
    if run.arrays is None or rows.empty:
        return
    arrays = run.arrays(str(rows["step"].iloc[0]), "layer_cka")
    places = networks_of(arrays)
    there = [one for one in run.objectives(arm) if any(spec == one.spec for spec, _ in places)]
    if not there:
        return
    base = next((one for one in there if one.slug == run.baseline), there[0])
    layers = [arrays["layers"][place] for place in places[next(key for key in places if key[0] == base.spec)]]
    likeness = {
        (a.spec, b.spec): found
        for a, b in itertools.product(there, [*there, UNTRAINED])
        if (found := between(arrays, places, a.spec, b.spec))
    }
    beside = [one for one in [*there, UNTRAINED] if (base.spec, one.spec) in likeness]
    labels = [f"{one.label}, another seed" if one == base else one.label for one in beside]
    with_base = [likeness[base.spec, one.spec] for one in beside]
    columns = [Column(f"cka_{layer}", layer, f"CKA with {base.label}", 3) for layer in layers]
    errors = [error.diagonal() for _, error in with_base]
    yield table_of_rows(
        name,
        f"Corresponding layers: {base.label} and the others",
        columns,
        [(label, mean.diagonal().tolist()) for label, (mean, _) in zip(labels, with_base, strict=True)],
        errors=pd.DataFrame(errors, labels, [column.key for column in columns]),
        slugs=tuple(one.slug for one in beside),
    )
    panels = (
        map_of(f"{name}-layers-{number}", label, mean)
        for number, (label, (mean, _)) in enumerate(zip(labels, with_base, strict=True), 1)
    )
    yield figure(f"{name}-layers", "Layers against layers", *panels)
    if len(there) > 1:
        yield from objective_maps(name, there, layers, likeness)


def objective_maps(
    name: str, there: list[Objective], layers: list[str], likeness: Mapping[Any, Any]
) -> Iterator[Part]:
    """Yield the CKA of each layer between objectives, and the numbers of the last layer."""
    names, slugs = [one.label for one in there], tuple(one.slug for one in there)
    means, errors = np.full((2, len(there), len(there), len(layers)), np.nan)
    for (row, a), (column, b) in itertools.product(enumerate(there), repeat=2):
        mean, error = likeness.get((a.spec, b.spec), (np.empty(0), None))
        if mean.shape == (len(layers), len(layers)):
            means[row, column], errors[row, column] = mean.diagonal(), error.diagonal()
    keys = [f"cka_{slug}" for slug in slugs]
    yield table_of_rows(
        f"{name}-last",
        f"CKA of the last layer ({layers[-1]}) between objectives",
        [Column(key, label, digits=3) for key, label in zip(keys, names, strict=True)],
        list(zip(names, means[:, :, -1].tolist(), strict=True)),
        errors=pd.DataFrame(errors[:, :, -1], names, keys),
        slugs=slugs,
    )
    panels = (
        heat(f"{name}-between-{at}", f"{at}: {layer}", frame, slugs=(slugs, slugs))
        for at, layer in enumerate(layers, 1)
        for frame in [pd.DataFrame(means[:, :, at - 1], names, names)]
    )
    yield figure(f"{name}-objectives", "Objectives against objectives", *panels, legend=True)


Network = tuple[str, int]
"""The spec of an objective (empty at initialisation) and the seed."""


def networks_of(arrays: Mapping[str, Any]) -> dict[Network, list[int]]:
    """Return the places of each finished network's layers in the arrays, and of one at initialisation."""
    places: dict[Network, list[int]] = {}
    keys = (arrays[name].tolist() for name in ("objectives", "seeds", "epochs"))
    for place, (spec, seed, epoch) in enumerate(zip(*keys, strict=True)):
        if epoch <= 0:
            places.setdefault((str(spec), int(seed)), []).append(place)
    return places


def between(
    arrays: Mapping[str, Any], places: Mapping[Network, list[int]], first: str, second: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the mean CKA [layer, layer] over pairs of two objectives' networks, and its standard error."""
    of = [[network for network in places if network[0] == spec] for spec in (first, second)]
    every = [pair for pair in itertools.product(*of) if pair[0] != pair[1]]
    pairs = [pair for pair in every if pair[0][1] != pair[1][1]] or every
    if not pairs:
        return None
    blocks = [np.ix_(places[a], places[b]) for a, b in pairs]
    mean, error = (
        rounded(np.mean([arrays[name][block] for block in blocks], axis=0))
        for name in ("matrix", "standard_error")
    )
    return mean, error


def rounded(block: np.ndarray) -> np.ndarray:
    """Return numbers to six digits."""
    made: np.ndarray = np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])(block)
    return made


def map_of(name: str, title: str, block: np.ndarray) -> Panel:
    """Return a map of layers against layers, which are numbered from the input upwards."""
    rows, columns = ([str(place + 1) for place in range(count)] for count in block.shape)
    return heat(name, title, pd.DataFrame(block, rows, columns))
