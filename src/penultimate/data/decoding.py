"""Decode image files to 8-bit RGB as torchvision's ImageFolder does, but upright.

ImageFolder and timm ignore the rotation in a photograph's EXIF data. This package applies it wherever an
image is read, because people labelled the image as it is displayed. Pillow itself turns TIFFs in both cases.

The content decides the format, not the file's ending (ImageNet holds a PNG named .JPEG). Grey is repeated
over three channels, CMYK and palette colours are converted, and alpha is dropped, whatever colour lies
beneath. 16-bit levels keep their high byte, v >> 8. Pillow does so itself for colour, but clips grey, which
would turn almost every pixel white.
"""

from __future__ import annotations

import contextlib
import io
import re
import struct
import warnings
from pathlib import Path
from typing import IO, Literal

import numpy as np
import simplejpeg
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

from penultimate.errors import DamagedFileError, RequestError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
"""Pillow's resizing filters by name; all but "nearest" antialias."""
MOST_PIXELS = 1 << 27
"""The most pixels that a file or its resized copy may have (half a gigabyte); 100 megapixels are below it."""
DEEP = ("I", "F")
"""The prefixes of Pillow's modes above 8 bits per channel; only 16-bit PNGs define which level is white."""
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The operation that turns an image upright, by EXIF orientation."""
PARSING = (OSError, SyntaxError, ValueError, TypeError, RuntimeError, LookupError, EOFError, struct.error)
"""The exceptions that Pillow's parsers raise for damaged files."""

_ROTATION = "carry a rotation in their EXIF data, which is"
TURNED = f"{_ROTATION} applied (torchvision's ImageFolder and timm do not apply it)"
ROTATED = f"{_ROTATION} not applied (upright=True applies it)"
SEVERAL = "hold several frames, of which the first is read"
TRANSPARENT = "have an alpha channel, which is dropped"
DAMAGED_EXIF = "have EXIF data that cannot be read, so that a rotation in them is not applied"


def read_colours(
    path: Path, upright: bool = True, content: bytes | None = None
) -> tuple[Image.Image, list[str]]:
    """Return the image in a file, in mode "RGB", and remarks about anything else that the file holds.

    `upright` applies the rotation in its EXIF data, as everywhere in this package. Pillow itself turns TIFFs,
    so these are upright either way and are not turned twice. `content` holds the bytes of the file if they
    were read already (from an archive). The remarks include Pillow's warnings. Raises DamagedFileError if the
    file is gone or is not a complete image. Raises RequestError if it has more than MOST_PIXELS, or more than
    8 bits per channel without being a PNG, because its white level is then unknown.
    """
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            image, remarks = _read(path, upright, content)
    except FileNotFoundError:
        raise DamagedFileError(f"'{path}' was there when the folder was listed but is gone") from None
    except Image.DecompressionBombError as error:
        raise RequestError(f"'{path}' is larger than Pillow reads: {error}") from None
    except RequestError:
        raise
    except UnidentifiedImageError:  # its text holds the address of an object
        raise DamagedFileError(f"'{path}' is not a complete image: Pillow does not know its format") from None
    except PARSING as error:
        raise DamagedFileError(f"'{path}' is not a complete image: {error}") from None
    return image, remarks + _warnings_told(warned)


def _read(path: Path, upright: bool, content: bytes | None) -> tuple[Image.Image, list[str]]:
    with contextlib.ExitStack() as stack:
        # Given a file's name, Pillow maps an uncompressed TIFF into memory with the row length that it has
        # after the turn, which puts the pixels in the wrong places.
        stream: IO[bytes] = stack.enter_context(path.open("rb") if content is None else io.BytesIO(content))
        opened = stack.enter_context(Image.open(stream))
        file: Image.Image = opened
        _expect_size(path, *file.size)
        transparent = "A" in file.getbands() or "transparency" in file.info
        several = getattr(file, "is_animated", False)
        if file.mode.startswith(DEEP):
            file = _high_bytes(path, file)
        elif transparent:  # Pillow warns about a palette's transparency, but not when converting through RGBA
            file = file.convert("RGBA")
        image = _colours(file, path, content)
        turn, is_damaged = None, False
        try:  # read after decoding, when a TIFF has been turned and no longer has an orientation
            turn = TURNS.get(opened.getexif().get(ORIENTATION, 1))
        except PARSING:
            is_damaged = True
        if upright and turn is not None:
            image = image.transpose(turn)
        present = {
            TURNED if upright else ROTATED: turn is not None,
            SEVERAL: several,
            TRANSPARENT: transparent,
            DAMAGED_EXIF: is_damaged,
        }
        return image, [remark for remark, is_so in present.items() if is_so]


def _warnings_told(warned: list[warnings.WarningMessage]) -> list[str]:
    """Return Pillow's warnings as remarks, without their numbers, so that equal faults count as one.

    Pillow's warning about too many pixels is left out, because MOST_PIXELS replaces that limit.
    """
    said = [str(each.message) for each in warned if each.category is not Image.DecompressionBombWarning]
    texts = (" ".join(re.sub(r"\d+", "..", text).split()).rstrip(".") for text in said)
    return list(dict.fromkeys(f'are read, though Pillow warns: "{text}"' for text in texts))


def _colours(file: Image.Image, path: Path, content: bytes | None) -> Image.Image:
    """Return the image as RGB; libjpeg-turbo decodes JPEGs in three quarters of Pillow's time.

    Files that are damaged or differ from their header are left to Pillow.
    """
    if file.format == "JPEG" and file.mode == "RGB":
        content = path.read_bytes() if content is None else content
        with contextlib.suppress(ValueError):
            height, width, *_ = simplejpeg.decode_jpeg_header(content)
            if (width, height) == file.size:
                return Image.fromarray(simplejpeg.decode_jpeg(content))
    return file.convert("RGB")


def middle_square(
    path: Path,
    image: Image.Image,
    resize: int,
    crop: int,
    interpolation: Interpolation = "bilinear",
    squash: bool = False,
) -> UInt8[np.ndarray, "crop crop 3"]:
    """Resize the shorter side (with `squash`, both sides) to `resize` and return the central `crop` pixels.

    The result equals torchvision's Resize and CenterCrop pixel for pixel. Raises RequestError if the image is
    so narrow that its resized copy has more than MOST_PIXELS.
    """
    shorter = min(image.size)
    width, height = (resize if squash else int(resize * side / shorter) for side in image.size)
    if width * height > MOST_PIXELS:
        raise RequestError(
            f"'{path}' is {image.width} x {image.height}: with its shorter side at {resize} it would be"
            f" {width} x {height}, more than {MOST_PIXELS:,} pixels; crop it first, or leave it out"
        )
    left, top = (round((side - crop) / 2) for side in (width, height))
    image = image.resize((width, height), Image.Resampling[interpolation.upper()])
    return np.asarray(image.crop((left, top, left + crop, top + crop)))


def _expect_size(path: Path, width: int, height: int) -> None:
    if not width or not height:
        raise DamagedFileError(f"'{path}' is not a complete image: it is {width} x {height}")
    if width * height > MOST_PIXELS:
        raise RequestError(
            f"'{path}' is {width} x {height}, more than {MOST_PIXELS:,} pixels: scale it down, or leave it"
            " out"
        )


def _high_bytes(path: Path, file: Image.Image) -> Image.Image:
    if file.format != "PNG":
        raise RequestError(
            f"'{path}' is a {file.format} with levels of mode '{file.mode}', whose white level is unknown:"
            " save it with 8 bits per channel"
        )
    return Image.fromarray((np.asarray(file) >> 8).astype(np.uint8))
