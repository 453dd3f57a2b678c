"""Published data sets: each reader on a tiny copy in its true layout."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.data import published
from tests.data.published import CHOSEN, MAKERS, WNIDS, colour, shade

from penultimate import RequestError
from penultimate.cli import main
from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, entry
from penultimate.data.readers.opening import open_dataset
from penultimate.errors import DamagedFileError
from penultimate.paper.published import table

SPLITS = {name: list(known.card.sizes)[:3] for name, known in ENTRIES.items()}
SPLITS["imagenet_c"] = ["gaussian_noise/1", "gaussian_noise/5", "fog/3"]


def assert_shows_its_labels(listing: Listing) -> None:
    shown = [np.asarray(listing[index])[15, 15] for index in range(len(listing))]
    several = listing.labels.ndim == 2
    wanted = [(shade(row > 0),) * 3 if several else colour(row) for row in listing.labels]
    np.testing.assert_allclose(np.array(shown, int), wanted, atol=4)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_label_is_that_of_what_the_image_shows(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    splits = open_dataset(name, tmp_path).splits
    ids = []
    for split in SPLITS[name]:
        assert len(splits[split])
        assert_shows_its_labels(splits[split])
        ids += splits[split].ids.tolist()
    assert len({*ids}) == len(ids)
    inner = tmp_path / ENTRIES[name].folder
    if inner.is_dir():  # the root may be the folder itself
        again = open_dataset(name, inner).splits[SPLITS[name][0]]
        assert again.digest == splits[SPLITS[name][0]].digest


def test_the_sizes_are_the_papers_corrected() -> None:
    for row in table("neurips_tableA2_datasets"):
        card = entry({"food": "food101", "flowers": "flowers102"}.get(row["dataset"], row["dataset"])).card
        assert card.classes == int(row["classes_corrected"])
        sizes = {"train": int(row["train_images_corrected"]), "test": int(row["test_images_corrected"])}
        assert (dict(card.sizes), card.accuracy) == (sizes, row["accuracy_measure"])


def test_of_training_images_those_held_out_are_a_share_by_their_names(tmp_path: Path) -> None:
    published.imagenet(tmp_path)
    published.cifar10(tmp_path)
    for name, count in (("imagenet", 1), ("cifar10", 2)):
        whole, parts = (open_dataset(called, tmp_path).splits for called in (name, f"{name}_tuning"))
        train, held = parts["train"], parts["holdout"]
        assert sorted([*train.names, *held.names]) == sorted(whole["train"].names)
        names = [Path(each).name for each in whole["train"].names]
        digested = sorted(names, key=lambda each: hashlib.sha256(each.encode()).hexdigest())
        assert {Path(each).name for each in held.names} == {*digested[:count]}
        assert parts["test"].digest == whole["test"].digest
    assert entry("imagenet_tuning").card.sizes["holdout"] == round(1281167 * 5 / 128)


def test_imagenet_as_kaggle_gives_it_is_read_by_its_lists(tmp_path: Path) -> None:
    published.imagenet_kaggle(tmp_path)
    published.imagenet(tmp_path / "folders")
    kaggle = open_dataset("imagenet", tmp_path).splits
    folders = open_dataset("imagenet", tmp_path / "folders").splits
    for split in ("train", "test"):
        assert_shows_its_labels(kaggle[split])
        assert kaggle[split].class_names == folders[split].class_names
    (tmp_path / "LOC_val_solution.csv").unlink()
    with pytest.raises(RequestError, match=r"lie in no class folders, and Kaggle's LOC_val_solution\.csv"):
        open_dataset("imagenet", tmp_path).splits["test"]


def test_imagenet_100_and_the_shifted_sets_number_classes_as_imagenet_does(tmp_path: Path) -> None:
    published.imagenet100(tmp_path)
    splits = open_dataset("imagenet100", tmp_path).splits
    assert [len(splits[split]) for split in ("train", "test")] == [12, 4]
    assert {*splits["test"].labels.tolist()} == {0, 7, 42, 99}
    published.imagenet_r(tmp_path)
    assert {*open_dataset("imagenet_r", tmp_path).splits["test"].labels.tolist()} == {*CHOSEN}
    shutil.move(tmp_path / "imagenet-r" / WNIDS[3], tmp_path / "imagenet-r/n00000001")
    with pytest.raises(DamagedFileError, match="'n00000001' is not one of the 1000 classes"):
        open_dataset("imagenet_r", tmp_path).splits["test"]


def test_images_of_imagenet_c_are_not_cropped_again(tmp_path: Path) -> None:
    published.imagenet_c(tmp_path)
    listing = open_dataset("imagenet_c", tmp_path).splits["fog/3"]
    assert listing.cropped
    squeezed = Preparation(64, 32, "bilinear", ChannelStatistics((0.0,) * 3, (1.0,) * 3))
    (batch,) = decoded(listing, [squeezed], workers=0)
    assert batch.prepared(squeezed).shape == (len(CHOSEN), 32, 32, 3)
    with pytest.raises(RequestError, match="holds no folder spatter/1"):
        open_dataset("imagenet_c", tmp_path).splits["spatter/1"]


def test_chexpert_has_patients_on_one_side_and_uncertain_labels(tmp_path: Path) -> None:
    published.chexpert(tmp_path)
    splits = open_dataset("chexpert", tmp_path).splits
    sizes = {split: len(splits[split]) for split in splits}
    assert sizes == {"train": 54, "test": 6, "validation": 12}
    patients = [{name.split("/")[1] for name in splits[split].names} for split in sizes]
    assert not patients[0] & patients[1]
    assert {*splits["train"].labels.ravel().tolist()} == {-1, 0, 1}
    table = tmp_path / "CheXpert-v1.0-small/train.csv"
    table.write_text(table.read_text().replace("1.0,", "maybe,", 40))
    with pytest.raises(DamagedFileError, match="a pathology is 1, 0, -1 or blank"):
        open_dataset("chexpert", tmp_path).splits["train"]


def test_images_that_a_list_names_and_that_are_not_there_are_named_and_shift_no_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published.birdsnap(tmp_path)
    image = tmp_path / "birdsnap/download/images/Anhinga/40.jpg"
    image.write_bytes(image.read_bytes()[:300])
    assert main(["data", "check", "birdsnap", "--root", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "train: 8 of 47,386 images, 3 classes of 500; 1 cannot be read" in told
    assert "missing: 4, which its lists name" in told
    assert "download/images/Alder_Flycatcher/31.jpg" in told
    assert f"'{image}' is not a complete image" in told


@pytest.mark.parametrize("name", ENTRIES)
def test_an_empty_folder_is_told_what_goes_where(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", name, "--root", str(tmp_path)]) == 1
    told, known = capsys.readouterr().out, ENTRIES[name]
    for words in (known.card.title, known.card.licence, known.card.citation, known.layout, "To get it: "):
        assert words in told


def test_what_cannot_be_downloaded_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get", "birdsnap", "--root", str(tmp_path)]) == 2
    assert "Birdsnap is to be got by hand: http://thomasberg.org" in capsys.readouterr().err
    with pytest.raises(RequestError, match=r"group=\.\.\. is of images of your own"):
        open_dataset("pets", f"{tmp_path}(group=1)")
    with pytest.raises(RequestError, match="where Oxford-IIIT Pets lies is not said"):
        open_dataset("pets")
