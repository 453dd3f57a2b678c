"""What steps on images on disk and steps of given networks cost here: a batch of each network, timed.

How a step's seconds follow from those of its networks is what its measurement declares.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.backbones.size import Size, size_of
from penultimate.engine.forecast.sizes import cost_of, images_of, is_on_disk, networks_of
from penultimate.engine.forecast.timing import given_network, seconds_per_image, training_seconds
from penultimate.engine.forecast.timings import Timings
from penultimate.graph import Step
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Layers
from penultimate.networks.key import NetworkKey
from penultimate.study.blocks import Given, Runs
from penultimate.study.foundation import SECONDS
from penultimate.study.graph import Graph
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

TRAINING = 3
"""How many times as long as features alone a step of training takes."""
SMALLEST = 32
"""Pixels of a side; images on disk that are no larger, as CIFAR's, are arrays and are not decoded."""
DECODING = 0.01
"""Seconds for an image file."""
USUAL_WIDTH = 256
USUAL = 20_480 * USUAL_WIDTH
"""Numbers in the bank of training images for which measurements declare their seconds."""
RATE = 2e10
"""Floating-point operations of a core in a second."""
PROBING = 4 * 45 * 6 / RATE
"""Seconds for an example, a feature and a class: 45 strengths, some passes each."""
OVERHEAD = 0.5
"""Seconds of a linear probe, however few the images are."""
Place: TypeAlias = tuple[str, int]
"""An architecture and the pixels of a side of its images; of a given network its name, and 0."""


@dataclass(frozen=True)
class Pace:
    """What a network costs: the seconds to show it an image and to decode one, its features and layers."""

    forward: float
    decoding: float
    width: int
    layers: int


def guessed_seconds(graph: Graph, done: Mapping[str, float], timings: Timings) -> dict[str, float | None]:
    """Return a guess of what the steps cost that are not done, by their ids, in seconds of one core.

    These are the steps on images on disk, and those of given networks. A batch of each network that is to run
    is timed. Probes and neighbours are told by their operations; the other measurements by what they declare
    for the embedded world, in proportion to their features. Where a network is neither kept nor may be timed,
    the seconds of its steps are None; one that cannot be built is left out.
    """
    study = graph.study
    left = [step for step_id, step in graph.steps.items() if step_id not in done]
    blocks = {key: block for block in study.networks for key in block.keys()}
    paces = _paces(study, blocks, left, timings)
    guessed: dict[str, float | None] = {}
    for step in left:
        if step.name == "data":
            name = str(step.config["name"])
            if is_on_disk(name, study):
                guessed[step.id] = study.card(name).images * DECODING
            continue
        places = {_place(key, blocks[key]) for key in networks_of(step)}
        if step.name == "train":
            places = {(str(step.config["backbone"]), step.config["recipe"]["size"])}
        place = places.pop() if len(places) == 1 else None
        if place not in paces or not (step.name == "train" or _runs(step) or _reads(step, place)):
            continue
        pace = paces[place]
        guessed[step.id] = None if pace is None else _guess(step, study, pace)
    return guessed


def _paces(
    study: Study, blocks: Mapping[NetworkKey, Runs | Given], left: Sequence[Step], timings: Timings
) -> dict[Place, Pace | None]:
    """Return what the networks cost of which steps are left; None for one that is not timed.

    A given network is timed if it is to run. Nothing is timed for trainings on the embedded world.
    """
    running = {key for step in left if _runs(step) for key in networks_of(step)}
    paces: dict[Place, Pace | None] = {}
    for key, block in blocks.items():
        place = _place(key, block)
        if place in paces:
            continue
        if isinstance(block, Given):
            if key in running:
                found = given_network(block.networks[key.objective], timings)
                if found is not None or not timings.may_take:
                    paces[place] = None if found is None else Pace(found[0], DECODING, *found[1:])
        elif left and (study.data or study.nowhere):
            seconds = seconds_per_image(study, block, key.backbone, timings)
            size = size_of(key.backbone) or Size(0, USUAL_WIDTH)
            decoding = DECODING if block.recipe.size > SMALLEST else 0.0
            paces[place] = (
                None if seconds is None else Pace(seconds / TRAINING, decoding, size.features, size.layers)
            )
    return paces


