"""Copies of images: across splits, in two classes and within a split; named, counted, and one kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from tests.data.published import put

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.copies import exact_copies
from penultimate.data.readers.opening import open_dataset


def folders(root: Path) -> Path:
    """Eight images in two classes and two splits, none equal to another; files of one size among them."""
    files = [
        root / f"{split}/{name}/{i}.jpg"
        for split in ("train", "test")
        for name in ("ant", "bee")
        for i in (0, 1)
    ]
    for place, file in enumerate(sorted(files)):
        put(file, bytes([place]) * 5000 + b"end" if place % 2 else bytes([place]) * (6000 + place))
    return root


def told(root: Path) -> list[str]:
    return exact_copies(open_dataset(str(root)).splits).notes()


def left(root: Path) -> dict[str, list[str]]:
    splits = open_dataset(str(root)).splits
    found = exact_copies(splits).left_out()
    return {split: [splits[split].name(row) for row in rows] for split, rows in found.items()}


def test_images_of_one_size_or_end_are_no_copies(tmp_path: Path) -> None:
    assert told(folders(tmp_path)) == []
    put(tmp_path / "train/ant/0.jpg", b"a" * 9000 + b"b" * 5000)
    put(tmp_path / "train/ant/1.jpg", b"c" * 9000 + b"b" * 5000)
    assert told(tmp_path) == []


def test_copies_across_splits_leave_the_test_images(tmp_path: Path) -> None:
    folders(tmp_path)
    shutil.copy(tmp_path / "train/ant/0.jpg", tmp_path / "test/ant/1.jpg")
    shutil.copy(tmp_path / "train/ant/0.jpg", tmp_path / "train/ant/2.jpg")
    assert told(tmp_path) == [
        "1 test image of 4 is an exact copy of a train image: 'test/ant/1.jpg' and 'train/ant/0.jpg'",
        "1 train image is there more than once: 'train/ant/2.jpg' and 'train/ant/0.jpg'",
    ]
    assert left(tmp_path) == {"test": [], "train": ["train/ant/0.jpg", "train/ant/2.jpg"]}


def test_of_copies_in_two_classes_none_is_kept(tmp_path: Path) -> None:
    folders(tmp_path)
    shutil.copy(tmp_path / "train/ant/0.jpg", tmp_path / "train/bee/1.jpg")
    shutil.copy(tmp_path / "test/bee/0.jpg", tmp_path / "test/bee/1.jpg")
    assert told(tmp_path) == [
        "1 test image is there more than once: 'test/bee/1.jpg' and 'test/bee/0.jpg'",
        "1 train image is there more than once: 'train/bee/1.jpg' and 'train/ant/0.jpg'",
        "1 image is of several classes: 'train/ant/0.jpg' and 'train/bee/1.jpg'",
    ]
    assert left(tmp_path) == {"test": ["test/bee/1.jpg"], "train": ["train/ant/0.jpg", "train/bee/1.jpg"]}


def several(root: Path, split: str, **images: tuple[bytes, list[int]]) -> Listing:
    """A split of files with a set of labels each."""
    for name, (content, _) in images.items():
        put(root / split / name, content)
    paths = tuple(f"{split}/{name}" for name in images)
    labels = np.array([labels for _, labels in images.values()])
    rows = np.arange(len(paths))
    return Listing(Files(root, paths), rows, labels, rows, ("edema", "fracture"))


def test_copies_of_one_set_of_labels_are_an_image_twice_and_of_two_sets_none_is_right(tmp_path: Path) -> None:
    a, b, c, d, e = (bytes([number]) * 5000 for number in range(1, 6))
    train = several(
        tmp_path,
        "train",
        **{"0": (a, [1, 0]), "1": (a, [1, 0]), "2": (b, [1, 0]), "3": (b, [1, -1]), "4": (c, [0, 1])},
        **{"5": (d, [0, 0]), "6": (e, [1, 1])},
    )
    test = several(tmp_path, "test", **{"7": (c, [0, 1]), "8": (d, [1, 0]), "9": (bytes(5000), [0, 0])})
    copies = exact_copies({"train": train, "test": test})
    assert copies.notes() == [
        "2 test images of 3 are exact copies of train images: 'test/7' and 'train/4', 'test/8' and 'train/5'",
        "2 train images are there more than once: 'train/1' and 'train/0', 'train/3' and 'train/2'",
        "2 images are of different labels: 'test/8' and 'train/5', 'train/2' and 'train/3'",
    ]
    assert {split: rows.tolist() for split, rows in copies.left_out().items()} == {
        "test": [1],
        "train": [1, 2, 3, 4, 5],
    }


def test_what_cannot_be_read_is_no_copy(tmp_path: Path) -> None:
    folders(tmp_path)
    opened = open_dataset(str(tmp_path))
    for file in ("train/ant/0.jpg", "train/ant/1.jpg"):
        (tmp_path / file).unlink()
    assert exact_copies(opened.splits).groups == ()
