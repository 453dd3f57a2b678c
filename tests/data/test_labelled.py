"""`pu.labelled`: what is read of people's own images beyond the golden layouts, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.data.published import put
from tests.golden.layouts import FOLDERS, Folder, hugging_face, write

import penultimate as pu
from penultimate.cli import main
from penultimate.data.readers.class_order import in_class_order, read_class_order
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.splitting import drawn_by_group, stratified
from penultimate.errors import DamagedFileError, RequestError


def lay(root: Path, *patterns: str) -> Path:
    Folder(root).images(*patterns)
    return root


def table(root: Path, text: str, name: str = "t.csv") -> Path:
    put(root / name, text)
    return root / name


def read(opened: OpenedDataset) -> dict[str, dict[str, str]]:
    """The class of each image of each split."""
    return {
        part: {name: of.class_names[label] for name, label in zip(of.names, of.labels, strict=True)}
        for part, of in opened.splits.items()
    }


def test_splits_have_names_labels_classes_and_images_on_demand(tmp_path: Path) -> None:
    train = pu.labelled(lay(tmp_path, "{train,test}/{ant,bee}/{0..2}.png")).splits["train"]
    assert train.names[:2] == ["train/ant/0.png", "train/ant/1.png"]
    assert (train.labels.tolist(), train.class_names) == ([0, 0, 0, 1, 1, 1], ("ant", "bee"))
    assert (train[3].mode, train[3].size, train[3].getpixel((0, 0))) == ("RGB", (8, 8), (16, 16, 16))


def test_what_is_said_in_arguments_is_what_is_said_behind_a_path(tmp_path: Path) -> None:
    rows = [f"{i},img/{i}.png,{'ab'[i % 2]},{i % 3}" for i in range(12)]
    lay(tmp_path, "img/{0..11}.png")
    place = table(tmp_path, "\n".join(["key,image,kind,site", *rows]))
    said = pu.labelled(place, label="kind", split="site", test=[2], group="")
    text = open_dataset(f"{place}(label='kind', split='site', test=2)")
    assert read(said) == read(text)
    assert {*read(said)["test"]} == {f"img/{i}.png" for i in (2, 5, 8, 11)}
    with pytest.raises(RequestError, match=r"label is a name, not 3\.5"):
        pu.labelled(place, label=3.5)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"label=\.\.\. is of images of one class each, labels=\.\.\."):
        pu.labelled(place, label="kind", labels=["kind", "site"])


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (
            "train/{cat,dog}.{0..2}.jpg holdout2/{0..3}.jpg",
            "a split may be meant by 'train', with images in no",
        ),
        (
            "train/{cat,dog}.{0..2}.jpg test_stg1/{0..3}.jpg",
            "a split may be meant by 'train', with images in no",
        ),
        (
            "train/{cat,dog}.{0..2}.jpg {testA,testB}/{0..3}.jpg",
            "a split may be meant by 'train', with images in no",
        ),
        (
            "val_list.txt | - | {name} {of} | val/{0..5}.jpg train/{a,b}/{0..3}.jpg | a,b",
            "images in '.*val' lie in no class folders; .*val_list.txt': its first line is that of an image",
        ),
        (
            "val/val_list.txt | - | {name} {of} | val/images/{0..5}.jpg train/{a,b}/{0..3}.jpg | a,b",
            "'.*val_list.txt' may say what they show: give one table of all",
        ),
        ("train1/{a,b}/{0..1}.jpg train2/{a,b}/{0..1}.jpg test/{a,b}/{0..1}.jpg", "both stand for the train"),
        ("val/{a,b}/{0..1}.jpg other/{a,b}/{0..1}.jpg", "is 'val' a class, as 1 folder"),
        ("{a,b}/{train,test}/{0..1}.jpg a/more/{0..1}.jpg", "beside them 1 folder"),
        ("{fold_1,fold_2}/{a,b}/{0..1}.jpg", "are called like parts of the data; say which is tested on"),
        ("{train,test}/{a,b}/{0..1}.jpg test/c/{0..1}.jpg", "1 class folder .'c'. of the test images"),
    ],
)
def test_folders_that_may_mean_several_things_are_refused(folders: str, message: str, tmp_path: Path) -> None:
    write(folders, Folder(tmp_path))
    with pytest.raises(RequestError, match=message):
        pu.labelled(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\n", "lists no images"),
        ("0.png,ant\n1.png,bee\n", "first line is that of an image"),
        ("width,label\n1,ant\n2,bee\n", "which column names the images is not clear"),
        ("path,label\n0.png,ant\n,bee\n", "row 2: a path is expected"),
        ("path,label\n0.png,ant\n0.png,bee\n", "1 image .'0.png'. listed more than once"),
        ("path,label\n0.png,0.5\n1.png,0.25\n", "numbers that were measured"),
        ("path,label\n0.png,\n1.png,\n", "no image has a label"),
        ("path,class,species\n0.png,a,x\n1.png,a,y\n2.png,b,y\n", "may be 'class' or 'species'"),
        (
            "path,label,split\n0.png,a,train\n1.png,b,later\n",
            "unknown split in the column 'split' .* 'later'",
        ),
        ("path,label,split\n0.png,a,1\n1.png,b,1\n2.png,b,0\n", "unknown split in the column 'split' .* '1'"),
        ("path,label,is_valid\n0.png,a,maybe\n1.png,b,no\n", "is_valid is true or false, not 'maybe'"),
        ("path,label\n9.png,a\n8.png,b\n", "holds 0 images, and no class has two images, .*: '9.png'"),
        ("path,label\n0.png,a,b\n1.png,c\n", "cannot be read as a table"),
    ],
)
def test_tables_that_say_too_little_are_refused(text: str, message: str, tmp_path: Path) -> None:
    place = table(lay(tmp_path, "{0..3}.png"), text)
    with pytest.raises((RequestError, DamagedFileError), match=message):
        pu.labelled(place)


@pytest.mark.parametrize("values", [["b", "a", None, "b"], [2, 10, -1, 2], [2.0, 10.0, float("nan"), 2.0]])
def test_labels_mean_the_same_in_tables_arrays_and_hugging_faces_columns(
    values: list[Any], tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    values = values * 4
    wanted = ("a", "b") if "b" in values else ("2", "10")
    root = tmp_path / "table"
    names = Folder(root).images("{0..15}.png")
    pd.DataFrame({"path": names, "label": values}).to_csv(root / "t.csv", index=False)
    pd.DataFrame({"path": names, "label": values}).to_parquet(root / "t.parquet")
    features = datasets.Features(image=datasets.Image(), label=datasets.Value(_kind(values)))
    rows = {"image": [Image.new("L", (8, 8), 4 * i) for i in range(16)], "label": values}
    held = datasets.Dataset.from_dict(rows, features=features)
    for opened in (pu.labelled(root / "t.csv"), pu.labelled(root / "t.parquet"), pu.labelled(held)):
        assert opened.splits["train"].class_names == wanted
        assert sum(len(of) for of in opened.splits.values()) == 12
        assert "without a label, and left out: 4 of 16 images" in opened.notes


def _kind(values: list[Any]) -> str:
    return {str: "string", int: "int64", float: "float64"}[type(values[0])]


def test_a_data_set_of_hugging_face_is_read_saved_loaded_by_its_name_and_pickled(tmp_path: Path) -> None:
    saved = hugging_face(Folder(tmp_path), 10)
    saved.set_format("torch", columns=["label"])
    saved.save_to_disk(tmp_path / "saved")
    (tmp_path / "parquet").mkdir()
    saved.with_format(None).to_parquet(tmp_path / "parquet/train-00000-of-00001.parquet")
    for place in (tmp_path / "saved", f"datasets:{tmp_path}/parquet", saved):
        train = pickle.loads(pickle.dumps(pu.labelled(place).splits["train"]))
        assert train.class_names == ("wasp", "ant")
        assert {train[index].getpixel((0, 0))[0] // 4 - 1 for index in range(len(train))} <= {*range(10)}
        assert len(train) == 8
    with pytest.raises(DamagedFileError, match="cannot be read by Hugging Face's datasets"):
        pu.labelled(f"datasets:{tmp_path}/nothing-here")


def test_groups_stay_on_one_side_whatever_the_order_of_the_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels, groups = random.integers(0, 3, 200), np.array([f"p{i}" for i in random.integers(0, 40, 200)])
    names = [f"{i:03}.png" for i in range(200)]
    tested = drawn_by_group(groups, labels, names, by="'patient'")
    assert not {*groups[tested]} & {*groups[~tested]}
    assert abs(tested.mean() - 0.2) < 0.05
    assert {*labels[tested]} == {*labels[~tested]} == {0, 1, 2}
    order = random.permutation(200)
    again = drawn_by_group(groups[order], labels[order], [names[i] for i in order], by="'patient'")
    assert np.array_equal(again, tested[order])
    assert not np.array_equal(drawn_by_group(groups, labels, names, by="'patient'", seed=1), tested)
    for wrong in (np.full(200, "p"), np.array(names)):
        with pytest.raises(RequestError, match="by 'patient'; name a column or level whose values recur"):
            drawn_by_group(wrong, labels, names, by="'patient'")


def test_groups_that_a_split_parts_or_that_are_not_said_are_told(tmp_path: Path) -> None:
    lay(tmp_path, "{0..11}.png")
    rows = [f"{i}.png,{'ab'[i % 2]},{'test' if i > 8 else 'train'},p{i % 5}" for i in range(12)]
    place = table(tmp_path, "\n".join(["path,label,split,patient", *rows]))
    notes = pu.labelled(place, group="patient").notes
    assert any("3 of 3 groups of test images by 'patient' are in training" in note for note in notes)
    put(place, place.read_text().replace(",p3", ","))
    with pytest.raises(RequestError, match="the column 'patient' says no group in row 4"):
        pu.labelled(place, group="patient")
    with pytest.raises(RequestError, match=r"unknown column of .* 'patent'. Did you mean 'patient'"):
        pu.labelled(place, group="patent")


def test_a_fifth_of_each_class_is_drawn_and_one_image_more_moves_at_most_one(tmp_path: Path) -> None:
    names, labels = [f"{i}.png" for i in range(50)], np.arange(50) % 2
    tested = stratified(names, labels, 0, 0.2)
    assert [tested[labels == label].sum() for label in (0, 1)] == [5, 5]
    fewer = stratified(names[:-1], labels[:-1], 0, 0.2)
    assert (fewer != tested[:-1]).sum() <= 1
    lay(tmp_path, "{ant,bee}/0.png")
    with pytest.raises(RequestError, match="no class has two images"):
        pu.labelled(tmp_path)


def test_classes_may_be_numbered_in_an_order_that_is_said(tmp_path: Path) -> None:
    listing = pu.labelled(lay(tmp_path, "{1,2,10}/{0..2}.png")).splits["train"]
    before = [listing.class_names[label] for label in listing.labels]
    for order in ("natural", ("10", "none", "2", "1")):
        other = in_class_order("x", listing, order)
        assert [other.class_names[label] for label in other.labels] == before
    assert in_class_order("x", listing, "natural").class_names == ("1", "2", "10")
    with pytest.raises(RequestError, match=r"lacks 1 class \('2'\) of 'x'"):
        in_class_order("x", replace(listing), ("1", "10"))


@pytest.mark.parametrize(
    "said",
    [
        ["b", "a", "c"],
        {"a": 1, "b": 0, "c": 2},
        {0: "b", 1: "a", 2: "c"},
        {"class_to_idx": {"a": 1, "b": 0, "c": 2}, "epoch": 3},
        {"id2label": {"0": "b", "1": "a", "2": "c"}},
    ],
)
def test_an_order_is_said_in_every_usual_form(said: Any, tmp_path: Path) -> None:
    assert read_class_order(said) == ("b", "a", "c")
    put(tmp_path / "order.json", json.dumps(said))
    assert read_class_order(tmp_path / "order.json") == ("b", "a", "c")


@pytest.mark.parametrize("said", [{"a": 1, "b": 2}, ["a", "b", "a"], [0, 1], [[]], "alphabetical"])
def test_what_is_no_order_is_said(said: Any) -> None:
    with pytest.raises(RequestError, match=r"order of classes|does not number|more than once"):
        read_class_order(said)


def layout(text: str) -> Callable[[Path], str]:
    return lambda root: write(text, Folder(root))


def zero_bytes(root: Path) -> str:
    lay(root, "{train,test}/{ant,bee}/{0..2}.png")
    put(root / "train/ant/0.png", b"")
    put(root / "test/bee/copy.png", (root / "train/bee/1.png").read_bytes())
    return ""


def broken(name: str, content: bytes) -> Callable[[Path], str]:
    return lambda root: put(root / name, content) or name


BAD: dict[str, tuple[Callable[[Path], str], int, tuple[str, ...]]] = {
    "an empty folder": (
        lambda root: "",
        2,
        ("holds images in no class folders. Expected: a folder for each",),
    ),
    "nothing": (lambda root: "gone", 2, ("neither a published data set", "nor a file or folder")),
    "a file of zero bytes, and a copy": (
        zero_bytes,
        1,
        (
            "train: 6 of 6 images, 2 classes; 1 cannot be read",
            "train/ant/0.png' is not a complete image: it is empty",
            "1 test image of 7 is an exact copy of a train image",
        ),
    ),
    "a table without a label": (
        layout("t.csv | path,width | {path},64{i} | img/{0..11}.png"),
        2,
        ("which column holds the labels is not clear; it may be 'width'. Say it: ", "t.csv(label='width')"),
    ),
    "one class": (
        layout("ant/{0..4}.png"),
        1,
        ("all images are of one class: there is nothing to tell apart",),
    ),
    "a class missing from test": (
        layout("train/{ant,bee,wasp}/{0..2}.png test/{ant,wasp}/{3..4}.png"),
        0,
        ("no test image: 1 class ('bee')",),
    ),
    "a class of test alone": (
        layout("train/{ant,bee}/{0..2}.png test/{ant,wasp}/{3..5}.png"),
        2,
        ("1 class folder ('wasp') of the test images: not among the training images'",),
    ),
    "a hub that cannot be reached": (
        lambda root: "datasets:owner/birds",
        2,
        ("'datasets:owner/birds' cannot be read by Hugging Face's datasets: ", "HF_HUB_OFFLINE=1"),
    ),
    "a broken Parquet file": (broken("t.parquet", b"PAR1"), 2, ("t.parquet' cannot be read as a table: ",)),
    "a broken archive of arrays": (broken("a.npz", b"PK"), 2, ("a.npz' is not a whole npz file: ",)),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_one_sentence_with_the_nearest_fix(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(name: str) -> None:
        raise ConnectionError(f"Couldn't reach '{name}' on the Hub (LocalEntryNotFoundError)")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    make, code, words = BAD[name]
    place = make(tmp_path)
    place = place if place.startswith("datasets:") else str(tmp_path / place)
    assert main(["data", "check", place]) == code
    told = "".join(capsys.readouterr())
    assert not [word for word in words if word not in told], told


@pytest.mark.parametrize(
    ("text", "classes", "tested"),
    [
        (
            "{ant,bee}/{0..4}.png ant/{._0.png,.x/0.png} {__MACOSX,.git}/a/0.png empty:docs/a.txt",
            "ant bee docs",
            2,
        ),
        ("images/{001.Auk,002.Bunting}/{1..5}.jpg", "001.Auk 002.Bunting", 2),
        ("CheXpert/t.csv | Path,label | {path},{of} | CheXpert/train/{0..11}.png", "ant bee wasp", 3),
        ("t.csv | path,label,Is Test | {path},{of},{last} | {0..11}.png", "ant bee wasp", 3),
        ("t.csv | path,label,fold | {path},{of},{fold} | {0..11}.png", "ant bee wasp", 3),
        ("Train/{0,1,2}/{6..8}.png Test/{0..5}.png", "0 1 2", 3),
    ],
)
def test_further_layouts(text: str, classes: str, tested: int, tmp_path: Path) -> None:
    place = tmp_path / write(text, Folder(tmp_path))
    splits = pu.labelled(place).splits
    assert (splits["train"].class_names, len(splits["test"])) == (tuple(classes.split()), tested)


def flat(root: Path, place: str) -> Path:
    """36 images in flat folders, and a table that lists them; returns the table."""
    names = [place.format(i=i, part=1 + i // 18) for i in range(36)]
    for name in names:
        put(root / name, b"")
    rows = [f"{Path(name).stem},{('nv', 'mel', 'bkl', 'bcc')[i % 4]}" for i, name in enumerate(names)]
    return table(root, "\n".join(["image_id,dx", *rows]), "annotations.csv")


@pytest.mark.parametrize(
    "place",
    [
        "HAM10000_images_part_{part}/{i}.jpg",
        "images_{part:03}/images/{i}.jpg",
        "batch_{part}/{i}.jpg",
        "left{part}/{i}.png",
        "{part}00/deeper/{i}.jpeg",
    ],
)
def test_flat_folders_beside_a_table_that_lists_their_images_are_no_classes(
    place: str, tmp_path: Path
) -> None:
    listed = flat(tmp_path, place)
    for head in ("image_id,dx", "Image Index,Finding Labels"):  # the label may have any name
        put(listed, "\n".join([head, *listed.read_text().splitlines()[1:]]))
        with pytest.raises(
            RequestError, match=r"annotations\.csv' lists the images, and divides them otherwise"
        ):
            pu.labelled(tmp_path)
    assert pu.labelled(listed, label="Finding Labels").splits["train"].class_names == (
        "bcc",
        "bkl",
        "mel",
        "nv",
    )
    folders = tuple(dict.fromkeys(place.format(i=i, part=1 + i // 18).split("/")[0] for i in range(36)))
    assert pu.labelled(tmp_path, split=None).splits["train"].class_names == folders
    rows = [f"{i},{folders[i // 18]}" for i in range(36)]
    put(listed, "\n".join(["image_id,kind", *rows]))
    assert pu.labelled(tmp_path).splits["train"].class_names == folders


@pytest.mark.parametrize(
    ("root", "outer"), [("", ""), ("CUB_200_2011", ""), ("cub/CUB_200_2011", "cub"), ("birds/a/b", "birds")]
)
def test_the_split_of_cub_is_that_of_its_list(root: str, outer: str, tmp_path: Path) -> None:
    names = Folder(tmp_path / root).images("images/{001.Auk,002.Bunting}/{1..5}.jpg")
    lines = [f"{number} {name.removeprefix('images/')}\n" for number, name in enumerate(names, 1)]
    put(
        tmp_path / root / "train_test_split.txt",
        "".join(f"{number} {number % 2}\n" for number in range(1, 11)),
    )
    with pytest.raises(RequestError, match=r"images\.txt' is missing"):
        pu.labelled(tmp_path / outer)
    put(tmp_path / root / "images.txt", "".join(lines))
    opened = pu.labelled(tmp_path / outer)
    below = Path(root).relative_to(outer) if outer else Path(root)
    assert [*read(opened)["test"]] == [(below / name).as_posix() for name in names[1::2]]
    assert opened.splits["train"].class_names == ("001.Auk", "002.Bunting")


def test_test_images_in_no_class_folders_are_labelled_by_their_table_or_left_out(tmp_path: Path) -> None:
    write(FOLDERS["gtsrb"], Folder(tmp_path))
    put(tmp_path / "Test.csv", "path\n" + "".join(f"Test/{i}.png\n" for i in range(6)))
    with pytest.raises(RequestError, match=r"lie in no class folders; .*which column holds the labels"):
        pu.labelled(tmp_path)
    (tmp_path / "Test.csv").unlink()
    opened = pu.labelled(tmp_path)
    assert len(opened.splits["train"]) + len(opened.splits["test"]) == 9
    assert "in no class folders, and left out: the images in 'Test'" in opened.notes


def marks(root: Path) -> Path:
    """A table of two labels an image and of its split; the labels are 1, 0 and, of red, uncertain."""
    lay(root, "{0..23}.png")
    rows = [f"{i}.png,{i % 2},{(-1, 0, 1)[i % 3]},{'test' if i % 4 == 3 else 'train'}" for i in range(24)]
    return table(root, "\n".join(["path,Round,red,part", *rows]))


def test_several_labels_are_marks_that_uncertain_and_missing_ones_do_not_shift(tmp_path: Path) -> None:
    place = marks(tmp_path)
    (tmp_path / "4.png").unlink()
    splits = pu.labelled(place, labels=("round", "red")).splits
    assert splits["train"].class_names == ("Round", "red")
    for split in ("train", "test"):
        numbers = [int(Path(name).stem) for name in splits[split].names]
        assert splits[split].labels.tolist() == [[i % 2, (-1, 0, 1)[i % 3]] for i in numbers]
    assert pu.labelled(place, labels="r*").splits["test"].digest == splits["test"].digest
    assert splits["train"].missing == ("4.png",)
    drawn = pu.labelled(place, labels=("round", "red"), split=None).splits["test"]
    assert (drawn.labels == 1).any(0).all()
    put(place, place.read_text().replace(",1,test", ",0,test"))
    notes = " ".join(pu.labelled(place, labels="r*").notes)
    assert "of the test images all or none show 2 labels ('Round', 'red')" in notes


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"labels": ("round", "blue")}, "column of .*'blue'"),
        ({"labels": "round"}, r"labels=\.\.\. are two columns or more"),
        ({"labels": ("round", "part")}, "row 1 of 'part' holds 'train'"),
        ({"label": "round", "labels": ("round", "red")}, "say one"),
        (
            {"label": ("round", "red")},
            r"row 1 marks 0.*Several labels for an image.*labels=\('round', 'red'\)",
        ),
    ],
)
def test_what_is_no_column_of_labels_is_refused(said: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=message):
        pu.labelled(marks(tmp_path), **said)
    with pytest.raises(RequestError, match=r"labels=\.\.\. is not said of class folders"):
        pu.labelled(lay(tmp_path / "own", "{a,b}/{0..1}.png"), labels=("a", "b"))
