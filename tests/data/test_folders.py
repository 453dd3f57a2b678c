"""Published test sets on disk: labels by wnid, lazily decoded, and what a broken folder is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penultimate import RequestError
from penultimate.data.folders import corrupted_folders, image_folders
from penultimate.errors import DamagedFileError

WNIDS = [f"n0144{number:04}" for number in range(12)]


def save(path: Path, level: int, size: tuple[int, int] = (224, 224)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (level, level, level)).save(path, quality=95)


@pytest.fixture
def sketch(tmp_path: Path) -> Path:
    """Three of twelve classes, files out of order, a README beside them as in -R."""
    for label, count in ((7, 2), (2, 3), (11, 1)):
        for index in reversed(range(count)):
            save(tmp_path / "set" / WNIDS[label] / f"{index}.JPEG", 20 * label + index)
    (tmp_path / "set" / "README.txt").write_text("read me")
    (tmp_path / "set" / WNIDS[2] / ".DS_Store").write_text("")
    return tmp_path / "set"


@pytest.fixture
def corrupted(tmp_path: Path) -> Path:
    for severity in (1, 3):
        for label in (0, 1):
            save(tmp_path / "c" / "fog" / str(severity) / WNIDS[label] / "x.JPEG", 40 * severity + label)
    save(tmp_path / "c" / "blur" / "glass_blur" / "1" / WNIDS[4] / "y.JPEG", 200)
    return tmp_path / "c"


def test_folders_are_the_class_subset_in_the_networks_order(sketch: Path) -> None:
    found = image_folders(sketch, WNIDS)
    assert len(found) == 6
    np.testing.assert_array_equal(found.labels, [2, 2, 2, 7, 7, 11])
    np.testing.assert_array_equal(found.classes, [2, 7, 11])
    batches = list(found.batches(4))
    assert [len(batch) for batch in batches] == [4, 2]
    np.testing.assert_array_equal(np.concatenate([batch.ids for batch in batches]), np.arange(6))
    assert batches[0].class_names == tuple(WNIDS)
    levels = np.concatenate([batch.images.mean((1, 2, 3)) for batch in batches])
    np.testing.assert_allclose(levels, [40, 41, 42, 140, 141, 220], atol=1)


def test_v2_numbers_its_folders(tmp_path: Path) -> None:
    for label in (10, 2, 0):
        save(tmp_path / str(label) / "image.jpeg", label)
    np.testing.assert_array_equal(image_folders(tmp_path, WNIDS).labels, [0, 10, 2])
    save(tmp_path / "12" / "image.jpeg", 0)
    with pytest.raises(RequestError, match=r"'12' is not one of the 12 classes.*Numbers run from 0"):
        image_folders(tmp_path, WNIDS)


def test_v2_counts_the_sorted_wnids_whatever_the_networks_order(tmp_path: Path) -> None:
    for number in (0, 2, 10):
        save(tmp_path / str(number) / "image.jpeg", 10 * number)
    (batch,) = image_folders(tmp_path, WNIDS[::-1]).batches()
    np.testing.assert_array_equal(batch.labels, [11, 1, 9])
    assert [batch.class_names[label] for label in batch.labels] == [WNIDS[0], WNIDS[10], WNIDS[2]]
    # Other names have no such order: they count as they stand.
    np.testing.assert_array_equal(image_folders(tmp_path, [*"lkjihgfedcba"]).labels, [0, 10, 2])


def test_what_macos_leaves_beside_an_image_is_none(sketch: Path) -> None:
    (sketch / WNIDS[2] / "._0.JPEG").write_bytes(b"resource fork")
    assert len(next(image_folders(sketch, WNIDS).batches(3))) == 3
    save(sketch / "._n/x.JPEG", 0)
    assert len(image_folders(sketch, WNIDS)) == 6


def test_links_are_followed_and_one_that_leads_nowhere_is_named(sketch: Path) -> None:
    (sketch / WNIDS[5]).symlink_to(sketch / WNIDS[7])
    np.testing.assert_array_equal(image_folders(sketch, WNIDS).labels, [2, 2, 2, 5, 5, 7, 7, 11])
    for lost in ("gone", WNIDS[6]):  # the second leads to itself
        (sketch / WNIDS[6]).symlink_to(sketch / lost)
        with pytest.raises(RequestError, match=rf"{WNIDS[6]}' is a link to '.*{lost}', which is not there"):
            image_folders(sketch, WNIDS)
        (sketch / WNIDS[6]).unlink()


def test_nothing_is_decoded_before_its_batch(sketch: Path) -> None:
    (sketch / WNIDS[11] / "0.JPEG").write_bytes(b"no image")
    batches = image_folders(sketch, WNIDS).batches(5)
    assert len(next(batches)) == 5
    with pytest.raises(DamagedFileError, match=rf"{WNIDS[11]}/0\.JPEG' is not a complete image"):
        next(batches)


def test_a_file_cut_short_or_gone_is_named(sketch: Path) -> None:
    path = sketch / WNIDS[2] / "1.JPEG"
    path.write_bytes(path.read_bytes()[:300])
    found = image_folders(sketch, WNIDS)
    with pytest.raises(DamagedFileError, match=r"1\.JPEG' is not a complete image"):
        list(found.batches(2))
    path.unlink()
    with pytest.raises(DamagedFileError, match=r"1\.JPEG' was there .* is gone"):
        list(found.batches(2))


@pytest.mark.parametrize("size", [(300, 400), (500, 333), (100, 80), (225, 224)])
def test_other_sizes_are_resized_and_their_middle_is_taken(tmp_path: Path, size: tuple[int, int]) -> None:
    """A gradient across keeps its middle: the crop's mean is the image's, its slope that of the resizing."""
    width, height = size
    ramp = np.tile(np.linspace(0, 255, width)[None, :, None], (height, 1, 3)).astype(np.uint8)
    (tmp_path / WNIDS[0]).mkdir()
    Image.fromarray(ramp).save(tmp_path / WNIDS[0] / "a.png")
    (batch,) = image_folders(tmp_path, WNIDS).batches()
    assert batch.images.shape == (1, 224, 224, 3)
    line = batch.images[0, 100, :, 0].astype(float)
    assert line.mean() == pytest.approx(127.5, abs=1.5)
    enlarged = 256 / min(size)
    assert np.polyfit(np.arange(224), line, 1)[0] == pytest.approx(255 / (width * enlarged), rel=0.02)


@pytest.mark.parametrize("size", [(499, 375), (375, 499), (224, 300), (224, 224), (511, 260), (97, 131)])
def test_pixels_are_those_of_torchvisions_resize_and_crop(tmp_path: Path, size: tuple[int, int]) -> None:
    """An image of 224 pixels too is enlarged to 256; the longer side is cut down, a half crop is rounded."""
    transforms = pytest.importorskip("torchvision.transforms")
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    (tmp_path / WNIDS[0]).mkdir()
    image.save(tmp_path / WNIDS[0] / "a.png")
    (batch,) = image_folders(tmp_path, WNIDS).batches()
    usual = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
    np.testing.assert_array_equal(batch.images[0], np.asarray(usual(image)))


def test_published_corrupted_images_stay_as_they_are(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    (tmp_path / "fog/2" / WNIDS[0]).mkdir(parents=True)
    Image.fromarray(noise).save(tmp_path / "fog/2" / WNIDS[0] / "a.png")
    (batch,) = corrupted_folders(tmp_path, "fog", 2, WNIDS, crop=64).batches()
    np.testing.assert_array_equal(batch.images[0], noise)


def test_grey_palette_and_printers_files_become_colour(tmp_path: Path) -> None:
    (tmp_path / WNIDS[0]).mkdir()
    Image.new("L", (224, 224), 70).save(tmp_path / WNIDS[0] / "grey.png")
    Image.new("P", (224, 224), 0).save(tmp_path / WNIDS[0] / "palette.png")
    Image.new("CMYK", (224, 224), (0, 255, 255, 0)).save(tmp_path / WNIDS[0] / "printed.jpg", quality=95)
    (batch,) = image_folders(tmp_path, WNIDS).batches()
    assert batch.images.shape == (3, 224, 224, 3)
    assert set(batch.images[0].flat) == {70}
    np.testing.assert_allclose(batch.images[2].mean((0, 1)), [254, 0, 0], atol=2)


def test_whatever_pillow_says_of_a_damaged_file_is_about_that_file(
    sketch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parsers let slip errors of Python's own: here what a flipped byte of a TIFF led to."""

    def opened(path: Path) -> Any:
        raise TypeError("'bytes' object cannot be interpreted as an integer")

    monkeypatch.setattr(Image, "open", opened)
    with pytest.raises(DamagedFileError, match=r"0\.JPEG' is not a complete image: 'bytes' object"):
        next(image_folders(sketch, WNIDS).batches())


