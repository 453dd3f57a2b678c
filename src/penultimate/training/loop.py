"""The one training loop, for any objective, backbone and images; a resumed run gives the same bits."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate.data.images import one_class_each
from penultimate.errors import RequestError
from penultimate.progress import Progress
from penultimate.training.feed import Examples
from penultimate.training.recipe import Recipe
from penultimate.training.run import Run
from penultimate.training.start import Start


@dataclass
class TrainingResult:
    """The outcome of a run: its status, the epoch kept, its curves (a point per epoch, split and metric)."""

    status: str
    epoch: int
    curves: list[dict[str, Any]]
    reason: str = ""
    damaged: list[str] = field(default_factory=list)


def train(
    objective: str,
    backbone: str,
    train: Examples,
    holdout: Examples | None,
    recipe: Recipe,
    seed: int,
    folder: Path,
    progress: Progress | None = None,
    checkpoint_seconds: float = 20.0,
    device: str = "cpu",
    start: Start | None = None,
) -> TrainingResult:
    """Train a network and write it (`network.safetensors`, `network.json`) to a folder.

    If the recipe keeps snapshots, the averaged weights of earlier epochs are in folders beside it. Without a
    holdout nothing is evaluated, and the last weights are kept.

    The loss of a batch is the mean of the objective's losses. Permutation, augmentation and dropout derive
    from (seed, epoch, step), so a run that is killed at any moment and called again gives the same bits. A
    loss that is not a finite number ends the run as "diverged", and so do features at the end that are not
    finite: the curves so far are returned, and no network is written.

    If every process of a torch.distributed group calls this function, each computes a part of every batch,
    the weights are those of a single process within rounding, and the first process writes them. The number
    of processes may differ when the run is resumed.

    A checkpoint that is damaged or belongs to another run is set aside: `progress` receives a notice
    ({"notice": ...}), and `damaged` of the result holds the reason.

    Raise RequestError if a set has no images or has several labels per image, if the recipe needs a holdout
    and there is none, for a `start` of another architecture (the error says what differs), and for batches
    that the processes cannot share.

    Kornblith et al., NeurIPS 2021, appendix A.1.
    """
    if len(train) < 1 or (holdout is not None and not len(holdout)):
        held_out = "" if holdout is None else f", {len(holdout)} held out"
        raise RequestError(f"training needs images; there are {len(train)} to train on{held_out}")
    for images in (train, holdout):
        if images is not None:
            one_class_each(images, "a network is trained on")
    if holdout is None and recipe.needs_holdout:
        raise RequestError("a recipe that stops at the best, or with patience, needs images held out")
    damaged: list[str] = []
    resumed = False
    while not resumed:  # a checkpoint that does not fit leaves a run half changed
        run = Run(objective, backbone, train, holdout, recipe, seed, folder, device, start)
        resumed = run.resume()
        damaged += run.checkpoints.damaged
    if progress is not None:
        place = f"goes on from step {run.step}" if run.step else "begins again"
        for reason in damaged:
            progress({"notice": f"{reason}; it was set aside, and the training {place}"})
    began, step_began = time.monotonic(), run.step
    saved = began
    with contextlib.closing(run.checkpoints):
        while run.epoch < run.epochs and not run.ended:
            for batch in run.batches():
                run.advance(batch)
                if run.reason:
                    return TrainingResult("diverged", run.epoch, run.curves, run.reason, damaged)
                if run.ranks.any(time.monotonic() - saved > checkpoint_seconds):
                    run.save(wait=False)
                    saved = time.monotonic()
            run.close_epoch()
            if run.reason:
                return TrainingResult("diverged", run.epoch, run.curves, run.reason, damaged)
            if progress is not None:
                rate = (run.step - step_began) * run.feed.batch_size / (time.monotonic() - began)
                # A run that resumed at the very end of an epoch has not timed any step yet.
                images_left = (run.steps - run.step) * run.feed.batch_size
                left = images_left / rate if rate else math.inf
                progress({**run.news, "images_per_second": rate, "seconds_left": left})
    kept = run.finish()
    if run.reason:
        return TrainingResult("diverged", run.epoch, run.curves, run.reason, damaged)
    return TrainingResult("done", kept, run.curves, damaged=damaged)
