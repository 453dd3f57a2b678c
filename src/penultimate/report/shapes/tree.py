"""A tree that joins networks by their similarity, drawn as a panel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penultimate.metrics.dendrogram import Dendrogram, dendrogram
from penultimate.report.base import Curve, Panel, Point
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.networks import StudyObjective
from penultimate.report.shapes.pairs import Pairs
from penultimate.report.text import fixed, listed

LEAF, MARGINS = 13.0, 64.0
"""The height of a leaf of the tree in points, and of the margins."""


def tree_panel(
    measurements: Measurements, pairs: Pairs, name: str, title: str, across: str, unit: str
) -> Panel | None:
    """Return the dendrogram of all networks; None for fewer than three, or if a pair has no number.

    `across` is the horizontal axis, and `unit` the name of a distance in per cent in tooltips.
    """
    specs = [objective.spec for objective in measurements.objectives]
    networks = sorted(
        {network for pair in pairs for network in pair},
        key=lambda network: (specs.index(network.objective), -1 if network.seed is None else network.seed),
    )
    both_ways = pairs | {(b, a): share for (a, b), share in pairs.items()}
    shares = [[1.0 if a == b else both_ways.get((a, b), math.nan) for b in networks] for a in networks]
    if len(networks) < 3 or any(math.isnan(share) for row in shares for share in row):
        return None
    tree = dendrogram(shares)
    leaves = [measurements.objective(network.objective) for network in networks]
    curves, joins = _branches(tree, leaves)
    points = []
    for place, leaf in enumerate(tree.order, 1):
        detail = f"{run_name(networks[leaf].seed)}, joins others at {fixed(joins[leaf], 1)} {unit}"
        points.append(Point(0.0, float(place), leaves[leaf].slug, leaves[leaf].label, detail))
    return Panel(
        name,
        title,
        across,
        "Models, in the order of the tree",
        tuple(points),
        tuple(curves),
        labelled=False,
        numbered=False,
        size=(420, max(340.0, LEAF * len(networks) + MARGINS)),
        y_limits=(0.0, len(networks) + 1.0),
    )


def _branches(tree: Dendrogram, leaves: Sequence[StudyObjective]) -> tuple[list[Curve], dict[int, float]]:
    """Return the lines of the tree, faint between objectives, and where each network first joins another."""
    ends = {leaf: (0.0, float(place)) for place, leaf in enumerate(tree.order, 1)}
    below = {leaf: {objective} for leaf, objective in enumerate(leaves)}
    curves, joins = [], {}

    def draw(cluster: int, *line: tuple[float, float]) -> None:
        labels = sorted(objective.label for objective in below[cluster])
        slug = min(objective.slug for objective in below[cluster])
        curves.append(Curve(line, slug, listed(labels), faint=len(labels) > 1))

    for number, (left, right, distance, _) in enumerate(tree.merges, len(leaves)):
        across = 100 * distance
        for child in (left, right):
            draw(child, ends[child], (across, ends[child][1]))
            joins[child] = across
        below[number] = below[left] | below[right]
        draw(number, (across, ends[left][1]), (across, ends[right][1]))
        ends[number] = across, (ends[left][1] + ends[right][1]) / 2
    return curves, joins
