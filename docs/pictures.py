"""Draw the pictures of README and of the start pages from the runs that come with the package.

Each holds the digest of the data that it was drawn from, by which one that is out of date is recognised,
whatever the version of matplotlib.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from penultimate.paper import published
from penultimate.results.drawing import draw as draw_panel
from penultimate.results.exhibit import show
from penultimate.results.figure import Panel
from penultimate.results.palette import PAPER, marks
from penultimate.results.rows import read_reference

FOLDER = Path(__file__).parent / "pictures"
PICTURES = {
    "strengths.svg": (
        "sweep",
        "doses",
        ("Families of objectives here (linear)", "The paper's nine objectives (linear)"),
    ),
    "figure5.svg": ("evidence", "figure5", ("Objectives on Glyphs", "Objectives on ImageNet (ResNet-50)")),
}
"""The run, the exhibit and the titles of the panels of each picture."""
TITLES = {
    "Families of objectives here (linear)": "Measured here, each objective at several strengths",
    "The paper's nine objectives (linear)": "Published: the paper's nine, ResNet-50 on ImageNet",
    "Objectives on Glyphs": "Measured here: nine objectives",
    "Objectives on ImageNet (ResNet-50)": "Published: the paper's nine, ResNet-50 on ImageNet",
}
GAP, HEAD = 26, 30


def panels(name: str) -> list[Panel]:
    """Return the panels of a picture, without the faint marks of single runs."""
    run, exhibit, titles = PICTURES[name]
    found = {
        panel.title: panel for figure in show(exhibit, read_reference(run)).figures for panel in figure.panels
    }
    return [
        dataclasses.replace(
            found[title],
            points=tuple(point for point in found[title].points if not point.faint),
            curves=tuple(curve for curve in found[title].curves if not curve.faint),
        )
        for title in titles
    ]


def essence(value: Any) -> Any:
    """Return what a panel says as plain values, without the fields that have their defaults.

    So a new field of the class makes no picture out of date.
    """
    if isinstance(value, list | tuple):
        return [essence(each) for each in value]
    if not dataclasses.is_dataclass(value):
        return value
    said = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    defaults = {each.name: each.default for each in dataclasses.fields(value)}
    return {name: essence(each) for name, each in said.items() if each != defaults[name]}


def digest(name: str) -> str:
    """Return the sha256 of what a picture shows."""
    return hashlib.sha256(repr(essence(panels(name))).encode()).hexdigest()


def stale() -> list[Path]:
    """Return the pictures that are missing or were drawn from other data."""
    return [
        FOLDER / name
        for name in PICTURES
        if not (FOLDER / name).is_file() or digest(name) not in (FOLDER / name).read_text(encoding="utf-8")
    ]


def draw(path: Path) -> None:
    """Draw a picture: its panels side by side on a background of paper."""
    drawn, across, height = [], GAP, 0.0
    for place, panel in enumerate(panels(path.name)):
        slugs = [each.slug for each in (*panel.points, *panel.curves)]
        width, tall = panel.size
        svg = draw_panel(panel, marks([*published.objectives(), *slugs])).styled(
            f"{path.stem}{place}", page=False
        )
        placed = f'<svg x="{across}" y="{HEAD}" width="{width}" height="{tall}" '
        drawn.append(
            f'<text x="{across}" y="22" font-family="sans-serif" font-size="13" font-weight="bold"'
            f' fill="#1d1d1b">{TITLES[panel.title]}</text>' + svg.replace("<svg ", placed, 1)
        )
        across, height = across + int(width) + GAP, max(height, tall + HEAD + 8)
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {height:g}" width="{across}"'
        f' height="{height:g}"><!-- {digest(path.name)} -->'
        f'<rect width="100%" height="100%" fill="{PAPER[0]}"/>'
        f"{''.join(drawn)}</svg>\n",
        encoding="utf-8",
    )
