"""Training on images on disk: the same batches whoever decodes them, and the loop's promises hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.augmentation.transforms import normalise
from penultimate.data.disk.cropping import box_of, cropped
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import DamagedFileError
from penultimate.networks.trained import load_network
from penultimate.training import Recipe, train
from penultimate.training.feed import Batch, DiskFeed, ahead, feed
from penultimate.training.run import Run
from tests.data.photographs import folder_of
from tests.training.worlds import TINY, squares

STATISTICS = ChannelStatistics((0.4, 0.5, 0.6), (0.2, 0.3, 0.25))
PREPARATION = Preparation(20, 16, "bilinear", STATISTICS)
CPU = torch.device("cpu")
RECIPE = Recipe(
    epochs=3,
    batch_size=16,
    learning_rate=0.1,
    size=16,
    resize=20,
    precision="bfloat16",
    augmentation=Augmentation(shift=0, flip=True, crop=(0.1, 1.0)),
)
COLOURED = replace(RECIPE, augmentation=replace(RECIPE.augmentation, autoaugment=True, mixup=0.2))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> ListedImages:
    folder = tmp_path_factory.mktemp("images")
    return ListedImages(folder_of(folder, images=70, classes=4), PREPARATION)


def batches(images: ListedImages, recipe: Recipe, asked: list[tuple[int, int, int]]) -> list[Batch]:
    fed = feed(images, STATISTICS, recipe, 7, CPU)
    return [batch for epoch, first, end in asked for batch in fed.batches(epoch, first, end)]


def same(ours: list[Batch], theirs: list[Batch]) -> bool:
    assert len(ours) == len(theirs)
    pairs = itertools.chain.from_iterable(zip(a, b, strict=True) for a, b in zip(ours, theirs, strict=True))
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("recipe", [RECIPE, COLOURED], ids=["cropped", "coloured"])
def test_batches_are_the_same_whoever_decodes_and_wherever_one_begins(
    images: ListedImages, recipe: Recipe
) -> None:
    whole = batches(images, recipe, [(0, 0, 4), (1, 0, 4)])
    assert len(whole) == 8
    assert same(batches(replace(images, workers=2), recipe, [(0, 0, 4), (1, 0, 4)]), whole)
    assert same(batches(replace(images, workers=1), recipe, [(0, 3, 4), (1, 0, 2)]), whole[3:6])
    assert same(batches(images, recipe, [(1, 2, 4), (0, 1, 3)]), [*whole[6:8], *whole[1:3]])
    assert not same(whole[:4], whole[4:])


def test_a_batch_is_crops_of_its_images_flipped_and_normalised(images: ListedImages) -> None:
    unflipped = replace(RECIPE, augmentation=replace(RECIPE.augmentation, flip=False))
    order = torch.randperm(70, generator=_order(7, 2))
    pairs = zip(batches(images, unflipped, [(2, 0, 4)]), batches(images, RECIPE, [(2, 0, 4)]), strict=True)
    flipped = 0
    for place, ((plain, labels), (other, _)) in enumerate(pairs):
        rows = order[place * 16 : (place + 1) * 16].tolist()
        squared = []
        for row in rows:
            image, _ = images.listing.colours(row)
            squared.append(cropped(image, box_of(*image.size, (0.1, 1.0), 7, 2, row), 16))
        expected = normalise(torch.from_numpy(np.stack(squared)), STATISTICS, torch.bfloat16)
        assert torch.equal(plain, expected)
        assert labels.tolist() == images.labels[rows].tolist()
        for mine, theirs in zip(other, plain, strict=True):
            mirrored = not torch.equal(mine, theirs)
            assert torch.equal(mine, theirs.flip(2) if mirrored else theirs)
            flipped += mirrored
    assert 16 < flipped < 48


def _order(seed: int, epoch: int) -> torch.Generator:
    from penultimate.data.seeding import derived_generator

    return derived_generator("order", seed, epoch)


def test_without_crops_the_middle_is_shown_as_in_tests(images: ListedImages) -> None:
    plain = replace(RECIPE, precision="float32", augmentation=Augmentation(shift=0))
    (shown, labels), *_ = batches(images, plain, [(0, 0, 1)])
    rows = torch.randperm(70, generator=_order(7, 0))[:16].numpy()
    ((tested, _),) = images.batches(16, rows)
    assert torch.equal(shown, normalise(tested, STATISTICS))
    assert labels.tolist() == images.labels[rows].tolist()


def run(folder: Path, images: ListedImages, recipe: Recipe = RECIPE, **more: Any) -> Any:
    folder.mkdir(exist_ok=True)
    held = np.arange(len(images)) % 7 == 0
    return train("softmax", TINY, images.subset(~held), images.subset(held), recipe, 5, folder, **more)


def weights(folder: Path) -> bytes:
    return (folder / "network.safetensors").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("recipe", [RECIPE, COLOURED], ids=["cropped", "coloured"])
def test_a_run_on_images_on_disk_broken_off_anywhere_ends_in_the_same_bits(
    tmp_path: Path, images: ListedImages, recipe: Recipe
) -> None:
    whole = run(tmp_path / "whole", images, recipe)
    assert [point["epoch"] for point in whole.curves if point["metric"] == "top1"] == [1, 2, 3]
    held = np.arange(len(images)) % 7 == 0
    for steps in (2, 3, 4):
        folder = tmp_path / str(steps)
        folder.mkdir()
        parts = images.subset(~held), images.subset(held)
        broken = Run("softmax", TINY, *parts, recipe, 5, folder, "cpu")
        for batch in itertools.islice(broken.batches(), steps):
            broken.advance(batch)
        if broken.step == broken.feed.steps_per_epoch:
            broken.close_epoch()
        else:
            for batch in itertools.islice(broken.batches(), steps - broken.step):
                broken.advance(batch)
        broken.save()
        again = run(folder, replace(images, workers=1 + steps % 2), recipe)
        assert weights(folder) == weights(tmp_path / "whole")
        assert again.curves == whole.curves


def test_the_network_is_tested_as_it_was_trained_to_be(tmp_path: Path, images: ListedImages) -> None:
    result = run(tmp_path / "a", images)
    network = load_network(tmp_path / "a")
    assert network.preparation == PREPARATION
    held = images.subset(np.arange(len(images)) % 7 == 0).in_memory()
    guessed = network.logits(network.features(torch.from_numpy(held.images))).argmax(1).numpy()
    last = [point["value"] for point in result.curves if point["metric"] == "top1"][-1]
    assert (guessed == held.labels).mean() == pytest.approx(last, abs=0.11)


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_that_is_damaged_on_the_way_is_named_and_the_run_goes_on_once_it_is_back(
    tmp_path: Path, workers: int
) -> None:
    there = ListedImages(folder_of(tmp_path / "images", images=40), PREPARATION, workers)
    long = replace(RECIPE, epochs=12)  # longer than the workers are ahead
    run(tmp_path / "whole", there, long)
    path = tmp_path / "images" / "012.jpg"
    intact = path.read_bytes()

    def damage(news: dict[str, Any]) -> None:
        if news.get("epoch") == 1:
            path.write_bytes(intact[:400])

    with pytest.raises(DamagedFileError, match=r"012\.jpg.*from its last checkpoint"):
        run(tmp_path / "broken", there, long, progress=damage, checkpoint_seconds=0.0)
    path.write_bytes(intact)
    told: list[dict[str, Any]] = []
    run(tmp_path / "broken", there, long, progress=told.append)
    assert told[0]["epoch"] > 1
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_workers_go_on_over_the_end_of_an_epoch(images: ListedImages) -> None:
    fed = feed(replace(images, workers=1), STATISTICS, RECIPE, 7, CPU)
    assert isinstance(fed, DiskFeed)
    for _ in fed.batches(0, 0, 4):
        pass
    stream = fed._stream
    for _ in fed.batches(1, 0, 4):
        pass
    assert fed._stream is stream


def test_batches_on_their_way_stay_the_same_and_in_order() -> None:
    batches = [torch.full((2, 3, 3, 3), value, dtype=torch.uint8) for value in range(5)]
    read: list[int] = []

    def reading() -> Iterator[torch.Tensor]:
        for number, batch in enumerate(batches):
            read.append(number)
            yield batch

    came = ahead(reading(), torch.device("cpu"))
    assert torch.equal(next(came), batches[0])
    assert read == [0]
    assert all(map(torch.equal, came, batches[1:]))
    assert read == [0, 1, 2, 3, 4]


def test_images_in_memory_are_cropped_too(tmp_path: Path) -> None:
    recipe = replace(RECIPE, augmentation=Augmentation(shift=0, crop=(0.3, 1.0)))
    result = train("softmax", TINY, squares(256, 0), squares(64, 1), recipe, 0, tmp_path)
    losses = [point["value"] for point in result.curves if point["metric"] == "mean_loss"]
    assert losses[-1] < losses[0]
