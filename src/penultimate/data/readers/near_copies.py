"""Images that look alike, though their bytes differ: resized, saved again, brightened a little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image

from penultimate.data.decoding import read_colours
from penultimate.data.listing import Listing
from penultimate.data.readers.copies import ORDER
from penultimate.errors import DamagedFileError, RequestError, counted

SIDE, LOW = 32, 8
"""Pixels of a side that are transformed, and the frequencies of each direction that are kept."""
MOST = 4
"""Of the 64 signs of the frequencies, those by which two images may differ."""
LEAST_CONTRAST = 2.0
"""The deviation, in levels of 255, below which an image is one colour, and its signs are rounding."""
Hashes: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The rows of a split whose images have signs, and these signs as a number each."""
ROWS = 256
"""Images that are compared with all others at once."""


def perceptual_hash(image: Image.Image) -> np.ndarray | None:
    """Return 64 signs, bytes [8], that images which look alike share; None for an image of one colour.

    Of a grey image of 32 x 32 the lowest 8 x 8 frequencies of the discrete cosine transform, each above their
    median or below: pHash, as Zauner describes it ("Implementation and benchmarking of perceptual image hash
    functions", 2010).
    """
    from scipy.fft import dctn

    grey = np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS), np.float64)
    if grey.std() < LEAST_CONTRAST:
        return None
    low = dctn(grey)[:LOW, :LOW]
    return np.packbits(low > np.median(low))


def near_copies(splits: Mapping[str, Listing], progress: Callable[[int], None] | None = None) -> list[str]:
    """Return which images look like one of another split, or of another class of theirs, in sentences; those
    that are equal do too.

    Every image is decoded, and every two are compared.
    """
    hashes = {split: _hashes(splits[split], progress) for split in ORDER if split in splits}
    notes = []
    for at, split in enumerate(hashes):
        for other in list(hashes)[at:]:
            pairs = _pairs(splits[split], splits[other], hashes[split], hashes[other], split == other)
            if pairs:
                named = ", ".join(
                    f"'{splits[split].name(row)}' and '{splits[other].name(like)}'" for row, like in pairs[:3]
                )
                more = ", ..." if len(pairs) > 3 else ""
                differing = (
                    "one of another class" if splits[split].labels.ndim == 1 else "one of other labels"
                )
                like = differing if split == other else f"{other} images"
                notes.append(
                    f"{counted(len(pairs), f'{split} image')} of {len(splits[split]):,}"
                    f" {'looks' if len(pairs) == 1 else 'look'} like {like}: {named}{more}"
                )
    return notes


def _pairs(
    one: Listing, other: Listing, codes: Hashes, known: Hashes, of_other_classes: bool
) -> list[tuple[int, int]]:
    """Return the rows of a split that look like one of another, each with the row that it looks like most.

    Within one split these are rows of other classes, and each pair is there once.
    """
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for start in range(0, len(codes[0]) if len(known[0]) else 0, ROWS):
        rows = codes[0][start : start + ROWS]
        differing = np.bitwise_count(codes[1][start : start + ROWS, None] ^ known[1][None])
        if of_other_classes:
            labels = one.labels[rows][:, None] == other.labels[known[0]][None]
            differing[labels if labels.ndim == 2 else labels.all(2)] = 64
        nearest = differing.argmin(1)
        for place in np.flatnonzero(differing.min(1) <= MOST):
            row, like = int(rows[place]), int(known[0][nearest[place]])
            pairs.setdefault(
                (min(row, like), max(row, like)) if of_other_classes else (row, like), (row, like)
            )
    return [*pairs.values()]


def _hashes(listing: Listing, progress: Callable[[int], None] | None) -> Hashes:
    """Return the signs of the images of a split, which has none of an image that cannot be read."""
    rows, codes = [], []
    for row in range(len(listing)):
        try:
            encoded = listing.image(row)
            match encoded:
                case bytes():
                    image = read_colours(Path(listing.name(row)), content=encoded)[0]
                case Path():
                    image = read_colours(encoded)[0]
                case _:
                    image = Image.fromarray(encoded)
        except (DamagedFileError, RequestError):
            continue  # it has been named as one that cannot be read
        signs = perceptual_hash(image)
        if signs is not None:
            rows.append(row)
            codes.append(signs)
        if progress is not None and row % 64 == 63:
            progress(row + 1)
    stacked = np.stack(codes).view(np.uint64)[:, 0] if codes else np.zeros(0, np.uint64)
    return np.array(rows, np.int64), stacked
