"""`pu.labelled`: what is read of people's own images beyond the golden layouts, and what is refused."""

from __future__ import annotations

import json
import pickle
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
        ("train1/{a,b}/{0..1}.jpg train2/{a,b}/{0..1}.jpg test/{a,b}/{0..1}.jpg", "both stand for the train"),
        ("val/{a,b}/{0..1}.jpg other/{a,b}/{0..1}.jpg", "is 'val' a class, as 1 folder"),
        ("{a,b}/{train,test}/{0..1}.jpg a/more/{0..1}.jpg", "beside them 1 folder"),
        ("{fold_1,fold_2}/{a,b}/{0..1}.jpg", "are called like parts of the data; say which is tested on"),
        ("{train,test}/{a,b}/{0..1}.jpg test/c/{0..1}.jpg", "1 class folder .'c'. of the test images"),
    ],
)
def test_folders_that_may_mean_several_things_are_refused(folders: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=message):
        pu.labelled(lay(tmp_path, *folders.split(" ")))


def test_folders_may_be_said_to_be_classes(tmp_path: Path) -> None:
    lay(tmp_path, "{train,test}/{0..3}.jpg")
    assert pu.labelled(tmp_path, split=None).splits["train"].class_names == ("test", "train")


@pytest.mark.parametrize("where", ["{batch_1,batch_2}/{0..7}.png", "{hand_1,hand_2}/images/{0..7}.png"])
def test_a_table_that_divides_the_images_otherwise_than_folders_is_not_passed_over(
    where: str, tmp_path: Path
) -> None:
    names = Folder(tmp_path).images(where)
    rows = [f"{name},{'ab'[i % 2]}" for i, name in enumerate(names)]
    place = table(tmp_path, "\n".join(["path,label", *rows]), "annotations.csv")
    refused = r"annotations\.csv' lists the images, and divides them otherwise than the folders do"
    with pytest.raises(RequestError, match=refused):
        pu.labelled(tmp_path)
    assert pu.labelled(place).splits["train"].class_names == ("a", "b")
    folders = tuple(dict.fromkeys(name.partition("/")[0] for name in names))
    assert pu.labelled(tmp_path, split=None).splits["train"].class_names == folders
    table(tmp_path, place.read_text().replace("path,label", "path,finding"), "annotations.csv")
    with pytest.raises(RequestError, match=refused):  # NIH's folders are called alike, and its labels not so
        pu.labelled(tmp_path)
    agreeing = [f"{name},{name.partition('/')[0]}" for name in names]
    table(tmp_path, "\n".join(["path,label", *agreeing]), "annotations.csv")
    assert pu.labelled(tmp_path).splits["train"].class_names == folders


def test_test_images_in_no_class_folders_are_labelled_by_their_table_or_left_out(tmp_path: Path) -> None:
    write(FOLDERS["gtsrb"], Folder(tmp_path))
    opened = pu.labelled(tmp_path)
    assert {part: len(of) for part, of in opened.splits.items()} == {"train": 9, "test": 6}
    (tmp_path / "Test.csv").write_text("path\n" + "".join(f"Test/{i}.png\n" for i in range(6)))
    with pytest.raises(RequestError, match=r"lie in no class folders; .*which column holds the labels"):
        pu.labelled(tmp_path)
    (tmp_path / "Test.csv").unlink()
    opened = pu.labelled(tmp_path)
    assert len(opened.splits["train"]) + len(opened.splits["test"]) == 9
    assert "in no class folders, and left out: the images in 'Test'" in opened.notes


def test_the_split_of_cub_is_that_of_its_list(tmp_path: Path) -> None:
    names = Folder(tmp_path).images("images/{001.Auk,002.Bunting}/{1..5}.jpg")
    lines = [f"{number} {name.removeprefix('images/')}\n" for number, name in enumerate(names, 1)]
    put(tmp_path / "images.txt", "".join(lines))
    put(tmp_path / "train_test_split.txt", "".join(f"{number} {number % 2}\n" for number in range(1, 11)))
    opened = pu.labelled(tmp_path)
    assert [*read(opened)["test"]] == names[1::2]
    assert opened.splits["train"].class_names == ("001.Auk", "002.Bunting")
    outer = tmp_path.rename(tmp_path.with_name("CUB_200_2011")).parent
    (outer / "cub").mkdir()
    (outer / "CUB_200_2011").rename(outer / "cub/CUB_200_2011")
    assert len(pu.labelled(outer / "cub").splits["test"]) == 5


