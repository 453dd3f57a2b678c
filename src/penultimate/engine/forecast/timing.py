"""What a study costs on this machine where nobody knows: batches of its trainings and networks, timed."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate import registry
from penultimate.data.catalog import DatasetCard
from penultimate.engine.forecast.timings import Timings
from penultimate.errors import PenultimateError, RequestError
from penultimate.graph import Step
from penultimate.networks.key import NetworkKey
from penultimate.networks.sources import read_source
from penultimate.plugins import told
from penultimate.study.blocks import Given, Runs
from penultimate.study.graph import Graph
from penultimate.study.spec import Study

if TYPE_CHECKING:
    from penultimate.data.images import ImageSet

SIDE = 24
"""Pixels of a side of the embedded world's images."""
MOST_PIXELS = 2**20
"""Of the images of a training step that is timed; a larger batch takes as many times as long."""
TIMED, LARGE, SMALL = 8, 224, 4
"""Images of a batch of which a given network's cost is guessed, and the pixels of their sides; images of a
batch of which that of training on images on disk is."""
DECODING = 0.01
"""Seconds for an image file."""
PASSES = {"extract": 1.0, "layers": 1.5, "grams": 1.5}
"""Steps that run a network, and how many times as long as its features alone they take."""
TUNING, STEP = ("given_tune_cell", "given_fine_tuning"), 3.0
"""Steps that train a network further, and how many times as long as its features a step on an image takes."""
MOST_GRAMS = 1024
RATE = 2e10
"""Floating-point operations of a core in a second."""
PROBING = 4 * 45 * 6 / RATE
"""Seconds for an example, a feature and a class: 45 strengths, some passes each."""


def training_seconds(study: Study, timings: Timings) -> float | None:
    """Return the mean over the study's trainings, None where it is neither kept nor may be timed.

    Objectives cost nearly the same, so one of each grid and architecture is timed. An evaluation counts as
    the third of as many training steps. Raises RequestError where a plug-in fails in a training.
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
        raise RequestError(f"study '{study.name}' cannot be trained: {told(error)}") from error
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
    """Return the seconds of a training step on images on disk, without decoding them, for an image.

    A small batch of noise is timed. None where that is neither kept nor may be done.
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

        threads = torch.get_num_threads()
        torch.set_num_threads(study.threads)
        try:
            return seconds_per_step(objective, backbone, _images(known, count, side), block.recipe)
        finally:
            torch.set_num_threads(threads)

    key = [objective, backbone, asdict(block.recipe), known.name, known.classes, count, side, study.threads]
    what = f"{backbone}, trained on {count} images of {side} pixels" if side > SIDE else ""
    return timings.of(what, key, take)


def _images(known: DatasetCard, count: int, side: int) -> ImageSet:
    """Images of a plug-in's data set; noise in place of all others."""
    import numpy as np

    from penultimate.data.generation import splits_of
    from penultimate.data.images import ImageSet

    name = known.name
    if name in registry.names("dataset") and registry.entry("dataset", name).is_plugin:
        _, images = next(splits_of(name, 0))
        return images.subset(slice(count))
    names = tuple(map(str, range(known.classes)))
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), np.uint8)
    return ImageSet(pixels, np.arange(count) % len(names), np.arange(count), names)


def given_seconds(graph: Graph, done: Mapping[str, float], timings: Timings) -> dict[str, float | None]:
    """Return a guess of what the steps of given networks cost that are not done, by their ids.

    One batch of each network that is to run is timed, with first weights, so that nothing is downloaded. A
    network that cannot be built is left out; of one that is neither kept nor may be timed the seconds are
    None. Nothing is timed where no given network is to run.
    """
    study = graph.study
    blocks = [block for block in study.networks if isinstance(block, Given)]
    sources = {key: block.networks[key.objective] for block in blocks for key in block.keys()}
    left = [(step, _network_of(step)) for step_id, step in graph.steps.items() if step_id not in done]
    running = {
        key for step, key in left if step.name in (*PASSES, *TUNING) and key is not None and key in sources
    }
    timed = {key: _timed(sources[key], timings) for key in running}
    known = {key: each for key, each in timed.items() if each is not None}
    guessed = {step.id: _guess(step, study, known.get(key) if key else None) for step, key in left}
    untimed = {step.id for step, key in left if key in timed and key not in known and not timings.may_take}
    return {
        step_id: seconds for step_id, seconds in guessed.items() if seconds is not None or step_id in untimed
    }


def _network_of(step: Step) -> NetworkKey | None:
    """The one network that a step runs or measures."""
    keys = {supply.network for supply in step.supplies if supply.network is not None}
    return next(iter(keys)) if len(keys) == 1 else None


def neighbours_seconds(train: int, test: int, width: int) -> float:
    """All distances among the training images, and from the test images to these."""
    return 2 * train * (train + test) * width / RATE


def _guess(step: Step, study: Study, timed: tuple[float, int, int] | None) -> float | None:
    """The seconds of a step; None for what does not depend on the size of images and network."""
    name = str(step.columns.get("target"))
    if step.name == "data" and name in study.data:
        return study.card(name).images * DECODING
    if timed is None:
        return None
    each, width, layers = timed
    known = study.card(name)
    if step.name in ("probed", "depth"):
        train, test = known.sizes["train"], known.sizes["test"]
        probes = 0.5 + PROBING * train * known.classes * width + neighbours_seconds(train, test, width)
        return probes if step.name == "probed" else layers * probes + each * (train + test)
    if step.name in TUNING:
        shown: int = step.config["steps"] * min(step.config["batch_size"], known.sizes["train"])
        return each * (STEP * shown + known.sizes["test"])
    if step.name not in PASSES:
        return None
    images = known.sizes[step.config["split"] if step.name == "extract" else "test"]
    return PASSES[step.name] * each * (min(images, MOST_GRAMS) if step.name == "grams" else images)


def _timed(text: str, timings: Timings) -> tuple[float, int, int] | None:
    """Return seconds for an image, the number of features, and of layers; None for what cannot be built.

    What a user's files build is timed each time: the files may have changed.
    """
    source = read_source(text)
    if source.kind not in ("timm", "torchvision"):
        return _measured(text) if timings.may_take else None
    built = f"{source.kind}:{source.name}(pretrained=False)"
    known = timings.of(f"{source.kind}:{source.name}", [built, TIMED, LARGE], lambda: _measured(built))
    return None if known is None else (known[0], known[1], known[2])


def _measured(built: str) -> tuple[float, int, int] | None:
    import torch

    from penultimate.layers.observed import ObservedNetwork
    from penultimate.measures.inputs import load_network_of
    from penultimate.networks.given import fetch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            fetch(built, (), Path(folder))
            network = load_network_of(Path(folder))
            images = torch.zeros(TIMED, LARGE, LARGE, 3, dtype=torch.uint8)
            width = network.features(images).shape[1]
            began = time.perf_counter()
            network.features(images)
            seconds = (time.perf_counter() - began) / TIMED
            return seconds, width, len(ObservedNetwork.of("0", network, None).layers)
    except PenultimateError:
        return None
    finally:
        torch.set_num_threads(threads)
