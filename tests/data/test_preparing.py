"""`penultimate data prepare`: the copy is its source, resized; it is resumed, and checked against it."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.data.photographs import photograph
from tests.data.published import imagenet_c
from tests.engine.processes import wait_for
from tests.evaluation.pictures import fill, split_folders

from penultimate.cli import main
from penultimate.data.disk import preparing
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.loading import colours_of
from penultimate.data.disk.preparation import Preparation
from penultimate.data.disk.preparing import prepare
from penultimate.data.disk.shrinking import shrunk
from penultimate.data.images import ChannelStatistics
from penultimate.data.readers.located import located
from penultimate.data.readers.opening import open_dataset
from penultimate.data.readers.prepared import _state, expect_sound, read_copy
from penultimate.engine.run import run
from penultimate.errors import DamagedFileError, RequestError
from penultimate.evaluation.request import Request
from penultimate.files import digest_file

PREPARATION = Preparation(40, 32, "bilinear", ChannelStatistics((0.5,) * 3, (0.25,) * 3))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = split_folders(tmp_path / "photos", ("ape", "bee"), 9, 4)
    photograph(0, 30, 20).save(root / "train" / "ape" / "small.png")
    return root


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "SHARD", 4)


def prepared(source: Path, to: Path, side: int = 40, **more: Any) -> list[str]:
    said: list[str] = []
    prepare(str(source), None, to, side, said.append, **more)
    return said


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != ".lock"}


def test_an_uncompressed_copy_is_the_source_resized(source: Path, tmp_path: Path) -> None:
    said = prepared(source, tmp_path / "copy", quality=0, workers=0)
    assert said[0].startswith("train: 19 of 19 images")
    ours, theirs = open_dataset(str(tmp_path / "copy")), open_dataset(str(source))
    assert "a prepared copy, the shorter side at 40 pixels, uncompressed" in ours.notes
    for split in ("train", "test"):
        mine, other = ours.splits[split], theirs.splits[split]
        for name in ("labels", "ids"):
            assert np.array_equal(getattr(mine, name), getattr(other, name))
        assert mine.class_names == other.class_names
        for row in range(len(other)):
            assert mine.name(row) == other.name(row)
            image = shrunk(colours_of(other, row, upright=True)[0], 40)
            assert np.array_equal(mine.image(row), np.asarray(image))
        shown, direct = (ListedImages(each, PREPARATION).in_memory() for each in (mine, other))
        assert np.array_equal(shown.images, direct.images)


def test_jpegs_are_those_of_the_quality(source: Path, tmp_path: Path) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    mine, other = (open_dataset(str(path)).splits["train"] for path in (tmp_path / "copy", source))
    buffer = io.BytesIO()
    shrunk(colours_of(other, 3, upright=True)[0], 40).save(buffer, "JPEG", quality=95)
    assert mine.image(3) == buffer.getvalue()
    assert len(mine.digest) == 64


def test_which_worker_does_what_changes_nothing_and_a_second_call_mends(source: Path, tmp_path: Path) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    whole = contents(tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "first")
    prepared(source, tmp_path / "copy", workers=2)
    assert contents(tmp_path / "copy") == whole
    path = tmp_path / "copy" / "train-00002.bin"
    path.write_bytes(b"?" + path.read_bytes()[1:])
    (tmp_path / "copy" / "test-00000.bin").unlink()
    with pytest.raises(DamagedFileError, match=r"test-00000.bin' is gone; to mend it: penultimate data pre"):
        open_dataset(str(tmp_path / "copy")).splits["test"]
    said = prepared(source, tmp_path / "copy", workers=0)
    assert [line for line in said if "mended" in line] == [
        "  mended: train-00002.bin",
        "  mended: test-00000.bin",
    ]
    assert contents(tmp_path / "copy") == whole


def damage(path: Path, how: str) -> None:
    """Change a file in one way or another; the time of its content stays as it was."""
    content, when = path.read_bytes(), path.stat()
    middle = len(content) // 2
    path.write_bytes(
        {
            "zeroed": content[:middle] + bytes(len(content) - middle),
            "flipped": content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :],
            "cut": content[:-1],
            "emptied": b"",
        }[how]
    )
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def heal(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Do what a message says."""
    _, *arguments = shlex.split(command)
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this very second are noted as compared too."""
    monkeypatch.setattr("penultimate.data.readers.prepared.SETTLED", -1.0)


@pytest.mark.long
@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("how", ["zeroed", "flipped", "cut", "emptied"])
@pytest.mark.parametrize("quality", [0, 95])
@pytest.mark.parametrize("name", ["train-00003.bin", "train-(index).npz"])
def test_a_damaged_file_of_a_copy_is_refused_before_an_image_of_it_is_read(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, quality: int, how: str
) -> None:
    """It is refused however often it was read before; the command that is named mends it and says so."""
    copy = tmp_path / "a copy"
    prepared(source, copy, quality=quality, workers=0)
    whole = contents(copy)
    for _ in range(2):
        assert len(open_dataset(str(copy)).splits["train"]) == 19
    damage(copy / name, how)
    with pytest.raises(DamagedFileError, match=re.escape(f"'{copy / name}' ")) as refused:
        open_dataset(str(copy)).splits["train"]
    assert len(open_dataset(str(copy)).splits["test"]) == 8
    assert main(["data", "check", str(copy)]) == 1
    told = capsys.readouterr().out
    assert "cannot be read: 1 of 2 splits (train)" in told
    assert f"'{copy / name}'" in told
    assert f"mended: {name}" in heal(str(refused.value).partition("to mend it: ")[2], capsys)
    healed = contents(copy)
    healed.pop("checked.json")
    assert healed == whole
    assert len(open_dataset(str(copy)).splits["train"]) == 19


@pytest.mark.usefixtures("settled")
def test_a_file_that_was_compared_is_not_read_again_until_it_changes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    read: list[str] = []

    def counted(path: Path) -> str:
        read.append(path.name)
        return digest_file(path)

    monkeypatch.setattr("penultimate.data.readers.prepared.digest_file", counted)
    open_dataset(str(tmp_path / "copy")).splits["test"]
    assert sorted(read) == ["test-(index).npz", "test-00000.bin", "test-00001.bin"]
    read.clear()
    open_dataset(str(tmp_path / "copy")).splits["test"]
    assert read == []
    (tmp_path / "copy/test-00001.bin").touch()
    open_dataset(str(tmp_path / "copy")).splits["test"]
    assert read == ["test-00001.bin"]
    damage(tmp_path / "copy/checked.json", "flipped")
    read.clear()
    open_dataset(str(tmp_path / "copy")).splits["test"]
    assert len(read) == 3
    read.clear()
    expect_sound([str(tmp_path / "copy"), str(source), "nowhere"])
    assert len(read) == 9


def test_a_file_that_has_just_been_written_is_read_each_time(source: Path, tmp_path: Path) -> None:
    """A second change within the same tick of the disk's clock would not show in its times."""
    prepared(source, tmp_path / "copy", workers=0)
    assert len(open_dataset(str(tmp_path / "copy")).splits["test"]) == 8
    assert not (tmp_path / "copy/checked.json").exists()


