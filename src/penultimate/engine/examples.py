"""The images that a network is trained on, and a network that was trained on them elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penultimate.data.disk.listed import ListedImages
    from penultimate.data.images import ImageSet
    from penultimate.measures.inputs import Inputs
    from penultimate.training.recipe import Recipe


def holds_out(folder: Path) -> bool:
    """Return whether a data set has a holdout; published ones are trained on whole."""
    from penultimate.data.images import read_manifest

    return "holdout" in read_manifest(folder)["splits"]


def examples(folder: Path, split: str, recipe: Recipe, threads: int) -> ImageSet | ListedImages:
    """Return a split for training; images on disk are normalised by the moments of their small pictures."""
    from penultimate.data.disk.listed import LISTING, listed_images
    from penultimate.data.disk.preparation import Preparation
    from penultimate.data.images import ChannelStatistics, load_images

    if not (folder / LISTING).is_file():
        return load_images(folder, split)
    statistics = ChannelStatistics.of(load_images(folder, "train").images)
    preparation = Preparation(recipe.resize, recipe.size, "bilinear", statistics)
    return listed_images(folder, split, preparation, threads if threads > 1 else 0)


def existing(inputs: Inputs) -> dict[str, Any]:
    """Leave the network of a run that was trained elsewhere as a training would; return facts about it."""
    from penultimate.data.disk.listed import ListedImages
    from penultimate.networks.existing import assemble
    from penultimate.training.feed import statistics_of
    from penultimate.training.recipe import Recipe

    config = inputs.step.config
    folder = inputs.folders[inputs.step.parents[0]]
    images = examples(folder, "train", Recipe(**config["geometry"]), config["threads"])
    geometry = config["geometry"] if isinstance(images, ListedImages) else {}
    source = str(inputs.step.columns["source"])
    return assemble(config, source, images.class_names, statistics_of(images), geometry, inputs.folder)
