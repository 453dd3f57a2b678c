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
        outline=tuple(_outline(tree, leaves, [run_name(network.seed) for network in networks], unit)),
    )


def _outline(tree: Dendrogram, leaves: Sequence[StudyObjective], runs: Sequence[str], unit: str) -> list[str]:
    """Return the tree in indented lines: where groups are joined, and below it what they join.

    Networks of one objective that are joined before any other stand in one line.
    """
    members = {leaf: [leaf] for leaf in range(len(leaves))}
    joined = dict(enumerate(tree.merges, len(leaves)))
    for number, merge in joined.items():
        members[number] = members[merge.left] + members[merge.right]
    place = {leaf: at for at, leaf in enumerate(tree.order)}

    def lines(cluster: int, depth: int) -> list[str]:
        inside, indent = sorted(members[cluster], key=place.__getitem__), "  " * depth
        at = f"{fixed(100 * joined[cluster].distance, 1)} {unit}" if cluster in joined else ""
        if len({leaves[leaf].label for leaf in inside}) == 1:
            named = f"{leaves[inside[0]].label}: {listed([runs[leaf] for leaf in inside])}"
            return [f"{indent}{named}{f' (joined at {at})' if at else ''}"]
        below = sorted(
            (joined[cluster].left, joined[cluster].right),
            key=lambda one: min(place[leaf] for leaf in members[one]),
        )
        return [f"{indent}joined at {at}:", *(line for one in below for line in lines(one, depth + 1))]

    return lines(len(leaves) + len(tree.merges) - 1, 0)


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
