"""A study that trains on images on disk, run to its end: the same rows whoever decodes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from penultimate.data.augmentation.settings import Augmentation
from penultimate.engine.execute import execute
from penultimate.features.bank import FACTS, FeatureBank
from penultimate.networks.trained import load_network
from penultimate.records.table import ROWS
from penultimate.store import Store
from penultimate.study import Runs, Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from tests.evaluation.pictures import split_folders

RECIPE = Recipe(
    epochs=2,
    batch_size=16,
    learning_rate=0.1,
    size=24,
    resize=28,
    augmentation=Augmentation(shift=0, flip=True, crop=(0.1, 1.0)),
)


def study_of(root: Path) -> Study:
    return Study(
        "mine",
        "Mine",
        "Which?",
        "pictures",
        ("others",),
        (Runs(("softmax", "sigmoid"), RECIPE, backbones=("glyphnet(width=4, features=16)",)),),
        measure=("accuracy", "class_separation", "knn"),
        data={"pictures": str(root / "pictures"), "others": str(root / "others")},
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    split_folders(folder / "pictures", ("ape", "bee", "cat"), 20, 4)
    split_folders(folder / "others", ("x", "y"), 6, 3)
    return folder


@pytest.mark.long
def test_networks_are_trained_on_a_data_set_on_disk_and_measured_on_another(
    root: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.prepare()
    graph = unfold(study_of(root))
    for step in graph.steps.values():
        execute(store, step, lambda news: None)
    trained = [step for step in graph.steps.values() if step.name == "train"]
    assert len(trained) == 2
    for step in trained:
        network = load_network(store.folder(step.id))
        assert (network.preparation.resize, network.preparation.crop) == (28, 24)
        assert network.class_names == ("ape", "bee", "cat")
        assert 0.2 < network.statistics.mean[0] < 0.8
    lines = (line for step in graph.steps for line in (store.folder(step) / ROWS).read_text().splitlines())
    metrics = {json.loads(line)["metric"] for line in lines}
    assert {"top1", "class_separation", "knn_top1"} <= metrics


@pytest.mark.long
def test_a_targets_images_are_resized_to_the_crop_and_the_sources_cut_from_larger_ones(
    root: Path, tmp_path: Path
) -> None:
    """Appendix A.2 of the paper against A.1, each with Pillow and the network alone."""
    store = Store(tmp_path)
    store.prepare()
    study = dataclasses.replace(study_of(root), measure=("knn", "accuracy"))
    graph = unfold(study)
    for step in graph.steps.values():
        execute(store, step, lambda news: None)
    (network, *_) = [
        load_network(store.folder(step.id)) for step in graph.steps.values() if step.name == "train"
    ]
    for name, side in (("others", 24), ("pictures", 28)):
        (step, *_) = [
            step
            for step in graph.steps.values()
            if step.name == "extract" and step.columns["target"] == name and step.config["split"] == "test"
        ]
        kept = FeatureBank.load(next(store.folder(step.id).glob(f"*/{FACTS}")).parent)
        shown = [
            middle_of(path, side, 24)
            for path in sorted((root / name).glob("test/*/*"), key=lambda path: path.parts[-2:])
        ]
        features = network.features(torch.from_numpy(np.stack(shown)))
        torch.testing.assert_close(torch.from_numpy(np.array(kept.features)), features, rtol=1e-4, atol=1e-4)


def middle_of(path: Path, side: int, crop: int) -> npt.NDArray[np.uint8]:
    with Image.open(path) as image:
        width, height = image.size
        shorter = min(width, height)
        resized = image.convert("RGB").resize(
            (int(side * width / shorter), int(side * height / shorter)), Image.Resampling.BILINEAR
        )
    left, top = (round((size - crop) / 2) for size in resized.size)
    return np.asarray(resized.crop((left, top, left + crop, top + crop)))
