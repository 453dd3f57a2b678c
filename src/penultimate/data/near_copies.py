"""Images that look alike, though their bytes differ: resized, saved again, brightened a little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from penultimate.data.copies import ORDER
from penultimate.data.decoding import read_colours
from penultimate.data.listing import Listing
from penultimate.errors import DamagedFileError, RequestError, counted

SIDE, LOW = 32, 8
"""Pixels of a side that are transformed, and the frequencies of each direction that are kept."""
MOST = 4
"""Of the 64 signs of the frequencies, those by which two images may differ."""
LEAST_CONTRAST = 2.0
"""The deviation, in levels of 255, below which an image is one colour, and its signs are rounding."""
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
    """Return which images look like one of another split, in sentences; those that are equal do too.

    Every image is decoded, and every two of different splits are compared.
    """
    hashes = {split: _hashes(splits[split], progress) for split in ORDER if split in splits}
    notes = []
    for at, (split, (rows, codes)) in enumerate(hashes.items()):
        for other, (others, known) in list(hashes.items())[at + 1 :]:
            pairs = []
            for start in range(0, len(rows) if len(others) else 0, ROWS):
                differing = np.bitwise_count(codes[start : start + ROWS, None] ^ known[None])
                nearest = differing.argmin(1)
                for place in np.flatnonzero(differing.min(1) <= MOST):
                    pairs.append((int(rows[start + place]), int(others[nearest[place]])))
            if pairs:
                named = ", ".join(
                    f"'{splits[split].name(row)}' and '{splits[other].name(like)}'" for row, like in pairs[:3]
                )
                more = ", ..." if len(pairs) > 3 else ""
                notes.append(
                    f"{counted(len(pairs), f'{split} image')} of {len(splits[split]):,}"
                    f" {'looks' if len(pairs) == 1 else 'look'} like {other} images: {named}{more}"
                )
    return notes


def _hashes(listing: Listing, progress: Callable[[int], None] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a split whose images have signs, and these signs as a number each."""
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
