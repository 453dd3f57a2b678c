"""`penultimate data check` and `get`: what is there, what is missing, what cannot be read, what to do."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.data import published
from tests.data.published import MAKERS, put, put_image

from penultimate.cli import main
from penultimate.data.readers.chexpert import COLUMNS
from penultimate.data.readers.entries import ENTRIES, PublishedSet


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("name", ENTRIES)
def test_an_empty_folder_is_told_what_goes_where(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "data", "check", name, "--root", tmp_path)
    known = ENTRIES[name]
    assert (code, err) == (1, "")
    for words in (known.card.title, known.card.licence, known.card.citation, *known.layout):
        assert words in out
    assert f"What goes where, in {tmp_path}/{known.folder}:" in out
    assert f"not there: {len(known.card.sizes)} of {len(known.card.sizes)} splits" in out
    assert "To get it: " in out


def test_missing_and_damaged_images_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published.birdsnap(tmp_path)
    image = tmp_path / "birdsnap/download/images/Anhinga/40.jpg"
    image.write_bytes(image.read_bytes()[:300])
    put(tmp_path / "birdsnap/download/images/Anhinga/41.jpg", "<html>gone</html>")
    code, out, _ = command(capsys, "data", "check", "birdsnap", "--root", tmp_path)
    assert code == 1
    assert "train: 8 of 47,386 images, 3 classes of 500; 2 cannot be read" in out
    assert "test: 3 of 2,443 images, 3 classes of 500; 0 cannot be read" in out
    assert "missing: 4, which its lists name" in out
    assert "download/images/Alder_Flycatcher/31.jpg" in out
    assert f"'{image}' is not a complete image" in out


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (tuple(column for column in COLUMNS if column != "Edema"), "has no column 'Edema'."),
        (
            (*COLUMNS, "Oedema"),
            "has the column 'Oedema', which CheXpert does not have. Did you mean 'Edema'?",
        ),
    ],
)
def test_a_table_of_other_columns_cannot_be_read_and_is_not_to_be_got_again(
    columns: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, valid = (published.chexpert_rows(part, range(1, 9)) for part in ("train", "valid"))
    folder = published.chexpert_files(tmp_path, train, valid, columns)
    code, out, err = command(capsys, "data", "check", "chexpert", "--root", tmp_path)
    assert (code, err) == (1, "")
    assert f"cannot be read: 3 of 3 splits (train, test, validation)\n  '{folder}/train.csv' {why}\n" in out
    for words in ("not there", "What goes where", "To get it"):
        assert words not in out


def test_a_whole_copy_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many images as were published, if fewer had been."""
    import dataclasses

    published.pets(tmp_path)
    known = ENTRIES["pets"]
    card = dataclasses.replace(known.card, classes=3, sizes={"train": 9, "test": 5})
    few: dict[str, PublishedSet] = {"pets": dataclasses.replace(known, card=card)}
    monkeypatch.setattr("penultimate.data.readers.opening.ENTRIES", few)
    code, out, _ = command(capsys, "data", "check", "pets", "--root", tmp_path)
    assert code == 0
    assert "train: 9 of 9 images, 3 classes of 3; 0 cannot be read" in out
    assert "official score: mean per-class accuracy" in out


def test_own_folders_are_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label, name in enumerate(("ant", "bee")):
        for number in range(300):
            put_image(tmp_path / f"{name}/{number:03}.jpg", label, number % 10)
    Image.new("RGB", (9, 9)).save(tmp_path / "ant/turned.jpg", exif=_turned())
    Image.new("CMYK", (9, 9)).save(tmp_path / "bee/cmyk.jpg")
    Image.new("P", (9, 9)).save(
        tmp_path / "bee/moving.gif", save_all=True, append_images=[Image.new("P", (9, 9), 1)]
    )
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(tmp_path / "bee/deep.png")
    code, out, _ = command(capsys, "data", "check", tmp_path)
    assert code == 0
    assert "were drawn with seed 0" in out
    assert out.count("; 0 cannot be read") == 2
    assert "images carry a rotation in their EXIF data" in out
    put(tmp_path / "bee/bomb.png", _png_bomb())
    code, out, _ = command(capsys, "data", "check", tmp_path)
    assert code == 1
    assert "bomb.png' is 30000 x 30000, more than" in out or "bomb.png' is larger than Pillow reads" in out


def test_a_remark_of_a_check_names_the_first_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """What Pillow warns of is said with a file's name, and no warning of its own reaches the user."""
    for label, name in enumerate(("ant", "bee")):
        for number in range(3):
            put_image(tmp_path / f"train/{name}/{number}.jpg", label, number)
            put_image(tmp_path / f"test/{name}/{number}.jpg", label, number)
    odd = tmp_path / "train/bee/1.jpg"
    Image.new("RGB", (9, 9)).save(odd, exif=b"Exif\0\0II*\0\x08\0\0\0\x05\0")
    code, out, err = command(capsys, "data", "check", tmp_path)
    assert (code, err, len(recwarn)) == (0, "", 0)
    assert '1 of 6 images are read, though Pillow warns: "Corrupt EXIF data.' in out
    assert "the first is train/bee/1.jpg\n" in out