def _place(key: NetworkKey, block: Runs | Given) -> Place:
    """Return what the pace of a network depends on: its architecture and its images, or its name."""
    return (key.objective, 0) if isinstance(block, Given) else (key.backbone, block.recipe.size)


def _runs(step: Step) -> bool:
    """Return whether a step is given a network, to run it."""
    return any(supply.kind == "network" for supply in step.supplies)


def _reads(step: Step, place: Place) -> bool:
    """Return whether a step's cost follows from the features that it reads.

    Features of given networks are mostly few, and only probes of them take longer than is declared.
    """
    reads = any(supply.kind == "features" for supply in step.supplies)
    return reads and (place[1] > 0 or bool(cost_of(step).fits))


def _guess(step: Step, study: Study, pace: Pace) -> float:
    """Return the seconds of a step that trains or runs a network, or reads its features."""
    on = study.card(str(step.columns["target"] or study.source))
    train, test = on.sizes.get("train", 0), on.sizes.get("test", 0)
    if step.name == "train":
        recipe = Recipe(**step.config["recipe"])
        trained = recipe.steps_on(train) * min(recipe.batch_size, train)
        evaluated = on.sizes.get("holdout", 0) * (trained / train) / recipe.evaluate_every / TRAINING
        return (trained + evaluated) * (TRAINING * pace.forward + pace.decoding)
    shown = [
        (supply.name, images_of(supply, study, step)) for supply in step.supplies if supply.kind == "images"
    ]
    if step.name == "extract":
        return sum(images for _, images in shown) * (pace.forward + pace.decoding)
    what = measurement(step.name)
    if what.cost.trains:
        trained = step.config["steps"] * min(step.config["batch_size"], train)
        tested = sum(images for split, images in shown if split == "test")
        decoded = train if "train" in what.cost.decoded else trained
        return float((TRAINING * trained + tested) * pace.forward + (decoded + tested) * pace.decoding)
    states = 1 + (_snapshots(step, study) if what.of_snapshots else 0)
    passes = states * len(networks_of(step)) * step.config.get("passes", 1) if _runs(step) else 0
    each = what.cost.passes * pace.forward + pace.decoding
    ran: float = passes * sum(images for _, images in shown) * each
    if what.cost.fits:
        layers = pace.layers if any(isinstance(need, Layers) for need in what.needs) else 1
        linear = OVERHEAD + PROBING * train * on.classes * pace.width
        neighbours = 2 * train * (train + test) * pace.width / RATE
        probes = {"linear": linear, "knn": neighbours}
        return ran + states * layers * sum(probes[probe] for probe in what.cost.fits)
    banks = [supply for supply in step.supplies if supply.kind == "features"]
    read = sum(images_of(supply, study, step) for supply in banks)
    return ran + (what.seconds or 0) * read * pace.width / USUAL


def _snapshots(step: Step, study: Study) -> int:
    """Return how many earlier states of its network a step looks at."""
    block = next(block for block in study.runs if networks_of(step)[0] in {*block.keys()})
    every, epochs = block.recipe.snapshot_every, block.recipe.epochs
    kept = range(every, epochs, every) if every else range(0)
    return sum(epoch % step.config.get("every", 1) == 0 for epoch in kept)


def expected_seconds(study: Study, name: str, steps: Sequence[Step], timings: Timings) -> float | None:
    """Return the cost of a step of a kind, stated by the study or declared, in proportion to its length."""
    known = {**SECONDS, **study.expected_seconds}
    if name in known:
        return known[name]
    if name == "train":
        return training_seconds(study, timings)
    what = measurement(name)
    usual = next((setting.default for setting in what.settings if setting.name == "steps"), None)
    if usual is None or what.seconds is None:
        return what.seconds
    return float(what.seconds * statistics.mean(step.config["steps"] for step in steps) / usual)