def test_hidden_files_junk_and_links_that_lead_up_are_no_images(tmp_path: Path) -> None:
    lay(
        tmp_path,
        "{ant,bee}/{0..3}.png",
        "ant/._0.png",
        "ant/.x/0.png",
        "__MACOSX/ant/0.png",
        ".git/a/0.png",
        "docs/readme.png",
    )
    (tmp_path / "docs/readme.png").rename(tmp_path / "docs/readme.txt")
    (tmp_path / "ant/up").symlink_to(tmp_path)
    opened = pu.labelled(tmp_path)
    assert sum(len(of) for of in opened.splits.values()) == 8
    assert "no image at all: 1 class ('docs')" in opened.notes


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


def test_a_zip_a_broken_table_and_nothing_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "t.parquet", b"PAR1")
    with pytest.raises(DamagedFileError, match="cannot be read as a table"):
        pu.labelled(tmp_path / "t.parquet")
    put(tmp_path / "a.npz", b"PK")
    with pytest.raises(DamagedFileError, match="not a whole npz file"):
        pu.labelled(tmp_path / "a.npz")
    with pytest.raises(RequestError, match="does not exist"):
        pu.labelled(tmp_path / "gone")
    with pytest.raises(RequestError, match="neither a published data set"):
        open_dataset("pet")


def test_numbers_of_splits_and_flags_are_read(tmp_path: Path) -> None:
    lay(tmp_path, "{0..11}.png")
    rows = [f"{i}.png,{'ab'[i % 2]},{2 * (i > 8)}" for i in range(12)]
    assert len(pu.labelled(table(tmp_path, "\n".join(["path,label,partition", *rows]))).splits["test"]) == 3
    rows = [f"{i}.png,{'ab'[i % 2]},{'TRUE' if i > 7 else 'FALSE'}" for i in range(12)]
    assert len(pu.labelled(table(tmp_path, "\n".join(["path,label,Is Test", *rows]))).splits["test"]) == 4
    rows = [f"{i}.png,{'ab'[i % 2]},{i % 4}" for i in range(12)]
    opened = pu.labelled(table(tmp_path, "\n".join(["path,label,fold", *rows])))
    assert any("the column 'fold' is not used; " in note for note in opened.notes)


def test_several_labels_are_marks_and_uncertain_ones_stay(tmp_path: Path) -> None:
    lay(tmp_path, "{0..11}.png")
    rows = [f"{i}.png,{i % 2},{(-1, 0, 1)[i % 3]}" for i in range(12)]
    place = table(tmp_path, "\n".join(["path,finding_a,finding_b", *rows]))
    train = pu.labelled(place, labels="finding_*").splits["train"]
    assert train.class_names == ("finding_a", "finding_b")
    assert {*train.labels[:, 1].tolist()} == {-1, 0, 1}
    with pytest.raises(RequestError, match=r"mark one class for each image; row 1 marks 0"):
        pu.labelled(place, label=("finding_a", "finding_b"))


def test_a_table_may_begin_its_paths_with_its_own_folder(tmp_path: Path) -> None:
    root = tmp_path / "CheXpert"
    lay(root, "train/{0..3}.png")
    rows = [f"CheXpert/train/{i}.png,{'ab'[i % 2]}" for i in range(4)]
    opened = pu.labelled(table(root, "\n".join(["Path,label", *rows])))
    assert sorted(name for of in opened.splits.values() for name in of.names) == [
        f"train/{i}.png" for i in range(4)
    ]


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


def test_a_check_names_what_cannot_be_read_and_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(tmp_path, "{train,test}/{ant,bee}/{0..2}.png")
    put(tmp_path / "train/ant/0.png", b"")
    put(tmp_path / "test/bee/copy.png", (tmp_path / "train/bee/1.png").read_bytes())
    assert main(["data", "check", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "train: 6 of 6 images, 2 classes; 1 cannot be read" in told
    assert f"'{tmp_path}/train/ant/0.png' is not a complete image: it is empty" in told
    assert "1 test image of 7 is an exact copy of a train image" in told


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
