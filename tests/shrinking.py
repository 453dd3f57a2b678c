"""Small versions of studies that are too large to be run here: for tests and rehearsals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from penultimate.measures.catalogue import requested
from penultimate.specs import Spec
from penultimate.study.blocks import Given, Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe


def shrink(
    study: Study,
    data: Mapping[str, str],
    *,
    epochs: int = 2,
    batch_size: int = 8,
    size: int | None = None,
    images: int = 32,
) -> Study:
    """Return the study on less data, in fewer epochs and smaller batches, at a lower resolution.

    `data` is {name: folder}, and the study takes the images and classes that are there. No image is larger
    than `size` pixels on a side, if that is given. A measurement trains for at most `epochs` steps, and takes
    at most `batch_size` images in a batch, `images` images in all and two images of a class. Architectures,
    objectives, probes and the shapes of schedules stay as they are, and so does the number of networks
    (`study.selection.restrict`). The study is marked as limited, its name says that it was shrunk, and its
    steps run on one thread of the CPU.

    >>> from penultimate.study import load_study
    >>> small = shrink(load_study("quickstart"), {}, epochs=1)
    >>> small.name, small.main.recipe.epochs, small.limited
    ('quickstart-shrunk', 1, True)
    """
    most = {
        **dict.fromkeys(("images", "count"), images),
        **dict.fromkeys(("every", "per_class"), 1),
        "steps": epochs,
        "batch_size": batch_size,
        "shots": 2,
    }

    def smaller(block: Runs | Given) -> Runs | Given:
        block = dataclasses.replace(block, measure=_measured(block.measure, most))
        if isinstance(block, Given):
            return block
        return dataclasses.replace(block, recipe=_brief(block.recipe, epochs, batch_size, size))

    return dataclasses.replace(
        study,
        name=f"{study.name}-shrunk",
        title=f"{study.title}, shrunk",
        networks=tuple(map(smaller, study.networks)),
        measure=_measured(study.measure, most) or (),
        limited=True,
        threads=1,
        gpus=0.0,
        data={**study.data, **data},
    )


def _brief(recipe: Recipe, epochs: int, batch_size: int, size: int | None) -> Recipe:
    """Return a shorter recipe; whatever the recipe does every few epochs still happens."""
    batch, side = min(recipe.batch_size, batch_size), min(recipe.size, size or recipe.size)
    often = max(1, epochs // 2)
    return dataclasses.replace(
        recipe,
        epochs=min(recipe.epochs, epochs),
        batch_size=batch,
        ghost_batch=recipe.ghost_batch and min(recipe.ghost_batch, batch),
        at_once=recipe.at_once and min(recipe.at_once, batch),
        size=side,
        resize=round(recipe.resize * side / recipe.size),
        evaluate_every=min(recipe.evaluate_every, often),
        snapshot_every=min(recipe.snapshot_every, often),
    )


def _measured(texts: tuple[str, ...] | None, most: Mapping[str, int]) -> tuple[str, ...] | None:
    """Return the measurements with their settings lowered to the given maxima; None stays None."""
    if texts is None:
        return None
    asked = map(requested, texts)
    return tuple(
        str(
            Spec(
                one.measurement.name,
                {name: _lower(value, most.get(name)) for name, value in one.settings.items()},
            )
        )
        for one in asked
    )


def _lower(value: object, most: int | None) -> object:
    if isinstance(value, tuple | list):
        return tuple(dict.fromkeys(_lower(each, most) for each in value))
    return min(value, most) if isinstance(value, int) and most is not None else value
