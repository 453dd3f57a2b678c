"""What happens to a batch of uint8 images between memory and the network."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from penultimate.data.augmentation.autoaugment import autoaugment
from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.images import ChannelStatistics
from penultimate.data.seeding import Among
from penultimate.errors import RequestError

CACHED = 2**18
"""Values of a large batch that are normalised at once: a megabyte in float32."""


def normalise(
    images: UInt8[Tensor, "n h w c"],
    statistics: ChannelStatistics,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "n c h w"]:
    """Centre and scale each channel: (x / 255 - mean) / std, laid out channels-last.

    Computed in float32 and rounded once to `dtype` (torch.bfloat16 for a bf16 body). A constant channel
    (std 0) is only centred. Raises RequestError if images and statistics differ in their channels.

    >>> images = torch.full((1, 2, 2, 1), 255, dtype=torch.uint8)
    >>> normalise(images, ChannelStatistics(mean=(0.5,), std=(0.25,))).flatten().tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    n, h, w, c = images.shape
    if images.dtype != torch.uint8 or c != len(statistics.mean):
        raise RequestError(
            f"uint8 images with {len(statistics.mean)} channels are expected (the statistics have as many);"
            f" these are {images.dtype} {list(images.shape)}"
        )
    # One row per image: tiling the c channel constants over a row makes the inner loop h w c long, not c.
    centre = 255 * torch.tensor(statistics.mean, device=images.device)
    spread = 255 * torch.tensor([deviation or 1.0 for deviation in statistics.std], device=images.device)
    centre, spread = centre.repeat(h * w), spread.repeat(h * w)
    rows = images.reshape(n, -1)
    if images.device.type != "cpu" or rows.numel() <= CACHED:
        made = rows.to(torch.float32).sub_(centre).div_(spread).to(dtype)
    else:
        made = torch.empty(rows.shape, dtype=dtype)
        together = max(1, CACHED // (h * w * c))
        for part, into in zip(torch.split(rows, together), torch.split(made, together), strict=True):
            exact = into if dtype == torch.float32 else torch.empty(part.shape)
            into.copy_(exact.copy_(part).sub_(centre).div_(spread))
    return made.view(n, h, w, c).permute(0, 3, 1, 2)


def _flipped(
    images: UInt8[Tensor, "n h w c"], generator: torch.Generator, among: Among
) -> UInt8[Tensor, "n h w c"]:
    count, rows = among
    mirror = torch.rand(count, generator=generator)[rows].to(images.device) < 0.5
    mirrored = mirror.nonzero().view(-1)
    return images.index_copy(0, mirrored, images.index_select(0, mirrored).flip(2))


def _shifted(
    images: UInt8[Tensor, "n h w c"], most: int, generator: torch.Generator, among: Among
) -> UInt8[Tensor, "n h w c"]:
    # Each row of each output image is one window of w c contiguous bytes in the row-wise reflected images,
    # so a shift in both directions is a single gather of windows, without a loop over images or shifts.
    n, h, w, c = images.shape
    left = images[:, :, 1 : most + 1].flip(2)
    right = images[:, :, w - 1 - most : w - 1].flip(2)
    wide = torch.cat([left, images, right], dim=2)
    windows = wide.view(-1).unfold(0, w * c, c)
    count, chosen = among
    shifts = torch.randint(0, 2 * most + 1, (2, count, 1), generator=generator)
    down, across = shifts[:, chosen].to(images.device)
    rows = torch.arange(h, device=images.device) + down - most
    rows = (h - 1) - ((h - 1) - rows.abs()).abs()
    images_first = torch.arange(n, device=images.device).view(n, 1) * h
    starts = (images_first + rows) * (w + 2 * most) + across
    return windows.index_select(0, starts.view(-1)).view(n, h, w, c)


def augment(
    images: UInt8[Tensor, "n h w c"],
    augmentation: Augmentation,
    generator: torch.Generator,
    among: Among | None = None,
) -> UInt8[Tensor, "n h w c"]:
    """Mirror and shift every image of a batch at random, each independently; then AutoAugment, if asked for.

    out[i, y, x] = image_i[reflect(y + dy_i - s), reflect(x + dx_i - s)], dy_i, dx_i uniform on 0..2s, drawn
    from the (CPU) generator; reflect folds positions outside back at the edge pixel. The batch is unchanged.
    `among` = (count, rows) says that these images are some of a batch, and have what they have in the whole.

    Mixup needs labels too: it is `mixup`. Raises RequestError if an image is too small to be reflected (s >=
    its height or width), and where AutoAugment cannot act on images of that many channels.

    >>> image = torch.arange(9, dtype=torch.uint8).view(1, 3, 3, 1)
    >>> augment(image, Augmentation(shift=1), torch.Generator().manual_seed(0)).squeeze()
    tensor([[4, 3, 4],
            [7, 6, 7],
            [4, 3, 4]], dtype=torch.uint8)
    """
    h, w = images.shape[1:3]
    if augmentation.shift >= min(h, w):
        raise RequestError(f"shift={augmentation.shift} is too much for images of {h} x {w} pixels")
    if not len(images):
        return images
    among = among or (len(images), slice(None))
    if augmentation.flip:
        images = _flipped(images, generator, among)
    if augmentation.shift:
        images = _shifted(images, augmentation.shift, generator, among)
    if augmentation.autoaugment:
        images = autoaugment(images, generator, among)
    return images


def mixup(
    images: Float[Tensor, "n c h w"],
    labels: Int[Tensor, " n"],
    num_classes: int,
    alpha: float,
    generator: torch.Generator,
) -> tuple[Float[Tensor, "n c h w"], Float[Tensor, "n k"]]:
    """Return a batch mixed with a permutation of itself, and so are its labels, which become distributions.

    x'_i = a x_i + (1 - a) x_p(i),   t'_i = a t_i + (1 - a) t_p(i),   a ~ Beta(alpha, alpha)

    One a and one p a batch, drawn from the (CPU) generator; alpha > 0.

    Zhang et al., mixup, ICLR 2018.
    """
    order = torch.randperm(len(images), generator=generator).to(images.device)
    seed = int(torch.randint(2**63 - 1, (1,), generator=generator))  # torch's own beta takes no generator
    share = float(np.random.default_rng(seed).beta(alpha, alpha))
    targets = F.one_hot(labels.long(), num_classes).to(torch.float32)
    mixed = share * images + (1 - share) * images[order]
    return mixed, share * targets + (1 - share) * targets[order]
