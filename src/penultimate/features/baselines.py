"""Features that need no trained network: shrunk pixels, colour statistics, random convolutions.

A network whose features do worse than these was probably shown images that it was not trained for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError

SHRUNK, SIDE, PATCH, FILTERS, LEVELS = 8, 32, 6, 32, 4
"""The sides of shrunk images, of convolved images and of filters (pixels); filters; colours a channel."""
FLAT = 10.0
"""What is added to the variance of an image's pixels (of 0 to 255) before it is normalised."""


def shrunk_pixels(images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n m"]:
    """Return the colours (0 to 1) of 8 x 8 cells of each image, each the mean of its pixels.

    >>> shrunk_pixels(torch.full((2, 24, 30, 3), 51, dtype=torch.uint8)).allclose(torch.tensor(0.2))
    True
    """
    return F.adaptive_avg_pool2d(_floats(images) / 255, SHRUNK).flatten(1)


def colour_statistics(images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n m"]:
    """Return each image's mean and deviation of every channel, and the shares of 4 x 4 x 4 colours.

    Where the pixels lie plays no part; of larger images they are taken on a grid of about 32 x 32. Images of
    one channel have the shares of four greys.

    >>> black = torch.zeros(1, 4, 4, 3, dtype=torch.uint8)
    >>> colour_statistics(black).shape, colour_statistics(black)[0, 6].item()
    (torch.Size([1, 70]), 1.0)
    """
    rows, columns = (max(1, side // SIDE) for side in images.shape[1:3])
    pixels = _expected(images)[:, ::rows, ::columns].flatten(1, 2)
    share = pixels.float() / 255
    colours = LEVELS ** images.shape[-1]
    places = torch.arange(len(images))[:, None].expand(pixels.shape[:2])
    for channel in (pixels // (256 // LEVELS)).unbind(-1):
        places = places * LEVELS + channel
    counts = torch.bincount(places.flatten(), minlength=len(images) * colours).view(len(images), colours)
    spread, mean = torch.std_mean(share, 1, correction=0)
    return torch.cat([mean, spread, counts / pixels.shape[1]], 1)


def random_convolutions(images: UInt8[Tensor, "n h w c"]) -> Float[Tensor, "n m"]:
    """Return the responses of 32 random filters to each image, of either sign, in its four quarters.

    The image is brought to 32 x 32 pixels and normalised; the filters (6 x 6) are the same in every call:

        f = mean over a quarter of relu(w * x), and of relu(-w * x),    w ~ N(0, 1), less its mean

    Coates, Ng & Lee, 2011; Saxe et al., 2011 (untrained filters give useful features).
    """
    x = F.interpolate(_floats(images), (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
    spread, mean = torch.var_mean(x, (1, 2, 3), correction=0, keepdim=True)
    x = (x - mean) / (spread + FLAT).sqrt()
    shape = (FILTERS, x.shape[1], PATCH, PATCH)
    weight = torch.randn(shape, generator=derived_generator("random convolutions"))
    weight -= weight.mean((1, 2, 3), keepdim=True)
    response = F.conv2d(x, weight / weight.flatten(1).norm(dim=1)[:, None, None, None], stride=2)
    return F.adaptive_avg_pool2d(torch.cat([response.relu(), (-response).relu()], 1), 2).flatten(1)


BASELINES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "pixels": shrunk_pixels,
    "colours": colour_statistics,
    "convolutions": random_convolutions,
}
"""The features by name; each is a function of uint8 images [n h w c]."""


def _floats(images: Tensor) -> Tensor:
    return _expected(images).permute(0, 3, 1, 2).float()


def _expected(images: Tensor) -> Tensor:
    """Return images of bytes; raise RequestError for anything else."""
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise RequestError(f"images are uint8 [n h w c]; these are {images.dtype} {list(images.shape)}")
    return images
