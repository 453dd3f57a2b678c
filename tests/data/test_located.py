"""Data sets of one's own: which images there are, of which classes, in which splits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.pictures import class_folders, fill, split_folders

from penultimate.data.located import located
from penultimate.errors import DamagedFileError, RequestError


def test_folders_of_splits_are_the_splits_whatever_they_are_called(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "a", ("ape", "bee"), 4, 2)
    found = located("a", str(root))
    assert {split: len(files) for split, files in found.splits.items()} == {"train": 8, "test": 4}
    assert found.card.sizes == {"train": 8, "test": 4}
    (root / "test").rename(root / "Validation")
    assert [*located("a", str(root)).splits] == ["train", "test"]
    fill(root / "testing" / "ape", 1, 0)
    assert {split: len(files) for split, files in located("a", str(root)).splits.items()} == {
        "train": 8,
        "holdout": 4,
        "test": 1,
    }


def test_without_splits_a_fifth_of_each_class_is_tested_whatever_is_added(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "b", ("x", "y"), 20)
    found = located("b", str(root))
    tested = [path for path, _ in found.splits["test"]]
    assert len(tested) == 8
    assert {path for path, _ in found.splits["train"]}.isdisjoint(tested)
    assert [label for _, label in found.splits["test"]].count(0) == 4
    assert located("b", str(root)).splits == found.splits
    assert "one image in 5" in found.told


def test_numbered_folders_stand_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "c", ("10", "9", "2"), 3)
    assert located("c", str(root)).class_names == ("2", "9", "10")


def test_a_class_of_one_split_alone_is_a_class_and_is_told(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "d", ("ape", "bee"), 3, 2)
    fill(root / "test" / "cat", 2, 2)
    found = located("d", str(root))
    assert found.class_names == ("ape", "bee", "cat")
    assert "'cat' has no image in train" in found.told
    assert [label for _, label in found.splits["test"]] == [0, 0, 1, 1, 2, 2]


def test_images_are_decoded_with_labels_and_ids_that_no_other_split_has(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "e", ("ape", "bee"), 3, 2)
    (root / "train" / "ape" / "notes.txt").write_text("no image")
    (root / "train" / "ape" / "._000.jpg").write_bytes(b"metadata")
    (_, train), (_, test) = located("e", str(root)).decoded()
    assert train.images.shape == (6, 224, 224, 3)
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert not np.intersect1d(train.ids, test.ids).size


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "f", ("ape",), 2, 1)
    file = root / "train" / "ape" / "000.jpg"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(DamagedFileError, match=re.escape(str(file))):
        list(located("f", str(root)).decoded())


def test_the_fingerprint_changes_with_the_files_and_not_with_the_place(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "g", ("x", "y"), 3)
    before = located("g", str(root)).fingerprint
    moved = root.rename(tmp_path / "moved")
    assert located("g", str(moved)).fingerprint == before
    fill(moved / "x", 4, 1, seed=9)
    assert located("g", str(moved)).fingerprint != before


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ((), "is not there"),
        (("empty/",), "no image for the split 'train' (0 images in all"),
        (("one/x.txt",), "no image for the split"),
        (("file",), "is a file"),
    ],
)
def test_what_is_no_data_set_is_told_what_is_expected(
    tmp_path: Path, made: tuple[str, ...], said: str
) -> None:
    root = tmp_path / "data"
    for name in made:
        if name == "file":
            root.write_text("")
        elif name.endswith("/"):
            (root / name).mkdir(parents=True)
        else:
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("")
    with pytest.raises(RequestError) as error:
        located("mine", str(root))
    assert said in str(error.value)
    assert "folder for each class" in str(error.value) or "ROOT/CLASS/image.jpg" in str(error.value)


def test_one_image_is_too_few(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "h", ("x",), 1)
    with pytest.raises(RequestError, match="no image for the split 'test' \\(1 images in all"):
        located("h", str(root))


def test_two_folders_of_one_split_are_refused(tmp_path: Path) -> None:
    root = split_folders(tmp_path / "i", ("x",), 2, 1)
    fill(root / "training" / "x", 1, 0)
    with pytest.raises(RequestError, match="two folders of one split: train and training"):
        located("i", str(root))