def test_a_check_runs_where_the_system_names_no_usable_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    for label, name in enumerate(("ant", "bee")):
        for number in range(4):
            put_image(tmp_path / f"{name}/{number}.jpg", label, number)
    code, out, err = command(capsys, "data", "check", tmp_path)
    assert (code, err) == (0, "")
    assert "0 cannot be read" in out


def test_images_of_one_class_are_not_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        put_image(tmp_path / f"ant/{number}.jpg", 0, number)
    code, out, _ = command(capsys, "data", "check", tmp_path)
    assert code == 1
    assert "there is nothing to tell apart: images of two classes or more are needed" in out
    (tmp_path / "bee").mkdir()
    assert command(capsys, "data", "check", tmp_path)[0] == 1
    put_image(tmp_path / "bee/5.jpg", 1, 5)
    code, out, _ = command(capsys, "data", "check", tmp_path)
    assert code == 0
    assert "nothing to tell apart" not in out


def test_copies_are_named_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split, first in (("train", 0), ("test", 5)):
        for label, name in enumerate(("ant", "bee")):
            for number in range(first, first + 5):
                put_image(tmp_path / f"{split}/{name}/{number}.jpg", label, number)
    assert "copies" not in command(capsys, "data", "check", tmp_path)[1]
    for name in ("6", "7"):
        put(tmp_path / f"test/bee/{name}.jpg", (tmp_path / "train/bee/1.jpg").read_bytes())
    code, out, _ = command(capsys, "data", "check", tmp_path)
    assert code == 0
    found = "copies: 2 test images of 10 are exact copies of train images: 'test/bee/6.jpg' and"
    assert f"{found} 'train/bee/1.jpg'" in out
    assert "copies: penultimate evaluate --copies drop leaves out all but one of each" in out


def _turned() -> Any:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def _png_bomb() -> bytes:
    """A 30,000 x 30,000 PNG of a few bytes: its head alone says so."""
    import struct
    import zlib

    head = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    chunks = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "flower102"), "nor a file or folder. Did you mean 'flowers102'?"),
        (("check", "flower102", "--root", "x"), "data set 'flower102'. Did you mean 'flowers102'?"),
        (("check", "pets"), "where Oxford-IIIT Pets lies is not said"),
        (("get", "pet", "--root", "x"), "unknown published data set 'pet'. Did you mean 'pets'?"),
        (("check", "own", "--root", "."), "are read without --root: penultimate data check ."),
        (("get", "pets"), "say which folder to put it in"),
        (("get", "cars", "--root", "x"), "Stanford Cars is to be got by hand: its site is gone"),
        (("get", "imagenet", "--root", "x"), "register at https://image-net.org/download.php"),
        (("look",), "invalid choice: 'look'"),
    ],
)  # fmt: skip
def test_requests_that_cannot_be_met(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "data", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_get_says_what_to_do_where_there_is_no_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    code, _, err = command(capsys, "data", "get", "pets", "--root", tmp_path)
    assert code == 2
    assert "Oxford-IIIT Pets cannot be downloaded (" in err
    assert "https://www.robots.ox.ac.uk/~vgg/data/pets: images.tar.gz and annotations.tar.gz" in err
    assert f"put images.tar.gz and annotations.tar.gz into '{tmp_path}', and call this again" in err


def _packed(folder: Path, archive: Path, names: tuple[str, ...]) -> None:
    with tarfile.open(archive, "w:gz") as out:
        for name in names:
            out.add(folder / name, name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["food101", "cifar10", "pets", "flowers102", "cars", "sun397", "imagenet_a"])
def test_get_unpacks_archives_that_lie_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As each is published: Pets in two archives without a folder, Food-101 in one with its own."""
    made, root = tmp_path / "made", tmp_path / "root"
    root.mkdir()
    MAKERS[name](made)
    known = ENTRIES[name]
    inner = made / known.folder
    loose = {
        "pets": {"images.tar.gz": ("images",), "annotations.tar.gz": ("annotations",)},
        "flowers102": {"102flowers.tgz": ("jpg",)},
        "cars": {
            "cars_train.tgz": ("cars_train",),
            "cars_test.tgz": ("cars_test",),
            "car_devkit.tgz": ("devkit",),
        },
    }.get(name)
    if loose is None:
        _packed(made, root / known.archives[0], (known.folder,))
    else:
        for archive, names in loose.items():
            _packed(inner, root / archive, names)
        for left in inner.glob("*.mat"):  # published beside the archives
            put(root / known.folder / left.name, left.read_bytes())
    code, out, err = command(capsys, "data", "get", name, "--root", root)
    assert (code, err) == (0, "")
    split = next(iter(known.card.sizes))
    assert f" of {known.card.sizes[split]:,} images" in out
    from penultimate.data.readers.opening import open_dataset

    for split in known.card.sizes:
        assert open_dataset(name, root).splits[split].digest == open_dataset(name, made).splits[split].digest


def test_list_datasets_tells_of_both_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "list", "datasets")
    assert code == 0
    for words in (
        "glyphs ",
        "imagenet_c ",
        "flowers102 ",
        "95 test sets of 50,000",
        "train 2,040, test 6,149",
    ):
        assert words in out