def test_a_corruption_at_a_severity(corrupted: Path) -> None:
    found = corrupted_folders(corrupted, "fog", 3, WNIDS)
    (batch,) = found.batches()
    np.testing.assert_array_equal(batch.labels, [0, 1])
    np.testing.assert_allclose(batch.images.mean((1, 2, 3)), [120, 121], atol=1)
    # The archives' groups may be there, as they unpack.
    np.testing.assert_array_equal(corrupted_folders(corrupted, "glass_blur", 1, WNIDS).labels, [4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda root: corrupted_folders(root / "c", "fog", 2, WNIDS), "lacks severity 2; it holds 1, 3"),
        (
            lambda root: corrupted_folders(root / "c", "snow", 1, WNIDS),
            "no folder 'snow'; it holds blur, fog",
        ),
        (lambda root: corrupted_folders(root / "c", "fogg", 1, WNIDS), "Did you mean 'fog'"),
        (lambda root: corrupted_folders(root / "c", "fog", 0, WNIDS), "from 1 to 5, not 0"),
        (lambda root: corrupted_folders(root / "d", "fog", 1, WNIDS), "'.*d' does not exist"),
        (
            lambda root: image_folders(root / "c/fog/1", WNIDS[1:]),
            "'n01440000' is not one of the 11 classes. Did",
        ),
        (lambda root: image_folders(root / "c/fog/1", ["a", "a"]), "2 names, 1 different"),
        (lambda root: image_folders(root / "c/fog/1" / WNIDS[0], WNIDS), "holds no folders"),
        (lambda root: image_folders(root / "c/fog/1" / WNIDS[0] / "x.JPEG", WNIDS), "is a file"),
        (lambda root: image_folders(root / "empty", WNIDS), "holds no image"),
        (lambda root: image_folders(root / "c/fog/1", WNIDS, resize=100), "resize at least crop"),
        (lambda root: image_folders(root / "c/fog/1", WNIDS, crop="224"), "got resize=256, crop='224'"),
        (lambda root: next(image_folders(root / "c/fog/1", WNIDS).batches(0)), "at least one image, not 0"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    corrupted: Path, call: Callable[[Path], Any], message: str
) -> None:
    root = corrupted.parent
    (root / "empty" / WNIDS[0]).mkdir(parents=True)
    with pytest.raises(RequestError, match=message):
        call(root)


def test_predictions_on_a_subset_are_scored_among_its_classes(sketch: Path) -> None:
    from penultimate.metrics.accuracy import subset_accuracy

    found = image_folders(sketch, WNIDS)
    logits = np.zeros((6, 12))
    logits[:, 3] = 9  # a class that the set does not show
    logits[np.arange(6), [2, 2, 7, 7, 7, 11]] = 1
    assert subset_accuracy(logits, found.labels, found.classes) == pytest.approx(5 / 6)
    shutil.rmtree(sketch / WNIDS[7])
    assert len(image_folders(sketch, WNIDS)) == 4
