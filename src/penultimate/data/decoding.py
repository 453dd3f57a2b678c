"""Image files as colours of 8 bits: as torchvision's ImageFolder reads them, but upright.

ImageFolder and timm leave a photograph as the camera's sensor lay. Here the rotation in its EXIF data is
applied, wherever an image is read: it was labelled as a person saw it. TIFFs are turned by Pillow itself,
here as there.

The content decides the format, not the file's ending (ImageNet holds a PNG named .JPEG). Grey is repeated,
the colours of CMYK and of palettes are converted, and alpha is dropped, whatever colour lies beneath. Levels
of 16 bits keep their high byte, v >> 8: in colour Pillow does so itself; grey it clips, so that all is white.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import struct
import warnings
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import simplejpeg
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

from penultimate.data.legacy_bicubic import legacy_square
from penultimate.errors import DamagedFileError, RequestError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "legacy_bicubic"]
"""How Pillow resizes, with antialiasing but for the nearest; or TensorFlow 1's bicubic, without."""
MOST_PIXELS = 1 << 27
"""Of a file, and of its resized copy: half a gigabyte. A photograph of 100 megapixels is below it."""
FURTHER = {"pillow_heif": "register_heif_opener", "pillow_jxl": "", "pillow_avif": ""}
"""Packages that teach Pillow further formats, and the function that does so, if importing them does not."""
INSTALL = {
    ".heic": "pillow-heif",
    ".heif": "pillow-heif",
    ".jxl": "pillow-jxl-plugin",
    ".avif": "'pillow>=11.3'",
}
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
"""What brings an image upright, by its EXIF orientation."""
PARSING = (OSError, SyntaxError, ValueError, TypeError, RuntimeError, LookupError, EOFError, struct.error)
"""What Pillow's parsers raise for files that are damaged."""

_ROTATION = "carry a rotation in their EXIF data, which is"
TURNED = f"{_ROTATION} applied (torchvision's ImageFolder and timm do not apply it)"
ROTATED = f"{_ROTATION} not applied (upright=True applies it)"
SEVERAL = "hold several frames, of which the first is read"
TRANSPARENT = "have an alpha channel, which is dropped"
DAMAGED_EXIF = "have EXIF data that cannot be read, so that a rotation in them is not applied"


