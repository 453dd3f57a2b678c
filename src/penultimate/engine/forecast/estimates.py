"""What the steps on images on disk cost on this machine: one small batch of each architecture, timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from penultimate.engine.forecast.sizes import NUMBERS, images_of
from penultimate.engine.forecast.timing import DECODING, PROBING, neighbours_seconds, seconds_per_image
from penultimate.engine.forecast.timings import Timings
from penultimate.graph import Step
from penultimate.measures.catalogue import measurement
from penultimate.networks.key import NetworkKey
from penultimate.study.blocks import Runs
from penultimate.study.graph import Graph
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

BACKWARD = 3
"""How many times as long as features alone a step of training takes."""
SMALLEST = 32
USUAL = 20_480 * 256
"""Numbers in the bank of training images for which measurements declare their seconds."""
PROBES, FINE_TUNING = ("linear", "transfer_dynamics"), ("fine_tune_cell", "fine_tuning")
THROUGH_TRAINING = ("dynamics", "transfer_dynamics")
Timed: TypeAlias = dict[tuple[str, int], float | None]
"""Seconds of a step of training for an image, by architecture and pixels of a side; None where not timed."""


def disk_seconds(graph: Graph, done: Mapping[str, float], timings: Timings) -> dict[str, float | None]:
    """Return a guess of what the steps cost that are not done, by their ids, in seconds of one core.

    What runs a network by a batch of its architecture, timed; probes and neighbours by their operations; the
    other measurements by what they declare for the embedded world, in proportion to their features. Nothing
    is timed for a study whose images are those of the embedded world. Where an architecture is neither kept
    nor may be timed, the seconds of the steps that run it are None.
    """
    study = graph.study
    if not (study.data or study.nowhere) or not study.runs:
        return {}
    left = {step_id: step for step_id, step in graph.steps.items() if step_id not in done}
    blocks = {key: block for block in study.runs for key in block.keys()}
    timed: Timed = {}
    for key, block in blocks.items() if left else ():
        place = key.backbone, block.recipe.size
        if place not in timed:
            timed[place] = seconds_per_image(study, block, key.backbone, timings)
    of_ours = {step_id: step for step_id, step in left.items() if _is_of_ours(step, blocks)}
    return {step_id: _guess(step, study, blocks, timed) for step_id, step in of_ours.items()}


def _is_of_ours(step: Step, blocks: Mapping[NetworkKey, Runs]) -> bool:
    """Return whether a step takes only networks that the study trains."""
    networks = {supply.network for supply in step.supplies if supply.network is not None}
    return step.name in ("data", "train") or (bool(networks) and networks <= blocks.keys())


def _guess(step: Step, study: Study, blocks: Mapping[NetworkKey, Runs], timed: Timed) -> float | None:
    """Return the seconds of a step; None where what they depend on is not timed."""
    target = study.card(str(step.columns["target"] or study.source))
    sizes = target.sizes
    if step.name == "data":
        return target.images * DECODING
    if step.name == "train":
        recipe = Recipe(**step.config["recipe"])
        batch = min(recipe.batch_size, sizes["train"])
        trained = recipe.steps_on(sizes["train"]) * batch
        epochs = trained / sizes["train"]
        evaluated = sizes.get("holdout", 0) * epochs / recipe.evaluate_every / BACKWARD
        each = timed[step.config["backbone"], recipe.size]
        return None if each is None else (trained + evaluated) * (each + _decoding(recipe))
    networks = {supply.network for supply in step.supplies if supply.network is not None}
    first = next(iter(networks))
    recipe = blocks[first].recipe
    each, width = timed[first.backbone, recipe.size], NUMBERS.get(first.backbone, (0, 256))[1]
    if each is None:
        return None
    if step.name in FINE_TUNING:
        return float(step.config["steps"] * step.config["batch_size"] * (each + _decoding(recipe)))
    states = 1
    if step.name in THROUGH_TRAINING:
        kept = range(recipe.snapshot_every, recipe.epochs, recipe.snapshot_every or recipe.epochs)
        states += sum(epoch % step.config["every"] == 0 for epoch in kept)
    shown = sum(images_of(supply, study, step) for supply in step.supplies if supply.kind == "images")
    passes: int = states * len(networks) * step.config.get("passes", 1)
    ran: float = passes * shown * (each / BACKWARD + _decoding(recipe))
    if step.name == "extract":
        return ran
    train, test = sizes.get("train", 0), sizes.get("test", 0)
    if step.name in PROBES:
        return ran + states * PROBING * train * target.classes * width
    if step.name == "knn":
        return neighbours_seconds(train, test, width)
    read = sum(images_of(supply, study, step) for supply in step.supplies if supply.kind == "features")
    return ran + (measurement(step.name).seconds or 0) * read * width / USUAL


def _decoding(recipe: Recipe) -> float:
    """Seconds for an image; as small as CIFAR's they are arrays."""
    return DECODING if recipe.size > SMALLEST else 0.0
