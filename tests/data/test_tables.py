"""Tables of images: what says the split, several labels in a cell, and one image under two paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.data.published import put, put_image
from tests.data.test_published import assert_shows_its_labels

from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.errors import DamagedFileError, RequestError

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
        ("stage", [*"012012012"]),
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


def table(root: Path, text: str, name: str = "t.csv", encoding: str = "utf-8") -> Path:
    """Put a table beside twelve images."""
    for number in range(12):
        if not (root / f"{number}.jpg").exists():
            put_image(root / f"{number}.jpg", number % 3, number)
    put(root / name, text.encode(encoding))
    return root / name


def lines(header: str, row: Callable[[int], str], count: int = 12, separator: str = ",") -> str:
    return "\n".join([header, *map(row, range(count))]).replace(",", separator)


def classes(place: object) -> tuple[str, ...]:
    return open_dataset(str(place)).splits["train"].class_names


@pytest.mark.parametrize("column", ["usage", "phase", "dataset", "set", "Data Usage"])
@pytest.mark.parametrize("values", ["Training PublicTest PrivateTest", "0 1 2", "train val test"])
def test_columns_of_other_names_that_say_the_split(column: str, values: str, tmp_path: Path) -> None:
    data = opened(tmp_path, column, [values.split()[place] for place in (0, 0, 0, 1, 1, 2, 2)])
    assert marked(data) == [5, 6]
    assert "the 2 validation images are trained on" in " ".join(data.notes)


@pytest.mark.parametrize(
    ("column", "cells", "note"),
    [
        (
            "fold",
            "0123401234",
            "numbers parts for cross-validation, and is not used; .*split='fold', test='4'",
        ),
        ("split_number", "1112222333", "may number the splits, and is not used; .*test='3'"),
        ("train_test_split", "1111111000", "may number the splits, and is not used"),
        ("vehicle", ["train", "bus", "test"] * 3, "names splits in some of its cells only, and is not used"),
    ],
)
def test_a_column_that_may_say_the_split_is_named(
    column: str, cells: Sequence[str], note: str, tmp_path: Path
) -> None:
    assert re.search(f"the column '{column}' {note}", " ".join(opened(tmp_path, column, [*cells]).notes))


def test_a_split_that_is_said(tmp_path: Path) -> None:
    opened(
        tmp_path,
        "fold,kind",
        [f"{n // 3 % 3 + 1},{'train' if n < 6 else 'test' if n < 9 else 'x'}" for n in range(10)],
    )
    file = tmp_path / "t.csv"
    assert marked(open_dataset(f"{file}(split='fold', test=3)")) == [6, 7, 8]
    assert marked(open_dataset(f"{file}(split='Fold', test=['2', '3'])")) == [3, 4, 5, 6, 7, 8]
    said = open_dataset(f"{file}(split='kind')")
    assert marked(said) == [6, 7, 8]
    assert "of no split, and left out: 1 of 10 images" in said.notes
    assert "were drawn" in " ".join(open_dataset(f"{file}(split=None)").notes)
    for settings, message in (
        ("split='fold', test=7", "unknown value of 'fold' .* '7'. Known: 1, 2, 3"),
        ("split='fold'", r"no cell of 'fold' names a split; .*test='3'\)\" tests on"),
        ("test=2", "goes with the column whose cells they are"),
        ("splits='kind'", "unknown setting .*'splits'. Did you mean 'split'"),
        ("split='knid'", "unknown column .*'knid'. Did you mean 'kind'"),
        ("label=3", "label is a name, not 3"),
    ):
        with pytest.raises(RequestError, match=message):
            open_dataset(f"{file}({settings})")


@pytest.mark.parametrize(
    ("columns", "cells", "message"),
    [
        (
            "usage",
            ["train", "test", "extra"],
            "unknown split in line 4 .* To leave out what names no split: ",
        ),
        ("split", ["a", "a", "b"], r"unknown split in line 2 .*\(split='split', test='b'\)"),
        ("split", ["1", "1", "0"], r"0, which is training elsewhere, is not the largest; .*test='1'\)"),
        (
            "usage,phase",
            ["train,train", "test,train", "test,test"],
            "'usage' and 'phase' name different splits",
        ),
    ],
)
def test_a_split_that_is_unclear_is_asked_for(
    columns: str, cells: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=message):
        opened(tmp_path, columns, cells)


@pytest.mark.parametrize(
    "header",
    ["path,diagnosis", "path,dog breed", "path,class_id", "path,Species", "path,kind", "path,note,target"],
)
def test_the_column_of_labels_is_chosen(header: str, tmp_path: Path) -> None:
    extra = "say {n}," if "note" in header else ""
    file = table(tmp_path, lines(header, lambda n: f"{n}.jpg,{extra.format(n=n)}{CLASSES[n % 3]}"))
    assert classes(file) == CLASSES


@pytest.mark.parametrize("column", ["image_id", "img_path", "id", "name", "filepath", "File Name", "key"])
@pytest.mark.parametrize("below", ["", "pictures/", "part{}/"])
def test_images_are_found_by_names_without_endings(column: str, below: str, tmp_path: Path) -> None:
    for number in range(12):
        put_image(tmp_path / below.format(number % 2) / f"im{number}.jpg", number % 3, number)
    put(tmp_path / "t.csv", lines(f"age,{column},sex,breed", lambda n: f"4{n % 2},im{n},f,{CLASSES[n % 3]}"))
    data = open_dataset(f"{tmp_path / 't.csv'}")
    assert sum(map(len, data.splits.values())) == 12
    assert_shows_its_labels(data.splits["train"])
    assert ("the images were found by their names, in" in " ".join(data.notes)) == bool(below)


def test_classes_in_columns_of_0_and_1(tmp_path: Path) -> None:
    def row(n: int) -> str:
        return f"{n}.jpg,{float(n % 3 == 0)},{float(n % 3 == 1)},{float(n % 3 == 2)},{n % 2}"

    file = table(tmp_path, lines("image,Wasp, Bee, Ant,odd", row))
    with pytest.raises(
        RequestError, match=r"4 columns .* are to mark one class for each image; row 2 marks 2"
    ):
        open_dataset(str(file))
    data = open_dataset(f"{file}(label=('wasp', 'bee', 'Ant'))")
    assert data.splits["train"].class_names == ("Wasp", "Bee", "Ant")
    assert_shows_its_labels(data.splits["train"])
    assert classes(f"{file}(label='odd')") == ("0", "1")
    table(tmp_path, lines("image,Wasp,Bee,Ant", lambda n: row(n).rpartition(",")[0]))
    whole = open_dataset(str(file))
    assert "the class of an image is the one that its row marks: 3 columns" in " ".join(whole.notes)
    assert whole.splits["train"].class_names == ("Wasp", "Bee", "Ant")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "path,category,species",
            r"it may be 'category' or 'species'. Call it label, or say it: .*t.csv\(label=",
        ),
        ("path,red,round", r"it may be 'red' or 'round'"),
        ("path,label,label", "2 columns|1 column .*of the same name"),
        ("0.jpg,ant,bee", "its first line is that of an image, '0.jpg'"),
    ],
)
def test_columns_that_are_unclear_are_asked_for(header: str, message: str, tmp_path: Path) -> None:
    file = table(tmp_path, lines(header, lambda n: f"{n}.jpg,{n % 2},{n % 3}"))
    with pytest.raises(RequestError, match=message):
        open_dataset(str(file))


def test_names_that_lead_to_two_images_are_asked_for(tmp_path: Path) -> None:
    for name in ("a/x.jpg", "b/x.jpg", "y.jpg", "y.png"):
        put_image(tmp_path / name, 1)
    for rows, message in (
        ("x,1", "'x' may be 'a/x.jpg' or 'b/x.jpg'"),
        ("y,1", "'y' may be 'y.jpg' or 'y.png'"),
    ):
        put(tmp_path / "t.csv", f"image,label\n{rows}\n")
        with pytest.raises(RequestError, match=message):
            open_dataset(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize(
    ("name", "separator"), [("t.txt", "\t"), ("t.tsv", "\t"), ("t.csv", "|"), ("t.txt", " ")]
)
def test_encodings_and_separators(encoding: str, name: str, separator: str, tmp_path: Path) -> None:
    text = lines("path,label", lambda n: f"{n}.jpg,{'Bär' if n % 2 else 'Löwe'}", separator=separator)
    assert classes(table(tmp_path, text, name, encoding)) == ("Bär", "Löwe")


def test_another_encoding_is_named(tmp_path: Path) -> None:
    text = lines("path,label", lambda n: f"{n}.jpg,{'Bär' if n % 2 else 'Löwe'}")
    with pytest.raises(RequestError, match=r"is not in UTF-8 .*0xf6.*: save it as UTF-8, which Excel calls"):
        open_dataset(str(table(tmp_path, text, encoding="cp1252")))
    with pytest.raises(DamagedFileError, match="as UTF-16 without a byte order mark does"):
        open_dataset(str(table(tmp_path, text.replace("ä", "a").replace("ö", "o"), encoding="utf-16-le")))


def objects(*, label: Callable[[int], object], name: str = "file_name") -> str:
    return "\n".join(json.dumps({name: f"{n}.jpg", "label": label(n)}) for n in range(12))


def test_objects_of_json(tmp_path: Path) -> None:
    assert classes(table(tmp_path, objects(label=lambda n: n % 3), "t.jsonl")) == ("0", "1", "2")
    assert (
        classes(table(tmp_path, objects(label=lambda n: CLASSES[n % 3], name="image"), "t.ndjson")) == CLASSES
    )
    data = open_dataset(str(table(tmp_path, objects(label=lambda n: n % 3 if n else None), "t.jsonl")))
    assert "without a label (None), and left out: 1 of 12 images" in data.notes
    for text, message in (
        (objects(label=lambda n: [1, 2]), "several labels"),
        ('{"image": "0.jpg"\n', "line 1: "),
        ("[1]\n", "line 1: an object"),
    ):
        with pytest.raises((RequestError, DamagedFileError), match=message):
            open_dataset(str(table(tmp_path, text, "t.jsonl")))


def test_a_table_in_a_hidden_folder_is_said_to_be_left_out(tmp_path: Path) -> None:
    for split in ("train", "test", ".val"):
        put(
            tmp_path / split / "metadata.csv", lines("file_name,label", lambda n: f"{n}.jpg,{CLASSES[n % 3]}")
        )
        for number in range(12):
            put_image(tmp_path / split / f"{number}.jpg", number % 3, number)
    lying = "in a folder hidden by a dot before its name, and left out: 1 table ('.val/metadata.csv')"
    assert lying in open_dataset(str(tmp_path)).notes


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "_classes.csv"])
def test_tables_beside_their_images_in_folders_of_splits(name: str, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        text = {
            "metadata.csv": lines("file_name,label", lambda n: f"{n}.jpg,{CLASSES[n % 3]}"),
            "metadata.jsonl": objects(label=lambda n: CLASSES[n % 3]),
            "_classes.csv": lines(
                "filename, ant, bee, wasp",
                lambda n: f"{n}.jpg, {int(n % 3 == 0)}, {int(n % 3 == 1)}, {int(n % 3 == 2)}",
            ),
        }[name]
        table(tmp_path / split, text, name)
    data = open_dataset(str(tmp_path))
    assert [len(listing) for listing in data.splits.values()] == [24, 12]
    assert data.splits["test"].class_names == CLASSES
    for listing in data.splits.values():
        assert_shows_its_labels(listing)
    assert data.splits["test"].name(0) == "test/0.jpg"


def test_a_table_of_captions_leaves_class_folders_as_they_are(tmp_path: Path) -> None:
    for number in range(8):
        put_image(tmp_path / CLASSES[number % 2] / f"{number}.jpg", number % 2, number)
    put(tmp_path / "metadata.csv", lines("file_name,text", lambda n: f"{CLASSES[n % 2]}/{n}.jpg,is {n}", 8))
    assert classes(tmp_path) == ("ant", "bee")
    put(
        tmp_path / "metadata.csv", lines("file_name,label", lambda n: f"{CLASSES[n % 2]}/{n}.jpg,L{n % 2}", 8)
    )
    assert classes(tmp_path) == ("L0", "L1")
