"""Figure 2: CKA of the layers of networks with different objectives."""

from __future__ import annotations

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.layer_maps import (
    UNTRAINED,
    Doubles,
    LayerMaps,
    against_reference,
    figures,
    layer_maps,
    numbered,
    reference,
    tables,
)
from penultimate.report.exhibits.likeness import SEEDS_APART
from penultimate.report.exhibits.measurements import Measurements, Objective, admit_compared
from penultimate.report.text import counted, fixed, listed, plain

PUBLISHED = (
    "The paper draws its Figure 2 (ResNet-50 on ImageNet, 16 blocks, batches of 1500) without printing a"
    " number. It says that corresponding layers are more alike than others, that most layers hardly depend on"
    " the objective, and that the objectives part in the last third, from about block 13 on."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    maps = layer_maps(results, measurements).get(measurements.backbone)
    missing = not_measured("CKA of the networks' layers")
    title = "Up to which layer do networks with different objectives agree?"
    return layers_exhibit("figure2", title, measurements, maps, missing, PUBLISHED)


def layers_exhibit(
    name: str, title: str, measurements: Measurements, maps: LayerMaps | None, missing: str, published: str
) -> Exhibit:
    """The exhibit of one architecture's maps; without any, what is missing."""
    base = reference(maps, measurements) if maps else None
    if maps is None or base is None:
        notes = (missing, published, *measurements.notes())
        return Exhibit(name, title, _caption(), notes=notes, limited=measurements.limited)
    return Exhibit(
        name,
        title,
        f"{_caption()} Maps of layers: rows are layers of {base.label}, from the top, columns those of the"
        f" network that is named. Layers: {numbered(maps.layers)}.",
        tables(maps, measurements, name),
        figures(maps, measurements, name),
        notes=(
            *_controls(maps, measurements, base),
            _finding(maps, measurements, base.label),
            published,
            _how(maps),
            *_constant(maps, measurements),
            SEEDS_APART,
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _caption() -> str:
    return (
        "Linear CKA of two layers: 1 where they arrange the test images alike, whatever the directions and"
        " the scale of their activations, 0 where they have nothing in common."
    )


def _finding(maps: LayerMaps, measurements: Measurements, base: str) -> str:
    """What the maps say, in a sentence."""
    found = against_reference(maps, measurements)
    others = [mean.diagonal() for label, (_, mean, _) in found.items() if label not in (base, UNTRAINED)]
    if not others:
        return "Ours: one objective only, so there is none to compare it with."
    means = [sum(one[index] for one in others) / len(others) for index in range(len(maps.layers))]
    least = [min(one[index] for one in others) for index in range(len(maps.layers))]
    parts = [
        f"{fixed(means[index], 2)} (at least {fixed(least[index], 2)}) in {maps.layers[index]}"
        for index in (0, -1)
    ]
    controls = [
        f"{words} {_ends(found[label][1])}"
        for label, words in ((base, f"two seeds of {base}:"), (UNTRAINED, "a network at initialisation:"))
        if label in found
    ]
    return (
        f"Ours: the mean CKA of the other objectives with {base} is {listed(parts)};"
        f" for comparison, {'; '.join(controls)}."
    )


def _ends(block: Doubles) -> str:
    ends = [fixed(block.diagonal()[index], 2) for index in (0, -1)]
    return f"{ends[0]} and {ends[1]}"


def _controls(maps: LayerMaps, measurements: Measurements, base: Objective) -> tuple[str, ...]:
    """What it takes to have the control of two seeds."""
    if len(maps.networks(base.spec)) > 1:
        return ()
    name = plain(measurements.results.description.get("name", "quickstart"))
    what = f"{base.label} from two seeds, which is the paper's control"
    return (f"{what}: not measured: run `penultimate run {name} --seeds 0,1`",)


def _how(maps: LayerMaps) -> str:
    """How it was measured."""
    sizes = sorted(set(maps.batches))
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    examples = sum(maps.batches) // maps.passes
    return (
        f"Unbiased HSIC of minibatches of {size} of {examples:,} test images,"
        f" {counted(maps.passes, 'pass', 'passes')}; standard errors, in the tables' tooltips and CSV files,"
        " by jackknife over batches. The network at initialisation has the moments of its batch normalisation"
        " set on the training images."
    )


def _constant(maps: LayerMaps, measurements: Measurements) -> tuple[str, ...]:
    """Layers that have no CKA."""
    dead = [
        f"{maps.layers[place]} of {measurements.objective(network.spec).label}, seed {network.seed}"
        if network.is_trained
        else f"{maps.layers[place]} {UNTRAINED.lower()}"
        for network, rows in maps.rows.items()
        for place, row in enumerate(rows)
        if not maps.matrix[row, row] > 0
    ]
    return (f"No CKA, being the same for all images: {listed(dead)}.",) if dead else ()
