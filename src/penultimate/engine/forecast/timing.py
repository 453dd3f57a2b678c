"""Estimate the unknown costs of a study on this machine by timing batches of its trainings and networks."""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate import registry
from penultimate.containment import contained, has_run
from penultimate.data.catalog import DatasetCard
from penultimate.engine.forecast.sizes import SIDE
from penultimate.engine.forecast.timings import Timings
from penultimate.errors import PenultimateError, RequestError
from penultimate.networks.sources import HUBS, read_source, with_settings
from penultimate.plugins import one_line
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.userfile import exits_noticed

if TYPE_CHECKING:
    from penultimate.data.images import ImageSet

MOST_PIXELS = 2**20
"""The most images in a timed training step; larger batches are extrapolated in proportion."""
TIMED, LARGE, SMALL = 8, 224, 4
"""The batch size and image side for estimating a given network's cost, and the batch size for estimating
training on images on disk."""


def training_seconds(study: Study, timings: Timings) -> float | None:
    """Return the mean over the study's trainings, or None if it is neither cached nor may be timed.

    Objectives cost nearly the same, so one of each grid and architecture is timed. An evaluation counts as a
    third of the same number of training steps. Raises RequestError if a plug-in fails in a training.
    """
    try:
        known = [
            (_seconds(study, block, backbone, timings), len(block.objectives) * len(block.seeds))
            for block in study.runs
            for backbone in block.backbones
        ]
    except PenultimateError:
        raise
    except Exception as error:  # whatever a plug-in raises
        raise RequestError(f"study '{study.name}' cannot be trained: {one_line(error)}") from error
    seconds = [each for each, _ in known if each is not None]
    return statistics.fmean(seconds, [count for _, count in known]) if len(seconds) == len(known) else None


def _seconds(study: Study, block: Runs, backbone: str, timings: Timings) -> float | None:
    recipe, known = block.recipe, study.card(study.source)
    sizes = known.sizes
    side = recipe.size if study.source in study.data else SIDE
    batch = min(recipe.batch_size, sizes["train"])
    count = min(batch, max(2, MOST_PIXELS // side**2))
    step = _step_seconds(study, block, backbone, count, side, timings)
    if step is None:
        return None
    steps = recipe.steps_on(sizes["train"])
    evaluated = sizes.get("holdout", 0) / sizes["train"] / 3 / recipe.evaluate_every
    return step * batch / count * steps * (1 + evaluated)


def seconds_per_image(study: Study, block: Runs, backbone: str, timings: Timings) -> float | None:
    """Return the seconds per image of a training step on images on disk, without decoding.

    It times a small batch of noise. Returns None if the time is neither cached nor may be measured.
    """
    step = _step_seconds(study, block, backbone, SMALL, block.recipe.size, timings)
    return None if step is None else step / SMALL


def _step_seconds(
    study: Study, block: Runs, backbone: str, count: int, side: int, timings: Timings
) -> float | None:
    """Return the seconds of a training step on a batch of the study's source, with the study's threads."""
    known, objective = study.card(study.source), block.objectives[0]

    def take() -> float:
        import torch

        from penultimate.training.pace import seconds_per_step

        with exits_noticed(), contained(f"the code that '{backbone}' runs", patches=has_run()):
            torch.set_num_threads(study.threads)
            return seconds_per_step(objective, backbone, _images(known, count, side), block.recipe)

    key = [objective, backbone, asdict(block.recipe), known.name, known.classes, count, side, study.threads]
    what = f"{backbone}, trained on {count} images of {side} pixels" if side > SIDE else ""
    return timings.of(what, key, take)


def _images(known: DatasetCard, count: int, side: int) -> ImageSet:
    """Return images of a plug-in's data set, or noise in place of any other data set."""
    import numpy as np

    from penultimate.data.images import ImageSet
    from penultimate.data.world.generation import splits_of

    name = known.name
    if name in registry.names("dataset") and registry.entry("dataset", name).is_plugin:
        _, images = next(splits_of(name, 0))
        return images.subset(slice(count))
    names = tuple(map(str, range(known.classes)))
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), np.uint8)
    labels = np.arange(count) // 2 % len(names)  # a loss may compare two images of a class
    return ImageSet(pixels, labels, np.arange(count), names)


def given_network(text: str, timings: Timings) -> tuple[float, int, int] | None:
    """Return seconds per image, number of features and number of layers; None if it cannot be built.

    A network built by a user's files is timed each time, because the files may have changed.
    """
    source = read_source(text)
    if source.kind not in ("timm", "torchvision"):
        drawn = source.kind in HUBS and not source.settings.keys() & {"pretrained", "weights"}
        built = with_settings(text, pretrained=False) if drawn else text  # no weights are downloaded for it
        return _measured(built) if timings.may_take else None
    built = f"{source.kind}:{source.name}(pretrained=False)"
    known = timings.of(f"{source.kind}:{source.name}", [built, TIMED, LARGE], lambda: _measured(built))
    return None if known is None else (known[0], known[1], known[2])


def _measured(built: str) -> tuple[float, int, int] | None:
    import torch

    from penultimate.layers.observed import ObservedNetwork
    from penultimate.measures.inputs import load_network_of
    from penultimate.networks.given import fetch

    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            exits_noticed(),
            contained(f"the code that '{built}' runs", patches=has_run()),
        ):
            torch.set_num_threads(1)
            fetch(built, (), Path(folder))
            network = load_network_of(Path(folder))
            images = torch.zeros(TIMED, LARGE, LARGE, 3, dtype=torch.uint8)
            width = network.features(images).shape[1]
            began = time.perf_counter()
            network.features(images)
            seconds = (time.perf_counter() - began) / TIMED
            return seconds, width, len(ObservedNetwork.of("0", network, None).layers)
    except (PenultimateError, SystemExit):
        return None
