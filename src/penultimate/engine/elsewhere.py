"""What a planned study costs on another device: by a rate that is stated, or by a kept run made there."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penultimate.engine.run import Plan
from penultimate.errors import RequestError
from penultimate.graph import Step
from penultimate.records.archive import reference_cards
from penultimate.training.recipe import Recipe

CORES = re.compile(r"\((\d+) cores\)")


@dataclass(frozen=True)
class OnDevice:
    """A plan for a device, the kept run whose seconds it has, the device's name, and its processes."""

    plan: Plan
    run: str
    device: str
    processes: int


def at_rate(made: Plan, images_per_second: float) -> Plan:
    """Return a plan whose trainings take the images that they see, divided by a rate, one after another.

    Other steps cost what they did. Raises RequestError for a rate that is not above 0.
    """
    if not images_per_second > 0:
        raise RequestError(f"a rate is a number of images a second, above 0, not {images_per_second:g}")
    images = made.graph.study.card(made.graph.study.source).sizes["train"]
    shown = sum(_images(step.config["recipe"], images) for step in _trainings(made))
    each = shown / images_per_second / max(made.trainings, 1)
    return _with(made, {cost.name: cost.seconds_each for cost in made.costs} | {"train": each})


def on_device(made: Plan, device: str) -> OnDevice:
    """Return a plan by what the steps of a kept run took on a device, such as "h100".

    A training costs in proportion to the images that it sees; a step whose kind the run lacks is of unknown
    cost. Raises RequestError if no run was made on such a device, or if it trained other architectures.
    """
    cards = reference_cards()
    runs = [kept for kept in cards if _has(kept, device)]
    if not runs:
        known = sorted({each for kept in cards for each in _devices(kept)} - {"cpu"})
        raise RequestError(
            f"no kept run was made on '{device}'; known: {', '.join(known)}. Of another, state its speed:"
            " --images-per-second 2500"
        )
    kept = max(runs, key=lambda one: sum(done for done, _ in one["provenance"]["steps"].values()))
    study = made.graph.study
    trained = {name for block in kept["description"]["networks"] for name in block.get("backbones", ())}
    asked = {str(step.config["backbone"]) for step in _trainings(made)}
    if study.source != kept["description"]["source"] or asked - trained:
        raise RequestError(
            f"{kept['description']['name']}, made on {_has(kept, device)}, trained"
            f" {', '.join(sorted(trained))} on {kept['description']['source']}, and '{study.name}' trains"
            f" {', '.join(sorted(asked)) or 'nothing'} on {study.source}; state the speed:"
            " --images-per-second 2500"
        )
    counts = kept["provenance"]["steps"]
    each = {name: took / counts[name][0] for name, took in kept["provenance"]["seconds"].items()}
    images = study.card(study.source).sizes["train"]
    there = [entry for entry in kept["description"]["networks"] if "recipe" in entry]
    seen = sum(_images(entry["recipe"], images) * _networks(entry) for entry in there)
    longer = sum(_images(step.config["recipe"], images) for step in _trainings(made))
    per_image = each["train"] * sum(map(_networks, there)) / seen
    each["train"] = per_image * longer / max(made.trainings, 1)
    cores = CORES.search(str(kept["provenance"].get("processor", "")))
    name = str(kept["description"]["name"])
    return OnDevice(_with(made, each), name, _has(kept, device), int(cores[1]) if cores else 1)


def _trainings(made: Plan) -> list[Step]:
    steps = made.graph.steps.items()
    return [step for step_id, step in steps if step.name == "train" and step_id not in made.done]


def _images(recipe: Mapping[str, Any], images: int) -> int:
    """Return how many images a training with a recipe sees."""
    read = Recipe(**recipe)
    return read.steps_on(images) * min(read.batch_size, images)


def _networks(entry: Mapping[str, Any]) -> int:
    return len(entry["objectives"]) * len(entry["seeds"]) * len(entry["backbones"])


def _with(made: Plan, each: Mapping[str, float | None]) -> Plan:
    costs: Iterable[Any] = (
        dataclasses.replace(cost, seconds_each=each.get(cost.name), is_guess=False) for cost in made.costs
    )
    return dataclasses.replace(made, costs=tuple(costs))


def _devices(kept: Mapping[str, Any]) -> list[str]:
    return [each.strip() for each in str(kept["provenance"].get("device", "")).split(",")]


def _has(kept: Mapping[str, Any], device: str) -> str:
    """Return the name of a kept run's device that has a text in it, or an empty string."""
    return next((each for each in _devices(kept) if device.lower() in each.lower() and each != "cpu"), "")
