"""The size of a study's files on disk, by arithmetic, without building networks or reading images."""

from __future__ import annotations

from collections.abc import Container

from penultimate.backbones.size import size_of
from penultimate.graph import Step, Supply
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Cost
from penultimate.networks.key import NetworkKey
from penultimate.study.foundation import VERSIONS
from penultimate.study.graph import Graph
from penultimate.study.spec import Study

SIDE = 24
"""The side of the embedded world's images in pixels."""
PICTURE, RENDERED = 72 * 72 * 3, SIDE * SIDE * 3
"""The bytes kept for the small picture of an image on disk, and for an image of the embedded world."""
FLOAT, LABELS = 4, 16
"""The bytes of a number, and of a label with its id."""


def cost_of(step: Step) -> Cost:
    """Return the declared cost of a step's measurement, or an empty cost for other steps."""
    return Cost() if step.name in VERSIONS else measurement(step.name).cost


def networks_of(step: Step) -> list[NetworkKey]:
    """Return the networks that a step runs or whose features it reads."""
    return list(dict.fromkeys(supply.network for supply in step.supplies if supply.network is not None))


def backbone_of(step: Step) -> str:
    """Return the architecture of a step's networks; empty if they were given or if there are none."""
    return str(step.config.get("backbone") or next((key.backbone for key in networks_of(step)), ""))


def bytes_left(graph: Graph, done: Container[str]) -> tuple[int, bool]:
    """Return the bytes that the remaining steps will take, and whether this count is complete.

    The count covers networks, features and kept images; rows and drawings are small in comparison. It leaves
    out given networks, and architectures that do not state their size.
    """
    counts = [bytes_of(step, graph.study) for step_id, step in graph.steps.items() if step_id not in done]
    return sum(count or 0 for count in counts), None not in counts


def bytes_of(step: Step, study: Study) -> int | None:
    """Return the bytes that a step leaves on disk; None if unknown."""
    images = cost_of(step).images
    if images is not None:
        return RENDERED * images(study.card(study.source), step.config)
    if step.name == "data":
        name = str(step.config["name"])
        return study.card(name).images * (PICTURE if is_on_disk(name, study) else RENDERED)
    if step.name == "given":
        existing = "file" in step.config
        return weights(backbone_of(step), study.card(study.source).classes) or None if existing else None
    if step.name not in ("train", "extract"):
        return 0
    backbone, classes = backbone_of(step), study.card(study.source).classes
    size = size_of(backbone)
    if size is None:
        return None
    if step.name == "extract":
        of = next(supply for supply in step.supplies if supply.kind == "images")
        return study.card(of.of).sizes[of.name] * (FLOAT * (size.features + classes) + LABELS)
    every, epochs = step.config["recipe"]["snapshot_every"], step.config["recipe"]["epochs"]
    kept = 1 + ((epochs - 1) // every if every else 0)
    return weights(backbone, classes) * kept


def weights(backbone: str, classes: int) -> int:
    """Return the bytes of a network with its final layer; 0 for an architecture that states no size."""
    size = size_of(backbone)
    return FLOAT * (size.numbers + (size.features + 1) * classes) if size else 0


def width_of(backbone: str) -> int:
    """Return the number of features of an architecture; 0 for one that states no size."""
    size = size_of(backbone)
    return size.features if size else 0


def is_on_disk(name: str, study: Study) -> bool:
    """Return whether the images of a data set lie on disk instead of in the embedded world."""
    return name in study.data or name in study.nowhere


def images_of(supply: Supply, study: Study, step: Step) -> int:
    """Return the number of images that a step uses from a parent."""
    card = study.card(supply.of)
    return int(min(card.sizes.get(supply.name, card.images), step.config.get("images", card.images)))
