"""What measurements hold in memory at once does not grow with the number of images."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.pictures import split_folders
from tests.measures.steps import KEY, Parents, measured

from penultimate.data.disk.listed import leave_listing
from penultimate.data.images import ImageSet, save_images
from penultimate.data.readers.located import located
from penultimate.engine.execute import Outcome
from penultimate.features.writing import BankWriter
from penultimate.graph import Supply
from penultimate.networks.key import NetworkKey
from penultimate.training import Recipe, train

pytestmark = pytest.mark.long

CLASSES, SIDE = 1000, 96
MANY = 32_000


def anonymous() -> int:
    """The bytes of this process's memory that no file stands for."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def held(work: Callable[[], Outcome]) -> int:
    """The most such memory while it works, beyond what there was."""
    before, seen, over = anonymous(), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            seen.append(anonymous())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        assert work().rows
    finally:
        over.set()
        watching.join()
    return max(seen) - before


def decoded(work: Callable[[], Outcome]) -> int:
    """The most memory of NumPy's, in which images are decoded, while it works."""
    tracemalloc.start()
    try:
        assert work().rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network for a thousand classes."""
    folder = tmp_path_factory.mktemp("network")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), np.uint8)
    images = ImageSet(pixels, np.arange(8), np.arange(8), tuple(map(str, range(CLASSES))))
    recipe = Recipe(epochs=1, batch_size=4, size=SIDE, resize=SIDE)
    train("softmax", "glyphnet(width=2, features=8)", images, None, recipe, 0, folder)
    return folder


def bank(parents: Parents, split: str, count: int) -> None:
    """A bank as extraction leaves it on disk, of that many images."""
    folder, random = parents.root / f"extract.{split}", np.random.default_rng(len(split))
    writer = BankWriter(folder / "softmax", {"of": split}, "float32")
    logits = random.normal(size=(1000, CLASSES)).astype(np.float32)
    for stop in range(1000, count + 1, 1000):
        writer.add(stop, {"features": logits[:, :8], "logits": logits})
    writer.finish(random.integers(CLASSES, size=count), np.arange(count), {})
    parents.add(Supply("features", f"extract.{split}", split, parents.target, KEY), folder)


@pytest.mark.parametrize(
    ("measurement", "splits"),
    [
        ("calibration", ("test", "holdout")),
        ("accuracy", ("train", "test")),
        ("class_separation", ("train", "test")),
        ("collapse", ("train",)),
        ("leep", ("train",)),
    ],
)
def test_of_features_and_logits_on_disk_blocks_are_in_memory(
    measurement: str, splits: tuple[str, ...], network: Path, tmp_path: Path
) -> None:
    """Of one split's logits, 128 MB, less than half are there at once."""
    parents = Parents(tmp_path).network(network)
    for split in splits:
        bank(parents, split, MANY)
    assert held(lambda: measured(measurement, parents)) < MANY * CLASSES * 4 / 2


def test_of_a_shifted_test_set_a_batch_is_in_memory(network: Path, tmp_path: Path) -> None:
    """Of its logits, 128 MB, less than half are there at once."""
    folder = tmp_path / "imagenet_a"
    images = np.zeros((MANY, 8, 8, 3), np.uint8), np.arange(MANY) % 200, np.arange(MANY)
    save_images(folder, "test", ImageSet(*images, tuple(map(str, range(CLASSES)))))
    parents = Parents(tmp_path, "imagenet").network(network).images("test", folder, "imagenet_a")
    assert held(lambda: measured("published_robustness", parents)) < MANY * CLASSES * 4 / 2


@pytest.mark.parametrize(
    ("measurement", "settings"),
    [("similarity", {"images": 10_000, "batch_size": 32, "passes": 1}), ("layers", {})],
)
def test_of_images_on_disk_a_batch_is_in_memory(
    measurement: str, settings: dict[str, int], network: Path, tmp_path: Path
) -> None:
    def most(count: int) -> int:
        root = tmp_path / str(count)
        found = located("own", str(split_folders(root / "own", ("x", "y"), count // 2, count // 2)))
        (root / "data").mkdir()
        leave_listing(found, root / "data", 0, lambda news: None)
        parents = Parents(root, "own").images("train", root / "data").images("test", root / "data")
        parents.network(network)
        if measurement == "layers":
            bank(parents, "test", 1000)
            return decoded(lambda: measured(measurement, parents, settings))
        other = NetworkKey("sigmoid", KEY.backbone, seed=0, draw=0)
        parents.network(network, other)
        return decoded(lambda: measured(measurement, parents, settings, key=None, seeds=[0]))

    few, many = 512, 1024  # whole batches of what goes through a network together
    assert most(few) + (many - few) * SIDE * SIDE * 3 / 2 > most(many)
