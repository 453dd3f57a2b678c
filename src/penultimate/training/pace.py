"""The time that a training step takes on this machine."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from penultimate.data.images import ImageSet
from penultimate.training.recipe import Recipe
from penultimate.training.run import Run

LONG_ENOUGH = 2.0
"""The total number of seconds after which no further step is timed."""


def seconds_per_step(objective: str, backbone: str, images: ImageSet, recipe: Recipe) -> float:
    """Return the processor time of the fastest of up to four training steps on a batch of these images."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        ghost = recipe.ghost_batch if recipe.ghost_batch and len(images) % recipe.ghost_batch == 0 else None
        recipe = replace(recipe, batch_size=len(images), ghost_batch=ghost, at_once=None)
        run = Run(objective, backbone, images, images, recipe, 0, Path(folder), "cpu")
        while len(took) < 4 and sum(took) < LONG_ENOUGH:
            began, run.step = time.process_time(), 0
            run.advance(next(run.batches()))
            took.append((time.process_time() - began) / torch.get_num_threads())
    return min(took)
