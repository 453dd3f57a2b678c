"""Images decoded in worker processes: equal to torchvision's and timm's, whatever the number of workers."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.data.photographs import folder_of, hard_files, listing_of, photograph
from torchvision import transforms

from penultimate.data.augmentation.transforms import normalise
from penultimate.data.decoding import Interpolation
from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import PenultimateError

IMAGENET = ChannelStatistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SMALL = Preparation(40, 32, "bilinear", IMAGENET)
SIZES = ((90, 70), (70, 90), (64, 64), (33, 200), (41, 40), (20, 15))


def files_of_sizes(root: Path) -> tuple[str, ...]:
    for i, size in enumerate(SIZES):
        photograph(i, *size).save(root / f"{i}.png")
    return tuple(f"{i}.png" for i in range(len(SIZES)))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("resize", "crop"), [(40, 32), (37, 37), (35, 20)])
def test_pixel_for_pixel_as_by_torchvision(
    tmp_path: Path, interpolation: Interpolation, resize: int, crop: int
) -> None:
    names = files_of_sizes(tmp_path)
    chain = transforms.Compose(
        [
            transforms.Resize(resize, transforms.InterpolationMode(interpolation)),
            transforms.CenterCrop(crop),
            transforms.ToTensor(),
            transforms.Normalize(IMAGENET.mean, IMAGENET.std),
        ]
    )
    wanted = torch.stack([chain(Image.open(tmp_path / name).convert("RGB")) for name in names])
    preparation = Preparation(resize, crop, interpolation, IMAGENET)
    (batch,) = decoded(listing_of(tmp_path, names, np.zeros(len(names))), [preparation], workers=0)
    torch.testing.assert_close(normalise(batch.prepared(preparation), IMAGENET), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("crop", [32, 48])
def test_images_that_are_cropped_already_are_not_cropped_again(tmp_path: Path, crop: int) -> None:
    photograph(0, 32, 32).save(tmp_path / "x.png")
    listing = replace(listing_of(tmp_path, ("x.png",), np.zeros(1)), cropped=True)
    preparation = Preparation(crop + 8, crop, "bicubic", IMAGENET)
    (batch,) = decoded(listing.subset([0]), [preparation], workers=0)
    whole = Image.open(tmp_path / "x.png").resize((crop, crop), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(batch.prepared(preparation)[0], whole)
    assert replace(listing, cropped=False).digest != listing.digest


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    listing = folder_of(tmp_path, 13)
    (tmp_path / "004.jpg").write_bytes((tmp_path / "004.jpg").read_bytes()[:300])
    squashed = Preparation(24, 24, "bicubic", IMAGENET, squash=True)
    ways = [list(decoded(listing, [SMALL, squashed], 3, workers)) for workers in (0, 1, 3)]
    for batches in ways[1:]:
        for one, other in zip(ways[0], batches, strict=True):
            assert (one.start, one.stop, one.left_out) == (other.start, other.stop, other.left_out)
            assert np.array_equal(one.rows, other.rows)
            assert all(np.array_equal(one.images[each], other.images[each]) for each in one.images)
    assert np.concatenate([batch.rows for batch in ways[0]]).tolist() == [i for i in range(13) if i != 4]
    ((row, why),) = [each for batch in ways[0] for each in batch.left_out]
    assert row == 4
    assert "004.jpg' is not a complete image" in why


def test_every_kind_of_file_is_read_and_what_is_ignored_is_said(tmp_path: Path) -> None:
    names = hard_files(tmp_path)
    (batch,) = decoded(listing_of(tmp_path, names, np.zeros(len(names))), [SMALL], workers=0)
    assert batch.rows.tolist() == list(range(len(names)))
    assert not batch.left_out
    remarked = {names[row]: remark for row, remark in batch.remarks}
    assert remarked.keys() == {"animated.gif", "turned.jpg", "alpha.png"}


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_text("no image")
    header = b"IHDR" + struct.pack(">IIBBBBB", 30000, 30000, 1, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + bytes(4) + b"IDAT"
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)
    photograph(0).save(tmp_path / "fine.png")
    names = ("no.jpg", "bomb.png", "fine.png", "gone.png")
    (batch,) = decoded(listing_of(tmp_path, names, np.arange(4)), [SMALL], workers=0)
    assert batch.rows.tolist() == [2]
    assert [row for row, _ in batch.left_out] == [0, 1, 3]
    assert "larger than Pillow reads: Image size (900000000 pixels)" in batch.left_out[1][1]
    (none,) = decoded(listing_of(tmp_path, names[:2], np.arange(2)), [SMALL], workers=0)
    assert none.prepared(SMALL).shape == (0, 32, 32, 3)


def test_a_worker_that_is_killed_is_said(tmp_path: Path) -> None:
    before = {*_children(os.getpid())}
    batches = decoded(folder_of(tmp_path, 40), [SMALL], 1, 1)
    next(batches)
    (child,) = {*_children(os.getpid())} - before
    os.kill(child, signal.SIGKILL)
    with pytest.raises(PenultimateError, match="a process that decodes images was killed"):
        list(batches)


PARENT = """
import sys, time
from pathlib import Path
from tests.data.photographs import folder_of
from tests.data.test_loading import SMALL
from penultimate.data.disk.loading import decoded
batches = decoded(folder_of(Path(sys.argv[1]), 40), [SMALL], 1, 2)
next(batches)
print("reading", flush=True)
time.sleep(60)
"""


@pytest.mark.long
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"reading\n"
    children = _children(parent.pid)
    assert len(children) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 3
    while any(_runs(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_runs(child) for child in children)


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(child) for child in listed.split()]


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
