"""What the trainings of a study cost on this machine where nobody knows: a few of their batches, timed."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.errors import PenultimateError, RequestError
from penultimate.plugins import told
from penultimate.study.spec import Runs, Study

if TYPE_CHECKING:
    from penultimate.data.images import ImageSet

SIDE = 24
"""Pixels of a side of the embedded world's images."""


def training_seconds(study: Study) -> float:
    """The mean over the study's trainings; raises RequestError where a plug-in fails in one.

    Objectives cost nearly the same, so one of each grid and architecture is timed. An evaluation counts as
    the third of as many training steps.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(study.threads)
    try:
        known = [
            (_seconds(study, block, backbone), len(block.objectives) * len(block.seeds))
            for block in study.runs
            for backbone in block.backbones
        ]
    except PenultimateError:
        raise
    except Exception as error:  # whatever a plug-in raises
        raise RequestError(f"study '{study.name}' cannot be trained: {told(error)}") from error
    finally:
        torch.set_num_threads(threads)
    return statistics.fmean([seconds for seconds, _ in known], [count for _, count in known])


def _seconds(study: Study, block: Runs, backbone: str) -> float:
    from penultimate.training.loop import seconds_per_step

    recipe, sizes = block.recipe, card(study.source).sizes
    images = _images(study.source, min(recipe.batch_size, sizes["train"]))
    step = seconds_per_step(block.objectives[0], backbone, images, recipe)
    trained = max(1, sizes["train"] // recipe.batch_size)
    evaluated = sizes["holdout"] / len(images) / 3 / recipe.evaluate_every
    return step * (trained + evaluated) * recipe.epochs


def _images(name: str, count: int) -> ImageSet:
    """Images of a plug-in's data set; noise in place of the built-in ones, which all have one size."""
    import numpy as np

    from penultimate.data.generation import splits_of
    from penultimate.data.images import ImageSet

    if registry.entry("dataset", name).is_plugin:
        _, images = next(splits_of(name, 0))
        return images.subset(slice(count))
    names = tuple(map(str, range(card(name).classes)))
    pixels = np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE, 3), np.uint8)
    return ImageSet(pixels, np.arange(count) % len(names), np.arange(count), names)