def read_colours(
    path: Path, upright: bool = True, content: bytes | None = None
) -> tuple[Image.Image, list[str]]:
    """Return the image in a file, mode "RGB", and remarks: what the file holds beyond it.

    `upright` applies the rotation in its EXIF data, as everywhere in this package. `content` is what the file
    holds, where it is read already. What Pillow warns of is among the remarks. Raises DamagedFileError for a
    file that is gone or is not a complete image, RequestError for more than MOST_PIXELS, and for levels of
    more than 8 bits that are not a PNG's: what is white among them is unknown.
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
        is_empty = not (path.stat().st_size if content is None else content)
        why = "it is empty" if is_empty else "its first bytes are of no format that Pillow reads"
        package = INSTALL.get(path.suffix.lower())
        hint = f"; pip install {package} teaches it {path.suffix}" if package and not is_empty else ""
        raise DamagedFileError(f"'{path}' is not a complete image: {why}{hint}") from None
    except PARSING as error:
        raise DamagedFileError(f"'{path}' is not a complete image: {error}") from None
    # Pillow's limit on pixels is no remark: MOST_PIXELS stands in its place. Without their numbers equal
    # faults are counted as one.
    texts = (str(each.message) for each in warned if each.category is not Image.DecompressionBombWarning)
    plain = (" ".join(re.sub(r"\d+", "..", text).split()).rstrip(".") for text in texts)
    return image, remarks + [f'are read, though Pillow warns: "{text}"' for text in dict.fromkeys(plain)]


def _read(path: Path, upright: bool, content: bytes | None) -> tuple[Image.Image, list[str]]:
    # Given a file's name, Pillow maps an uncompressed TIFF into memory, in rows of the length that they have
    # once it is turned: its pixels are then out of place.
    stream: IO[bytes]
    with path.open("rb") if content is None else io.BytesIO(content) as stream, _opened(stream) as opened:
        width, height = opened.size
        if not width or not height:
            raise DamagedFileError(f"'{path}' is not a complete image: it is {width} x {height}")
        if width * height > MOST_PIXELS:
            raise RequestError(
                f"'{path}' is {width} x {height}, more than {MOST_PIXELS:,} pixels: scale it down, or leave"
                " it out"
            )
        transparent = "A" in opened.getbands() or "transparency" in opened.info
        remarks = {SEVERAL: getattr(opened, "is_animated", False), TRANSPARENT: transparent}
        image = _colours(opened, path, content, transparent)
        try:  # once the pixels are decoded: a TIFF has then been turned, and no longer says how
            turn = TURNS.get(opened.getexif().get(ORIENTATION, 1))
        except PARSING:
            turn, remarks[DAMAGED_EXIF] = None, True
        if turn is not None:
            image = image.transpose(turn) if upright else image
            remarks = {TURNED if upright else ROTATED: True, **remarks}
        return image, [remark for remark, is_so in remarks.items() if is_so]


def _opened(stream: IO[bytes]) -> Image.Image:
    try:
        return Image.open(stream)
    except UnidentifiedImageError:
        _learn_formats()
        stream.seek(0)
        return Image.open(stream)


@cache
def _learn_formats() -> None:
    """Teach Pillow the formats of packages that are installed."""
    for package, register in FURTHER.items():
        with contextlib.suppress(ImportError):
            getattr(importlib.import_module(package), register, lambda: None)()


def _colours(file: Image.Image, path: Path, content: bytes | None, transparent: bool) -> Image.Image:
    """Return red, green and blue; of a JPEG by libjpeg-turbo, which takes three quarters of Pillow's time.

    A JPEG that is damaged, or not what its header says, is left to Pillow.
    """
    if file.format == "JPEG" and file.mode == "RGB":
        content = path.read_bytes() if content is None else content
        with contextlib.suppress(ValueError):
            height, width, *_ = simplejpeg.decode_jpeg_header(content)
            if (width, height) == file.size:
                return Image.fromarray(simplejpeg.decode_jpeg(content))
    if file.mode[0] in "IF":  # more than 8 bits a channel
        if file.format != "PNG":
            raise RequestError(
                f"'{path}' is a {file.format} with levels of mode '{file.mode}', and what is white among them"
                " is unknown: save it with 8 bits a channel"
            )
        return Image.fromarray((np.asarray(file) >> 8).astype(np.uint8)).convert("RGB")
    # Of a palette's transparency Pillow warns, but not on the way through RGBA.
    return (file.convert("RGBA") if transparent else file).convert("RGB")


def middle_square(
    path: Path,
    image: Image.Image,
    resize: int,
    crop: int,
    interpolation: Interpolation = "bilinear",
    squash: bool = False,
    processor: str = "",
) -> UInt8[np.ndarray, "crop crop 3"]:
    """Return the shorter side (to `squash`, both) resized to `resize`, and the middle `crop` pixels.

    This is pixel for pixel torchvision's Resize and CenterCrop. "legacy_bicubic" takes the middle first, as
    the authors of the paper did (`legacy_square`). `processor` is the configuration of an image
    processor of transformers, which then makes the square itself. Raises RequestError if the image is so
    narrow that its resized copy has more than MOST_PIXELS.
    """
    if processor:
        made = _processor(processor)(images=image, do_rescale=False, do_normalize=False, return_tensors="np")
        square = np.rint(np.asarray(made["pixel_values"][0])).transpose(1, 2, 0)
        return np.ascontiguousarray(square, np.uint8)
    if interpolation == "legacy_bicubic":
        return legacy_square(np.asarray(image), resize, crop)
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


@cache
def _processor(text: str) -> Any:
    """Return the image processor of transformers that a configuration describes."""
    import transformers

    said = json.loads(text)
    return getattr(transformers, said["image_processor_type"]).from_dict(said)
