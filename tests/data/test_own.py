"""A user's own images: folders, tables, arrays, Hugging Face's folders; and what is wrong with them, said."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.data.published import colour, jpeg, put, put_image
from tests.data.test_published import assert_shows_its_labels, seen

from penultimate import RequestError
from penultimate.data import generate, load_images
from penultimate.data.listing import Listing
from penultimate.data.readers.inspection import decode_all
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.own import stratified
from penultimate.errors import DamagedFileError


def make(root: Path, classes: dict[str, int], label: int = 0) -> Path:
    """A folder for each class with that many images."""
    for place, (name, count) in enumerate(classes.items(), label):
        (root / name).mkdir(parents=True)
        for number in range(count):
            put_image(root / name / f"{number}.jpg", place, number)
    return root


def names(listing: Listing) -> list[str]:
    return [listing.name(index) for index in range(len(listing))]


def told(opened: OpenedDataset) -> str:
    return "; ".join(opened.notes)


def test_split_folders(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("Test", 2)):
        make(tmp_path / split, {"ant": count, "bee": count})
    opened = open_dataset(str(tmp_path))
    assert list(opened.splits) == ["train", "test"]
    assert [len(listing) for listing in opened.splits.values()] == [6, 4]
    for listing in opened.splits.values():
        assert_shows_its_labels(listing)
        assert listing.class_names == ("ant", "bee")
    assert opened.notes == ()
    assert not set(opened.splits["train"].ids) & set(opened.splits["test"].ids)


def test_validation_images_are_trained_on_and_this_is_said(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("val", 2), ("test", 1)):
        make(tmp_path / split, {"ant": count, "bee": count})
    opened = open_dataset(str(tmp_path))
    assert [len(listing) for listing in opened.splits.values()] == [10, 2]
    assert "the 4 validation images are trained on" in told(opened)
    assert_shows_its_labels(opened.splits["train"])
    (tmp_path / "test").rename(tmp_path / ".test")
    opened = open_dataset(str(tmp_path))
    assert [len(listing) for listing in opened.splits.values()] == [6, 4]
    assert "the validation images are tested on" in told(opened)


def test_without_a_split_one_is_drawn_and_recorded(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 10, "bee": 20, "wasp": 1})
    opened = open_dataset(str(tmp_path))
    train, test = opened.splits.values()
    assert np.bincount(test.labels).tolist() == [2, 4]
    assert np.bincount(train.labels).tolist() == [8, 16, 1]
    assert sorted([*train.ids, *test.ids]) == list(range(31))
    assert "20% of each class, 6 of 31 images, were drawn with seed 0" in told(opened)
    assert "no test image: 1 class ('wasp')" in told(opened)
    assert names(open_dataset(str(tmp_path)).splits["test"]) == names(test)
    assert names(open_dataset(str(tmp_path), seed=1).splits["test"]) != names(test)
    assert len(open_dataset(str(tmp_path), test_share=0.5).splits["test"]) == 15


def test_an_image_more_moves_at_most_one_other() -> None:
    paths = [f"{number}.jpg" for number in range(100)]
    before = stratified(paths, np.zeros(100, int), 3, 0.2)
    after = stratified([*paths, "new.jpg"], np.zeros(101, int), 3, 0.2)
    assert (before != after[:100]).sum() <= 1
    assert before.sum() == after.sum() == 20


def test_an_empty_class_shifts_no_label_and_is_named(tmp_path: Path) -> None:
    make(tmp_path / "train", {"ant": 2, "bee": 0, "wasp": 2})
    make(tmp_path / "test", {"ant": 1, "wasp": 1})
    opened = open_dataset(str(tmp_path))
    assert opened.splits["test"].labels.tolist() == [0, 2]
    assert opened.splits["test"].class_names == ("ant", "bee", "wasp")
    assert "no image at all: 1 class ('bee')" in told(opened)


def test_class_folders_are_in_the_order_of_text_as_trainers_number_them(tmp_path: Path) -> None:
    folders = sorted(map(str, range(12)))
    make(tmp_path, dict.fromkeys(folders, 2))
    opened = open_dataset(str(tmp_path))
    assert opened.splits["train"].class_names == tuple(folders)
    assert_shows_its_labels(opened.splits["train"])


def test_what_is_no_image_or_lies_elsewhere_is_counted(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 3, "bee": 3})
    put(tmp_path / "ant/notes.txt", "...")
    put(tmp_path / "ant/.DS_Store", "")
    put(tmp_path / "ant/._0.jpg", "macOS's")
    put_image(tmp_path / "stray.jpg", 0)
    put_image(tmp_path / "bee/young/9.JPG", 1)
    opened = open_dataset(str(tmp_path))
    assert sum(len(listing) for listing in opened.splits.values()) == 7
    assert "in no class folder, and left out: 1 image ('stray.jpg')" in told(opened)
    assert "left out: 1 file ('ant/notes.txt')" in told(opened)
    assert "the images in 1 folder ('bee/young')" in told(opened)


def test_class_folders_that_differ_between_splits(tmp_path: Path) -> None:
    make(tmp_path / "train", {"ant": 2, "bumblebee": 2})
    make(tmp_path / "test", {"ant": 1, "bumble_bee": 1})
    with pytest.raises(
        RequestError,
        match=r"1 class folder \('bumble_bee'\) of the test images: not among.*Did you mean 'bumblebee'\?",
    ):
        open_dataset(str(tmp_path))


def test_names_in_other_scripts_and_both_ways_of_writing_them(tmp_path: Path) -> None:
    french = unicodedata.normalize("NFD", "abeille dorée")
    make(tmp_path / "train", {"муравей": 2, unicodedata.normalize("NFC", french): 2, "蜂": 2, "نمل": 2})
    make(tmp_path / "test", {"муравей": 1, french: 1, "蜂": 1, "نمل": 1})
    opened = open_dataset(str(tmp_path))
    train, test = opened.splits.values()
    assert train.class_names == tuple(sorted(["муравей", "abeille dorée", "蜂", "نمل"]))
    assert [seen(train)[train.labels.tolist().index(label)] for label in range(4)] == seen(test)
    (tmp_path / "train" / french).mkdir()
    with pytest.raises(RequestError, match=r"two folders called 'abeille dorée', written in two ways"):
        open_dataset(str(tmp_path))


def test_a_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 3, "bee": 3})
    put_image(tmp_path / "ant" / b"\xff\xfe.jpg".decode(errors="surrogateescape"), 0)
    train = open_dataset(str(tmp_path)).splits["train"]
    assert len(train.digest) == 64
    assert len(pickle.dumps(train)) > 0
    (tmp_path / "bee").rename(tmp_path / os.fsdecode(b"b\xffe"))
    assert open_dataset(str(tmp_path)).splits["train"].class_names == ("ant", "b\\xffe")


def test_links(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", {"bee": 3}, 1)
    root = make(tmp_path / "set", {"ant": 3})
    (root / "bee").symlink_to(tmp_path / "elsewhere/bee")
    (root / "ant/x.jpg").symlink_to(root / "ant/0.jpg")
    opened = open_dataset(str(root))
    assert sum(len(listing) for listing in opened.splits.values()) == 7
    assert "by links: 1 entry ('bee')" in told(opened)


def test_links_in_circles_and_into_nothing_are_left_out_and_named(tmp_path: Path) -> None:
    root = make(tmp_path / "set", {"ant": 3, "bee": 3})
    (tmp_path / "elsewhere").mkdir()
    for link, target in (
        ("ant/to itself", root / "ant"),
        ("ant/to the root", root),
        ("ant/above", tmp_path),
        ("class", root),
        ("bee/outside", tmp_path / "elsewhere"),
    ):
        (root / link).symlink_to(target)
    (tmp_path / "elsewhere/back").symlink_to(root / "bee")
    (root / "ant/gone.jpg").symlink_to(root / "gone")
    (root / "bee/loop.jpg").symlink_to(root / "bee/loop.jpg")
    opened = open_dataset(str(root))
    for listing in opened.splits.values():
        assert listing.class_names == ("ant", "bee")
        assert_shows_its_labels(listing)
    assert sum(len(listing) for listing in opened.splits.values()) == 6
    assert "leading back, and left out: 5 links ('ant/above'" in told(opened)
    assert "leading nowhere, and left out: 2 links ('ant/gone.jpg', 'bee/loop.jpg')" in told(opened)
    (root / "wasp").symlink_to(root / "gone")
    with pytest.raises(RequestError, match=r"wasp' is a link to '.*', which is not there"):
        open_dataset(str(root))


def test_a_split_folder_that_is_linked_to_above_its_classes_adds_no_images(tmp_path: Path) -> None:
    make(tmp_path / "train", {"ant": 2, "bee": 2})
    make(tmp_path / "test", {"ant": 1, "bee": 1})
    (tmp_path / "train/ant/all").symlink_to(tmp_path / "train")
    opened = open_dataset(str(tmp_path))
    assert [len(listing) for listing in opened.splits.values()] == [4, 2]
    assert "left out: 1 link ('train/ant/all')" in told(opened)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda root: root.mkdir(), "holds no images in class folders; there is no file in it"),
        (lambda root: put_image(root / "x.jpg", 0), r"folders; 1 lies \('x.jpg'\) in no class"),
        (lambda root: make(root, {"ant": 0, "bee": 0}), "holds no images in class folders"),
        (lambda root: make(root, {"ant": 1}), "holds 1 image; there is none to be tested on"),
        (lambda root: put(root, "x"), "is none of: a folder of images.*unpack an archive"),
        (lambda root: None, "is neither a published data set"),
        (lambda root: make(root / "train", {"a": 1}) and make(root / "test", {"a": 0}), "no image of the"),
        (lambda root: make(root / "test", {"a": 1}), "holds test images only"),
        (lambda root: make(root, {"a": 1, "b": 1}), r"no class has two images, .*\(it holds 2 images\); add"),
        (
            lambda root: [make(root / part, {"a": 2}) for part in ("train", "val", "validation")],
            "'val' and 'validation' both stand for the validation images; keep one",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said(build: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    build(tmp_path / "set")
    with pytest.raises(RequestError, match=message):
        open_dataset(str(tmp_path / "set"))


def test_a_pipe_or_a_device_is_no_image_and_is_not_waited_for(tmp_path: Path) -> None:
    root = make(tmp_path, {"ant": 9, "bee": 9})
    os.mkfifo(root / "ant/pipe.jpg")
    (root / "bee/endless.jpg").symlink_to("/dev/zero")
    listings = open_dataset(str(root)).splits.values()
    reasons = [reason for listing in listings for reason in decode_all(listing).reasons]
    assert len(reasons) == 2
    assert all("is no file, but a pipe or a device" in reason for reason in reasons)
    with pytest.raises(DamagedFileError, match="is no file, but a pipe or a device: remove it"):
        [listing.digest for listing in listings]


def test_one_class_is_read_and_said(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 5})
    assert "all images are of one class" in told(open_dataset(str(tmp_path)))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_of_paths_and_labels(delimiter: str, tmp_path: Path) -> None:
    lines = [["Image", "note", "Label", "split"]]
    for label, name in enumerate(("ant, red", "bee")):
        for number in range(3):
            put_image(tmp_path / f"pictures/{label}{number}.jpg", label, number)
            quoted = f'"{name}"'
            lines.append([f"pictures/{label}{number}.jpg", "", quoted, "train" if number else "test"])
    lines.append(["pictures/gone.jpg", "", "bee", "train"])
    put(tmp_path / "table.csv", b"\xef\xbb\xbf" + "\r\n".join(map(delimiter.join, lines)).encode())
    opened = open_dataset("mine", tmp_path / "table.csv")
    train, test = opened.splits.values()
    assert train.class_names == ("ant, red", "bee")
    assert_shows_its_labels(train)
    assert_shows_its_labels(test)
    assert train.missing == ("pictures/gone.jpg",)
    assert opened.shortfall("train") == (
        "mine, train: 4 of 5 images are there; 1 are missing, 'pictures/gone.jpg' among them"
    )


@pytest.mark.parametrize("within", ["\u2028", "\x85", "\x0c", "\n"])
def test_a_line_of_a_table_ends_where_csv_says(within: str, tmp_path: Path) -> None:
    lines = []
    for number in range(4):
        put_image(tmp_path / f"a{within}{number}.jpg", number % 2, number)
        lines.append(f'"a{within}{number}.jpg","{number % 2}{within}th"')
    put(tmp_path / "t.csv", "path,label\n" + "\n".join(lines))
    opened = open_dataset(str(tmp_path / "t.csv"))
    assert opened.splits["train"].class_names == (f"0{within}th", f"1{within}th")
    assert sum(len(listing) for listing in opened.splits.values()) == 4


def test_a_table_may_name_files_anywhere(tmp_path: Path) -> None:
    for number in range(4):
        put_image(tmp_path / f"far/{number}.jpg", number % 2, number)
    lines = [f"{tmp_path}/far/{number}.jpg,{number % 2}" for number in range(3)] + ["..\\far\\3.jpg,1"]
    put(tmp_path / "near/t.csv", "path,label\n" + "\n".join(lines))
    opened = open_dataset(str(tmp_path / "near/t.csv"))
    assert sum(len(listing) for listing in opened.splits.values()) == 4
    assert_shows_its_labels(opened.splits["train"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has the columns of no header; one called path, file,"),
        ("a,b\n1,2\n", "has the columns a, b; one called path"),
        ("path,label\n", "lists no images"),
        ("path,label\nx.jpg,\n", "no image has a label"),
        ("path,label\n,a\n", "line 2: a path is expected"),
        ("path,label,split\nx.jpg,a,trian\n", "unknown split in line 2 .*Did you mean 'train'"),
        (
            "path,label,split\nx.jpg,a,train\nx.jpg,a,test\n",
            r"1 image is \('x.jpg'\) listed more than once",
        ),
        (
            "path,label,split\nx.jpg,a,train\n./x.jpg,a,test\n",
            r"1 image is \('x.jpg'\) listed more than once",
        ),
        ("path,label\nx.jpg,a\ny.jpg,a\nx.jpg,b\n", r"1 image is \('x.jpg'\) listed more than once"),
        ("path,label\nx.jpg,a\ny.jpg,ant, red\n", "line 3: more values than columns"),
        ("path,label\nx.jpg,a\n", "holds 0 images;"),
    ],
)
def test_a_table_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    put(tmp_path / "t.csv", text)
    with pytest.raises(RequestError, match=message):
        open_dataset(str(tmp_path / "t.csv"))


def pixels(labels: list[int]) -> np.ndarray:
    return np.stack([np.full((32, 32, 3), colour(label), np.uint8) for label in labels])


def _medmnist(root: Path) -> Path:
    arrays = {}
    for split, labels in (("train", [0, 1, 2]), ("val", [2]), ("test", [1, 0, 2])):
        arrays |= {f"{split}_images": pixels(labels), f"{split}_labels": np.array(labels, np.uint8)[:, None]}
    np.savez_compressed(root / "x.npz", **arrays)
    return root / "x.npz"


def _keras(root: Path) -> Path:
    np.savez(
        root / "x.npz",
        x_train=pixels([0, 1, 2, 2]),
        y_train=[0, 1, 2, 2],
        x_test=pixels([1, 0, 2]),
        y_test=[1, 0, 2],
    )
    return root / "x.npz"


def _npy(root: Path) -> Path:
    for split, labels in (("train", [0, 1, 2, 2]), ("test", [1, 0, 2])):
        np.save(root / f"{split}_images.npy", pixels(labels))
        np.save(root / f"{split}_labels.npy", np.array(["ant", "bee", "cow"])[labels])
    return root


@pytest.mark.parametrize("maker", [_medmnist, _keras, _npy])
def test_arrays_on_disk(maker: Callable[[Path], Path], tmp_path: Path) -> None:
    train, test = open_dataset(str(maker(tmp_path))).splits.values()
    assert train.labels.tolist() == [0, 1, 2, 2]
    assert test.labels.tolist() == [1, 0, 2]
    again = pickle.loads(pickle.dumps(train))
    assert_shows_its_labels(again)
    assert_shows_its_labels(test)
    assert again.digest == train.digest
    assert len(pickle.dumps(train)) < 5000


def test_images_that_this_package_draws_are_opened_where_they_were_written(tmp_path: Path) -> None:
    generate("digits_smoke", 0, tmp_path / "digits")
    opened = open_dataset(str(tmp_path / "digits"))
    assert opened.notes == ()
    for split, listing in opened.splits.items():
        drawn = load_images(tmp_path / "digits", split)
        assert list(listing.labels) == list(drawn.labels)
        assert listing.class_names == drawn.class_names
    with pytest.raises(RequestError, match=r"is drawn by this package: .*generate\('glyphs', 0, 'FOLDER'\)"):
        open_dataset("glyphs")


def test_arrays_without_a_split(tmp_path: Path) -> None:
    labels = [3, 7] * 10
    grey = np.array(labels, np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    np.savez(tmp_path / "x.npz", images=grey[..., None], labels=labels)
    opened = open_dataset(str(tmp_path / "x.npz"))
    assert opened.splits["test"].class_names == ("3", "7")
    for listing in opened.splits.values():
        shown = [int(np.asarray(listing.image(index))[0, 0]) for index in range(len(listing))]
        assert shown == [int(listing.class_names[label]) for label in listing.labels]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 2] * 4, [0, 1, 2] * 4),  # places among the names, which are numbers too
        ([1, 2, 3] * 4, [0, 1, 2] * 4),  # 3 is no place: names
        (["3", "1", "2"] * 4, [2, 0, 1] * 4),
    ],
)
def test_labels_beside_class_names_are_places_or_names_but_not_both(
    labels: list[Any], expected: list[int], tmp_path: Path
) -> None:
    np.savez(tmp_path / "x.npz", images=pixels(expected), labels=labels, class_names=["1", "2", "3"])
    for listing in open_dataset(str(tmp_path / "x.npz")).splits.values():
        assert listing.class_names == ("1", "2", "3")
        assert_shows_its_labels(listing)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"images": np.zeros((4, 8, 8, 3)), "labels": [0, 0, 1, 1]},
            r"float64 \[4, 8, 8, 3\]; images are uint8",
        ),
        ({"images": np.zeros((4, 3, 8, 8), np.uint8), "labels": [0, 0, 1, 1]}, r"\[4, 3, 8, 8\]; images are"),
        ({"images": pixels([0, 1]), "labels": [0, 1, 1]}, "2 images, but 3 labels"),
        ({"images": pixels([0, 1]), "labels": [0.5, 1]}, "the label 0.5, a float, which names no class"),
        ({"images": pixels([0, 1]), "labels": np.eye(2, dtype=int)}, r"labels is int64 \[2, 2\]"),
        (
            {"images": pixels([0, 1]), "labels": [0, 2], "class_names": ["a", "b"]},
            "label 2; there are 2 class names",
        ),
        (
            {"images": pixels([0, 1]), "labels": [0, 1], "class_names": "a"},
            "label 1; there are 1 class names",
        ),
        ({"pictures": pixels([0, 1])}, "holds pictures; expected are images and labels"),
    ],
)
def test_arrays_that_cannot_be_used(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(RequestError, match=message):
        open_dataset(str(tmp_path / "x.npz"))


def test_arrays_that_are_left_out_are_said(tmp_path: Path) -> None:
    for split in ("x_train", "x_test", ".x_val"):
        np.save(tmp_path / f"{split}.npy", pixels([0, 1]))
        np.save(tmp_path / f"{split.replace('x', 'y')}.npy", [0, 1])
    (tmp_path / "._x_train.npy").write_text("of macOS")
    opened = open_dataset(str(tmp_path))
    assert opened.notes == ("in no pair of images and labels, and left out: 2 arrays ('.x_val', '.y_val')",)


def test_a_hidden_array_beside_class_folders_is_not_taken_for_the_data(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 5, "bee": 5})
    np.save(tmp_path / ".features.npy", [0, 1])
    assert set(open_dataset(str(tmp_path)).splits) == {"train", "test"}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [(6, 1, "is encrypted, password required"), (8, 99, "compression method is not supported")],
)
def test_an_archive_with_a_password_or_another_compression_is_said(
    field: int, value: int, message: str, tmp_path: Path
) -> None:
    """Bit 0 of the flags, and the number of the compression, in both of zip's headers."""
    np.savez(tmp_path / "x.npz", images=pixels([0, 1, 0, 1]), labels=np.array([0, 1, 0, 1]))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    for sign, further in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        for found in re.finditer(re.escape(sign), bytes(content)):
            content[found.start() + field + further] = value
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DamagedFileError, match=message):
        open_dataset(str(tmp_path / "x.npz"))


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_said_however_it_is_compressed(how: int, tmp_path: Path) -> None:
    packed = _medmnist(tmp_path)
    with zipfile.ZipFile(packed) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(packed, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    whole, refused = packed.read_bytes(), 0
    for place in range(40, len(whole), len(whole) // 40):
        packed.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            [listing.digest for listing in open_dataset(str(packed)).splits.values()]
        except (DamagedFileError, RequestError):
            refused += 1
    assert refused > 20


def test_damaged_and_hostile_arrays(tmp_path: Path) -> None:
    path = _keras(tmp_path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"no archive", b""):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=r"x\.npz' is not a whole"):
            open_dataset(str(path))
    packed = _medmnist(tmp_path)
    whole = packed.read_bytes()
    refused = 0
    for place in range(10, len(whole), len(whole) // 60):
        packed.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            [listing.digest for listing in open_dataset(str(packed)).splits.values()]
        except (DamagedFileError, RequestError):
            refused += 1
    assert refused > 30
    packed.unlink()
    np.save(tmp_path / "labels.npy", np.array([0, {}], object), allow_pickle=True)
    np.save(tmp_path / "images.npy", pixels([0, 1]))
    with pytest.raises(DamagedFileError, match=r"labels\.npy' is not a whole array of numbers"):
        open_dataset(str(tmp_path))


def _part(labels: list[Any], given: Any) -> Any:
    """A data set of Hugging Face's with these labels (`given`: their feature), a number a class's colour."""
    datasets, pyarrow = pytest.importorskip("datasets"), pytest.importorskip("pyarrow")
    features = datasets.Features({"img": datasets.Image(), "label": given})
    shown = [int(label in ("bee", 1)) for label in labels]
    images = [{"bytes": jpeg(label, number), "path": None} for number, label in enumerate(shown)]
    rows = pyarrow.table({"img": images, "label": labels}, schema=features.arrow_schema)
    info = datasets.DatasetInfo(features=features)
    return datasets.Dataset(datasets.table.InMemoryTable(rows), info=info, fingerprint="made")


def _saved(root: Path, **parts: Any) -> Path:
    datasets = pytest.importorskip("datasets")
    datasets.DatasetDict(parts).save_to_disk(str(root / "saved"))
    return root / "saved"


def _hugging_face(root: Path, split: bool = True, names: bool = True) -> Path:
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=["bee", "ant"]) if names else datasets.Value("string")
    train, test, all_of_them = (
        [number % 2 if names else ("ant", "bee")[number % 2] for number in range(count)]
        for count in (6, 3, 10)
    )
    if split:
        return _saved(root, train=_part(train, label), test=_part(test, label))
    _part(all_of_them, label).save_to_disk(str(root / "saved"))
    return root / "saved"


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_a_hugging_face_data_set(split: bool, named: bool, tmp_path: Path) -> None:
    path = _hugging_face(tmp_path, split, named)
    opened = open_dataset(str(path))
    train, test = opened.splits.values()
    assert (len(train), len(test)) == ((6, 3) if split else (8, 2))
    assert train.class_names == (("bee", "ant") if named else ("ant", "bee"))
    assert_shows_its_labels(pickle.loads(pickle.dumps(train)))
    assert_shows_its_labels(test)
    assert train.digest == open_dataset(str(path)).splits["train"].digest


def test_splits_that_hugging_face_has_besides_are_left_out_and_named(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=["bee", "ant"])
    parts = {name: _part([0, 1], label) for name in ("train", "test", "unsupervised")}
    opened = open_dataset(str(_saved(tmp_path / "a", **parts)))
    assert [len(listing) for listing in opened.splits.values()] == [2, 2]
    assert "left out: 1 split ('unsupervised')" in told(opened)
    twice = _saved(tmp_path / "b", training=_part([1, 1], label), **parts)
    with pytest.raises(RequestError, match="'train' and 'training' both stand for the train images"):
        open_dataset(str(twice))
    other = _part([0, 1], datasets.ClassLabel(names=["ant", "bee"]))
    with pytest.raises(RequestError, match="its splits name their classes differently"):
        open_dataset(str(_saved(tmp_path / "c", train=parts["train"], test=other)))


def test_which_columns_of_hugging_face_hold_images_and_labels_can_be_said(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    fine, coarse = (datasets.ClassLabel(names=names) for names in (["bee", "ant"], ["wings", "none"]))
    features = {"img": datasets.Image(), "mask": datasets.Image(), "fine": fine, "coarse": coarse}
    images = [{"bytes": jpeg(number % 2, number), "path": None} for number in range(8)]
    cells = {"img": images, "mask": images, "fine": [0, 1] * 4, "coarse": [1, 0] * 4}
    made = datasets.Dataset.from_dict(cells, features=datasets.Features(features))
    made.save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(RequestError, match=r"may be 'fine' or 'coarse'. Say it: .*saved\(label='fine'\)"):
        open_dataset(str(tmp_path / "saved"))
    with pytest.raises(RequestError, match=r"columns of images img, mask; .*saved\(image='img'\)"):
        open_dataset(f"{tmp_path}/saved(label='fine')")
    for label, names in (("fine", ("bee", "ant")), ("coarse", ("wings", "none"))):
        opened = open_dataset(f"{tmp_path}/saved(image='img', label='{label}')")
        assert opened.splits["train"].class_names == names
    with pytest.raises(RequestError, match=r"unknown column .*'finer'. Did you mean 'fine'"):
        open_dataset(f"{tmp_path}/saved(image='img', label='finer')")
    with pytest.raises(RequestError, match=r"split=\.\.\. is not said of what save_to_disk wrote"):
        open_dataset(f"{tmp_path}/saved(split='fine')")


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("int64", [0, 1, None]),
        ("int64", [0, 1, -1]),
        ("string", ["ant", "bee", None]),
        ("string", ["ant", "bee", " "]),
        ("names", [0, 1, -1]),
        ("float32", [0.0, 1.0, float("nan")]),
    ],
)
def test_an_image_without_a_label_is_left_out_and_counted(
    kind: str, labels: list[Any], tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    given = datasets.ClassLabel(names=["ant", "bee"]) if kind == "names" else datasets.Value(kind)
    path = _saved(tmp_path, train=_part(labels, given), test=_part(labels[:2], given))
    opened = open_dataset(str(path))
    assert opened.splits["train"].labels.tolist() == [0, 1]
    assert names(opened.splits["train"]) == ["train[0]", "train[1]"]
    assert "and left out: 1 of 3 train images" in told(opened)


def test_test_images_without_labels_are_no_test_images(tmp_path: Path) -> None:
    """As in the test splits of competitions."""
    datasets = pytest.importorskip("datasets")
    given = datasets.ClassLabel(names=["ant", "bee"])
    parts = {"train": _part([0, 1], given), "validation": _part([1, 0, 1], given)}
    opened = open_dataset(str(_saved(tmp_path, **parts, test=_part([-1, -1], given))))
    assert [len(listing) for listing in opened.splits.values()] == [2, 3]
    assert "2 of 2 test images" in told(opened)
    assert "the validation images are tested on" in told(opened)


def test_lists_of_labels_are_refused_unless_each_is_of_one(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    given = datasets.Sequence(datasets.ClassLabel(names=["ant", "bee"]))
    images = [Image.new("RGB", (8, 8), colour(number % 2)) for number in range(6)]
    features = datasets.Features({"img": datasets.Image(), "label": given})
    for kind, lists in (("one", [[number % 2] for number in range(6)]), ("two", [[0, 1]] * 6)):
        made = datasets.Dataset.from_dict({"img": images, "label": lists}, features=features)
        made.save_to_disk(str(tmp_path / kind))
    assert open_dataset(str(tmp_path / "one")).splits["train"].class_names == ("ant", "bee")
    with pytest.raises(
        RequestError, match=r"an image has several labels, \[0, 1\]; one class for each image"
    ):
        open_dataset(str(tmp_path / "two"))


def test_a_damaged_hugging_face_data_set(tmp_path: Path) -> None:
    path = _hugging_face(tmp_path)
    (file,) = (path / "test").glob("*.arrow")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DamagedFileError, match=r"test' is not a whole data set of save_to_disk"):
        open_dataset(str(path))
    (path / "test/state.json").write_text("{")
    with pytest.raises(DamagedFileError, match=r"test' is not a whole data set of save_to_disk"):
        open_dataset(str(path))


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    put(tmp_path / "dataset_dict.json", json.dumps({"splits": ["train"]}))
    (tmp_path / "train").mkdir()
    with pytest.raises(RequestError, match=r"pip install 'penultimate\[datasets\]'"):
        open_dataset(str(tmp_path))


def test_an_animated_or_deep_image_is_listed_like_any(tmp_path: Path) -> None:
    make(tmp_path, {"ant": 2, "bee": 2})
    Image.new("I;16", (8, 8)).save(tmp_path / "ant/deep.png")
    assert sum(len(listing) for listing in open_dataset(str(tmp_path)).splits.values()) == 5


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EIO])
def test_a_folder_within_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for name in ("a", "b"):
        put_image(tmp_path / name / "0.png", 0)
    usual = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "b":
            raise OSError(number, os.strerror(number), str(path))
        return usual(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(RequestError, match=rf"b' cannot be read \({os.strerror(number)}\)"):
        open_dataset(str(tmp_path))
