"""CheXpert's reader, on files in its real layout: labels, views, splits by patients, and bad input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.data.published import chexpert_files, chexpert_rows, shade

from penultimate import register, registry
from penultimate.data.images import load_images
from penultimate.data.readers.chexpert import COLUMNS, COMPETITION, HELD_OUT, OBSERVATIONS, Chexpert
from penultimate.data.world.generation import generate
from penultimate.errors import DamagedFileError, RequestError

Rows = list[dict[str, str]]

TRAIN, VALID = chexpert_rows("train", range(1, 31)), chexpert_rows("valid", range(64541, 64547))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return chexpert_files(tmp_path, TRAIN, VALID)


def value(text: str) -> int:
    return {"1.0": 1, "-1.0": -1}.get(text, 0)


def test_every_image_has_the_labels_of_its_row_and_no_patient_two_splits(folder: Path) -> None:
    source = Chexpert(folder, held_out=20)
    splits = {split: source.listing(split) for split in ("train", "test", "validation")}
    assert {split: len(one) for split, one in splits.items()} == {
        "train": len(TRAIN) - 20,
        "test": 20,
        "validation": len(VALID),
    }
    by_path = {row["Path"].removeprefix("CheXpert-v1.0-small/"): row for row in TRAIN + VALID}
    patients: dict[str, set[str]] = {}
    for split, one in splits.items():
        assert one.class_names == COMPETITION
        assert one.missing == ()
        for index in range(len(one)):
            row = by_path[one.name(index)]
            assert one.labels[index].tolist() == [value(row[name]) for name in COMPETITION]
            assert one.image(index) == folder / one.name(index)
            patients.setdefault(split, set()).add(one.name(index).split("/")[1])
    assert len(set.union(*patients.values())) == sum(map(len, patients.values()))
    ids = np.concatenate([one.ids for one in splits.values()])
    assert sorted(ids) == list(range(len(TRAIN) + len(VALID)))
    assert Chexpert(folder, held_out=20).listing("test").digest == splits["test"].digest
    assert splits["validation"].labels.min() == 0


@pytest.mark.long
def test_the_paper_s_split_of_tables_of_real_size(tmp_path: Path) -> None:
    """223,414 and 234 rows, in seconds; the images themselves are not asked for."""
    rows = [
        f"CheXpert-v1.0-small/train/patient{patient:05d}/study{study}/view1_frontal.jpg,Male,40,Frontal,AP"
        for patient in range(1, 64541)
        for study in range(1, 2 + patient % 6)
    ][:223_414]
    folder = tmp_path / "CheXpert-v1.0-small"
    chexpert_files(tmp_path, [], VALID)
    blanks = "," * len(OBSERVATIONS)
    (folder / "train.csv").write_text("\n".join([",".join(COLUMNS), *(row + blanks for row in rows)]))
    card = Chexpert(tmp_path).card
    assert dict(card.sizes) == {"train": 223_414 - HELD_OUT, "test": HELD_OUT, "validation": len(VALID)}
    assert card.accuracy == "auc"
    assert f"223,414 and {len(VALID)} images; officially 223,414 and 234" in card.note


def test_views_and_other_observations(folder: Path) -> None:
    lateral = Chexpert(folder.parent, ("Fracture",), views="lateral", held_out=2)
    rows = [row for row in TRAIN if row["Frontal/Lateral"] == "Lateral"]
    test, train = lateral.listing("test"), lateral.listing("train")
    assert len(test) == 2
    assert len(train) == len(rows) - 2
    assert all("lateral" in train.name(index) for index in range(len(train)))
    told = {row["Path"].partition("/")[2]: value(row["Fracture"]) for row in rows}
    assert [told[train.name(index)] for index in range(len(train))] == train.labels[:, 0].tolist()
    assert "only the lateral ones" in lateral.card.note


def test_a_study_can_read_it(folder: Path, tmp_path: Path) -> None:
    source = Chexpert(folder, held_out=20, side=16)

    def chexpert(draw: int) -> object:
        return source(draw)

    chexpert.card, chexpert.fingerprint = source.card, source.fingerprint  # type: ignore[attr-defined]
    try:
        register.dataset(chexpert)
        generate("chexpert", 0, tmp_path / "data")
    finally:
        registry.forget("dataset", "chexpert")
    images = load_images(tmp_path / "data", "test")
    listing = source.listing("test")
    assert images.images.shape == (20, 16, 16, 3)
    np.testing.assert_array_equal(images.labels, listing.labels)
    shades = [shade(row > 0) for row in listing.labels]
    assert images.images[:, 8, 8, 0].astype(int) == pytest.approx(shades, abs=2)
    before = source.fingerprint()
    Image.effect_noise((60, 50), 50).save(folder / listing.name(0))
    assert source.fingerprint() != before
    assert Chexpert(folder, held_out=19, side=16).fingerprint() != source.fingerprint()


def test_images_that_are_not_there_are_named_and_move_no_label(folder: Path) -> None:
    whole = Chexpert(folder, held_out=20).listing("test")
    (folder / whole.name(3)).unlink()
    source = Chexpert(folder, held_out=20)
    listing = source.listing("test")
    assert listing.missing == (whole.name(3),)
    kept = np.delete(np.arange(20), 3)
    np.testing.assert_array_equal(listing.labels, whole.labels[kept])
    assert [listing.name(i) for i in range(19)] == [whole.name(int(i)) for i in kept]
    with pytest.raises(DamagedFileError, match="1 of 20 images of CheXpert's split 'test' are not in"):
        dict(source(0))
    (folder / source.listing("train").name(0)).write_bytes(b"\xff\xd8 no picture")
    with pytest.raises(DamagedFileError, match="is not a complete image"):
        dict(source(0))


def without(name: str) -> tuple[str, ...]:
    return tuple(column for column in COLUMNS if column != name)


def first(**changes: str) -> Rows:
    return [{**TRAIN[0], **changes}, *TRAIN[1:]]


PATH_OF = "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg"


@pytest.mark.parametrize(
    ("train", "valid", "columns", "said"),
    [
        (TRAIN, VALID, without("Edema"), "has no column 'Edema'."),
        (
            [{**row, "Oedema": row["Edema"]} for row in TRAIN],
            VALID,
            (*without("Edema"), "Oedema"),
            "has no column 'Edema'. Did you mean 'Oedema'?",
        ),
        (TRAIN, VALID, without("Path"), "has no column 'Path'."),
        (
            TRAIN,
            VALID,
            (*COLUMNS, "Pneumonitis"),
            "'Pneumonitis', which CheXpert does not have. Did you mean 'Pneu",
        ),
        (TRAIN, VALID, (*COLUMNS, "Edema"), "has the column 'Edema' twice"),
        (first(Edema="2.0"), VALID, COLUMNS, "line 2: Edema is 1.0, 0.0, -1.0 or blank, not '2.0'"),
        (first(**{"Frontal/Lateral": "Oblique"}), VALID, COLUMNS, "is Frontal or Lateral, not 'Oblique'"),
        (first(Path="../../etc/passwd"), VALID, COLUMNS, "line 2: '../../etc/passwd' is no path to an image"),
        (first(Path="/etc/passwd"), VALID, COLUMNS, "is no path to an image of CheXpert's folder 'train'"),
        (first(Path=PATH_OF.replace("train/", "train/../train/")), VALID, COLUMNS, "nothing else is read"),
        (first(Path=PATH_OF.replace("train", "valid")), VALID, COLUMNS, "CheXpert's folder 'train', such as"),
        ([*TRAIN, TRAIN[0]], VALID, COLUMNS, "stands on line 2 already"),
        (
            TRAIN,
            chexpert_rows("valid", [1]),
            COLUMNS,
            "patient00001 is in train.csv and in valid.csv (1",
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_told(
    tmp_path: Path, train: Rows, valid: Rows, columns: Sequence[str], said: str
) -> None:
    source = Chexpert(chexpert_files(tmp_path, train, valid, columns), held_out=20)
    with pytest.raises(DamagedFileError) as told:
        source.listing("test")
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("train", "valid", "said"),
    [
        (TRAIN, [], "lists no image of the views 'all'"),
        (TRAIN[:3], VALID, "20 images of whole patients cannot be held out of the 3 that"),
    ],
)
def test_what_its_tables_cannot_give_is_told(tmp_path: Path, train: Rows, valid: Rows, said: str) -> None:
    source = Chexpert(chexpert_files(tmp_path, train, valid), held_out=20)
    with pytest.raises(RequestError) as told:
        source.listing("test")
    assert said in str(told.value)


def cut_row(folder: Path) -> None:
    with (folder / "train.csv").open("a") as file:
        file.write("CheXpert-v1.0-small/train/patient00099/study1/view1_frontal.jpg,Male\n")


def link_out(folder: Path) -> None:
    image = folder / TRAIN[0]["Path"].partition("/")[2]
    image.unlink()
    (folder.parent / "secret.jpg").write_bytes(b"x")
    image.symlink_to(folder.parent / "secret.jpg")


def folder_link_out(folder: Path) -> None:
    patient = (folder / TRAIN[0]["Path"].partition("/")[2]).parents[1]
    patient.rename(folder.parent / "elsewhere")
    patient.symlink_to(folder.parent / "elsewhere")


def latin(folder: Path) -> None:
    (folder / "valid.csv").write_bytes("Path,\xe9\n".encode("latin-1"))


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (cut_row, DamagedFileError, "line 62: 2 values for 19 columns"),
        (link_out, RequestError, "leads out of"),
        (folder_link_out, RequestError, "leads out of"),
        (latin, DamagedFileError, "valid.csv' cannot be read as a table"),
        (lambda folder: (folder / "valid.csv").unlink(), RequestError, "valid.csv' is not there"),
        (lambda folder: (folder / "train.csv").unlink(), RequestError, "holds no train.csv: give the folder"),
        (lambda folder: (folder / "valid.csv").write_text(""), DamagedFileError, "has no column 'Path'."),
    ],
)
def test_what_was_spoilt_is_told(
    folder: Path, spoil: Callable[[Path], object], error: type[Exception], said: str
) -> None:
    spoil(folder)
    source = Chexpert(folder, held_out=20)
    with pytest.raises(error) as told:
        [source.listing(split) for split in ("train", "test", "validation")]
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"labels": ("Atelectasys",)}, "unknown observation of CheXpert 'Atelectasys'. Did you mean 'Atel"),
        ({"labels": ()}, "labels are names of observations, each once"),
        ({"labels": ("Edema", "Edema")}, "each once"),
        ({"views": "top"}, "unknown views of CheXpert 'top'"),
        ({"held_out": 0}, "held_out is a whole number from 1 up, not 0"),
        ({"side": 2.5}, "side is a whole number from 1 up"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, object], said: str) -> None:
    with pytest.raises(RequestError) as told:
        Chexpert("anywhere", **settings)  # type: ignore[arg-type]
    assert said in str(told.value)
    with pytest.raises(RequestError, match=r"split of CheXpert 'valid'\. Did you mean 'validation'\?"):
        Chexpert("anywhere").listing("valid")
