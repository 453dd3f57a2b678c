"""The data sets of a study that lie on disk, and their images as networks are shown them."""

from __future__ import annotations

import hashlib
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.evaluation.pictures import class_folders, fill, split_folders

from penultimate.data.disk.listed import SIDE, leave_listing, listed_images
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics, load_images
from penultimate.data.readers.located import located
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import canonical_json, digest_arrays, digest_bytes

PREPARATION = Preparation(40, 32, "bicubic", ChannelStatistics((0.5,) * 3, (0.25,) * 3))


def quietly(news: dict[str, Any]) -> None:
    pass


def test_a_published_name_is_read_as_it_is_published(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"data 'pets': .*a folder called oxford-iiit-pet"):
        located("pets", str(class_folders(tmp_path / "pets", ("x", "y"), 2)))
    with pytest.raises(RequestError, match=r"data 'imagenet_c': "):
        located("imagenet_c", str(tmp_path))


def test_the_fingerprint_changes_with_the_files_and_not_with_the_place(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "g", ("x", "y"), 3)
    before = located("g", str(root)).fingerprint
    moved = root.rename(tmp_path / "moved")
    assert located("g", str(moved)).fingerprint == before
    fill(moved / "x", 4, 1, seed=9)
    assert located("g", str(moved)).fingerprint != before


def test_the_fingerprint_is_that_of_the_whole_table(tmp_path: Path) -> None:
    found = located("t", str(split_folders(tmp_path / "t", ("ä", "bee"), 3, 1)))
    table = []
    for split, listing in found.splits.items():
        names = [listing.name(row) for row in range(len(listing))]
        states = [[file.stat().st_size, file.stat().st_mtime_ns] for file in listing.source.files]
        table.append([split, names, listing.labels.tolist(), ["bee", "ä"], states])
    assert found.fingerprint == digest_bytes(canonical_json(table).encode())


def test_the_digest_is_of_names_classes_pixels_labels_and_ids(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "d", ("ape \U0001f98d", 'b"ee'), 4, 2)
    listing = located("d", str(root)).splits["train"]
    names = [listing.name(row) for row in range(len(listing))]
    told = canonical_json(["\0".join(names), list(listing.class_names)])
    pixels = b"".join(hashlib.sha256((root / name).read_bytes()).digest() for name in names)
    images = np.frombuffer(pixels, np.uint8).reshape(-1, 32)
    expected = digest_bytes((told + digest_arrays(images, listing.labels, listing.ids)).encode())
    assert listing.digest == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_images_are_shown_as_the_network_wants_them(tmp_path: Path, workers: int) -> None:
    from torchvision.transforms import v2

    root = split_folders(tmp_path / "e", ("ape", "bee"), 5, 2)
    left = leave_listing(located("e", str(root)), tmp_path / "left", 0, quietly)
    assert (left.manifest["class_names"], left.left_out) == (["ape", "bee"], {})
    shown = listed_images(tmp_path / "left", "train", PREPARATION, workers)
    small = load_images(tmp_path / "left", "train")
    assert small.images.shape == (10, SIDE, SIDE, 3)
    assert np.array_equal(small.labels, shown.labels)
    assert np.array_equal(small.ids, shown.ids)
    whole = shown.in_memory()
    ours = sorted((root / "train").rglob("*.jpg"))
    resized = v2.Compose([v2.Resize(40, v2.InterpolationMode.BICUBIC), v2.CenterCrop(32), v2.PILToTensor()])
    theirs = torch.stack([resized(Image.open(path)) for path in ours]).permute(0, 2, 3, 1)
    assert np.array_equal(whole.images, theirs.numpy())
    order = np.array([7, 0, 3])
    ((batch, places),) = shown.batches(3, order)
    assert np.array_equal(places, order)
    assert np.array_equal(batch.numpy(), whole.images[order])
    ((batch, places),) = shown.subset(slice(4, 6)).batches(8)
    assert np.array_equal(batch.numpy(), whole.images[4:6])
    assert shown.digest != listed_images(tmp_path / "left", "test", PREPARATION).digest


