"""The placement of labels: each beside its point, inside the axes, and over no other label or point.

Every label has candidate positions on rings around its point; a cost counts overlaps, distance and crossed
leader lines, and the labels are moved one at a time to their cheapest candidate until none moves (coordinate
descent).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[np.float64]
    Truths: TypeAlias = npt.NDArray[np.bool_]

DISTANCES = (9.0, 13.0, 19.0, 26.0, 35.0, 46.0, 60.0, 76.0)
ANGLES = (0, 180, 90, 270, 30, 150, 330, 210, 60, 120, 300, 240)
LEADER_FROM = 15.0
OUTSIDE, OVER_LABEL, OVER_POINT, CROSSED, AMBIGUOUS = 4000.0, 1500.0, 400.0, 250.0, 60.0
AMBIGUOUS_WITHIN = 6.0
"""Readers assign a label to the nearest mark, so no other mark may be nearer by this many pixels."""
PASSES = 8


class Box(NamedTuple):
    """A rectangle in pixels, y upwards; of many, an array [... 4]."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True)
class Placed:
    """A label's box, and the leader line from its point if the label is far from it."""

    box: Box
    leader: tuple[float, float, float, float] | None


@dataclass(frozen=True)
class _Options:
    """The positions that a label may take: boxes and leaders [k 4], whether these are drawn, costs [k]."""

    boxes: Numbers
    leaders: Numbers
    led: Truths
    costs: Numbers

    def placed(self, index: int) -> Placed:
        leader = tuple(self.leaders[index].tolist()) if self.led[index] else None
        return Placed(Box(*self.boxes[index].tolist()), leader)


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


def crosses(leaders: npt.ArrayLike, boxes: npt.ArrayLike) -> Truths:
    """Return whether leaders, their first tenths apart, pass through boxes (by Liang and Barsky's clipping).

    >>> crosses([(0, 0, 10, 10), (0, 7, 10, 7)], Box(4, 4, 6, 6))
    array([ True, False])
    """
    import numpy as np

    lines, others = np.asarray(leaders, float), np.asarray(boxes, float)
    start, reach = lines[..., :2], lines[..., 2:] - lines[..., :2]
    low, high = others[..., :2] - start, others[..., 2:] - start
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack(np.broadcast_arrays(low / reach, high / reach)), axis=0)
    beside = (reach == 0) & ~((low < 0) & (high > 0))
    enters = np.where(reach == 0, np.where(beside, np.inf, 0.1), ends[0]).max(axis=-1)
    leaves = np.where(reach == 0, 1.0, ends[1]).min(axis=-1)
    crossed: Truths = np.maximum(enters, 0.1) < np.minimum(leaves, 1.0)
    return crossed


def _nearest(boxes: Numbers, points: Numbers) -> Numbers:
    """Return the points of boxes that are nearest to some points [... 2]."""
    import numpy as np

    return np.clip(points, boxes[..., :2], boxes[..., 2:])


def _options(anchor: tuple[float, float], size: tuple[float, float]) -> _Options:
    """Return positions around a point with the cost of their distance; the right-hand side is preferred."""
    import numpy as np

    point, extent = np.asarray(anchor, float), np.asarray(size, float)
    distances, ranks = (
        grid.ravel() for grid in np.meshgrid(DISTANCES, np.arange(len(ANGLES)), indexing="ij")
    )
    angles = np.radians(ANGLES)[ranks]
    towards = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    shares = (1 - towards) / 2
    shares[:, 0] = np.where(abs(towards[:, 0]) < 0.99, shares[:, 0], towards[:, 0] < 0)
    corners = point + distances[:, None] * towards - extent * shares
    boxes = np.concatenate([corners, corners + extent], axis=-1)
    near = _nearest(boxes, point)
    led = np.hypot(*(near - point).T) > LEADER_FROM
    leaders = np.concatenate([np.broadcast_to(point, near.shape), near], axis=-1)
    return _Options(boxes, leaders, led, 1.6 * distances + 0.7 * ranks + 20.0 * led)


def _own_costs(options: _Options, marks: Numbers, foreign: Truths, frame: Box) -> Numbers:
    """Return the costs of positions regardless of other labels; `foreign` tells which marks are of others."""
    import numpy as np

    boxes, leaders = options.boxes[:, None], options.leaders[:, None]
    areas = np.prod(options.boxes[:, 2:] - options.boxes[:, :2], axis=-1)
    costs: Numbers = options.costs + OUTSIDE * (areas - overlap(options.boxes, frame)) / areas
    costs = costs + OVER_POINT * (overlap(boxes, marks) > 0).sum(axis=1)
    own = np.hypot(*(options.leaders[:, 2:] - options.leaders[:, :2]).T)
    centres = (marks[:, :2] + marks[:, 2:]) / 2
    rivals = np.linalg.norm(_nearest(boxes, centres) - centres, axis=-1)
    near = rivals < np.where(options.led, 2 * AMBIGUOUS_WITHIN, own + AMBIGUOUS_WITHIN)[:, None]
    through = options.led[:, None] & crosses(leaders, marks)
    costs = costs + ((AMBIGUOUS * near + CROSSED / 5 * through) * foreign).sum(axis=1)
    return costs


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

    every = [_options(anchor, size) for anchor, size in zip(anchors, sizes, strict=True)]
    marks = np.array([box for box, _ in obstacles], float).reshape(-1, 4)
    owners = np.array([owner for _, owner in obstacles], int)
    own = [_own_costs(options, marks, owners != i, frame) for i, options in enumerate(every)]
    chosen = [int(costs.argmin()) for costs in own]
    for _ in range(PASSES):
        moved = False
        for i, options in enumerate(every):
            others = [(other, chosen[j]) for j, other in enumerate(every) if j != i]
            boxes = np.array([other.boxes[at] for other, at in others]).reshape(-1, 4)
            leaders = np.array([other.leaders[at] for other, at in others]).reshape(-1, 4)
            led = np.array([other.led[at] for other, at in others], bool)
            here = options.boxes[:, None]
            totals = own[i] + (
                OVER_LABEL * (overlap(here, boxes) > 0)
                + CROSSED * (options.led[:, None] & crosses(options.leaders[:, None], boxes))
                + CROSSED * (led & crosses(leaders, here))
            ).sum(axis=1)
            best = int(totals.argmin())
            if totals[best] < totals[chosen[i]] - 1e-9:
                chosen[i], moved = best, True
        if not moved:
            break
    return [options.placed(index) for options, index in zip(every, chosen, strict=True)]
