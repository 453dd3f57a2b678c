"""Image files of every kind: what they read as, against NumPy's arithmetic, and what is said of the rest."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penultimate import RequestError
from penultimate.data.decoding import DAMAGED_EXIF, MOST_PIXELS, TURNED, read_colours
from penultimate.errors import DamagedFileError

SIDE = 16


def png(levels: np.ndarray, colour: int, shape: tuple[int, int] | None = None) -> bytes:
    """A PNG of 16 bits, byte by byte; `shape` is what its header claims."""
    height, width = shape or levels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in levels)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )


def read(path: Path, upright: bool = False) -> np.ndarray:
    return np.asarray(read_colours(path, upright)[0])


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (SIDE, SIDE + 4, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"quality": 40, "subsampling": "4:2:0"},
        {"quality": 95, "subsampling": "4:2:2"},
        {"quality": 95, "subsampling": "4:4:4"},
        {"quality": 100, "subsampling": "4:2:0", "progressive": True},
        {"quality": 75, "restart_marker_rows": 1},
        {"keep_rgb": True},
    ],
)
@pytest.mark.parametrize("size", [(48, 32), (37, 51), (1, 9), (500, 375)])
def test_a_jpegs_pixels_are_pillows(tmp_path: Path, how: dict[str, Any], size: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    coarse = generator.integers(0, 256, (size[1] // 4 + 1, size[0] // 4 + 1, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    path = tmp_path / "a.jpg"
    image.save(path, "JPEG", **how)
    with Image.open(path) as file:
        file.load()
        expected = np.asarray(file)
    np.testing.assert_array_equal(read(path), expected)
    content = path.read_bytes()
    np.testing.assert_array_equal(read_colours(Path("within an archive"), content=content)[0], expected)
    path.write_bytes(content + b"what a camera left behind it")
    np.testing.assert_array_equal(read(path), expected)


def test_sixteen_bits_keep_their_high_byte_in_grey_as_in_colour(tmp_path: Path) -> None:
    levels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    for colour, repeats in ((0, None), (2, 3), (4, 2), (6, 4)):  # grey, RGB, grey with alpha, RGBA
        stacked = levels if repeats is None else np.stack([levels] * repeats, -1)
        path = tmp_path / f"{colour}.png"
        path.write_bytes(png(stacked, colour))
        np.testing.assert_array_equal(read(path), np.stack([levels >> 8] * 3, -1))


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32"])
def test_levels_of_unknown_range_are_refused(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.arange(64).reshape(8, 8).astype(dtype)).save(path, "TIFF")
    with pytest.raises(RequestError, match=r"a\.png' is a TIFF .* what is white among them is unknown"):
        read(path)


TURNINGS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda a: a,
    lambda a: a[:, ::-1],
    lambda a: a[::-1, ::-1],
    lambda a: a[::-1],
    lambda a: a.transpose(1, 0, 2),
    lambda a: np.rot90(a, -1),
    lambda a: np.rot90(a, 2).transpose(1, 0, 2),
    lambda a: np.rot90(a),
)
"""What EXIF's eight orientations ask for, in NumPy's terms."""


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("ending", "how"),
    [
        ("jpg", {"quality": 95}),
        ("jpg", {"quality": 95, "keep_rgb": True}),
        ("jpg", {"format": "MPO", "save_all": True, "quality": 95}),
        ("png", {}),
        ("webp", {"lossless": True}),
        ("avif", {"quality": 100, "subsampling": "4:4:4"}),
        ("tif", {}),
        ("tif", {"compression": "tiff_lzw"}),
        ("tif", {"compression": "tiff_deflate", "save_all": True}),
    ],
)
def test_every_format_is_turned_exactly_once(
    tmp_path: Path, ending: str, how: dict[str, Any], orientation: int
) -> None:
    """The corners of a picture say how it lies. Pillow itself turns a TIFF as it decodes it."""
    scene = np.full((32, 64, 3), 90, np.uint8)
    scene[:16, :16], scene[:16, -16:], scene[-16:, :16] = (250, 0, 0), (0, 250, 0), (0, 0, 250)
    path = tmp_path / f"a.{ending}"
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(scene).save(path, exif=exif, **how)
    image, remarks = read_colours(path)
    expected = TURNINGS[orientation - 1](scene)
    assert image.size == expected.shape[1::-1]
    assert np.abs(np.asarray(image).astype(int) - expected).mean() < 4  # JPEGs and AVIFs lose some
    by_pillow = ending == "tif"
    assert remarks == ([TURNED] if orientation > 1 and not by_pillow else [])
    within, _ = read_colours(Path("archive.zip/a"), content=path.read_bytes())
    np.testing.assert_array_equal(np.asarray(within), np.asarray(image))
    with Image.open(path) as file:  # as torchvision's ImageFolder reads it
        np.testing.assert_array_equal(read(path, upright=False), np.asarray(file.convert("RGB")))


EXIF_DAMAGE = {
    "cut within its directory": b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01",
    "a directory that lies elsewhere": b"Exif\0\0MM\0*\0\0\xff\xff",
    "a tag beyond its end": b"Exif\0\0II*\0\x08\0\0\0\x01\0\x0f\x01\x02\0\xff\0\0\0\x80\0\0\0\0\0\0\0",
    "empty": b"Exif\0\0",
}


@pytest.mark.parametrize("exif", EXIF_DAMAGE.values(), ids=EXIF_DAMAGE)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_damaged_exif_is_a_remark_and_the_pixels_are_read(
    tmp_path: Path, noise: np.ndarray, kind: str, exif: bytes, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "a.image"
    Image.fromarray(noise).save(path, kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    image, remarks = read_colours(path)
    assert image.size == noise.shape[1::-1]
    assert not recwarn.list
    if exif != EXIF_DAMAGE["empty"]:
        assert len(remarks) == 1
        assert remarks[0] == DAMAGED_EXIF or "though Pillow warns: " in remarks[0]


def test_alpha_is_dropped_whatever_lies_beneath(tmp_path: Path, noise: np.ndarray) -> None:
    alpha = np.arange(noise[..., 0].size, dtype=np.uint8).reshape(noise.shape[:2])
    grey = noise[..., 0]
    palette = Image.fromarray(grey // 64, mode="P")
    colours = np.arange(12, dtype=np.uint8).reshape(4, 3) * 20
    palette.putpalette(colours.tobytes())
    files = {
        "rgba": (Image.fromarray(np.dstack([noise, alpha])), noise, {}),
        "la": (Image.fromarray(np.dstack([grey, alpha])), np.dstack([grey] * 3), {}),
        "palette": (palette, colours[grey // 64], {"transparency": bytes([0, 128, 255, 7])}),
        "single": (palette, colours[grey // 64], {"transparency": 1}),
    }
    for name, (image, expected, options) in files.items():
        path = tmp_path / f"{name}.png"
        image.save(path, **options)
        np.testing.assert_array_equal(read(path), expected)
        assert read_colours(path)[1] == ["have an alpha channel, which is dropped"]


@pytest.mark.parametrize(
    ("side", "message"),
    [(13_000, f"is 13000 x 13000, more than {MOST_PIXELS:,} pixels"), (60_000, "larger than Pillow reads")],
)
def test_decompression_bombs_are_refused_before_they_are_unpacked(
    tmp_path: Path, side: int, message: str
) -> None:
    """A megabyte of zeros that claims to be gigapixels; the first is one of those Pillow only warns of."""
    path = tmp_path / "bomb.png"
    path.write_bytes(png(np.zeros((9, 9)), 0, (side, side)))
    with pytest.raises(RequestError, match=message):
        read(path)


def test_files_without_an_image(tmp_path: Path, noise: np.ndarray) -> None:
    Image.fromarray(noise).save(tmp_path / "a.bmp")
    flat = bytearray((tmp_path / "a.bmp").read_bytes())
    flat[18:22] = bytes(4)  # its width
    contents = {"empty": b"", "text": b"<html>404</html>", "flat": bytes(flat)}
    why = {"empty": "it is empty", "text": "its first bytes are of no format that Pillow reads", "flat": ""}
    for name, content in contents.items():
        (tmp_path / f"{name}.png").write_bytes(content)
        with pytest.raises(DamagedFileError, match=rf"{name}\.png' is not a complete image: {why[name]}"):
            read(tmp_path / f"{name}.png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF", "AVIF"])
def test_damage_is_an_image_or_a_sentence(tmp_path: Path, noise: np.ndarray, kind: str) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(noise).save(path, kind)
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for place in generator.integers(0, min(len(whole), generator.choice([32, 100_000])), 3):
            damaged[place] = generator.integers(256)
        path.write_bytes(damaged[: generator.integers(1, len(damaged)) if generator.random() < 0.2 else None])
        try:  # a warning of Pillow's own would be an error here
            assert read(path).shape[2] == 3
        except (RequestError, DamagedFileError) as error:
            assert "a.png'" in str(error)  # noqa: PT017
            refused += 1
    assert refused
