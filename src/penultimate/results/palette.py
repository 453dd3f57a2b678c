"""One colour and one shape per objective, the same in every figure and table, on paper and on a dark screen.

The colours were searched so that, under normal vision, deuteranopia and protanopia (Machado et al., 2009), no
two of the nine come closer than 0.06 in OKLab, each at a contrast of 3 or more with its background; the
shapes carry the rest. Softmax, the baseline of the question, is drawn in ink.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.objectives.sweeps import temperature_of

Vertices: TypeAlias = tuple[tuple[float, float], ...]


def _colours(text: str) -> tuple[str, ...]:
    return tuple(f"#{colour}" for colour in text.split())


PAPER = ("#fcfbf8", "#131417")
INK = ("#1d1d1b", "#eceae4")
MUTED = ("#65635d", "#a3a098")
RULE = ("#dad7d0", "#33353a")
HEAT = (
    _colours(
        "f6f1e3 f1e9d4 ece2c5 e6dab6 e1d3a7 dccb98 c5c397 aebb97 96b395 7dab94 62a292"
        " 55948d 488687 3b7982 2e6b7c 215e76 1d5269 19465c 163a50 122f44 0e2438"
    ),
    _colours(
        "1c2026 1e252e 202935 222e3d 233345 25384d 294154 2d4a5c 305363 345c6a 386672"
        " 487275 577e77 678a79 76977b 86a37c 9db28a b4c298 cbd1a6 e3e1b5 fbf1c4"
    ),
)
"""The colour scale of numbers, from background to ink, on paper and on a dark screen."""
HEAT_STEPS = len(HEAT[0])
HEAT_FLIP = 12
"""The step from which text on the cell has the colour of the background."""


def _ring(corners: int, start: float = 90, inner: float | None = None) -> Vertices:
    """Return a regular polygon of radius 1 with its first corner at `start` degrees, or a star."""
    radii = (1.0,) if inner is None else (1.0, inner)
    steps = corners * len(radii)
    angles = [math.radians(start + 360 * step / steps) for step in range(steps)]
    return tuple(
        (round(radii[i % len(radii)] * math.cos(angle), 4), round(radii[i % len(radii)] * math.sin(angle), 4))
        for i, angle in enumerate(angles)
    )


def _cross(turn: float) -> Vertices:
    arm, width = 1.0, 0.36
    corners = [(width, arm), (width, width), (arm, width)]
    whole = [
        (x * math.cos(q) - y * math.sin(q), x * math.sin(q) + y * math.cos(q))
        for q in (math.pi / 2 * quarter for quarter in range(4))
        for x, y in reversed(corners)
    ]
    cosine, sine = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return tuple((round(x * cosine - y * sine, 4), round(x * sine + y * cosine, 4)) for x, y in whole)


SHAPES: dict[str, tuple[Vertices, float]] = {
    "circle": (_ring(40), 0.86),
    "square": (_ring(4, 45), 1.08),
    "triangle_up": (_ring(3, 90), 1.12),
    "triangle_down": (_ring(3, 270), 1.12),
    "diamond": (_ring(4, 90), 1.08),
    "plus": (_cross(0), 0.98),
    "cross": (_cross(45), 0.98),
    "star": (_ring(5, 90, 0.45), 1.22),
    "triangle_right": (_ring(3, 0), 1.12),
    "pentagon": (_ring(5, 90), 0.95),
    "triangle_left": (_ring(3, 180), 1.12),
    "hexagon": (_ring(6, 0), 0.95),
    "burst": (_ring(8, 90, 0.6), 1.05),
}
"""Vertices in the unit circle, y upwards, and the scale that makes their areas look alike."""


@dataclass(frozen=True)
class Mark:
    """How an objective is drawn: its colours on paper and on a dark screen, and its shape."""

    key: str
    light: str
    dark: str
    shape: str

    @property
    def variable(self) -> str:
        """The CSS custom property that holds its colour in the page."""
        return f"--mark-{self.key}"

    def svg_path(self, radius: float, centre: float) -> str:
        """Return the shape as the `d` of an SVG path, y downwards."""
        vertices, scale = SHAPES[self.shape]
        size = radius * scale
        points = [f"{centre + size * x:.2f} {centre - size * y:.2f}" for x, y in vertices]
        return f"M{'L'.join(points)}Z"


PRESET_MARKS = {
    "softmax": ("#1d1d1b", "#eceae4", "circle"),
    "label_smoothing": ("#1a56c4", "#4f87ea", "triangle_right"),
    "sigmoid": ("#1590a8", "#72daf0", "triangle_up"),
    "final_layer_l2": ("#cf7420", "#f2a33a", "diamond"),
    "dropout": ("#7d2a7a", "#c060b6", "triangle_down"),
    "logit_penalty": ("#66660f", "#96871a", "plus"),
    "logit_norm": ("#129a6c", "#1fdd9f", "cross"),
    "cosine_softmax": ("#8573ee", "#a596ee", "star"),
    "squared_error": ("#8c2626", "#d07f7c", "square"),
}
OTHER_COLOURS = tuple((light, dark) for light, dark, _ in list(PRESET_MARKS.values())[1:])
OTHER_SHAPES = ("pentagon", "triangle_left", "hexagon", "burst")
GRADED = (("#8b7aef", "#21125f"), ("#6d5bd8", "#e9e4fe"))
"""The lowest and the highest temperature of cosine softmax, on paper and on a dark screen: one graded hue."""


def marks(slugs: Sequence[str]) -> dict[str, Mark]:
    """Return the mark of every objective: the paper's nine keep theirs, others take theirs in order.

    Further temperatures of cosine softmax are circles in its hue; higher ones contrast more with the
    background.

    >>> marks(["softmax", "focal(gamma=2)"])["focal(gamma=2)"]
    Mark(key='focal-gamma-2', light='#1a56c4', dark='#4f87ea', shape='pentagon')
    """
    chosen: dict[str, Mark] = {}
    keys: set[str] = set()
    others = 0
    of_slugs = {slug: temperature_of(slug) for slug in slugs}
    temperatures = sorted({value for value in of_slugs.values() if value is not None})
    for slug in dict.fromkeys(slugs):
        key = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-")[:40] or "objective"
        while key in keys:
            key += "-"
        keys.add(key)
        if slug in PRESET_MARKS:
            light, dark, shape = PRESET_MARKS[slug]
        elif (temperature := of_slugs[slug]) is not None:
            share = temperatures.index(temperature) / max(len(temperatures) - 1, 1)
            light, dark = (_between(*ends, share) for ends in GRADED)
            shape = "circle"
        else:
            light, dark = OTHER_COLOURS[others % len(OTHER_COLOURS)]
            shape = OTHER_SHAPES[(others // len(OTHER_COLOURS) + others) % len(OTHER_SHAPES)]
            others += 1
        chosen[slug] = Mark(key, light, dark, shape)
    return chosen


def _between(first: str, last: str, share: float) -> str:
    """Return a colour between two.

    >>> _between("#000000", "#ff8000", 0.5)
    '#804000'
    """
    ends = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in (first, last)]
    return "#" + "".join(f"{round(low + share * (high - low)):02x}" for low, high in zip(*ends, strict=True))
