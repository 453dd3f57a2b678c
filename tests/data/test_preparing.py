"""`penultimate data prepare`: the copy is its source, resized; it is resumed, and checked against it."""

from __future__ import annotations

import io
import os
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
from tests.evaluation.pictures import fill, split_folders

from penultimate.cli import main
from penultimate.data import preparing
from penultimate.data.images import ChannelStatistics
from penultimate.data.listed import ListedImages
from penultimate.data.loading import colours_of
from penultimate.data.located import located
from penultimate.data.opening import open_dataset
from penultimate.data.preparation import Preparation
from penultimate.data.prepared import read_copy
from penultimate.data.preparing import prepare
from penultimate.data.shrinking import shrunk
from penultimate.errors import DamagedFileError, RequestError

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
    with pytest.raises(
        DamagedFileError, match=r"test-00000.bin' is gone; make it anew: penultimate data pre"
    ):
        open_dataset(str(tmp_path / "copy")).splits["test"]
    prepared(source, tmp_path / "copy", workers=0)
    assert contents(tmp_path / "copy") == whole


@pytest.mark.long
def test_a_killed_call_goes_on(tmp_path: Path) -> None:
    source = split_folders(tmp_path / "photos", ("ape", "bee"), 60, 20)
    code = (
        "import sys; from penultimate.data import preparing; preparing.SHARD = 4\n"
        "preparing.prepare(sys.argv[1], None, sys.argv[2], 40, print, workers=1)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "copy")]
    environment = {**os.environ, "PYTHONPATH": "src"}
    with subprocess.Popen(command, env=environment) as process:
        while not (tmp_path / "copy" / "train-00003.json").exists():
            time.sleep(0.005)
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
    assert "is not here to be compared with it" in located("mine", str(tmp_path / "copy")).told
    source.mkdir()  # as where a disk is not mounted
    assert "is not here to be compared with it" in located("mine", str(tmp_path / "copy")).told


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
