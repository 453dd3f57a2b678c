"""Folders of classes and of splits, as archives and people lay them out; what is left out is said."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.data.published import put, put_image

from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.errors import RequestError


def lay(root: Path, *folders: str, images: int = 5) -> Path:
    """Put images into folders; "test/*" is given images of its own, not in class folders."""
    for label, folder in enumerate(folders):
        for number in range(images):
            put_image(root / folder.removesuffix("/*") / f"{number}.jpg", label % 5, number)
    return root


def found(opened: OpenedDataset) -> dict[str, tuple[str, ...]]:
    return {
        split: tuple(sorted({listing.class_names[label] for label in listing.labels}))
        for split, listing in opened.splits.items()
    }


def told(opened: OpenedDataset) -> str:
    return "; ".join(opened.notes)


@pytest.mark.parametrize(
    ("folders", "classes"),
    [
        (("bus", "car", "train"), ("bus", "car", "train")),
        (("pass", "Test"), ("Test", "pass")),
        (("invalid", "valid"), ("invalid", "valid")),
        (("ops", "dev", "sales"), ("dev", "ops", "sales")),
        (("bullet train", "freight train"), ("bullet train", "freight train")),
        (("bullet_train", "bullet"), ("bullet", "bullet_train")),
        (("bus/red", "bus/blue", "train/fast", "train/slow"), ("bus", "train")),
        (("archive/bus", "archive/train"), ("bus", "train")),
        (("archive/data/ant", "archive/data/bee"), ("ant", "bee")),
        (("train/ant", "train/bee"), ("ant", "bee")),
        (("archive/train/ant", "archive/train/bee"), ("ant", "bee")),
        (("train/train/ant", "train/train/bee"), ("ant", "bee")),
        (("ant", "bee", "__MACOSX/ant", "@eaDir"), ("ant", "bee")),
        (("train/ant", "train/bee", "test/*"), ("ant", "bee")),
    ],
)
def test_classes_without_test_images(
    folders: tuple[str, ...], classes: tuple[str, ...], tmp_path: Path
) -> None:
    opened = open_dataset(str(lay(tmp_path, *folders)))
    assert found(opened) == {"train": classes, "test": classes}
    assert "were drawn with seed 0" in told(opened)
    split_like = [name for name in classes if name.lower() in ("train", "test", "valid", "dev")]
    taken = (
        f"taken for a class, and not for the images of a split: 1 folder ({', '.join(map(repr, split_like))})"
    )
    assert (taken in told(opened)) == bool(split_like)
    if "test/*" in folders:
        assert "in no class folder, and left out: 5 images ('test/0.jpg', 'test/1.jpg'" in told(opened)


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train", "test"),
        ("Train", "TEST"),
        ("training_set/training_set", "test_set/test_set"),
        ("training_set", "test-set"),
        ("Train Images", "Test Images"),
        ("train2017", "val2017"),
        ("seg_train/seg_train", "seg_test/seg_test"),
        ("pets-train", "pets-test"),
        ("archive/dataset/train", "archive/dataset/eval"),
        ("train/images", "test/images"),
        ("trainset", "validation"),
        ("training", "dev"),
    ],
)
@pytest.mark.parametrize("further", ["", "/young"])
def test_folders_of_splits(train: str, test: str, further: str, tmp_path: Path) -> None:
    root = lay(tmp_path, *(f"{split}/{name}{further}" for split in (train, test) for name in ("ant", "bee")))
    (root / Path(test).parts[0] / "__MACOSX/ant").mkdir(parents=True)
    put(root / "README.md", "...")
    opened = open_dataset(str(root))
    assert found(opened) == {"train": ("ant", "bee"), "test": ("ant", "bee")}
    assert [len(listing) for listing in opened.splits.values()] == [10, 10]
    assert "drawn" not in told(opened)


@pytest.mark.parametrize("other", ["extra/ant", "unlabeled", "seg_pred/seg_pred", "bus"])
def test_a_folder_beside_those_of_splits_is_said_to_be_left_out(other: str, tmp_path: Path) -> None:
    folders = [f"{split}/{name}" for split in ("train", "test") for name in ("ant", "bee")]
    opened = open_dataset(str(lay(tmp_path, *folders, other)))
    assert found(opened) == {"train": ("ant", "bee"), "test": ("ant", "bee")}
    assert f"of no split, and left out: 1 folder ('{Path(other).parts[0]}')" in told(opened)


@pytest.mark.parametrize(
    "folders",
    [
        ("cats", "dogs", "test/cats", "test/dogs"),
        ("train/ant", "train/bee", "extra/ant", "extra/bee"),
        ("train/ant", "train/bee", "unlabeled"),
        ("ant", "train", "test"),
    ],
)
def test_what_may_be_a_class_or_a_split_is_asked(folders: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=r"is '\w+' a class, as .* or does it hold the images of a split\?"
    ):
        open_dataset(str(lay(tmp_path, *folders)))


@pytest.mark.parametrize("folders", [("train", "test"), ("train",), ("train", "val", "test")])
def test_splits_without_class_folders_are_no_classes(folders: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"holds no images in class folders; \d+ lie \('"):
        open_dataset(str(lay(tmp_path, *folders)))


def test_a_wrapping_folder_and_a_folder_without_images_are_said(tmp_path: Path) -> None:
    root = lay(tmp_path / "set", "archive/ant", "archive/bee")
    put(root / "models/net.pth", "...")
    (root / "archive/wasp").mkdir()
    opened = open_dataset(str(root))
    assert "read from 'archive', the only folder in it that holds images" in told(opened)
    assert "no image at all: 1 class ('wasp')" in told(opened)
    assert opened.splits["test"].name(0).startswith("archive/")


def test_what_is_hidden_is_said_unless_a_tool_left_it(tmp_path: Path) -> None:
    root = lay(tmp_path, "C#", "Go", ".NET", "Go/.old", ".ipynb_checkpoints", "Go/.ipynb_checkpoints", ".git")
    put(root / ".DS_Store", "")
    put(root / "Go/._0.jpg", "")
    put(root / ".notes/x.txt", "")
    put_image(root / "Go/.9.jpg", 1)
    opened = open_dataset(str(root))
    assert found(opened) == {"train": ("C#", "Go"), "test": ("C#", "Go")}
    assert sum(map(len, opened.splits.values())) == 10
    hidden = "hidden by a dot before their names, and left out: 3 entries ('.NET', 'Go/.9.jpg', 'Go/.old')"
    assert hidden in told(opened)


def test_where_all_is_hidden_or_a_split_is_empty_that_is_said(tmp_path: Path) -> None:
    lay(tmp_path / "hidden", ".NET", ".old")
    with pytest.raises(RequestError, match=r"class folders; 2 are \('.NET', '.old'\) hidden by a dot"):
        open_dataset(str(tmp_path / "hidden"))
    (lay(tmp_path / "set", "train/ant", "train/bee") / "test").mkdir()
    opened = open_dataset(str(tmp_path / "set"))
    assert "without class folders: 1 folder ('test')" in told(opened)
    assert "were drawn with seed 0" in told(opened)


def test_hidden_classes_of_splits_are_said(tmp_path: Path) -> None:
    folders = [f"{split}/{name}" for split in ("train", "test") for name in ("Go", "Rust", ".NET")]
    opened = open_dataset(str(lay(tmp_path, *folders)))
    assert "left out: 2 entries ('test/.NET', 'train/.NET')" in told(opened)


@pytest.mark.parametrize(
    ("folders", "hidden"),
    [
        ("train/ant train/bee .test/ant .test/bee", "'.test'"),
        ("{s}/ant {s}/bee .val/ant", "'.val'"),
        ("{s}/ant {s}/bee .NET", "'.NET'"),
        ("archive/ant archive/bee .NET", "'.NET'"),
        ("archive/{s}/ant archive/{s}/bee archive/.val/ant", "'archive/.val'"),
        ("archive/data/ant archive/data/bee archive/.NET", "'archive/.NET'"),
        ("{s}_set/{s}_set/ant {s}_set/{s}_set/bee train_set/.cat", "'train_set/.cat'"),
        ("ant/{s} bee/{s} bee/.val", "'bee/.val'"),
        ("{s}/ant {s}/bee extra/.young", "'extra/.young'"),
        ("ant bee .val/.ant", "'.val'"),
        ("ant bee bee/young/.NET", "'bee/young/.NET'"),
    ],
)
def test_whatever_is_hidden_on_the_way_to_the_classes_is_said(
    folders: str, hidden: str, tmp_path: Path
) -> None:
    each = dict.fromkeys(named.format(s=split) for named in folders.split() for split in ("train", "test"))
    opened = open_dataset(str(lay(tmp_path, *each)))
    assert found(opened) == {"train": ("ant", "bee"), "test": ("ant", "bee")}
    assert f"hidden by a dot before their names, and left out: 1 entry ({hidden})" in told(opened)


@pytest.mark.parametrize("folders", ["{s}/ant {s}/bee", "archive/{s}/ant archive/{s}/bee", "ant/{s} bee/{s}"])
def test_what_tools_leave_on_the_way_to_the_classes_is_not_said(folders: str, tmp_path: Path) -> None:
    lay(tmp_path, *(named.format(s=split) for named in folders.split() for split in ("train", "test")))
    for folder in {above for image in tmp_path.rglob("*.jpg") for above in image.parents}:
        if folder.is_relative_to(tmp_path):
            lay(folder, ".git", ".cache/x", ".thumbnails", "__MACOSX/ant", "@eaDir", ".ipynb_checkpoints")
            put(folder / ".DS_Store", "")
    assert "left out" not in told(open_dataset(str(tmp_path)))


def test_a_refusal_says_what_is_hidden(tmp_path: Path) -> None:
    lay(tmp_path, ".train/ant", ".train/bee", "test/ant", "test/bee")
    with pytest.raises(RequestError, match=r"holds test images only; .* and left out: 1 entry \('.train'\)"):
        open_dataset(str(tmp_path))


def test_a_hidden_folder_that_may_not_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, listed = lay(tmp_path, "ant", "bee", ".locked"), os.scandir

    def scandir(folder: Path | str) -> Iterator[os.DirEntry[str]]:
        if Path(folder).name == ".locked":
            raise PermissionError
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "left out: 1 entry ('.locked')" in told(open_dataset(str(root)))


def test_classes_that_lie_elsewhere_by_a_link_keep_their_split(tmp_path: Path) -> None:
    lay(tmp_path / "far", "ant", "bee")
    root = lay(tmp_path / "set", "train/ant", "train/bee")
    (root / "test").symlink_to(tmp_path / "far")
    assert found(open_dataset(str(root))) == {"train": ("ant", "bee"), "test": ("ant", "bee")}


def test_classes_are_in_the_order_of_their_folders_names_on_disk(tmp_path: Path) -> None:
    """As trainers list them: composed and decomposed letters sort differently, capitals before others."""
    decomposed = unicodedata.normalize("NFD", "élan")
    opened = open_dataset(str(lay(tmp_path, decomposed, "fox", "Zebra", "item10", "item9")))
    names = opened.splits["train"].class_names
    assert names == ("Zebra", "élan", "fox", "item10", "item9")
    assert names == tuple(
        unicodedata.normalize("NFC", name) for name in sorted(each.name for each in tmp_path.iterdir())
    )


@pytest.mark.parametrize(
    ("folders", "sizes", "said"),
    [
        (("{c}/train", "{c}/test"), [10, 10], "the splits are those of the folders within the class folders"),
        (("data/{c}/Train", "data/{c}/valid", "data/{c}/TEST"), [20, 10], "10 validation images are trained"),
        (
            ("{c}/train/x", "{c}/test/y", "{c}/extra"),
            [10, 10],
            "left out: 2 folders ('ant/extra', 'bee/extra')",
        ),
    ],
)
def test_splits_within_class_folders(
    folders: tuple[str, ...], sizes: list[int], said: str, tmp_path: Path
) -> None:
    root = lay(tmp_path, *(folder.format(c=name) for folder in folders for name in ("ant", "bee")))
    opened = open_dataset(str(root))
    assert found(opened) == {"train": ("ant", "bee"), "test": ("ant", "bee")}
    assert [len(listing) for listing in opened.splits.values()] == sizes
    assert said in told(opened)
    assert "without class folders" not in told(opened)
    whole = open_dataset(f"{root}(split=None)")
    assert "were drawn with seed 0" in told(whole)


@pytest.mark.parametrize("folders", [("ant/train", "ant/test", "bee"), ("bee", "bee/train", "bee/test")])
def test_splits_within_some_classes_only_are_refused(folders: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"images of 1 class \('bee'\) lie in none; put all"):
        open_dataset(str(lay(tmp_path, *folders)))


def test_parts_that_are_numbered_are_asked_for(tmp_path: Path) -> None:
    root = lay(
        tmp_path / "set", *(f"{fold}/{name}" for fold in ("fold1", "Fold_2", "fold3") for name in "ab")
    )
    with pytest.raises(RequestError, match=r"3 folders .* called like parts .*/set\(test='fold3'\)"):
        open_dataset(str(root))
    for test, sizes in (("'fold3'", [20, 10]), ("['fold1', 'Fold_2']", [10, 20])):
        opened = open_dataset(f"{root}(test={test})")
        assert found(opened) == {"train": ("a", "b"), "test": ("a", "b")}
        assert [len(listing) for listing in opened.splits.values()] == sizes
    with pytest.raises(RequestError, match=r"unknown folder with class folders .* 'fold_3'. Did you mean"):
        open_dataset(f"{root}(test='fold_3')")
    classes = open_dataset(f"{root}(split=None)")
    assert classes.splits["train"].class_names == ("Fold_2", "fold1", "fold3")
    flat = open_dataset(str(lay(tmp_path / "flat", "fold1", "fold2")))
    assert "taken for a class, and not for the images of a split: 2 folders ('fold1', 'fold2')" in told(flat)


def test_what_is_asked_of_folders_can_be_said(tmp_path: Path) -> None:
    root = lay(tmp_path, *(f"{split}/{name}" for split in ("train", "holdout") for name in ("ant", "bee")))
    with pytest.raises(RequestError, match=r"\(split=None\)\"; .* is tested on: .*\(test='holdout'\)"):
        open_dataset(str(root))
    assert found(open_dataset(f"{root}(test='holdout')")) == {"train": ("ant", "bee"), "test": ("ant", "bee")}
    assert open_dataset(f"{root}(split=None)").splits["test"].class_names == ("holdout", "train")
    with pytest.raises(RequestError, match=r"label=\.\.\. is not said of class folders"):
        open_dataset(f"{root}(label='x')")


def test_where_no_image_is_found_what_lies_there_is_named(tmp_path: Path) -> None:
    put(tmp_path / "ant/0.dng", b"x")
    put(tmp_path / "labels.csv", "path,label")
    with pytest.raises(
        RequestError,
        match=r"1 is no image by its name \('ant/0.dng'\); the table '.*/labels.csv' may be given",
    ):
        open_dataset(str(tmp_path))
