"""Images that look alike: those that were resized, saved again or brightened, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance
from tests.data.test_inspection import command

from penultimate.data.readers.near_copies import perceptual_hash


def photograph(seed: int, side: int = 96) -> Image.Image:
    """Soft blobs, as large as things in photographs are."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (7, 7, 3), dtype=np.uint8))
    return small.resize((side, side), Image.Resampling.BICUBIC)


def differing(one: Image.Image, other: Image.Image) -> int:
    first, second = perceptual_hash(one), perceptual_hash(other)
    assert first is not None
    assert second is not None
    return int(np.bitwise_count(first ^ second).sum())


def test_changes_that_one_does_not_see_change_few_signs(tmp_path: Path) -> None:
    for seed in range(10):
        image = photograph(seed)
        image.save(tmp_path / "x.jpg", quality=60)
        for other in (
            Image.open(tmp_path / "x.jpg"),
            image.resize((50, 50)),
            ImageEnhance.Brightness(image).enhance(0.9),
        ):
            assert differing(image, other) <= 4
        assert min(differing(image, photograph(other)) for other in range(20, 60)) > 8
    assert perceptual_hash(Image.new("RGB", (9, 9), (200, 10, 30))) is None


def test_the_hash_is_that_of_zauner() -> None:
    """The literal sum over pixels of the cosines, of the lowest 8 x 8 frequencies."""
    grey = np.asarray(photograph(3).convert("L").resize((32, 32), Image.Resampling.LANCZOS), float)
    at = np.arange(32)
    cosines = np.cos(np.pi * (2 * at[None] + 1) * at[:8, None] / 64)
    low = cosines @ grey @ cosines.T
    assert np.array_equal(np.unpackbits(perceptual_hash(photograph(3))).reshape(8, 8), low > np.median(low))  # type: ignore[arg-type]


def test_near_copies_are_named_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split, first in (("train", 0), ("test", 4)):
        for name in ("ant", "bee"):
            (tmp_path / split / name).mkdir(parents=True)
            for number in range(first, first + 4):
                photograph(number + 50 * (name == "bee")).save(tmp_path / split / name / f"{number}.png")
    photograph(1).resize((64, 64)).save(tmp_path / "test/bee/again.jpg")
    photograph(52).resize((80, 80)).save(tmp_path / "train/ant/odd.jpg")
    Image.new("RGB", (9, 9)).save(tmp_path / "test/bee/black.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "train/bee/black.png")
    assert "near copies" not in command(capsys, "data", "check", tmp_path)[1]
    code, out, _ = command(capsys, "data", "check", tmp_path, "--near-copies")
    assert code == 0
    found = (
        "near copies: 1 test image of 10 looks like train images: 'test/bee/again.jpg' and 'train/ant/1.png'"
    )
    assert found in out
    assert "1 train image of 10 looks like one of another class: 'train/ant/odd.jpg' and 'train/bee/2." in out
