"""ImageNet-C's corruptions of one image at 224 pixels, literally, in float64, by scipy, colorsys and loops.

Each takes the image's levels [h w 3], the published parameters of one severity, and a generator from which
it draws in the published order.
"""

from __future__ import annotations

import colorsys
import io
import math

import numpy as np
from PIL import Image
from scipy import ndimage

PARAMETERS = {
    "gaussian_noise": [0.08, 0.12, 0.18, 0.26, 0.38],
    "shot_noise": [60, 25, 12, 5, 3],
    "impulse_noise": [0.03, 0.06, 0.09, 0.17, 0.27],
    "glass_blur": [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    "defocus_blur": [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    "motion_blur": [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    "zoom_blur": [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    "snow": [
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ],
    "frost": [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    "fog": [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    "brightness": [0.1, 0.2, 0.3, 0.4, 0.5],
    "contrast": [0.4, 0.3, 0.2, 0.1, 0.05],
    "elastic_transform": [
        (244 * 2, 244 * 0.7, 244 * 0.1),
        (244 * 2, 244 * 0.08, 244 * 0.2),
        (244 * 0.05, 244 * 0.01, 244 * 0.02),
        (244 * 0.07, 244 * 0.01, 244 * 0.02),
        (244 * 0.12, 244 * 0.01, 244 * 0.02),
    ],
    "pixelate": [0.6, 0.5, 0.4, 0.3, 0.25],
    "jpeg_compression": [25, 18, 15, 10, 7],
}


def gaussian_noise(levels, strength, draw):
    return 255 * (levels / 255 + strength * draw.standard_normal(levels.shape))


def shot_noise(levels, photons, draw):
    return 255 * draw.poisson(levels / 255 * photons) / photons


def impulse_noise(levels, share, draw):
    struck, salt = draw.random(levels.shape) <= share, draw.random(levels.shape) <= 0.5
    return np.where(struck, np.where(salt, 255.0, 0.0), levels)


def smoothed(image, sigma, mode="edge", truncate=4.0):
    radius = int(truncate * sigma + 0.5)
    weights = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-radius, radius + 1)]
    for axis in (0, 1):
        wide = np.pad(
            image, [(radius, radius) if a == axis else (0, 0) for a in range(image.ndim)], mode=mode
        )
        parts = [np.take(wide, range(i, i + image.shape[axis]), axis) for i in range(2 * radius + 1)]
        image = sum(w / sum(weights) * part for w, part in zip(weights, parts, strict=True))
    return image


def glass_blur(levels, parameters, draw):
    sigma, most, passes = parameters
    x = np.floor(smoothed(levels, sigma) + 1e-6)
    h, w = x.shape[:2]
    rows, columns = range(h - most, most, -1), range(w - most, most, -1)
    shifts = draw.integers(-most, most, (passes, len(rows), len(columns), 2))
    for each in range(passes):
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                across, down = shifts[each, i, j]
                x[row, column] = x[row + down, column + across]
    return smoothed(x, sigma)


def defocus_blur(levels, parameters, draw):
    radius, softness = parameters
    reach = 8 if radius <= 8 else radius
    size = 2 * reach + 1
    disc = np.array(
        [[float((i - reach) ** 2 + (j - reach) ** 2 <= radius**2) for j in range(size)] for i in range(size)]
    )
    half = 1 if radius <= 8 else 2
    taps = np.array([math.exp(-(i**2) / (2 * softness**2)) for i in range(-half, half + 1)])
    kernel = ndimage.correlate(disc / disc.sum(), np.outer(taps, taps) / taps.sum() ** 2, mode="mirror")
    return np.stack([ndimage.correlate(levels[..., c], kernel, mode="mirror") for c in range(3)], -1)


def smeared(image, radius, sigma, degrees):
    width = 2 * math.ceil(radius) + 1
    weights = [math.exp(-i * i / (2 * sigma**2)) for i in range(width)]
    h, w = image.shape[:2]
    total = np.zeros(image.shape)
    for i, weight in enumerate(weights):
        across = math.ceil(i * math.cos(math.radians(degrees)) - 0.5)
        down = math.ceil(i * math.sin(math.radians(degrees)) - 0.5)
        rows = np.clip(np.arange(h) + down, 0, h - 1)
        columns = np.clip(np.arange(w) + across, 0, w - 1)
        total += weight / sum(weights) * image[rows][:, columns]
    return np.rint(total)


def motion_blur(levels, parameters, draw):
    return smeared(levels, *parameters, draw.uniform(-45, 45))


def zoomed(image, factor):
    h = image.shape[0]
    kept = math.ceil(h / factor)
    top = (h - kept) // 2
    crop = image[top : top + kept, top : top + kept]
    grown = ndimage.zoom(crop, (factor, factor, 1)[: image.ndim], order=1)
    top = (grown.shape[0] - h) // 2
    return grown[top : top + h, top : top + h]


def zoom_blur(levels, parameters, draw):
    factors = np.arange(1, *parameters)
    return (levels + sum(zoomed(levels, factor) for factor in factors)) / (len(factors) + 1)


def snow(levels, parameters, draw):
    mean, spread, flake, threshold, radius, sigma, kept = parameters
    x = levels / 255
    layer = zoomed(mean + spread * draw.standard_normal(x.shape[:2]), flake)
    layer = np.where(layer < threshold, 0, layer)
    layer = np.floor(np.clip(layer, 0, 1) * 255)
    layer = smeared(layer, radius, sigma, draw.uniform(-135, -45))[..., None] / 255
    grey = (0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2])[..., None]
    x = kept * x + (1 - kept) * np.maximum(x, grey * 1.5 + 0.5)
    return 255 * (x + layer + np.rot90(layer, 2))


def clouds(side, decay, draw):
    """Diamond and square, point by point, on a torus; the numbers come in one piece."""
    numbers = iter(draw.uniform(-1, 1, side * side - 1))
    field = np.zeros((side, side))
    step, rough = side, 100.0

    def mean(points):
        return sum(field[y % side, x % side] for y, x in points) / 4 + rough**2 * next(numbers)

    while step >= 2:
        half = step // 2
        for y in range(half, side, step):
            for x in range(half, side, step):
                corners = [(y + a, x + b) for a in (-half, half) for b in (-half, half)]
                field[y, x] = mean(corners)
        for first, second in ((0, half), (half, 0)):
            for y in range(first, side, step):
                for x in range(second, side, step):
                    field[y, x] = mean([(y - half, x), (y + half, x), (y, x - half), (y, x + half)])
        step, rough = half, rough / decay
    return (field - field.min()) / (field.max() - field.min())


def fog(levels, parameters, draw):
    strength, decay = parameters
    x = levels / 255
    h, w = x.shape[:2]
    misty = x + strength * clouds(256, decay, draw)[:h, :w, None]
    return 255 * misty * x.max() / (x.max() + strength)


def _in_hsv(levels, change):
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*p))) for p in levels.reshape(-1, 3) / 255]
    return 255 * np.array(pixels).reshape(levels.shape)


