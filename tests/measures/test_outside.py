"""Images outside the classes as a step: numbers by five scores, copies by digest, what a network lacks."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score
from tests.measures.steps import KEY, Parents, measured, value
from tests.oracles import confidence as oracle

from penultimate import FeatureBank
from penultimate.data.disk.listed import leave_listing
from penultimate.data.images import ImageSet, save_images
from penultimate.data.readers.located import located
from penultimate.engine.execute import Outcome
from penultimate.graph import Supply
from penultimate.measures.outside import SCORES

CLASSES, WIDTH, K = 3, 5, 4


def bank(seed: int, n: int, shift: float = 0.0, logits: bool = True) -> FeatureBank:
    """Features around class means, which logits follow; outside ones are shifted."""
    random, means = np.random.default_rng(seed), 2 * np.eye(CLASSES, WIDTH)
    labels = np.arange(n) % CLASSES
    features = (random.normal(size=(n, WIDTH)) + means[labels] + shift).astype(np.float32)
    return FeatureBank(
        features, labels, (features @ means.T).astype(np.float32) if logits else None, np.arange(n)
    )


def pictures(folder: Path, split: str, seed: int, count: int, same: ImageSet | None = None) -> ImageSet:
    """Images of noise in a folder, the first of them those of another set."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 4, 4, 3), np.uint8)
    if same is not None:
        pixels[: len(same)] = same.images[:count]
    images = ImageSet(pixels, np.zeros(count, np.int64), np.arange(count), ("a",))
    save_images(folder, split, images, name=folder.name, draw=0)
    return images


def step(
    root: Path,
    train: FeatureBank,
    test: FeatureBank,
    other: FeatureBank,
    shared: int = 0,
    settings: dict[str, Any] | None = None,
) -> Outcome:
    """The outcome for banks of the source and of an outside set that holds `shared` of the test images."""
    stage = Parents(root / "stage").bank("train", train).bank("test", test)
    settings = {"k": K} if settings is None else settings
    measured("outside_scores", stage, settings)
    folders = {name: root / name for name in ("glyphs", "digits")}
    for folder in folders.values():
        folder.mkdir()
    pictures(folders["glyphs"], "train", 1, len(train))
    tested = pictures(folders["glyphs"], "test", 2, len(test))
    pictures(folders["digits"], "test", 3, len(other), tested.subset(range(shared)))
    parents = Parents(root, target="digits").bank("test", other)
    parents.made("outside_scores", root / "stage" / "out")
    folder = root / "extract.source"
    folder.mkdir()
    train.save(folder / "train.npz")
    parents.add(Supply("features", "extract.source", "train", "glyphs", KEY), folder)
    parents.images("test", folders["digits"])
    for split in ("train", "test"):
        parents.images(split, folders["glyphs"], "glyphs")
    return measured("outside", parents, settings)


@pytest.fixture(scope="module")
def banks() -> tuple[FeatureBank, FeatureBank, FeatureBank]:
    return bank(1, 60), bank(2, 45), bank(3, 30, shift=1.0)


@pytest.fixture(scope="module")
def outcome(
    tmp_path_factory: pytest.TempPathFactory, banks: tuple[FeatureBank, FeatureBank, FeatureBank]
) -> Outcome:
    return step(tmp_path_factory.mktemp("outside"), *banks)


def scores_of(train: FeatureBank, test: FeatureBank, name: str) -> list[float]:
    """The scores of a bank by the oracle."""
    assert test.logits is not None
    rows = test.logits.astype(float).tolist()
    features, queries = train.features.astype(float), test.features.astype(float)
    match name:
        case "msp":
            return [oracle.max_probability(row) for row in rows]
        case "mahalanobis":
            return [-d for d in oracle.mahalanobis(features, train.labels.tolist(), queries)]
    return [-d for d in oracle.kth_distance(features, queries, K)]


@pytest.mark.parametrize("name", SCORES)
def test_each_score_has_its_area_and_its_false_positives(
    banks: tuple[FeatureBank, FeatureBank, FeatureBank], outcome: Outcome, name: str
) -> None:
    train, test, other = banks
    own, others = scores_of(train, test, name), scores_of(train, other, name)
    truth = np.arange(len(own) + len(others)) < len(own)
    setting = f"score={name}"
    found = value(outcome.rows, "outside_auroc", setting=setting)
    assert found == pytest.approx(roc_auc_score(truth, [*own, *others]), abs=1e-9)
    passed = value(outcome.rows, "outside_fpr95", setting=setting)
    assert passed == pytest.approx(oracle.false_positive_rate(own, others, 95), abs=1e-12)
    for metric, middle in (("outside_auroc", found), ("outside_fpr95", passed)):
        low, high = (value(outcome.rows, f"{metric}_{end}", setting=setting) for end in ("low", "high"))
        assert low <= middle <= high
        assert low < high
    assert value(outcome.rows, "outside_copies") == 0
    assert value(outcome.rows, "outside_rank") == WIDTH
    assert outcome.facts == {}


