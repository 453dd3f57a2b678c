"""Which files are images by their endings, and what is said of formats that are not read."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile
from tests.data.published import put, put_image

from penultimate.data import decoding
from penultimate.data.readers.inspection import check
from penultimate.data.readers.located import located
from penultimate.data.readers.opening import open_dataset
from penultimate.data.readers.reading import ENDINGS, is_image

FORMATS = {
    **dict.fromkeys((".jpg", ".JPG", ".jpeg", ".jpe", ".jfif"), "JPEG"),
    **dict.fromkeys((".png", ".apng"), "PNG"),
    **dict.fromkeys((".bmp", ".Bmp"), "BMP"),
    **dict.fromkeys((".tif", ".tiff"), "TIFF"),
    **dict.fromkeys((".ppm", ".pgm", ".pbm", ".pnm"), "PPM"),
    **dict.fromkeys((".jp2", ".j2k", ".jpx"), "JPEG2000"),
    **{".webp": "WEBP", ".gif": "GIF", ".tga": "TGA", ".qoi": "QOI", ".dib": "DIB", ".avif": "AVIF"},
}
MADE_UP = b"\0\0\0\x18ftypheic"


@pytest.fixture
def untaught(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pillow without further packages, whatever is installed."""
    for package in decoding.FURTHER:
        monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    decoding._further_formats.cache_clear()
    yield
    decoding._further_formats.cache_clear()


@pytest.mark.parametrize("ending", FORMATS)
def test_what_pillow_reads_is_an_image(ending: str, tmp_path: Path) -> None:
    Image.init()
    if FORMATS[ending] not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {FORMATS[ending]}")
    for label, name in enumerate(("ant", "bee")):
        for number in range(2):
            pixels = np.full((8, 8, 3), 40 + 150 * label + number, np.uint8)
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / name / f"{number}{ending}", FORMATS[ending])
    lines: list[str] = []
    assert check(str(tmp_path), None, lines.append)
    assert "train: 2 of 2 images, 2 classes; 0 cannot be read" in lines


def test_every_ending_is_tried() -> None:
    read = {ending.lower() for ending in FORMATS}
    assert read | {".heic", ".heif", ".hif", ".jxl"} == {*ENDINGS}
    assert is_image("x.HEIC")
    assert not is_image("._x.heic")


@pytest.mark.usefixtures("untaught")
@pytest.mark.parametrize(
    ("ending", "install"),
    [
        (".heic", "pillow-heif"),
        (".HEIF", "pillow-heif"),
        (".hif", "pillow-heif"),
        (".jxl", "pillow-jxl-plugin"),
    ],
)
def test_a_format_that_is_not_read_is_counted_with_the_way_to_read_it(
    ending: str, install: str, tmp_path: Path
) -> None:
    for name in ("ant", "bee"):
        for number in range(4):
            put_image(tmp_path / name / f"{number}.jpg", name == "bee", number)
        put(tmp_path / name / f"phone{ending}", MADE_UP + name.encode())
        put(tmp_path / name / "raw.dng", b"x")
    put(tmp_path / "ant" / "list.txt", b"x")
    lines: list[str] = []
    assert not check(str(tmp_path), None, lines.append)
    told = "\n".join(lines)
    assert "and left out: 3 files ('ant/list.txt', 'ant/raw.dng', 'bee/raw.dng'): 2 .dng, 1 .txt" in told
    assert sum("cannot be read" in line and "0 cannot" not in line for line in lines)
    assert f"pip install {install} teaches it {ending}" in told


@pytest.mark.usefixtures("untaught")
def test_a_package_that_teaches_pillow_a_format_is_used_once_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The images are then others, and so is what the steps that read them are named by."""

    class Made(ImageFile.ImageFile):
        format = "MADE"

        def _open(self) -> None:
            self._size, self._mode, self.tile = (4, 4), "RGB", []

        def load(self) -> None:
            self.im = Image.new("RGB", (4, 4), (10, 20, 30)).im

    def register() -> None:
        Image.register_open("MADE", Made, lambda start: start.startswith(MADE_UP))
        Image.register_extension("MADE", ".heic")

    for name in ("ant", "bee"):
        for number in range(2):
            put(tmp_path / name / f"{number}.heic", MADE_UP + f"{name}{number}".encode())
    before = located("mine", str(tmp_path)).fingerprint
    package = types.ModuleType("pillow_heif")
    package.register_heif_opener = register  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pillow_heif", package)
    decoding._further_formats.cache_clear()
    listing = open_dataset(str(tmp_path)).splits["train"]
    place = listing.image(0)
    assert isinstance(place, Path)
    try:
        image, _ = decoding.read_colours(place)
        assert image.getpixel((0, 0)) == (10, 20, 30)
        assert located("mine", str(tmp_path)).fingerprint != before
    finally:
        Image.ID.remove("MADE")
        del Image.OPEN["MADE"], Image.EXTENSION[".heic"]


def test_heic_is_read_upright_by_pillow_heif(tmp_path: Path) -> None:
    heif = pytest.importorskip("pillow_heif")
    pixels = np.zeros((32, 64, 3), np.uint8)
    pixels[:, :32] = 255
    content = io.BytesIO()
    heif.from_pillow(Image.fromarray(pixels)).save(content, quality=100)
    put(tmp_path / "x.heic", content.getvalue())
    image, _ = decoding.read_colours(tmp_path / "x.heic")
    assert image.size == (64, 32)