def brightness(levels, raised, draw):
    return _in_hsv(levels, lambda h, s, v: (h, s, min(v + raised, 1)))


def contrast(levels, kept, draw):
    means = levels.mean((0, 1), keepdims=True)
    return (levels - means) * kept + means


def elastic_transform(levels, parameters, draw):
    alpha, sigma, most = parameters
    h, w = levels.shape[:2]
    third = min(h, w) // 3
    a = np.array([h // 2, w // 2], float)
    points = np.array([a + third, [a[0] + third, a[1] - third], a - third])
    there = points + draw.uniform(-most, most, (3, 2))
    # The map is found from its six equations; what is at (x, y) comes from its inverse.
    forward = np.linalg.solve(np.column_stack([points, np.ones(3)]), there).T
    linear, shift = forward[:, :2], forward[:, 2]
    y, x = np.mgrid[:h, :w]
    sx, sy = np.linalg.inv(linear) @ (np.stack([x.ravel(), y.ravel()]) - shift[:, None])
    turned = [
        ndimage.map_coordinates(levels[..., c], [sy, sx], order=1, mode="mirror").reshape(h, w)
        for c in range(3)
    ]
    fields = [draw.uniform(-1, 1, (h, w)) for _ in range(2)]
    dx, dy = (ndimage.gaussian_filter(f, sigma, mode="reflect", truncate=3) * alpha for f in fields)
    moved = [ndimage.map_coordinates(c, [y + dy, x + dx], order=1, mode="reflect") for c in turned]
    return np.stack(moved, -1)


def pixelate(levels, share, draw):
    h, w = levels.shape[:2]
    image = Image.fromarray(levels.astype(np.uint8)).resize((int(w * share), int(h * share)), Image.BOX)
    return np.asarray(image.resize((w, h), Image.BOX)).astype(float)


def jpeg_compression(levels, quality, draw):
    file = io.BytesIO()
    Image.fromarray(levels.astype(np.uint8)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)).astype(float)
