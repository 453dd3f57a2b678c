"""Robustness: what networks are shown, and that each number is of the images it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluation.pictures import split_folders
from tests.measures.steps import Parents, measured
from tests.measures.worlds import network

from penultimate.data import generate, load_images
from penultimate.data.corruptions import BENCHMARK, SEVERITIES, corrupt
from penultimate.data.disk.listed import leave_listing, listed_images
from penultimate.data.readers.located import located
from penultimate.features.extraction import predicted
from penultimate.measures import robustness
from penultimate.networks.trained import CARD, load_network
from penultimate.study import load_study
from penultimate.study.unfold import unfold
from penultimate.training import Recipe, train

SMALL = "glyphnet(width=4, features=8)"
SOURCE = "glyphs_smoke"
SHIFTED = ["glyphs_smoke_v2", "glyphs_smoke_a", "glyphs_smoke_r", "glyphs_smoke_sketch"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke world with its shifted sets, a small network, the images made for all networks."""
    root = tmp_path_factory.mktemp("robust")
    for name in (SOURCE, *SHIFTED):
        generate(name, 0, root / name)
    source = root / SOURCE
    images = [load_images(source, split) for split in ("train", "holdout")]
    train("softmax", SMALL, *images, Recipe(epochs=1, batch_size=64), 0, root / "network")
    made = measured("corrupted", Parents(root / "corrupted", SOURCE).images("test", source), key=None, draw=0)
    assert (made.rows, made.facts) == ([], {"images": 32})
    parents = Parents(root / "hard", SOURCE).images("train", source).images("holdout", source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robustness, "OUTSIDE_BACKBONE", SMALL)
        patch.setattr(robustness, "OUTSIDE_RECIPE", {"epochs": 1})
        outcome = measured(
            "hard", parents.images("test", root / "glyphs_smoke_a", "glyphs_smoke_a"), key=None
        )
    assert set(outcome.facts) == {"candidates", "hard"}
    return root


@pytest.mark.long
def test_corruptions_are_of_the_first_test_images_of_each_class(root: Path) -> None:
    test = load_images(root / SOURCE, "test")
    labels = np.load(root / "corrupted/out/labels.npy")
    np.testing.assert_array_equal(labels, np.tile(np.arange(16), 2))
    for name in BENCHMARK:
        found = np.load(root / f"corrupted/out/{name}.npy")
        assert found.shape == (5, 32, 24, 24, 3)
        for severity, images in zip(SEVERITIES, found, strict=True):
            expected = corrupt(np.asarray(test.images[:32]), name, severity, 0, test.ids[:32])
            np.testing.assert_array_equal(images, expected)


def test_hard_images_are_those_that_the_network_outside_gets_wrong(root: Path) -> None:
    pool, found = load_images(root / "glyphs_smoke_a", "test"), load_images(root / "hard/out", "hard")
    network = load_network(root / "hard/out")
    assert network.card["backbone"] == SMALL
    with torch.no_grad():
        logits = network.logits(network.features(torch.from_numpy(np.asarray(pool.images))))
    wrong = logits.argmax(1).numpy() != pool.labels
    assert 0 < wrong.sum() == len(found)
    np.testing.assert_array_equal(found.ids, pool.ids[wrong])
    np.testing.assert_array_equal(found.images, pool.images[wrong])


def of_network(
    root: Path, folder: Path, **stages: Path
) -> tuple[dict[tuple[Any, ...], float], dict[str, Any]]:
    parents = Parents(folder, SOURCE).network(root / "network")
    for stage, made in {"corrupted": root / "corrupted/out", "hard": root / "hard/out", **stages}.items():
        parents.made(stage, made)
    for name in SHIFTED:
        parents.images("test", root / name, name)
    outcome = measured("robustness", parents)
    return {(row.metric, row.target, row.setting): row.value for row in outcome.rows}, outcome.facts


def test_a_networks_numbers_are_counted_one_by_one(root: Path, tmp_path: Path) -> None:
    values, facts = of_network(root, tmp_path)
    assert facts == {}
    assert len(values) == 75 + 4
    network = load_network(root / "network")

    def logits(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = network.logits(network.features(torch.from_numpy(images))).numpy()
        return found

    labels = np.load(root / "corrupted/out/labels.npy")
    for name in ("fog", "jpeg_compression"):
        for severity in SEVERITIES:
            images = np.load(root / f"corrupted/out/{name}.npy")[severity - 1]
            wrong = [int(row.argmax()) != label for row, label in zip(logits(images), labels, strict=True)]
            setting = f"corruption={name}, severity={severity}"
            assert values["corruption_error", SOURCE, setting] == sum(wrong) / 32
    for target in SHIFTED:
        folder, split = (root / "hard/out", "hard") if target.endswith("_a") else (root / target, "test")
        chosen = load_images(folder, split)
        shown = sorted(set(chosen.labels.tolist()))
        right = [
            shown[int(row[shown].argmax())] == label
            for row, label in zip(logits(np.asarray(chosen.images)), chosen.labels, strict=True)
        ]
        assert values["top1", target, None] == pytest.approx(sum(right) / len(chosen))


def test_what_could_not_be_made_leaves_no_row_and_is_named(root: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    values, facts = of_network(root, tmp_path / "one", corrupted=empty)
    assert facts == {"undefined": "no corrupted images"}
    assert {metric for metric, *_ in values} == {"top1"}
    values, facts = of_network(root, tmp_path / "two", hard=empty)
    assert facts == {"undefined": "no glyphs_smoke_a"}
    assert ("top1", "glyphs_smoke_a", None) not in values


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """What a data step leaves of images on disk."""
    found = located("mine_v2", str(split_folders(tmp_path / "mine", tuple("abcd"), 2, 20)))
    (tmp_path / "data").mkdir()
    leave_listing(found, tmp_path / "data", 0, lambda news: None)
    return tmp_path / "data"


def test_a_shifted_set_on_disk_is_decoded_as_the_network_wants_it(tmp_path: Path, on_disk: Path) -> None:
    folder = network(tmp_path, "softmax")
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**card, "resize": 28, "crop": 16}))
    parents = Parents(tmp_path, "mine").network(folder).images("test", on_disk, "mine_v2")
    (row,) = measured("robustness", parents).rows
    loaded = load_network(folder)
    shown = listed_images(on_disk, "test", loaded.preparation)
    assert (row.metric, row.target) == ("top1", "mine_v2")
    assert row.value == (predicted(loaded, shown) == shown.labels).mean()
    thumbnails = load_images(on_disk, "test")
    assert row.value != (predicted(loaded, thumbnails) == thumbnails.labels).mean()


def test_images_are_made_once_for_all_networks_of_a_draw() -> None:
    steps = unfold(load_study("smoke")).steps
    by_name = {
        name: [step for step in steps.values() if step.name == name]
        for name in ("corrupted", "hard", "robustness")
    }
    (images,), (hard,) = by_name["corrupted"], by_name["hard"]
    assert len(by_name["robustness"]) == 3
    for step in by_name["robustness"]:
        assert {images.id, hard.id} < set(step.parents)
        assert [supply.of for supply in step.supplies if supply.kind == "images"] == SHIFTED
    for made in (images, hard):
        assert "objective" not in made.columns
        assert made.columns["draw"] == 0
    rendered = {step.config["name"] for step in steps.values() if step.name == "data"}
    assert rendered == {SOURCE, "syllabics_smoke", "digits_smoke", "findings_smoke", *SHIFTED}
