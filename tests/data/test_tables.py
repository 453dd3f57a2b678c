"""Tables of images: what says the split, several labels in a cell, and one image under two paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.data.published import put, put_image

from penultimate.data.opening import OpenedDataset, open_dataset
from penultimate.errors import RequestError

CLASSES = ("ant", "bee", "wasp")


def opened(root: Path, columns: str, said: list[str], label: str = "label") -> OpenedDataset:
    """Open a table of one image for each line of further cells; labels go round."""
    for number in range(len(said)):
        if not (root / f"{number}.jpg").exists():
            put_image(root / f"{number}.jpg", number % 3, number)
    lines = [f"{number}.jpg,{CLASSES[number % 3]},{cells}" for number, cells in enumerate(said)]
    put(root / "t.csv", "\n".join([f"path,{label},{columns}", *lines]))
    return open_dataset(str(root / "t.csv"))


def marked(data: OpenedDataset) -> list[int]:
    listing = data.splits["test"]
    return [int(listing.name(index).removesuffix(".jpg")) for index in range(len(listing))]


@pytest.mark.parametrize(
    ("column", "true", "false", "marks_test"),
    [
        ("is_valid", "True", "False", True),
        ("is_validation", "1", "0", True),
        ("IS_TEST", "yes", "no", True),
        ("istest", "t", "f", True),
        ("test", "1.0", "0.0", True),
        ("is_test_image", "1", "", True),
        ("is_train", "TRUE", "FALSE", False),
        ("is_training_image", "1", "0", False),
        ("train", "y", "n", False),
        ("in_test_set", "1", "0", True),
        ("for_training", "1", "0", False),
    ],
)
def test_a_column_of_true_and_false_says_what_is_tested_on(
    column: str, true: str, false: str, marks_test: bool, tmp_path: Path
) -> None:
    data = opened(tmp_path, column, [true if (n >= 6) == marks_test else false for n in range(9)])
    assert marked(data) == [6, 7, 8]
    assert f"the splits are those of the column '{column.lower()}'" in data.notes


@pytest.mark.parametrize("column", ["split", "partition", "set", "fold", "phase", "usage", "train_test"])
def test_a_column_of_names_says_it(column: str, tmp_path: Path) -> None:
    said = ["Train"] * 3 + ["training set"] * 3 + ["TEST"] * 3
    assert marked(opened(tmp_path, column, said)) == [6, 7, 8]


@pytest.mark.parametrize("point", ["", ".0"])
@pytest.mark.parametrize("numbers", ["000111222", "000000111", "000000222"])
def test_a_column_of_numbers_says_it_as_in_celeba(numbers: str, point: str, tmp_path: Path) -> None:
    data = opened(tmp_path, "split", [number + point for number in numbers])
    assert marked(data) == [6, 7, 8]
    assert any("stand for splits: 0 for train, 1 for validation, 2 for test" in note for note in data.notes)


@pytest.mark.parametrize("column", ["split", "phase", "usage", "dataset", "data_split"])
def test_short_names_of_splits_are_read_in_any_column(column: str, tmp_path: Path) -> None:
    data = opened(tmp_path, column, ["trn"] * 6 + ["tst"] * 3)
    assert marked(data) == [6, 7, 8]


def test_a_column_called_data_split_may_number_the_splits(tmp_path: Path) -> None:
    assert marked(opened(tmp_path, "data_split", list("000000222"))) == [6, 7, 8]


def test_several_columns_of_true_and_false(tmp_path: Path) -> None:
    said = ["1,0,0"] * 3 + ["0,1,0"] * 3 + ["0,0,1"] * 3 + ["0,0,0"]
    data = opened(tmp_path, "is_train,is_val,is_test", said)
    assert marked(data) == [6, 7, 8]
    assert len(data.splits["train"]) == 6
    assert "of no split, and left out: 1 of 10 images" in data.notes
    with pytest.raises(RequestError, match=r"line 3: '1.jpg' is of two splits, by is_val and is_test"):
        opened(tmp_path, "is_val,is_test", ["0,0", "1,1", "0,1"])


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("train", ["7.5", "3", "1"] * 3),
        ("test", ["Turing"] * 9),
        ("valid", ["1", "0", "1"] * 3),
        ("fold", [*"012012012"]),
        ("is_blurred", ["1", "0", "1"] * 3),
        ("vehicle", ["train", "bus", "test"] * 3),
        ("vehicle", ["train"] * 9),
    ],
)
def test_other_columns_say_nothing_of_splits(column: str, cells: list[str], tmp_path: Path) -> None:
    notes = " ".join(opened(tmp_path, column, cells).notes)
    assert ("the column 'valid' is not used; call it 'is_valid' if" in notes) == (column == "valid")
    assert "nothing says which images are tested on" in notes
    assert ("'fold' numbers parts for cross-validation, and is not used" in notes) == (column == "fold")


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("is_test", ["1", "0", "maybe"], "line 4: is_test is 'maybe'; true or false is expected"),
        ("split", ["0", "1", "7"], "unknown split in line 2"),
        ("split", ["train", "test", ""], "unknown split in line 4"),
    ],
)
def test_what_is_no_split_is_said(column: str, cells: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=message):
        opened(tmp_path, column, cells)


def test_where_every_image_is_trained_on_test_images_are_drawn(tmp_path: Path) -> None:
    for column, cell in (("split", "train"), ("is_train", "1"), ("is_test", "0")):
        data = opened(tmp_path, column, [cell] * 30)
        assert len(marked(data)) == 6


def test_several_labels_in_a_cell_are_refused(tmp_path: Path) -> None:
    for label, cells in (
        ("labels", ["ant,odd", "bee,odd"]),
        ("tags", ["ant odd", "bee odd", "ant"]),
        ("label", ["ant|odd", "bee|odd", "ant"]),
        ("label", ["['ant', 'odd']", "['bee']"]),
        ("species", ['["ant", "odd"]', "bee"]),
    ):
        quoted = ['"{}"'.format(cell.replace('"', '""')) for cell in cells]
        lines = [f"{number}.jpg,{cell}" for number, cell in enumerate(quoted)]
        put(tmp_path / "t.csv", "\n".join([f"path,{label}", *lines]))
        with pytest.raises(RequestError, match="several"):
            open_dataset(str(tmp_path / "t.csv"))


def test_images_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    said = [f"{number},{label}" for number, label in enumerate(["-1", "0", "1", "0", "1", "", "nan"])]
    for number in range(7):
        put_image(tmp_path / f"{number}.jpg", number % 2)
    put(tmp_path / "t.csv", "\n".join(["path,label", *(line.replace(",", ".jpg,") for line in said)]))
    data = open_dataset(str(tmp_path / "t.csv"))
    assert data.splits["train"].class_names == ("0", "1")
    assert sum(map(len, data.splits.values())) == 4
    assert "without a label ('', '-1', 'nan'), and left out: 3 of 7 images" in data.notes


@pytest.mark.parametrize("kind", ["link", "hard link", "linked folder", "dots"])
def test_one_image_under_two_paths_is_refused(kind: str, tmp_path: Path) -> None:
    put_image(tmp_path / "a/x.jpg", 0)
    match kind:
        case "link":
            (tmp_path / "y.jpg").symlink_to(tmp_path / "a/x.jpg")
        case "hard link":
            os.link(tmp_path / "a/x.jpg", tmp_path / "y.jpg")
        case "linked folder":
            (tmp_path / "b").symlink_to(tmp_path / "a")
    other = {"linked folder": "b/x.jpg", "dots": f"{tmp_path}/a/../a/x.jpg"}.get(kind, "y.jpg")
    put(tmp_path / "t.csv", f"path,label,split\na/x.jpg,ant,train\n{other},ant,test")
    with pytest.raises(RequestError, match="are one file, which is listed twice"):
        open_dataset(str(tmp_path / "t.csv"))
