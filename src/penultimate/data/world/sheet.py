"""Contact sheets: a look at the images themselves, a column per class or label, before they are trusted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from penultimate.data.images import ImageSet
from penultimate.data.world.atlas import Typefaces
from penultimate.errors import RequestError

MARGIN = 24
GAP = 6
TITLE, TEXT, CAPTION = 19, 13, 12
SMALLEST = 8


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(Typefaces().path("DejaVuSans-Bold" if bold else "DejaVuSans"), size)


def _in_lines(text: str, width: int, font: ImageFont.FreeTypeFont) -> list[str]:
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if font.getlength(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _cut(line: str, width: int, font: ImageFont.FreeTypeFont) -> str:
    if font.getlength(line) <= width:
        return line
    while line and font.getlength(f"{line}\u2026") > width:
        line = line[:-1]
    return f"{line}\u2026"


def _fitted(names: Sequence[str], width: int) -> tuple[list[list[str]], ImageFont.FreeTypeFont]:
    """Return all names at one size: in as few lines as fit, then as large as fits; cut if nothing fits."""
    for most, smallest in ((1, CAPTION - 3), (2, CAPTION - 3), (3, SMALLEST)):
        for size in range(CAPTION, smallest - 1, -1):
            font = _font(size)
            wrapped = [_in_lines(name, width, font) for name in names]
            longest = max(font.getlength(line) for lines in wrapped for line in lines)
            if max(map(len, wrapped)) <= most and longest <= width:
                return wrapped, font
    return [[_cut(line, width, font) for line in lines[:most]] for lines in wrapped], font


def _captions(names: Sequence[str], width: int, ink: str) -> Image.Image:
    """Return the class names side by side, each centred over its column, standing on the line below."""
    wrapped, font = _fitted(names, width)
    step = round(font.size) + 2
    height = max(map(len, wrapped)) * step + 4
    strip = Image.new("RGBA", (len(names) * (width + GAP) - GAP, height))
    pen = ImageDraw.Draw(strip)
    for column, lines in enumerate(wrapped):
        for above, line in enumerate(reversed(lines)):
            place = (column * (width + GAP) + width / 2, height - 5 - above * step)
            pen.text(place, line, fill=ink, font=font, anchor="ms")
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
    paper: str | None = "#ffffff",
) -> bytes:
    """Return a PNG that shows, for each (title, images), `rows` examples of up to `columns` classes,
    `zoom` times.

    `paper=None` leaves the background transparent. Raises RequestError for no sets or sizes below 1.

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
    sheet = Image.new("RGBA", (width, height), paper or (0, 0, 0, 0))
    top = MARGIN
    for section in sections:
        sheet.alpha_composite(section, (MARGIN, top))
        top += section.height + MARGIN
    buffer = io.BytesIO()
    (sheet if paper is None else sheet.convert("RGB")).save(buffer, "PNG")
    return buffer.getvalue()
