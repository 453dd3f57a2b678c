"""Parts that are cut out in batches, beside Pillow's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.data.photographs import folder_of, photograph
from torchvision.transforms import v2

from penultimate.data.disk.cropping import box_of, cropped
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.preparation import Preparation
from penultimate.data.disk.resident import Resident, expect_room
from penultimate.data.disk.shrinking import shrunk
from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.errors import RequestError

CPU = torch.device("cpu")
PAPER = (0.1, 1.0)
STATISTICS = ChannelStatistics((0.5,) * 3, (0.25,) * 3)


def held(images: list[Image.Image], size: int) -> Resident:
    arrays = [np.asarray(image) for image in images]
    sizes = torch.tensor([array.shape[:2] for array in arrays])
    counts = sizes.prod(1)
    pixels = torch.from_numpy(np.concatenate([array.reshape(-1, 3) for array in arrays]))
    return Resident(pixels, counts.cumsum(0) - counts, sizes, size, PAPER, 3)


@pytest.mark.parametrize("size", [16, 48, 200])
def test_parts_are_pillows_across_and_then_down(size: int) -> None:
    sizes = [(90, 70), (70, 90), (64, 64), (300, 20), (20, 300), (1, 1), (333, 251), (3, 2)]
    images = [photograph(seed, *ends) for seed, ends in enumerate(sizes)]
    resident = held(images, size)
    rows, differing = torch.tensor([5, 0, 3, 3, 1, 2, 6, 4, 7]), []
    for epoch in range(8):
        for shown, row in zip(resident.shown(epoch, rows).numpy(), rows.tolist(), strict=True):
            top, left, height, width = box = box_of(*images[row].size, PAPER, 3, epoch, row)
            part = images[row].crop((left, top, left + width, top + height))
            across = part.resize((size, height), Image.Resampling.BILINEAR)
            assert np.array_equal(shown, across.resize((size, size), Image.Resampling.BILINEAR)), (row, box)
            distance = abs(shown.astype(int) - cropped(images[row], box, size).astype(int))
            assert distance.max() <= 1
            differing.append(distance.mean())
    assert np.mean(differing) < 1 / 25


def test_a_batch_larger_than_is_resized_at_once_is_the_same(tmp_path: Path) -> None:
    resident = held([photograph(seed, 40, 30) for seed in range(3)], 16)
    rows = torch.arange(150) % 3
    together = resident.shown(0, rows)
    assert together.shape == (150, 16, 16, 3)
    assert torch.equal(together, torch.cat([resident.shown(0, row.view(1)) for row in rows]))


def test_images_on_disk_are_held_with_their_shorter_side_shrunk(tmp_path: Path) -> None:
    listing = folder_of(tmp_path, images=9)
    images = ListedImages(listing, Preparation(40, 32, "bilinear", STATISTICS))
    resident = Resident.of(images, PAPER, 3, CPU)
    expected = [v2.Resize(40, antialias=True)(Image.open(path)) for path in listing.source.files]
    assert resident.sizes.tolist() == [[image.height, image.width] for image in expected]
    assert torch.equal(resident.shown(1, torch.arange(9)), held(expected, 32).shown(1, torch.arange(9)))
    small = Image.new("RGB", (30, 20))
    assert shrunk(small, 40) is small


def test_images_in_memory_are_shown_in_their_own_size() -> None:
    pixels = np.stack([np.asarray(photograph(seed, 24, 24)) for seed in range(4)])
    images = ImageSet(pixels, np.arange(4), np.arange(4), tuple("abcd"))
    shown = Resident.of(images, (1.0, 1.0), 0, CPU).shown(0, torch.arange(4))
    assert shown.shape == (4, 24, 24, 3)
    grey = ImageSet(pixels[..., :1], np.arange(4), np.arange(4), tuple("abcd"))
    assert torch.equal(Resident.of(grey, (1.0, 1.0), 0, CPU).shown(0, torch.arange(4)), shown[..., :1])


def test_what_does_not_fit_is_said_with_what_would() -> None:
    with pytest.raises(RequestError, match=r"about 1,024.0 GB, and [\d.]+ GB are free: .*resize=\d+"):
        expect_room(2**10 * 10**9, 10**6, 256, CPU)


MEMORY = """
from pathlib import Path
import numpy as np, torch
from penultimate.data.images import ChannelStatistics
from penultimate.data.disk.listed import ListedImages
from penultimate.data.listing import Listing
from penultimate.data.disk.preparation import Preparation
from penultimate.data.disk.resident import Resident

class Grey:
    files = []
    def __len__(self): return 400
    def __getitem__(self, place): return np.full((400, 500, 3), place % 256, np.uint8)
    def name(self, place): return str(place)

def taken(what):
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0]) * 1024

rows = np.arange(400)
images = ListedImages(
    Listing(Grey(), rows, rows % 2, rows, ("a", "b")),
    Preparation(400, 32, "bilinear", ChannelStatistics((0.5,) * 3, (0.25,) * 3)),
)
before = taken("VmRSS")
held = Resident.of(images, (1.0, 1.0), 0, torch.device("cpu"))
assert [int(held.pixels[start, 0]) for start in held.starts[[0, 1, 255, 399]]] == [0, 1, 255, 143]
print((taken("VmHWM") - before) / held.pixels.numel())
"""


@pytest.mark.long
def test_no_second_copy_of_all_images_is_in_memory() -> None:
    told = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert 0.9 < float(told.stdout) < 1.4
