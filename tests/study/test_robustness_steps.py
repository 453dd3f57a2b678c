"""Steps of robustness: what networks are shown, and that each number is of the images it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penultimate import RequestError
from penultimate.data import ImageSet, generate, load_images, save_images
from penultimate.data.corruptions import BENCHMARK, SEVERITIES, corrupt
from penultimate.metrics import UndefinedError
from penultimate.study import load_study
from penultimate.study.context import Context
from penultimate.study.graph import Step, unfold
from penultimate.study.robustness import corrupted, hard, robustness
from penultimate.study.spec import INSTRUMENTS
from penultimate.training import Recipe, load_network, train

SMALL = "glyphnet(width=4, features=8)"
SHIFTED = ["glyphs_smoke_v2", "glyphs_smoke_a", "glyphs_smoke_r", "glyphs_smoke_sketch"]


def context(
    name: str, config: dict[str, Any], parents: dict[str, Path], folder: Path, **about: Any
) -> Context:
    folder.mkdir(exist_ok=True)
    step = Step(name, {"draw": 0, **config}, tuple(parents), {"target": "glyphs_smoke", **about})
    return Context(step, folder, parents, lambda news: None)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke world with its shifted sets, a small network, the images made for all networks."""
    root = tmp_path_factory.mktemp("robust")
    for name in ("glyphs_smoke", *SHIFTED):
        generate(name, 0, root / name)
    source = root / "glyphs_smoke"
    images = [load_images(source, split) for split in ("train", "holdout")]
    train("softmax", SMALL, *images, Recipe(epochs=1, batch_size=64), 0, root / "network")
    corrupted(context("corrupted", {"per_class": 2}, {"data": source}, root / "corrupted"))
    outside = {"objective": "softmax", "backbone": SMALL, "recipe": {"epochs": 1}, "seed": 1}
    parents = {"data": source, "data.pool": root / "glyphs_smoke_a"}
    hard(context("hard", outside, parents, root / "hard"))
    return root


def test_corruptions_are_of_the_first_test_images_of_each_class(root: Path) -> None:
    test = load_images(root / "glyphs_smoke", "test")
    labels = np.load(root / "corrupted/labels.npy")
    np.testing.assert_array_equal(labels, np.tile(np.arange(16), 2))
    for name in BENCHMARK:
        found = np.load(root / f"corrupted/{name}.npy")
        assert found.shape == (5, 32, 24, 24, 3)
        for severity, images in zip(SEVERITIES, found, strict=True):
            expected = corrupt(np.asarray(test.images[:32]), name, severity, 0, test.ids[:32])
            np.testing.assert_array_equal(images, expected)


def test_hard_images_are_those_that_the_network_outside_gets_wrong(root: Path) -> None:
    pool, found = load_images(root / "glyphs_smoke_a", "test"), load_images(root / "hard", "hard")
    network = load_network(root / "hard")
    with torch.no_grad():
        logits = network.logits(network.features(torch.from_numpy(np.asarray(pool.images))))
    wrong = logits.argmax(1).numpy() != pool.labels
    assert 0 < wrong.sum() == len(found)
    np.testing.assert_array_equal(found.ids, pool.ids[wrong])
    np.testing.assert_array_equal(found.images, pool.images[wrong])


def measured(
    root: Path, folder: Path, **replaced: Path
) -> tuple[dict[tuple[Any, ...], float], dict[str, Any]]:
    parents = {"train": root / "network", "corrupted": root / "corrupted"}
    parents |= {name: root / name for name in SHIFTED} | {"glyphs_smoke_a": root / "hard"} | replaced
    about = {"objective": "softmax", "seed": 0, "source": "glyphs_smoke", "backbone": SMALL}
    outcome = robustness(context("robustness", {"shifted": SHIFTED}, parents, folder, **about))
    return {(row.metric, row.target, row.layer): row.value for row in outcome.rows}, outcome.facts


def test_a_networks_numbers_are_counted_one_by_one(root: Path, tmp_path: Path) -> None:
    values, facts = measured(root, tmp_path)
    assert facts == {}
    assert len(values) == 75 + 4
    network = load_network(root / "network")

    def logits(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = network.logits(network.features(torch.from_numpy(images))).numpy()
        return found

    labels = np.load(root / "corrupted/labels.npy")
    for name in ("fog", "jpeg_compression"):
        for severity in SEVERITIES:
            images = np.load(root / f"corrupted/{name}.npy")[severity - 1]
            wrong = [int(row.argmax()) != label for row, label in zip(logits(images), labels, strict=True)]
            assert values["corruption_error", "glyphs_smoke", f"{name} {severity}"] == sum(wrong) / 32
    for target in SHIFTED:
        folder, split = (root / "hard", "hard") if target.endswith("_a") else (root / target, "test")
        images = load_images(folder, split)
        shown = sorted(set(images.labels.tolist()))
        right = [
            shown[int(row[shown].argmax())] == label
            for row, label in zip(logits(np.asarray(images.images)), images.labels, strict=True)
        ]
        assert values["top1", target, None] == pytest.approx(sum(right) / len(images))


def test_what_could_not_be_made_leaves_no_row_and_is_named(root: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    values, facts = measured(root, tmp_path / "one", corrupted=empty)
    assert facts == {"undefined": "no corrupted images"}
    assert {metric for metric, *_ in values} == {"top1"}
    values, facts = measured(root, tmp_path / "two", glyphs_smoke_a=empty)
    assert facts == {"undefined": "no glyphs_smoke_a"}
    assert ("top1", "glyphs_smoke_a", None) not in values


@pytest.mark.parametrize("shape", [(24, 24, 1), (6, 9, 3)])
def test_images_that_cannot_be_corrupted_leave_nothing(tmp_path: Path, shape: tuple[int, ...]) -> None:
    images = ImageSet(np.zeros((4, *shape), np.uint8), np.arange(4) % 2, np.arange(4), ("a", "b"))
    save_images(tmp_path / "data", "test", images)
    with pytest.raises(UndefinedError, match="defined for colour images of 8 pixels or more"):
        corrupted(context("corrupted", {"per_class": 1}, {"data": tmp_path / "data"}, tmp_path / "made"))


def test_images_are_made_once_for_all_networks_of_a_draw() -> None:
    study = load_study("smoke")
    steps = unfold(study).steps.values()
    by_name = {name: [step for step in steps if step.name == name] for name in INSTRUMENTS | {"hard": 0}}
    made = [step for step in steps if step.name == "corrupted"]
    assert (len(made), len(by_name["hard"]), len(by_name["robustness"])) == (1, 1, 3)
    for step in by_name["robustness"]:
        assert made[0].id in step.parents
        assert by_name["hard"][0].id in step.parents
        assert step.config["shifted"] == SHIFTED
    for step in (*made, *by_name["hard"]):
        assert "objective" not in step.about
    rendered = {step.config["name"] for step in steps if step.name == "data"}
    assert rendered == {"glyphs_smoke", "syllabics_smoke", "digits_smoke", *SHIFTED}


def test_a_shifted_set_is_neither_source_nor_target() -> None:
    from penultimate.study.choosing import override

    with pytest.raises(RequestError, match="no transfer data set"):
        override(load_study("smoke"), ["targets=('glyphs_smoke_r',)"])