def test_images_that_the_source_holds_are_left_out_and_named_by_digest(
    tmp_path: Path, banks: tuple[FeatureBank, FeatureBank, FeatureBank]
) -> None:
    train, test, other = banks
    mixed = FeatureBank(
        np.concatenate([test.features[:5], other.features]),
        np.concatenate([test.labels[:5], other.labels]),
        np.concatenate([test.logits[:5], other.logits]),  # type: ignore[index, list-item]
    )
    outcome = step(tmp_path, train, test, mixed, shared=5)
    assert value(outcome.rows, "outside_copies") == 5
    tested = np.random.default_rng(2).integers(0, 256, (45, 4, 4, 3), np.uint8)
    named = [hashlib.sha256(image.tobytes()).hexdigest()[:12] for image in tested[:5]]
    assert outcome.facts["copies_of_source"] == named
    assert (
        f"5 of 35 images are in 'glyphs' too, and left out: {', '.join(named[:3])}, ..."
        in (outcome.facts["undefined"])
    )
    whole = step(tmp_path / "whole", train, test, other)
    for name in SCORES:
        both = [value(one.rows, "outside_auroc", setting=f"score={name}") for one in (outcome, whole)]
        assert both[0] == pytest.approx(both[1], abs=1e-12)


def test_a_set_of_copies_alone_has_no_number(
    tmp_path: Path, banks: tuple[FeatureBank, FeatureBank, FeatureBank]
) -> None:
    outcome = step(tmp_path, *banks, shared=30)
    assert {row.metric for row in outcome.rows} == {"outside_copies"}
    assert outcome.facts["undefined"].endswith("none remains")


def test_without_logits_the_scores_of_features_are_left(tmp_path: Path) -> None:
    given = [bank(seed, 30, shift, logits=False) for seed, shift in ((1, 0.0), (2, 0.0), (3, 2.0))]
    outcome = step(tmp_path, *given)
    measured_by = {row.settings["score"] for row in outcome.rows if row.metric == "outside_auroc"}
    assert measured_by == {"mahalanobis", "knn"}
    assert outcome.facts["undefined"] == (
        f"{SCORES['msp']}: the network has no final layer for the source's classes"
    )


def test_constant_features_one_class_and_few_images(tmp_path: Path) -> None:
    same = [replace(bank(seed, 12), features=np.ones((12, WIDTH), np.float32)) for seed in (1, 2, 3)]
    outcome = step(tmp_path / "same", *same, settings={"k": 50})  # more than there are images
    assert value(outcome.rows, "outside_auroc", setting="score=knn") == 0.5
    assert value(outcome.rows, "outside_fpr95", setting="score=knn") == 1
    assert "Mahalanobis distance: the features of each class are constant" in outcome.facts["undefined"]
    one = [replace(bank(seed, 12), labels=np.zeros(12, np.int64)) for seed in (1, 2, 3)]
    alone = step(tmp_path / "one", *one)
    assert value(alone.rows, "outside_rank") == WIDTH
    few = step(tmp_path / "few", bank(1, 6), bank(2, 6), bank(3, 6, 3.0))
    assert value(few.rows, "outside_rank") == 3
    assert few.facts["singular"] == f"3 of {WIDTH} directions vary within classes"
    single = step(tmp_path / "single", bank(1, 30), bank(2, 30), bank(3, 1, 3.0))
    assert "takes two positive and two negative examples" in single.facts["undefined"]


def files(folder: Path, seeds: list[int]) -> Path:
    folder.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def test_equal_files_are_found_in_other_folders_under_other_names(tmp_path: Path) -> None:
    from penultimate.measures.outside import _copies

    for split, seeds in (("train", [1, 2, 3]), ("test", [4, 5])):
        for name in "ab":
            files(tmp_path / "ours" / split / name, [seed + 100 * (name == "b") for seed in seeds])
    files(tmp_path / "flat", [9, 102, 10, 4])
    (tmp_path / "flat" / "deeper").mkdir()
    (tmp_path / "flat" / "0.png").rename(tmp_path / "flat" / "deeper" / "0.png")
    left = {}
    for name, splits, reading in (
        ("ours", ("train", "test"), None),
        ("flat", ("test",), {"whole": True}),
    ):
        found = located(name, str(tmp_path / name), splits, reading)
        left[name] = tmp_path / f"left {name}"
        leave_listing(found, left[name], 0, lambda news: None, reading)
    assert found.card.sizes == {"test": 4}
    assert found.note == "all 4 images in the folder, whatever their classes"
    parents = Parents(tmp_path, "ours", "flat").images("test", left["flat"])
    for split in ("train", "test"):
        parents.images(split, left["ours"], "ours")

    rows: dict[int, str] = {}
    from penultimate.measures.declaration import Measurement

    declared = Measurement(
        "looks", 1, "outside", (), (), (), function=lambda inputs: iter([rows.update(_copies(inputs))][:0])
    )
    measured(declared, parents)
    names = {name.split("('")[1].removesuffix("')") for name in rows.values()}
    assert names == {"1.png", "3.png"}