def test_an_image_that_cannot_be_read_is_left_out_and_named_and_shifts_no_label(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "f", ("ape", "bee"), 3, 2)
    file = root / "train" / "ape" / "001.jpg"
    file.write_bytes(file.read_bytes()[:200])
    still = Image.open(root / "train" / "bee" / "000.jpg")
    still.save(root / "train" / "bee" / "moving.gif", save_all=True, append_images=[still.rotate(90)])
    left = leave_listing(located("f", str(root)), tmp_path / "left", 0, quietly)
    assert list(left.left_out) == list(left.remarks) == ["train"]
    assert left.images == {"train": 6, "test": 4}
    assert left.remarks["train"] == [
        "1 of 7 images hold several frames, of which the first is read; the first is train/bee/moving.gif"
    ]
    assert str(file) in left.left_out["train"][0]
    shown = listed_images(tmp_path / "left", "train", PREPARATION)
    assert shown.labels.tolist() == [0, 0, 1, 1, 1, 1]
    assert len(shown.in_memory()) == 6
    assert np.array_equal(load_images(tmp_path / "left", "train").labels, shown.labels)


def test_images_that_change_meanwhile_are_not_taken_for_the_same(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "i", ("ape", "bee"), 2, 1)
    leave_listing(located("i", str(root)), tmp_path / "left", 0, quietly)
    shown = listed_images(tmp_path / "left", "train", PREPARATION)
    file = root / "train" / "ape" / "000.jpg"
    file.write_bytes(b"no image any more")
    with pytest.raises(DamagedFileError, match=re.escape(str(file)) + ".*when the study began"):
        shown.in_memory()
    with pytest.raises(RequestError, match="changed since the study began"):
        listed_images(tmp_path / "left", "train", PREPARATION)


def test_the_images_held_out_are_a_share_of_the_training_images_by_their_names(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "s", ("ape", "bee"), 20, 3)
    whole = located("s", str(root)).splits
    found = located("s", str(root), ("train", "holdout", "test"))
    assert found.card.sizes == {"train": 36, "holdout": 4, "test": 6}
    assert "4 of 40 training images are held out" in found.note
    names = {split: {of.name(row) for row in range(len(of))} for split, of in found.splits.items()}
    assert names["train"] | names["holdout"] == {whole["train"].name(row) for row in range(40)}
    assert not names["train"] & names["holdout"]
    (root / "train" / "ape" / "019.jpg").unlink()
    fewer = located("s", str(root), ("train", "holdout", "test")).splits["holdout"]
    assert len({fewer.name(row) for row in range(len(fewer))} - names["holdout"]) <= 1
    with pytest.raises(RequestError, match="data 't': 1 training images are too few"):
        located("t", str(split_folders(tmp_path / "t", ("ape",), 1, 1)), ("train", "holdout", "test"))


def test_no_whole_set_of_pictures_is_in_memory(tmp_path: Path) -> None:
    found = located("many", str(class_folders(tmp_path / "many", ("x", "y"), 300)))
    tracemalloc.start()
    manifest = leave_listing(found, tmp_path / "left", 0, quietly).manifest
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    small = (tmp_path / "left/train.images.npy").stat().st_size
    assert small > 480 * SIDE**2 * 3
    assert peak < small
    written = np.load(tmp_path / "left/train.images.npy")
    np.save(tmp_path / "again.npy", written)
    again = (tmp_path / "again.npy").read_bytes()
    assert manifest["files"]["train.images.npy"] == {"sha256": digest_bytes(again), "bytes": len(again)}
    assert sorted(path.suffix for path in (tmp_path / "left").iterdir()) == sorted(
        [".npy"] * 6 + [".json"] * 2
    )
