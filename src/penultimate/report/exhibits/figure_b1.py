"""Figure B.1: CKA of the layers of networks with different objectives, in a second architecture."""

from __future__ import annotations

import dataclasses

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.figure2 import layers_exhibit
from penultimate.report.exhibits.layer_maps import layer_maps
from penultimate.report.exhibits.measurements import admit_compared
from penultimate.report.text import plain

PUBLISHED = (
    "The paper draws its Figure B.1 (Inception v3 on ImageNet) without printing a number. It says that there,"
    " too, the objective changes the later layers only."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    backbones = [str(name) for name in results.description.get("backbones", ())]
    found = layer_maps(results, measurements)
    maps = next((found[name] for name in backbones[1:] if name in found), None)
    title = "Do the layers of another architecture say the same?"
    shown = dataclasses.replace(measurements, other_backbones=())
    made = layers_exhibit("figureB1", title, shown, maps, _missing(results, backbones), PUBLISHED)
    if maps is None:
        return made
    first, second = plain(backbones[0]), plain(maps.backbone)
    note = f"The architecture here is {second}; all other exhibits show {first}."
    return dataclasses.replace(
        made, caption=f"The architecture: {second}. {made.caption}", notes=(note, *made.notes)
    )


def _missing(results: StudyResults, backbones: list[str]) -> str:
    """How to measure a second architecture."""
    what = "CKA of another architecture's layers"
    name, first = plain(results.description.get("name", "quickstart")), plain((backbones or ["glyphnet"])[0])
    if len(backbones) > 1:
        return not_measured(what, name)
    other = "glyphplain" if first.partition("(")[0] == "glyphnet" else "glyphnet"
    return (
        f"{what}: not measured: this study has one architecture; for a second"
        f" run `penultimate run {name} --set \"backbones=('{first}', '{other}')\"`"
    )
