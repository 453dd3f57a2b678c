"""Image files: what is saved comes back; damage is found and named; labels and folders are checked."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from penultimate import RequestError
from penultimate.data import ImageSet, load_images, save_images
from penultimate.data import images as room
from penultimate.errors import DamagedFileError


def some_images(n: int = 6, classes: int = 3, seed: int = 0) -> ImageSet:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (n, 4, 5, 3), np.uint8)
    return ImageSet(pixels, np.arange(n) % classes, rng.permutation(n), tuple("abcdefg"[:classes]))


@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_saved_comes_back(tmp_path: Path, mmap: bool) -> None:
    saved = {"train": some_images(6), "test": some_images(9, seed=1)}
    for split, images in saved.items():
        save_images(tmp_path / "deep" / "folder", split, images)
    for split, images in saved.items():
        loaded = load_images(tmp_path / "deep" / "folder", split, mmap=mmap)
        assert isinstance(loaded.images, np.memmap) is mmap
        for name in ("images", "labels", "ids"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(images, name))
        assert loaded.class_names == images.class_names


@pytest.mark.parametrize("name", ["train.images.npy", "train.labels.npy", "train.ids.npy"])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    save_images(tmp_path, "train", some_images())
    content = bytearray((tmp_path / name).read_bytes())
    content[-1] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        DamagedFileError, match=rf"{name}' is not what was written: sha256 \w{{12}}\.\.\. was"
    ):
        load_images(tmp_path, "train")
    (tmp_path / name).unlink()
    with pytest.raises(DamagedFileError, match=f"{name}' cannot be read"):
        load_images(tmp_path, "train")


def test_a_changed_manifest_is_found(tmp_path: Path) -> None:
    save_images(tmp_path, "train", some_images())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["class_names"][0] = "z"
    for content in (json.dumps(manifest), "{", "[]", '{"schema": 1}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(DamagedFileError, match=r"manifest\.json' is damaged"):
            load_images(tmp_path, "train")


def test_unknown_split_and_unusable_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_images(tmp_path, "train", some_images())
    with pytest.raises(RequestError, match=r"'trian'\. Did you mean 'train'\?"):
        load_images(tmp_path, "trian")
    with pytest.raises(RequestError, match=r"holds no manifest\.json"):
        load_images(tmp_path / "empty", "train")
    with pytest.raises(RequestError, match="holds 3 classes, split 'test' has 2"):
        save_images(tmp_path, "test", some_images(classes=2))
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RequestError, match="it is, or lies below, a file"):
            save_images(folder, "train", some_images())
        with pytest.raises(RequestError, match="a data folder is expected"):
            load_images(folder, "train")

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room, "atomic_write", full)
    with pytest.raises(OSError, match="No space left on device"):
        save_images(tmp_path, "train", some_images())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 3, 0])}, r"label 3 \(image 1\) is out of range: 2 classes have .* 0 to 1"),
        ({"labels": np.array([0, 0, -1])}, r"label -1 \(image 2\) is out of range"),
        ({"labels": np.array([0, 1])}, r"labels are int64 \[3\]; these are int64 \[2\]"),
        ({"labels": np.zeros(3)}, r"labels are int64 .* these are float64"),
        ({"ids": np.array([4, 5, 4])}, "ids must be unique; 4 occurs more than once"),
        ({"images": np.zeros((3, 2, 2, 3))}, r"images are uint8 \[n h w c\]; these are float64"),
        ({"images": np.zeros((3, 2, 2), np.uint8)}, r"these are uint8 \[3, 2, 2\]"),
    ],
)
def test_wrong_arrays_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    good = {"images": np.zeros((3, 2, 2, 3), np.uint8), "labels": np.zeros(3, np.int64), "ids": np.arange(3)}
    ImageSet(**good, class_names=("a", "b"))
    with pytest.raises(RequestError, match=message):
        ImageSet(**(good | change), class_names=("a", "b"))


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_batches_come_in_an_order_under_a_transform_with_their_places(size: int) -> None:
    images = some_images(8)
    order = np.array([5, 0, 7, 7, 2])
    batches = list(images.batches(size, order, lambda batch: 255 - batch.double()))
    assert [len(places) for _, places in batches] == [min(size, 5 - start) for start in range(0, 5, size)]
    np.testing.assert_array_equal(np.concatenate([places for _, places in batches]), order)
    pixels = torch.cat([batch for batch, _ in batches])
    np.testing.assert_array_equal(pixels.numpy(), 255.0 - images.images[order])
