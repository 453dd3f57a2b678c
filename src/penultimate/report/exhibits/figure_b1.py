"""Figure B.1: CKA of the layers of networks with different objectives, in a second architecture."""

from __future__ import annotations

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.figure2 import layers_exhibit
from penultimate.report.exhibits.layer_maps import layer_maps
from penultimate.report.exhibits.measurements import admit
from penultimate.report.text import plain

PUBLISHED = (
    "The paper draws its Figure B.1 (Inception v3 on ImageNet) without printing a number. It says that there,"
    " too, the objective changes the later layers only."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    backbones = [str(name) for name in results.description.get("backbones", ())]
    maps = next(
        (one for name, one in layer_maps(results, measurements).items() if name in backbones[1:]), None
    )
    title = "Do the layers of another architecture say the same?"
    missing = _other_architecture(results, backbones)
    return layers_exhibit("figureB1", title, measurements, maps, missing, PUBLISHED)


def _other_architecture(results: StudyResults, backbones: list[str]) -> str:
    """How to measure a second architecture."""
    name, first = plain(results.description.get("name", "quickstart")), plain((backbones or ["glyphnet"])[0])
    other = "glyphnet(width=24)" if first == "glyphnet" else "glyphnet"
    return (
        "CKA of another architecture's layers: not measured: this study has one architecture; for a second"
        f" run `penultimate run {name} --set \"backbones=('{first}', '{other}')\"`"
    )
