"""Groups of images that stay on one side of a split: read, drawn, refused, and looked at for leaks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedGroupKFold
from tests.data.published import put, put_image

from penultimate.data.disk.preparing import prepare
from penultimate.data.readers.group_split import drawn_by_group
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.errors import RequestError


def opened(
    root: Path, rows: list[str], said: str = "group='patient'", head: str = "patient"
) -> OpenedDataset:
    """Open a table of an image for each row of further cells; the labels are a, b, a, b, ..."""
    for number in range(len(rows)):
        if not (root / f"{number}.jpg").exists():
            put_image(root / f"{number}.jpg", number % 2, number)
    lines = [f"{number}.jpg,{'ab'[number % 2]},{cells}" for number, cells in enumerate(rows)]
    put(root / "t.csv", "\n".join([f"path,label,{head}", *lines]))
    return open_dataset(f"{root / 't.csv'}({said})")


def both(data: OpenedDataset) -> set[str]:
    return {*data.splits["train"].groups} & {*data.splits["test"].groups}


def test_groups_of_a_column_stay_together_and_classes_are_on_both_sides(tmp_path: Path) -> None:
    data = opened(tmp_path, [f"p{number // 4}" for number in range(40)])
    assert both(data) == set()
    assert {*data.splits["test"].labels} == {*data.splits["train"].labels} == {0, 1}
    assert len(data.splits["test"]) == 8
    assert any(
        "2 of 10 groups by 'patient', which are not split, 8 of 40 images" in note for note in data.notes
    )
    order = np.argsort([f"{at}" for at in range(40)])
    again = opened(tmp_path, [f"p{number // 4}" for number in range(40)])
    assert again.splits["test"].ids.tolist() == data.splits["test"].ids.tolist()
    assert len(order) == 40


def test_a_split_does_not_depend_on_the_order_of_examples() -> None:
    random = np.random.default_rng(0)
    groups, labels = random.integers(0, 30, 300).astype(str), random.integers(0, 3, 300)
    order = random.permutation(300)
    tested = drawn_by_group(groups, labels, "abc", by="x")
    assert drawn_by_group(groups[order], labels[order], "abc", by="x").tolist() == tested[order].tolist()
    seeds = {tuple(drawn_by_group(groups, labels, "abc", by="x", seed=seed)) for seed in range(5)}
    assert len(seeds) > 1


@pytest.mark.parametrize("classes", [2, 10])
def test_shares_are_nearer_than_those_of_scikit_learn(classes: int) -> None:
    ours, theirs = [], []
    for seed in range(10):
        random = np.random.default_rng(seed)
        of_groups = random.integers(0, classes, 60)
        groups = random.choice(60, 900, p=(shares := random.random(60)) / shares.sum())
        labels = np.where(random.random(900) < 0.7, of_groups[groups], random.integers(0, classes, 900))
        tested = drawn_by_group(groups.astype(str), labels, [*map(str, range(classes))], by="x", seed=seed)
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed).split(labels, labels, groups)
        other = np.isin(np.arange(900), next(iter(folds))[1])
        for chosen, off in ((tested, ours), (other, theirs)):
            assert not {*groups[chosen]} & {*groups[~chosen]}
            shares = np.bincount(labels[chosen], minlength=classes) / np.bincount(labels)
            off.append(np.abs(shares - 0.2).mean())
    assert np.mean(ours) < 0.8 * np.mean(theirs)


def test_groups_are_levels_of_folders(tmp_path: Path) -> None:
    for kind in "ab":
        for patient in range(5):
            for number in range(2):
                put_image(tmp_path / kind / f"p{patient}" / "left" / f"{number}.jpg", 0, number)
    data = open_dataset(f"{tmp_path}(group=1)")
    assert {*data.splits["train"].groups} | {*data.splits["test"].groups} == {f"p{n}" for n in range(5)}
    assert both(data) == set()
    deeper = open_dataset(f"{tmp_path}(group=2)")
    assert "p0/left" in {*deeper.splits["train"].groups} | {*deeper.splits["test"].groups}
    with pytest.raises(RequestError, match=r"lie less than 3 folders below the class.*group=3 says no"):
        open_dataset(f"{tmp_path}(group=3)")
    with pytest.raises(RequestError, match=r"no column 'patient'.*group=1 stands for the first folder"):
        open_dataset(f"{tmp_path}(group='patient')")


def test_groups_within_folders_of_splits_are_looked_at(tmp_path: Path) -> None:
    for split, patients in (("train", range(4)), ("test", (3, 4))):
        for kind in "ab":
            for patient in patients:
                put_image(tmp_path / split / kind / f"p{patient}" / "0.jpg", 0, patient)
    notes = open_dataset(f"{tmp_path}(group=1)").notes
    told = "1 of 2 groups of test images by folder level 1 is in training too ('p3'): 2 of 4 test images and"
    assert any(note.startswith(f"{told} 2 of 8 training images") for note in notes)


def test_a_split_of_the_data_that_parts_groups_is_said(tmp_path: Path) -> None:
    rows = [f"p{number // 2},{'test' if number % 3 == 2 else 'train'}" for number in range(12)]
    data = opened(tmp_path, rows, head="patient,split")
    (note,) = [note for note in data.notes if "in training too" in note]
    assert note.startswith(
        "4 of 4 groups of test images by 'patient' are in training too ('p1', 'p2', 'p4', ...)"
    )
    assert "accuracies may be too high" in note
    whole = [f"p{number // 2},{'test' if number // 2 % 3 == 2 else 'train'}" for number in range(12)]
    assert not any("in training too" in note for note in opened(tmp_path, whole, head="patient,split").notes)


@pytest.mark.parametrize(
    ("groups", "said", "message"),
    [
        (["p1"] * 8, "group='patient'", "everything is of one group by 'patient', 'p1'; two groups or more"),
        (
            [f"p{n}" for n in range(8)],
            "group='patient'",
            "every one of 8 is a group of its own by 'patient', so that there is nothing to keep together",
        ),
        (
            ["p1", "p2"] * 4,
            "group='patient'",
            "2 classes ('a', 'b') lie in a single group by 'patient': all 4 of 'a' in 'p1'",
        ),
        (["p1", "p1", "", "p2"] * 2, "group='patient'", "says no group of 2 images, the first in line 4"),
        (["p1", "p2"] * 4, "group='patent'", "Did you mean 'patient'?"),
        (["p1", "p2"] * 4, "group='label'", "the column 'label' holds the labels"),
        (["p1", "p2"] * 4, "group='path'", "the column 'path' holds the labels, the images or the splits"),
        (["p1", "p2"] * 4, "group=0", "group is the name of a column, or the level of a folder"),
        (["p1", "p2"] * 4, "group=True", "group is the name of a column, or the level of a folder"),
        (["p1", "p2"] * 4, "group=1", "lie less than 1 folder below the table's folder"),
    ],
)
def test_groups_that_cannot_be_kept_together_are_refused(
    groups: list[str], said: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=re.escape(message)):
        opened(tmp_path, groups, said)


def test_a_class_that_no_split_has_on_both_sides_is_named() -> None:
    pairs = [("a", 0), ("a", 1), ("b", 1), ("b", 2), ("c", 0), ("c", 2)]  # two of three groups share a side
    groups, labels = (np.array(of) for of in zip(*(pair for pair in pairs for _ in range(4)), strict=True))
    with pytest.raises(RequestError, match=r"no split by 'site' was found.*1 class \('.'\) would be missing"):
        drawn_by_group(groups, labels, ("x", "y", "z"), by="'site'")


def test_published_data_and_arrays_have_no_groups(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 8, 8, 3), np.uint8), labels=np.arange(4) % 2)
    with pytest.raises(RequestError, match=r"group=... is not said of arrays"):
        open_dataset(f"{tmp_path / 'a.npz'}(group='patient')")
    with pytest.raises(RequestError, match=r"Pets is split as it was published"):
        open_dataset("pets", f"{tmp_path}(group='patient')")


def test_images_of_several_labels_are_split_by_groups_too(tmp_path: Path) -> None:
    rows = [f"p{number // 4},{number % 2},{number // 2 % 2}" for number in range(40)]
    said = "labels=('wet', 'cold'), group='patient'"
    data = opened(tmp_path, rows, said, "patient,wet,cold")
    assert both(data) == set()
    assert len(data.splits["test"]) == 8
    assert (data.splits["test"].labels == 1).any(0).all()


def test_a_prepared_copy_has_the_groups_and_the_split_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    data = opened(tmp_path / "own", [f"p{number // 4}" for number in range(40)])
    copy = tmp_path / "copy"
    prepare(f"{tmp_path / 'own' / 't.csv'}(group='patient')", None, copy, 8, lambda *lines: None)
    found = open_dataset(str(copy))
    for split in ("train", "test"):
        assert found.splits[split].groups.tolist() == data.splits[split].groups.tolist()
    with pytest.raises(RequestError, match="is a prepared copy, whose splits are made"):
        open_dataset(f"{copy}(group='patient')")
