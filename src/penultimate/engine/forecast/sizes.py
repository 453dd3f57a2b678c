"""What the steps of a study leave on disk, by arithmetic: nothing is built, and no image is looked at."""

from __future__ import annotations

from collections.abc import Container

from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.graph import Step, Supply
from penultimate.study.graph import Graph
from penultimate.study.spec import Study

NUMBERS = {
    "resnet50": (23_561_205, 2048),
    "inception_v3": (21_820_094, 2048),
    "allcnnc": (1_371_560, 192),
    "wrn16_8": (10_963_453, 512),
    "glyphnet": (224_892, 256),
    "glyphnet(features=1024, width=32)": (2_534_636, 1024),
    "glyphplain": (154_359, 256),
    "glyphmobile": (68_270, 256),
    "glyphwide": (207_999, 128),
}
"""Of each architecture the weights and batch-norm moments up to its features, and these features."""
PICTURE, RENDERED = 72 * 72 * 3, 24 * 24 * 3
"""Bytes that are kept of an image on disk, to look at, and of one of the embedded world."""
FLOAT, LABELS = 4, 16
"""Bytes of a number, and of a label and an id."""


def bytes_left(graph: Graph, done: Container[str]) -> tuple[int, bool]:
    """The bytes that the remaining steps will take, and whether that is all of them.

    Networks and features are counted, and images that are kept; rows and drawings are small beside them. Not
    counted are networks that were given, and architectures that `NUMBERS` does not name.
    """
    counts = [bytes_of(step, graph.study) for step_id, step in graph.steps.items() if step_id not in done]
    return sum(count or 0 for count in counts), None not in counts


def bytes_of(step: Step, study: Study) -> int | None:
    """The bytes that a step leaves; None where that is not known."""
    if step.name == "data":
        name = str(step.config["name"])
        on_disk = name in study.data or name in study.nowhere
        return study.card(name).images * (PICTURE if on_disk else RENDERED)
    if step.name == "corrupted":
        card = study.card(study.source)
        chosen = min(card.sizes["test"], card.classes * int(step.config["per_class"]))
        return chosen * RENDERED * len(BENCHMARK) * len(SEVERITIES)
    if step.name == "given":
        return None
    if step.name not in ("train", "extract"):
        return 0
    key = next((supply.network for supply in step.supplies if supply.network is not None), None)
    backbone = step.config["backbone"] if key is None else key.backbone
    if backbone not in NUMBERS:
        return None
    width, classes = NUMBERS[backbone][1], study.card(study.source).classes
    if step.name == "extract":
        of = next(supply for supply in step.supplies if supply.kind == "images")
        return study.card(of.of).sizes[of.name] * (FLOAT * (width + classes) + LABELS)
    every, epochs = step.config["recipe"]["snapshot_every"], step.config["recipe"]["epochs"]
    kept = 1 + ((epochs - 1) // every if every else 0)
    return weights(backbone, classes) * kept


def weights(backbone: str, classes: int) -> int:
    """The bytes of a network, its final layer included; 0 of an architecture that is not known."""
    numbers, width = NUMBERS.get(backbone, (0, 0))
    return FLOAT * (numbers + (width + 1) * classes)


def images_of(supply: Supply, study: Study, step: Step) -> int:
    """How many images a step is given by a parent, or takes of them."""
    card = study.card(supply.of)
    return int(min(card.sizes.get(supply.name, card.images), step.config.get("images", card.images)))
