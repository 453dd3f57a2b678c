"""The batch-innermost memory format: [n c h w] on the outside, [c h w n] in memory.

It is to a CPU what `channels_last` ([n h w c] in memory) is to a GPU. A convolution, like both of its
gradients, is one matrix product whose columns are gathered in runs of whole batches; a channel is one
contiguous row, so batch normalisation is the group-norm kernel with one channel per group; and nothing is
reordered between layers. Functions here take and return tensors in memory order: [c h w n].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

Shape = tuple[int, ...]


def to_batch_innermost(x: Float[Tensor, "n c h w"]) -> Float[Tensor, "c h w n"]:
    """The tensor in memory order: a copy, unless it is laid out this way already.

    >>> to_batch_innermost(torch.zeros(8, 3, 5, 5)).shape
    torch.Size([3, 5, 5, 8])
    """
    return x.permute(1, 2, 3, 0).contiguous()


def from_batch_innermost(x: Float[Tensor, "c h w n"]) -> Float[Tensor, "n c h w"]:
    """The same memory as the usual [n c h w].

    >>> x = torch.randn(8, 3, 5, 5)
    >>> y = from_batch_innermost(to_batch_innermost(x))
    >>> torch.equal(y, x), y.stride()
    (True, (1, 200, 40, 8))
    """
    return x.permute(3, 0, 1, 2)


def output_side(side: int, size: int, stride: int, padding: int) -> int:
    """Height (or width) of a convolution's output.

    >>> output_side(24, size=3, stride=2, padding=1)
    12
    """
    return (side + 2 * padding - size) // stride + 1


def kernel_matrix(kernel: Float[Tensor, "o c k k"]) -> Float[Tensor, "o kkc"]:
    """W of the product W U: a view if the kernel is stored channels-last.

    >>> kernel_matrix(torch.zeros(4, 3, 2, 2)).shape
    torch.Size([4, 12])
    """
    return kernel.permute(0, 2, 3, 1).reshape(kernel.shape[0], -1)


def columns(x: Float[Tensor, "c h w n"], size: int, stride: int, padding: int) -> Float[Tensor, "kkc yxn"]:
    """U[(i j c), (y x n)] = x[c, stride y + i - padding, stride x + j - padding, n], zero outside the image.

    W U is the convolution of x by W, and G U' its gradient by W.

    >>> x, kernel = torch.randn(8, 3, 6, 6), torch.randn(4, 3, 3, 3)
    >>> y = (kernel_matrix(kernel) @ columns(to_batch_innermost(x), 3, 2, 1)).view(4, 3, 3, 8)
    >>> torch.allclose(from_batch_innermost(y), torch.conv2d(x, kernel, None, 2, 1), atol=1e-5)
    True
    """
    if size == stride == 1 and padding == 0:
        return x.view(x.shape[0], -1)
    shape, strides = _windows(tuple(x.shape), size, stride, padding)
    return _pad(x, padding, padding).as_strided(shape, strides).reshape(size * size * shape[2], -1)


def input_gradient(
    g: Float[Tensor, "o y x n"],
    matrix: Float[Tensor, "o kkc"],
    shape: Shape,
    size: int,
    stride: int,
    padding: int,
) -> Float[Tensor, "c h w n"]:
    """The gradient of a convolution by its input of this shape, given the gradient G by its output.

    The pixels of one phase (row and column modulo the stride) are a plain convolution of G by the flipped
    taps that reach them: stride^2 matrix products that together do the work of the forward product.

    >>> x, kernel = torch.randn(8, 3, 6, 6, requires_grad=True), torch.randn(4, 3, 3, 3)
    >>> y = torch.conv2d(x, kernel, None, 2, 1)
    >>> ones, matrix = to_batch_innermost(torch.ones_like(y)), kernel_matrix(kernel)
    >>> gradient = from_batch_innermost(input_gradient(ones, matrix, (3, 6, 6, 8), 3, 2, 1))
    >>> torch.allclose(gradient, torch.autograd.grad(y.sum(), x)[0], atol=1e-5)
    True
    """
    o, c = g.shape[0], shape[0]
    if size == stride == 1 and padding == 0:
        return torch.mm(matrix.t(), g.view(o, -1)).view(shape)
    before, after, phases = _phases(shape, tuple(g.shape), size, stride, padding)
    g = _pad(g, before, after)
    flipped = matrix.view(o, size, size, c).flip((1, 2)).permute(3, 1, 2, 0)
    result = g.new_empty(shape)
    for phase in phases:
        pixels = result[phase.pixels]
        if phase.shape[0] == 0 or phase.shape[1] == 0:
            pixels.zero_()
            continue
        kernel = flipped[phase.taps].reshape(c, -1)
        windows = g.as_strided(phase.shape, phase.strides, phase.start).reshape(kernel.shape[1], -1)
        product = torch.mm(kernel, windows).view(pixels.shape)
        if stride == 1:
            return product
        pixels.copy_(product)
    return result


@cache
def _windows(shape: Shape, size: int, stride: int, padding: int) -> tuple[Shape, Shape]:
    c, h, w, n = shape
    y, x = (output_side(side, size, stride, padding) for side in (h, w))
    row = (w + 2 * padding) * n
    return (size, size, c, y, x, n), (row, n, (h + 2 * padding) * row, stride * row, stride * n, 1)


def _pad(x: Tensor, before: int, after: int) -> Tensor:
    if before == after == 0:
        return x
    c, h, w, n = x.shape
    padded = x.new_zeros(c, before + h + after, before + w + after, n)
    padded[:, before : before + h, before : before + w] = x
    return padded


@dataclass(frozen=True)
class _Phase:
    """One phase of the input: its pixels, the flipped taps that reach them, and what these read of G."""

    pixels: tuple[slice, ...]
    taps: tuple[slice, ...]
    shape: Shape
    strides: Shape
    start: int


@cache
def _phases(
    shape: Shape, upstream: Shape, size: int, stride: int, padding: int
) -> tuple[int, int, tuple[_Phase, ...]]:
    # Pixel stride q + phase meets tap i in row q + (phase + padding - i) / stride of G, where that is whole:
    # the taps of one residue class. In the order of the flipped kernel they read ascending rows of G.
    (_, h, w, n), (o, y, x, _) = shape, upstream
    first = [(phase + padding) % stride for phase in range(stride)]
    taps = [len(range(tap, size, stride)) for tap in first]
    lowest = [(phase + padding - first[phase]) // stride - taps[phase] + 1 for phase in range(stride)]
    rows, cols = ([len(range(phase, side, stride)) for phase in range(stride)] for side in (h, w))
    before = max(0, -min(lowest))
    after = max(
        0,
        max(lowest[phase] + taps[phase] - 1 + rows[phase] - y for phase in range(stride)),
        max(lowest[phase] + taps[phase] - 1 + cols[phase] - x for phase in range(stride)),
    )
    row = (before + x + after) * n
    strides = (row, n, (before + y + after) * row, row, n, 1)
    phases = []
    for a in range(stride):
        for b in range(stride):
            flipped = tuple(slice((size - 1 - first[p]) % stride, None, stride) for p in (a, b))
            phases.append(
                _Phase(
                    pixels=(slice(None), slice(a, None, stride), slice(b, None, stride)),
                    taps=(slice(None), *flipped),
                    shape=(taps[a], taps[b], o, rows[a], cols[b], n),
                    strides=strides,
                    start=(lowest[a] + before) * row + (lowest[b] + before) * n,
                )
            )
    return before, after, tuple(phases)
