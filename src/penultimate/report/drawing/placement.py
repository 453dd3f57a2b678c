"""Where labels go: each beside its point, inside the axes, over no other label and no point. Deterministic.

Every label has candidate positions on rings around its point; a cost counts overlaps, distance and crossed
leader lines, and the labels are moved one at a time to their cheapest candidate until none moves (coordinate
descent).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DISTANCES = (9.0, 13.0, 19.0, 26.0, 35.0, 46.0, 60.0, 76.0)
ANGLES = (0, 180, 90, 270, 30, 150, 330, 210, 60, 120, 300, 240)
LEADER_FROM = 15.0
OUTSIDE, OVER_LABEL, OVER_POINT, CROSSED, AMBIGUOUS = 4000.0, 1500.0, 400.0, 250.0, 60.0
AMBIGUOUS_WITHIN = 6.0
"""A label reads as belonging to the nearest mark: no other may come this much nearer to it, in pixels."""
PASSES = 8


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, y upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area shared with another box, in square pixels; 0 where they are apart.

        >>> Box(0, 0, 4, 4).overlap(Box(2, 3, 9, 9))
        2.0
        """
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return float(max(width, 0) * max(height, 0))

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the box nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)


@dataclass(frozen=True)
class Placed:
    """A label's box, and the leader line from its point where it stands far off."""

    box: Box
    leader: tuple[float, float, float, float] | None


def _candidates(x: float, y: float, width: float, height: float) -> list[tuple[float, Placed]]:
    """Positions around a point with the cost of their distance; the right-hand side is preferred."""
    candidates = []
    for distance in DISTANCES:
        for rank, angle in enumerate(ANGLES):
            cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            reach_x, reach_y = distance * cosine, distance * sine
            left = x + reach_x - (width * (1 - cosine) / 2 if abs(cosine) < 0.99 else width * (cosine < 0))
            bottom = y + reach_y - height * (1 - sine) / 2
            box = Box(left, bottom, left + width, bottom + height)
            near_x, near_y = box.nearest(x, y)
            leader = (x, y, near_x, near_y) if math.hypot(near_x - x, near_y - y) > LEADER_FROM else None
            candidates.append((distance * 1.6 + rank * 0.7 + (20 if leader else 0), Placed(box, leader)))
    return candidates


def _crosses(leader: tuple[float, float, float, float], box: Box) -> bool:
    """Whether the leader, its first tenth apart, passes through a box (by Liang and Barsky's clipping)."""
    x0, y0, x1, y1 = leader
    enters, leaves = 0.1, 1.0
    for start, reach, low, high in ((x0, x1 - x0, box.left, box.right), (y0, y1 - y0, box.bottom, box.top)):
        if reach == 0:
            if not low < start < high:
                return False
            continue
        near, far = sorted(((low - start) / reach, (high - start) / reach))
        enters, leaves = max(enters, near), min(leaves, far)
    return enters < leaves


def _own_cost(
    cost: float,
    placed: Placed,
    index: int,
    anchor: tuple[float, float],
    obstacles: Sequence[tuple[Box, int]],
    frame: Box,
) -> float:
    """What a position costs whatever the other labels do."""
    box = placed.box
    cost += OUTSIDE * (box.area - box.overlap(frame)) / box.area
    own_distance = math.dist(box.nearest(*anchor), anchor)
    for obstacle, owner in obstacles:
        cost += OVER_POINT * (box.overlap(obstacle) > 0)
        if owner != index:
            centre = (obstacle.left + obstacle.right) / 2, (obstacle.bottom + obstacle.top) / 2
            rival = math.dist(box.nearest(*centre), centre)
            near = 2 * AMBIGUOUS_WITHIN if placed.leader else own_distance + AMBIGUOUS_WITHIN
            cost += AMBIGUOUS * (rival < near)
            cost += CROSSED / 5 * bool(placed.leader and _crosses(placed.leader, obstacle))
    return cost


def place(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    obstacles: Sequence[tuple[Box, int]],
    frame: Box,
) -> list[Placed]:
    """One position per label; `anchors` [n] points, `sizes` [n] widths and heights, all in pixels.

    `obstacles` are marks, each with the index of the label that it belongs to.

    >>> place([(50, 50)], [(20, 8)], [], Box(0, 0, 100, 100))[0].box
    Box(left=59.0, bottom=46.0, right=79.0, top=54.0)
    """
    candidates = [_candidates(*anchor, *size) for anchor, size in zip(anchors, sizes, strict=True)]
    own_costs = [
        [_own_cost(cost, placed, index, anchors[index], obstacles, frame) for cost, placed in options]
        for index, options in enumerate(candidates)
    ]
    chosen: list[int] = [costs.index(min(costs)) for costs in own_costs]

    def pair_cost(first: Placed, second: Placed) -> float:
        cost = OVER_LABEL * (first.box.overlap(second.box) > 0)
        cost += CROSSED * (first.leader is not None and _crosses(first.leader, second.box))
        return cost + CROSSED * (second.leader is not None and _crosses(second.leader, first.box))

    for _ in range(PASSES):
        moved = False
        for i, options in enumerate(candidates):
            others = [candidates[j][chosen[j]][1] for j in range(len(candidates)) if j != i]
            totals = [
                own + sum(pair_cost(placed, other) for other in others)
                for own, (_, placed) in zip(own_costs[i], options, strict=True)
            ]
            best = totals.index(min(totals))
            moved |= totals[best] < totals[chosen[i]] - 1e-9
            chosen[i] = best if totals[best] < totals[chosen[i]] - 1e-9 else chosen[i]
        if not moved:
            break
    return [candidates[i][index][1] for i, index in enumerate(chosen)]
