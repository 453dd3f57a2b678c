"""The batch-innermost convolution and its gradients, against PyTorch's own in float64."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate.backbones.batch_innermost import (
    columns,
    from_batch_innermost,
    input_gradient,
    kernel_matrix,
    output_side,
    to_batch_innermost,
)


@st.composite
def geometries(draw: st.DrawFn) -> tuple[int, int, int, int, int, int, int, int]:
    size, stride = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    padding = draw(st.integers(0, size - 1))
    height, width = draw(st.integers(size, 9)), draw(st.integers(size, 9))
    n, c, o = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return n, c, o, height, width, size, stride, padding


@settings(max_examples=80, deadline=None)
@given(geometries())
def test_products_are_the_convolution_and_its_gradients(
    geometry: tuple[int, int, int, int, int, int, int, int],
) -> None:
    n, c, o, height, width, size, stride, padding = geometry
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, c, height, width, dtype=torch.float64, generator=generator, requires_grad=True)
    kernel = torch.randn(o, c, size, size, dtype=torch.float64, generator=generator, requires_grad=True)
    expected = torch.conv2d(x, kernel, None, stride, padding)
    upstream = torch.randn(expected.shape, dtype=torch.float64, generator=generator)
    to_x, to_kernel = torch.autograd.grad((expected * upstream).sum(), (x, kernel))

    with torch.no_grad():
        matrix, gathered = kernel_matrix(kernel), columns(to_batch_innermost(x), size, stride, padding)
        rows = output_side(height, size, stride, padding)
        mine = from_batch_innermost((matrix @ gathered).view(o, rows, -1, n))
        g = to_batch_innermost(upstream)
        mine_to_kernel = (g.view(o, -1) @ gathered.t()).view(o, size, size, c).permute(0, 3, 1, 2)
        mine_to_x = from_batch_innermost(
            input_gradient(g, matrix, (c, height, width, n), size, stride, padding)
        )
    torch.testing.assert_close(mine, expected.detach())
    torch.testing.assert_close(mine_to_kernel, to_kernel)
    torch.testing.assert_close(mine_to_x, to_x)
