"""Digital: contrast, elastic transform, pixelate, JPEG compression."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from penultimate.data.corruptions.filters import grain, sampled, unit
from penultimate.data.corruptions.lengths import scale_of
from penultimate.data.corruptions.randomness import Draws, uniform

LENGTH = 244
"""Elastic lengths are shares of this: 224 was meant, 244 was published."""


def contrast(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Reduce the differences from the mean of each channel."""
    kept = (0.4, 0.3, 0.2, 0.1, 0.05)[severity - 1]
    levels = images.astype(np.float32)
    means = images.mean((1, 2), keepdims=True, dtype=np.float64).astype(np.float32)
    changed: np.ndarray = (levels - means) * np.float32(kept) + means
    return changed


def elastic_transform(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Apply a random affine map, then a random displacement field that is blurred.

    Three points of the middle third move by up to `affine`; the field is uniform noise times alpha, blurred
    over sigma. At other sizes pixels move by the same share of the picture.
    """
    alpha, sigma, affine = (
        (2, 0.7, 0.1),
        (2, 0.08, 0.2),
        (0.05, 0.01, 0.02),
        (0.07, 0.01, 0.02),
        (0.12, 0.01, 0.02),
    )[severity - 1]
    height, width = images.shape[1:3]
    scale = scale_of(height, width)
    moved = uniform(draws, -affine * LENGTH * scale, affine * LENGTH * scale, 3, 2)
    fields = [uniform(draws, -1, 1, height, width).astype(np.float32) for _ in ("across", "down")]
    across, down = (
        scale * alpha * LENGTH * grain(field, sigma * LENGTH, scale, "reflect", 3) for field in fields
    )
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    back = _inverse_maps(height, width, moved)
    source = np.einsum("nij,jp->nip", back, np.stack([columns, rows, np.ones_like(rows)]).reshape(3, -1))
    x, y = (source[:, axis].reshape(-1, height, width) for axis in (0, 1))
    turned = sampled(unit(images), y, x, "mirror")
    levels: np.ndarray = 255 * sampled(turned, rows + down, columns + across, "reflect")
    return levels


def _inverse_maps(height: int, width: int, moved: np.ndarray) -> np.ndarray:
    """[n 2 3]: from a place (x, y, 1) in the result to its place in the image.

    The centre is (h // 2, w // 2) taken as (x, y), as published: in a wide image it is off the middle.
    """
    centre = np.array((height // 2, width // 2), np.float64)
    reach = min(height, width) // 3
    corners = centre + reach * np.array(((1, 1), (1, -1), (-1, -1)))
    there = corners + moved
    right = np.concatenate([there, np.ones((*there.shape[:2], 1))], 2)
    # Rows of `right` @ map' = corners: the affine map that takes each moved point back to its corner.
    maps: np.ndarray = np.linalg.solve(right, np.broadcast_to(corners, there.shape)).transpose(0, 2, 1)
    return maps


def pixelate(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Shrink to a share of the size by averaging areas, and enlarge again, with Pillow."""
    share = (0.6, 0.5, 0.4, 0.3, 0.25)[severity - 1]
    height, width = images.shape[1:3]
    small = (max(1, int(width * share)), max(1, int(height * share)))
    box = Image.Resampling.BOX
    shrunk = (Image.fromarray(image).resize(small, box) for image in images)
    return np.stack([np.asarray(image.resize((width, height), box)) for image in shrunk])


def jpeg_compression(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Save as a low-quality JPEG and read it back, with Pillow."""
    quality = (25, 18, 15, 10, 7)[severity - 1]
    return np.stack([_as_jpeg(image, quality) for image in images])


def _as_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))