@pytest.mark.usefixtures("settled")
def test_verify_reads_what_the_times_say_is_whole(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a disk has lost a bit: nothing but the content tells."""
    copy, out = tmp_path / "copy", tmp_path / "runs"
    prepared(source, copy, workers=0)
    study = Request({"n": "timm:resnet18"}, {"t": str(copy)}).study()
    damage(copy / "test-00001.bin", "flipped")
    monkeypatch.setattr(
        "penultimate.data.readers.prepared._checked",
        lambda folder: {
            name: [facts["sha256"], *_state(folder / name)]  # type: ignore[misc]
            for of in read_copy(folder).files.values()  # type: ignore[union-attr]
            for name, facts in of.items()
        },
    )
    assert len(open_dataset(str(copy)).splits["test"]) == 8
    with pytest.raises(
        DamagedFileError, match=r"test-00001\.bin' is not what was written .* to mend it: pen"
    ):
        run(study, out, verify=True)


@pytest.mark.long
@pytest.mark.parametrize("how", ["zeroed", "emptied", "gone"])
@pytest.mark.parametrize("raw", [True, False])
def test_what_a_copy_says_of_itself_is_written_again(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, raw: bool
) -> None:
    """The message names the whole command, which the files beside the images tell; no image is made again."""
    copy = tmp_path / "copy"
    prepared(source, copy, quality=0 if raw else 95, workers=0)
    whole, made = contents(copy), (copy / "train-00000.bin").stat().st_mtime_ns
    if how == "gone":
        (copy / "prepared.json").unlink()
    else:
        damage(copy / "prepared.json", how)
    for command in (
        ["data", "check", str(copy)],
        ["evaluate", "--model", "timm:resnet18", "--data", str(copy)],
    ):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert f"{copy}/prepared.json' is " in told
    said = heal(told.partition("to write it again: ")[2], capsys)
    assert f"'{copy}/prepared.json' is " in said
    assert contents(copy) == whole
    assert (copy / "train-00000.bin").stat().st_mtime_ns == made
    (copy / "prepared.json").unlink()
    prepared(source, copy, 20, quality=0 if raw else 95, workers=0)  # of another size nothing is kept
    assert open_dataset(str(copy)).splits["train"].name(0)
    assert contents(copy).keys() == whole.keys()
    assert contents(copy)["train-00000.bin"] != whole["train-00000.bin"]


def test_where_nothing_tells_what_made_a_copy_the_command_has_gaps(source: Path, tmp_path: Path) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    for path in (tmp_path / "copy").glob("*.json"):
        path.write_text("{}", "utf-8")
    with pytest.raises(
        DamagedFileError, match=r"to write it again: penultimate data prepare DATA --to .* --size N"
    ):
        open_dataset(str(tmp_path / "copy"))


@pytest.mark.long
def test_a_killed_call_goes_on(tmp_path: Path) -> None:
    source = split_folders(tmp_path / "photos", ("ape", "bee"), 60, 20)
    code = (
        "import sys; from penultimate.data.disk import preparing; preparing.SHARD = 4\n"
        "preparing.prepare(sys.argv[1], None, sys.argv[2], 40, print, workers=1)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "copy")]
    environment = {**os.environ, "PYTHONPATH": "src"}
    with subprocess.Popen(command, env=environment) as process:
        wait_for((tmp_path / "copy" / "train-00003.json").exists, poll=0.005)
        process.send_signal(signal.SIGKILL)
    time.sleep(0.5)  # until its workers have ended too
    copy = read_copy(tmp_path / "copy")
    assert copy is not None
    assert not copy.whole
    with pytest.raises(RequestError, match="holds a copy that is not finished; go on: penultimate data prep"):
        open_dataset(str(tmp_path / "copy"))
    first = (tmp_path / "copy" / "train-00000.bin").stat().st_mtime_ns
    prepared(source, tmp_path / "copy", workers=0)
    assert (tmp_path / "copy" / "train-00000.bin").stat().st_mtime_ns == first
    prepared(source, tmp_path / "whole", workers=0)
    images = {path.name: path.read_bytes() for path in (tmp_path / "whole").glob("*.bin")}
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").glob("*.bin")} == images


def test_damaged_images_are_left_out_and_named(source: Path, tmp_path: Path) -> None:
    (source / "train" / "ape" / "003.jpg").write_bytes(b"no image")
    said = prepared(source, tmp_path / "copy", workers=0)
    assert said[0].startswith("train: 18 of 19 images")
    assert "left out: train/ape/003.jpg: " in said[1]
    opened = open_dataset(str(tmp_path / "copy"))
    assert any("1 train images could not be read" in note for note in opened.notes)
    whole = open_dataset(str(source)).splits["train"]
    labels = dict(zip((whole.name(row) for row in range(19)), whole.labels, strict=True))
    mine = opened.splits["train"]
    assert [labels[mine.name(row)] for row in range(18)] == mine.labels.tolist()


def test_a_copy_that_does_not_match_its_source_is_said(source: Path, tmp_path: Path) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    before = located("mine", str(tmp_path / "copy")).fingerprint
    assert located("mine", str(tmp_path / "copy")).fingerprint == before
    fill(source / "train" / "bee", 12, 1, seed=5)
    with pytest.raises(RequestError, match=r"data 'mine': .*does not match its source: the train images in"):
        located("mine", str(tmp_path / "copy"))
    with pytest.raises(RequestError, match=r"holds a prepared copy of .* give another folder, or empty it"):
        prepared(source, tmp_path / "copy", workers=0)
    source.rename(tmp_path / "elsewhere")
    assert "is not here to be compared with it" in located("mine", str(tmp_path / "copy")).note
    source.mkdir()  # as where a disk is not mounted
    assert "is not here to be compared with it" in located("mine", str(tmp_path / "copy")).note


def test_a_copy_of_another_data_set_is_refused(source: Path, tmp_path: Path) -> None:
    prepared(source, tmp_path / "copy", workers=0)
    with pytest.raises(RequestError, match="is a prepared copy of 'photos', not of 'imagenet'"):
        open_dataset("imagenet", tmp_path / "copy")


def test_a_folder_of_ones_own_may_be_called_as_a_published_data_set_is(source: Path, tmp_path: Path) -> None:
    own = source.rename(tmp_path / "pets")
    prepared(own, tmp_path / "copy", workers=0)
    opened = open_dataset(str(tmp_path / "copy"))
    assert (opened.entry, len(opened.splits["train"])) == (None, 19)
    assert read_copy(tmp_path / "copy").command.startswith(f"penultimate data prepare {own} --to ")  # type: ignore[union-attr]


def test_the_command(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = str(tmp_path / "copy")
    assert main(["data", "prepare", str(source), "--to", to, "--size", "40", "--raw"]) == 0
    assert "Whole in" in capsys.readouterr().out
    copy = read_copy(tmp_path / "copy")
    assert copy is not None
    assert copy.command == f"penultimate data prepare {source} --to {to} --size 40 --raw"
    assert main(["data", "prepare", str(source), "--to", to, "--size", "0"]) == 2
    assert "--size is the shorter side" in capsys.readouterr().err
    with Image.open(source / "train" / "ape" / "small.png") as small:
        assert np.array_equal(open_dataset(to).splits["train"].image(9), np.asarray(small))


def test_a_copy_of_images_that_were_published_cropped_is_not_cropped_again(tmp_path: Path) -> None:
    imagenet_c(tmp_path / "there")
    for path in tmp_path.glob("there/imagenet-c/**/*.JPEG"):
        photograph(0, 40, 40).save(path)
    prepare("imagenet_c", tmp_path / "there", tmp_path / "copy", 40, lambda text: None, 0, workers=0)
    ours, theirs = (open_dataset("imagenet_c", tmp_path / root).splits["fog/3"] for root in ("copy", "there"))
    shown = [ListedImages(listing, PREPARATION).in_memory().images for listing in (ours, theirs)]
    assert np.array_equal(*shown)
