"""A folder whose splits are tables: train.csv and test.csv, and what lies beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.data.published import put, put_image
from tests.data.test_own import names, told

from penultimate import RequestError
from penultimate.data.readers.opening import open_dataset

CLASSES = ("ant", "bee")
COUNTS = {"train": 6, "val": 4, "valid": 4, "test": 2}


def write(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = ("path", "label")) -> None:
    if path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
        parquet.write_table(arrow.table(columns), path)
    elif path.suffix == ".jsonl":
        put(path, "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in rows))
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        put(path, "\n".join(separator.join(row) for row in (header, *rows)))


def lay(
    root: Path,
    *splits: str,
    ending: str = ".csv",
    at: str = "images/{split}{number}.png",
    cell: Callable[[str], str] = str,
    header: Sequence[str] = ("path", "label"),
) -> Path:
    """A table for each split; of its images every second one is of a class."""
    for split in splits:
        places = [
            at.format(split=split, number=number, of=CLASSES[number % 2]) for number in range(COUNTS[split])
        ]
        for number, place in enumerate(places):
            put_image(root / place, number % 2, number)
        rows = [
            (cell(place), CLASSES[number % 2], *["x"] * (len(header) - 2))
            for number, place in enumerate(places)
        ]
        write(root / f"{split}{ending}", rows, header)
    return root


def sizes(root: Path) -> dict[str, int]:
    opened = open_dataset(str(root))
    for split, listing in opened.splits.items():
        assert listing.class_names == CLASSES
        assert listing.labels.tolist() == [number % 2 for number in range(len(listing))], split
        assert not listing.missing
    return {split: len(listing) for split, listing in opened.splits.items()}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".jsonl", ".parquet", "_labels.csv", "-list.csv"])
@pytest.mark.parametrize(
    ("splits", "counts"),
    [
        (("train", "test"), {"train": 6, "test": 2}),
        (("train", "val", "test"), {"train": 10, "test": 2}),
        (("train", "valid"), {"train": 6, "test": 4}),
    ],
)
def test_each_table_is_a_split(
    ending: str, splits: Sequence[str], counts: dict[str, int], tmp_path: Path
) -> None:
    assert sizes(lay(tmp_path, *splits, ending=ending)) == counts
    assert f"the labels are those of {len(splits)} tables" in told(open_dataset(str(tmp_path)))


@pytest.mark.parametrize(
    ("at", "cell"),
    [
        ("images/{split}{number}.png", lambda place: place.rpartition("/")[2]),
        ("images/{split}{number}.png", lambda place: place.rpartition("/")[2][:-4]),
        ("{split}/{number}.png", lambda place: place.rpartition("/")[2]),
        ("{split}_images/{number}.png", lambda place: place.rpartition("/")[2][:-4]),
        ("{split}/images/{number}.png", lambda place: place.rpartition("/")[2]),
        ("{of}/{split}{number}.png", str),
        ("images/{of}/{split}{number}.png", str),
        ("{split}{number}.png", str),
    ],
)
def test_images_lie_where_the_cells_lead(at: str, cell: Callable[[str], str], tmp_path: Path) -> None:
    root = lay(tmp_path, "train", "test", at=at, cell=cell)
    assert sizes(root) == {"train": 6, "test": 2}
    folder = at.format(split="test", number=0, of="ant").rpartition("/")[0]
    assert names(open_dataset(str(root)).splits["test"])[0].startswith(folder)


def test_absolute_paths_and_wrapped_folders(tmp_path: Path) -> None:
    inner = tmp_path / "download" / "insects"
    lay(inner, "train", "test", cell=lambda place: str(inner / place))
    assert sizes(tmp_path / "download") == {"train": 6, "test": 2}


def test_the_columns_of_the_first_table_are_those_of_the_others(tmp_path: Path) -> None:
    """By its two images alone, that of the test would not say which column recurs."""
    lay(tmp_path, "train", "test", header=("where", "kind", "of"))
    assert sizes(tmp_path) == {"train": 6, "test": 2}
    said = open_dataset(f"{tmp_path}(image='where', label='kind')")
    assert [len(listing) for listing in said.splits.values()] == [6, 2]


def test_one_table_is_drawn_from_and_other_tables_are_none_of_splits(tmp_path: Path) -> None:
    lay(tmp_path, "train")
    write(tmp_path / "sample_submission.csv", [("1", "ant")], ("id", "label"))
    put(tmp_path / "test.txt", "how this was tested")
    opened = open_dataset(str(tmp_path))
    assert [len(listing) for listing in opened.splits.values()] == [4, 2]
    assert "nothing says which images are tested on" in told(opened)


def test_class_folders_of_splits_are_read_and_the_tables_named(tmp_path: Path) -> None:
    lay(tmp_path, "train", "test", at="{split}/{of}/{number}.png")
    opened = open_dataset(str(tmp_path))
    assert opened.notes == ("not read, for folders say the classes: 2 tables ('train.csv', 'test.csv')",)
    assert [len(listing) for listing in opened.splits.values()] == [6, 2]


def test_class_folders_beside_another_table_are_read_and_it_is_named(tmp_path: Path) -> None:
    lay(tmp_path, "train", "test", at="{of}/{split}{number}.png")
    by_folders = open_dataset(f"{tmp_path}(split=None)")
    assert "not read, for folders say the classes: 2 tables" in told(by_folders)
    (tmp_path / "test.csv").unlink()
    (tmp_path / "train.csv").rename(tmp_path / "all.csv")
    opened = open_dataset(str(tmp_path))
    assert sum(len(listing) for listing in opened.splits.values()) == 8
    assert "not read, for folders say the classes: 1 table ('all.csv')" in told(opened)


def only_paths(root: Path) -> None:
    write(lay(root, "train", "test") / "test.csv", [("images/test0.png",)], ("path",))


def sizes_beside(root: Path) -> None:
    write(lay(root, "train", "test") / "test.csv", [("images/test0.png", "1.5")], ("path", "size"))


def renamed(root: Path) -> None:
    (lay(root, "train") / "train.csv").rename(root / "labels.csv")


def twice(root: Path) -> None:
    write(lay(root, "train", "test") / "training.tsv", [("images/train0.png", "ant")])


def listed_twice(root: Path) -> None:
    write(lay(root, "train", "test") / "test.csv", [("images/train0.png", "ant")])


def of_another_split(root: Path) -> None:
    rows = [("images/test0.png", "ant", "train"), ("images/test1.png", "bee", "train")]
    write(lay(root, "train", "test") / "test.csv", rows, ("path", "label", "split"))


def without_a_header(root: Path) -> None:
    lay(root, "train", "test", at="{of}/{split}{number}.png")
    for split in ("train", "test"):
        (root / f"{split}.csv").unlink()
        put(root / f"{split}.txt", f"ant/{split}0.png\nbee/{split}1.png\n")


def gone(root: Path) -> None:
    lay(root, "train", "test", at="images/{split}/{number}.png")
    (root / "images" / "test").rename(root / "elsewhere")


def embedded(root: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"image": [{"bytes": b"x", "path": "x.png"}] * 2, "label": [0, 1]})
    root.mkdir()
    parquet.write_table(table, root / "train.parquet")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            only_paths,
            r"test.csv' lacks 1 column \('label'\), where 'train.csv' has the labels.*train.csv' alone",
        ),
        (sizes_beside, r"test.csv' lacks 1 column \('label'\)"),
        (renamed, r"one folder only, 'images', which would be one class. Give the table.*data/labels.csv'"),
        (twice, r"'train.csv' and 'training.tsv' both stand for the train images"),
        (listed_twice, r"1 image is \('images/train0.png'\) listed more than once"),
        (
            of_another_split,
            r"test.csv' is the table of the test images .* 1 column \('split'\) of it say other",
        ),
        (without_a_header, r"train.txt': its first line is that of an image.*such as path,label"),
        (gone, r"no image of the test split is there: 2 are listed, such as 'images/test/0.png'"),
        (embedded, r"holds images themselves, in 1 column \('image'\).*save_to_disk"),
    ],
)
def test_what_the_tables_do_not_say_is_asked_for(
    make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    make(tmp_path / "data")
    with pytest.raises(RequestError, match=message):
        open_dataset(str(tmp_path / "data"))
