"""How many multiply-adds a module takes for an image, and how many images it takes in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

ROUNDS, SECONDS = 5, 2.0
"""The fewest timed batches, and the least seconds that they take together."""


def multiply_adds(module: nn.Module, images: Tensor) -> int:
    """Return the multiply-adds of a forward pass for one image: of convolutions and matrix products.

    Operations are counted where PyTorch dispatches them, as 2 FLOP a multiply-add (`FlopCounterMode`);
    attention is computed by products that are counted, and not by fused kernels. Normalisation, activations
    and pooling are not counted, as usual. 0 means that nothing was seen, as of a network outside PyTorch.

    >>> multiply_adds(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), torch.zeros(3, 3, 2, 2))
    60
    """
    counter = FlopCounterMode(display=False)
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one fused operation, which has no count
    try:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
            module(images)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return int(counter.get_total_flops()) // (2 * len(images))


def images_a_second(forward: Callable[[Tensor], object], images: Tensor) -> float:
    """Return the images in a second of a forward pass on a batch that lies ready: of the median of batches.

    The first pass is not timed. It takes `SECONDS`, or `ROUNDS` passes if they are slow.
    """
    durations: list[float] = []
    with torch.inference_mode():
        forward(images)
        while len(durations) < ROUNDS or sum(durations) < SECONDS:
            began = time.perf_counter()
            forward(images)
            if images.is_cuda:
                torch.cuda.synchronize(images.device)
            durations.append(time.perf_counter() - began)
    return len(images) / median(durations)
