"""Glyph masks: each character drawn large in each face, centred, its longer side scaled to 42 of 48 pixels.

The fonts are those that matplotlib ships; none is copied. Size is not a cue, since every mask fills its
square.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np
import torch
from jaxtyping import UInt8
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from penultimate.errors import PenultimateError, RequestError

SIDE = 48
GLYPH_SIDE = 42
POINTS = 64

Glyph = tuple[str, str]


class Typefaces:
    """The fonts that matplotlib ships, each opened on first use.

    >>> faces = Typefaces()
    >>> faces.covers("STIXGeneral", "A"), faces.covers("STIXGeneral", "\u1403")
    (True, False)
    >>> faces.mask("DejaVuSans", "A").shape
    (48, 48)
    """

    def __init__(self) -> None:
        self._folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        self._covered: dict[str, frozenset[int]] = {}
        self._fonts: dict[str, ImageFont.FreeTypeFont] = {}

    def path(self, face: str) -> str:
        """Return the path of the face's font; raises if matplotlib does not ship it."""
        path = self._folder / f"{face}.ttf"
        if not path.is_file():
            raise PenultimateError(
                f"the image world is drawn with matplotlib's fonts, and '{face}.ttf' is not in"
                f" {self._folder}; is matplotlib's data folder complete?"
            )
        return str(path)

    def covers(self, face: str, character: str) -> bool:
        """Return whether the face has its own glyph for the character (the box
        for missing ones does not count).
        """
        if face not in self._covered:
            self._covered[face] = frozenset(FT2Font(self.path(face)).get_charmap())
        return ord(character) in self._covered[face]

    def mask(self, face: str, character: str) -> UInt8[np.ndarray, "48 48"]:
        """Return the character's antialiased mask in this face; raises RequestError if the face lacks it."""
        if not self.covers(face, character):
            raise RequestError(f"{face} does not cover U+{ord(character):04X} '{character}'")
        if face not in self._fonts:
            self._fonts[face] = ImageFont.truetype(
                self.path(face), POINTS, layout_engine=ImageFont.Layout.BASIC
            )
        font = self._fonts[face]
        left, top, right, bottom = (round(edge) for edge in font.getbbox(character))
        ink = Image.new("L", (right - left + 2, bottom - top + 2))
        ImageDraw.Draw(ink).text((1 - left, 1 - top), character, fill=255, font=font)
        box = ink.getbbox()
        if box is None:
            raise RequestError(f"U+{ord(character):04X} leaves no ink in {face}: a blank is not a glyph")
        ink = ink.crop(box)
        scale = GLYPH_SIDE / max(ink.size)
        width, height = (max(1, round(side * scale)) for side in ink.size)
        ink = ink.resize((width, height), Image.Resampling.LANCZOS)
        square = Image.new("L", (SIDE, SIDE))
        square.paste(ink, ((SIDE - width) // 2, (SIDE - height) // 2))
        return np.asarray(square)


class Atlas:
    """The masks [g 48 48] of a list of (character, face) pairs, and the position of each.

    >>> atlas = Atlas(Typefaces(), [("A", "DejaVuSans"), ("A", "DejaVuSerif")])
    >>> atlas.masks.shape, atlas.positions[("A", "DejaVuSerif")]
    (torch.Size([2, 48, 48]), 1)
    """

    def __init__(self, typefaces: Typefaces, glyphs: Iterable[Glyph]) -> None:
        self.positions: dict[Glyph, int] = {}
        for glyph in glyphs:
            self.positions.setdefault(glyph, len(self.positions))
        masks = np.empty((len(self.positions), SIDE, SIDE), np.uint8)
        for (character, face), position in self.positions.items():
            masks[position] = typefaces.mask(face, character)
        self.masks: UInt8[Tensor, "g 48 48"] = torch.from_numpy(masks)

    def select(self, glyphs: Iterable[Glyph]) -> UInt8[Tensor, "m 48 48"]:
        """Return the masks of the given pairs, in their order."""
        return self.masks[[self.positions[glyph] for glyph in glyphs]]
