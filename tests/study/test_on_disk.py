"""A study that trains on images on disk, run to its end: the same rows whoever decodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penultimate.data.augmentation.settings import Augmentation
from penultimate.engine.execute import execute
from penultimate.engine.forecast.timing import training_seconds
from penultimate.engine.forecast.timings import Timings
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


def test_its_cost_is_timed_at_the_size_of_its_images(root: Path) -> None:
    assert 0 < (training_seconds(study_of(root), Timings()) or 0) < 60
