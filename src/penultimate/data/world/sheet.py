"""Contact sheets: a look at the images themselves, a column per class or label, before they are trusted."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from penultimate.data.images import ImageSet
from penultimate.data.world.atlas import Typefaces
from penultimate.errors import RequestError

MARGIN = 24
GAP = 6
TITLE, TEXT, CAPTION = 19, 13, 9
LINES = 3
"""Of a caption; what does not fit is cut."""


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(Typefaces().path("DejaVuSans-Bold" if bold else "DejaVuSans"), size)


def _captions(names: Sequence[str], width: int, ink: str) -> Image.Image:
    """Return the class names side by side, each centred over its column, standing on the line below."""
    letters = max(2, int(width / _font(CAPTION).getlength("n")))
    wrapped = [textwrap.wrap(name, letters, max_lines=LINES, placeholder="\u2026") for name in names]
    step = CAPTION + 2
    strip = Image.new("RGBA", (len(names) * (width + GAP) - GAP, max(map(len, wrapped)) * step + 4))
    pen = ImageDraw.Draw(strip)
    for column, lines in enumerate(wrapped):
        for above, line in enumerate(reversed(lines)):
            place = (column * (width + GAP) + width / 2, strip.height - 5 - above * step)
            pen.text(place, line, fill=ink, font=_font(CAPTION), anchor="ms")
    return strip


def _section(title: str, images: ImageSet, columns: int, rows: int, zoom: int, ink: str) -> Image.Image:
    """Return one data set: its title, its size, and a grid of classes (spread evenly) by examples."""
    labels = np.unique(np.linspace(0, images.num_classes - 1, columns).round().astype(int))
    height, width = (side * zoom for side in images.images.shape[1:3])
    captions = _captions([images.class_names[label] for label in labels], width, ink)
    top = TITLE + TEXT + 22
    sheet = Image.new(
        "RGBA", (columns * (width + GAP) - GAP, top + captions.height + rows * (height + GAP) - GAP)
    )
    pen = ImageDraw.Draw(sheet)
    pen.text((0, TITLE), title, fill=ink, font=_font(TITLE, bold=True), anchor="ls")
    kind = "classes" if images.labels.ndim == 1 else "labels"
    facts = f"{images.num_classes} {kind}, {len(images):,} images"
    facts += "" if len(labels) == images.num_classes else f"; {len(labels)} of the {kind} shown"
    pen.text((0, TITLE + TEXT + 8), facts, fill=ink, font=_font(TEXT), anchor="ls")
    sheet.alpha_composite(captions, (0, top))
    for column, label in enumerate(labels):
        having = images.labels == label if images.labels.ndim == 1 else images.labels[:, label] == 1
        for row, index in enumerate(np.flatnonzero(having)[:rows]):
            pixels = np.asarray(images.images[index])
            tile = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0]).convert("RGBA")
            place = (column * (width + GAP), top + captions.height + row * (height + GAP))
            sheet.paste(tile.resize((width, height), Image.Resampling.NEAREST), place)
    return sheet


def contact_sheet(
    sets: Sequence[tuple[str, ImageSet]],
    columns: int = 16,
    rows: int = 3,
    zoom: int = 2,
    ink: str = "#1f2328",
    paper: str = "#ffffff",
) -> bytes:
    """Return a PNG that shows, for each (title, images), `rows` examples of up to `columns` classes,
    `zoom` times. Raises RequestError for no sets or sizes below 1.

    >>> images = ImageSet(np.zeros((2, 24, 24, 3), np.uint8), np.array([0, 1]), np.arange(2), ("a", "b"))
    >>> contact_sheet([("Two black squares", images)])[:4]
    b'\\x89PNG'
    """
    if not sets or min(columns, rows, zoom) < 1:
        raise RequestError(
            f"a contact sheet shows at least one data set, one column and one row, with a zoom of at least 1;"
            f" got {len(sets)} sets, columns={columns}, rows={rows}, zoom={zoom}"
        )
    sections = [_section(title, images, columns, rows, zoom, ink) for title, images in sets]
    width = max(section.width for section in sections) + 2 * MARGIN
    height = sum(section.height + MARGIN for section in sections) + MARGIN
    sheet = Image.new("RGBA", (width, height), paper)
    top = MARGIN
    for section in sections:
        sheet.alpha_composite(section, (MARGIN, top))
        top += section.height + MARGIN
    buffer = io.BytesIO()
    sheet.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()
