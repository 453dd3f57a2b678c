"""The placement of labels: each beside its point, inside the axes, and over no other label or point.

Every label has candidate positions on rings around its point; a cost counts overlaps and distance, and the
labels are moved one at a time to their cheapest candidate until none moves (coordinate descent).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[np.float64]

DISTANCES = (9.0, 13.0, 19.0, 26.0, 35.0, 46.0, 60.0, 76.0)
ANGLES = (0, 180, 90, 270, 30, 150, 330, 210, 60, 120, 300, 240)
LEADER_FROM = 15.0
"""A label farther from its point than this has a leader line."""
OUTSIDE, OVER_LABEL, OVER_POINT, LED, AMBIGUOUS = 4000.0, 1500.0, 400.0, 20.0, 60.0
AMBIGUOUS_WITHIN = 6.0
"""Readers assign a label to the nearest mark, so no other mark may be nearer by this many pixels."""
PASSES = 8


class Box(NamedTuple):
    """A rectangle in pixels, y upwards; of many, an array [... 4]."""

    left: float
    bottom: float
    right: float
    top: float


class Placed(NamedTuple):
    """A label's box, and the leader line from its point if the label is far from it."""

    box: Box
    leader: tuple[float, float, float, float] | None


def overlap(boxes: npt.ArrayLike, others: npt.ArrayLike) -> Numbers:
    """Return the areas that boxes share with others, in square pixels; 0 where they are apart.

    >>> overlap([Box(0, 0, 4, 4)], [Box(2, 3, 9, 9)])
    array([2.])
    """
    import numpy as np

    one, other = np.asarray(boxes, float), np.asarray(others, float)
    sides = np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2])
    shared: Numbers = np.prod(np.maximum(sides, 0), axis=-1)
    return shared


def _candidates(anchor: tuple[float, float], size: tuple[float, float]) -> tuple[Numbers, Numbers]:
    """Return boxes around a point [k 4] and what their distance costs [k]; the right side is preferred."""
    import numpy as np

    grids = np.meshgrid(DISTANCES, np.arange(len(ANGLES)), indexing="ij")
    distances, ranks = (grid.ravel() for grid in grids)
    angles = np.radians(ANGLES)[ranks]
    towards = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    shares = (1 - towards) / 2  # the part of the box that lies left of and below the point on the ring
    shares[:, 0] = np.where(abs(towards[:, 0]) < 0.99, shares[:, 0], towards[:, 0] < 0)
    corners = np.asarray(anchor) + distances[:, None] * towards - np.asarray(size) * shares
    return np.concatenate([corners, corners + np.asarray(size)], axis=-1), 1.6 * distances + 0.7 * ranks


def _distances(boxes: Numbers, points: Numbers) -> Numbers:
    """Return how far boxes [... 4] are from points [... 2]."""
    import numpy as np

    away: Numbers = np.linalg.norm(np.clip(points, boxes[..., :2], boxes[..., 2:]) - points, axis=-1)
    return away


def place(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    obstacles: Sequence[tuple[Box, int]],
    frame: Box,
) -> list[Placed]:
    """Return one position per label for `anchors` [n] (points) and `sizes` [n] (widths, heights), in pixels.

    `obstacles` are marks, each with the index of its label.

    >>> place([(50, 50)], [(20, 8)], [], Box(0, 0, 100, 100))[0].box
    Box(left=59.0, bottom=46.0, right=79.0, top=54.0)
    """
    import numpy as np

    marks = np.array([box for box, _ in obstacles], float).reshape(-1, 4)
    centres, owners = (marks[:, :2] + marks[:, 2:]) / 2, np.array([owner for _, owner in obstacles], int)
    every, own = [], []
    for label, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        boxes, costs = _candidates(anchor, size)
        distance = _distances(boxes, np.asarray(anchor, float))
        is_led = distance > LEADER_FROM
        outside = 1 - overlap(boxes, frame) / (size[0] * size[1])
        reach = np.where(is_led, 2 * AMBIGUOUS_WITHIN, distance + AMBIGUOUS_WITHIN)
        rivals = (_distances(boxes[:, None], centres) < reach[:, None]) & (owners != label)
        covered = overlap(boxes[:, None], marks) > 0
        costs = (
            costs + LED * is_led + OUTSIDE * outside + OVER_POINT * covered.sum(1) + AMBIGUOUS * rivals.sum(1)
        )
        every.append(boxes)
        own.append(costs)
    chosen = [int(costs.argmin()) for costs in own]
    for _ in range(PASSES):
        before = list(chosen)
        for label, boxes in enumerate(every):
            others = np.array([every[i][at] for i, at in enumerate(chosen) if i != label]).reshape(-1, 4)
            totals = own[label] + OVER_LABEL * (overlap(boxes[:, None], others) > 0).sum(1)
            if totals.min() < totals[chosen[label]] - 1e-9:
                chosen[label] = int(totals.argmin())
        if chosen == before:
            break
    placed = []
    for anchor, boxes, at in zip(anchors, every, chosen, strict=True):
        box, point = boxes[at], np.asarray(anchor, float)
        end = np.clip(point, box[:2], box[2:])
        leader = (*point.tolist(), *end.tolist()) if np.linalg.norm(end - point) > LEADER_FROM else None
        placed.append(Placed(Box(*box.tolist()), leader))
    return placed
