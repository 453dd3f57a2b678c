"""Passes of a network without gradients and autocast, and whether two passes agree."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from penultimate.errors import legible, shortened
from penultimate.userfile import first_line

FEW = 8
"""The number of images on which two passes are compared."""
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError)
"""Errors that a forward pass may raise for input that it was not made for."""


def message_of(error: BaseException) -> str:
    """Return the first line of an error of a library or of a user's module, safe to show and short.

    >>> message_of(KeyError())
    'KeyError'
    """
    return shortened(legible(first_line(error) or type(error).__name__), 300)


@contextlib.contextmanager
def plainly(device: torch.device | None = None) -> Iterator[None]:
    """Run networks without gradients and autocast, and compiled networks uncompiled.

    If the caller is in `torch.inference_mode`, that mode stays active.

    >>> with torch.autocast("cpu", torch.bfloat16), plainly():
    ...     (torch.ones(1, 2) @ torch.ones(2, 1)).dtype
    torch.float32
    """
    with torch.no_grad(), contextlib.ExitStack() as opened:
        for kind in {"cpu", "cpu" if device is None else device.type}:
            if torch.amp.is_autocast_available(kind):
                opened.enter_context(torch.autocast(kind, enabled=False))
        if "torch._dynamo" in sys.modules:  # otherwise nothing is compiled, and importing it takes a second
            opened.enter_context(torch.compiler.set_stance("force_eager"))
        yield


def difference(run: Callable[[], Tensor], device: torch.device | None = None) -> str:
    """Return how far two passes differ, as a clause, or an empty string if they differ only by rounding.

    The caller's generators of PyTorch, NumPy and Python are restored.

    >>> layer = torch.nn.Dropout(0.5)
    >>> difference(lambda: layer(torch.ones(4, 9)))
    'two passes over the same images differ by up to 2 (largest value 2)'
    >>> difference(lambda: torch.ones(2))
    ''
    """
    with aside(device):
        first, second = (run().detach().double().nan_to_num(0, 0, 0) for _ in range(2))
    if first.shape != second.shape or not first.numel():
        return ""
    largest, scale = float((first - second).abs().max()), float(first.abs().max())
    if largest <= 1e-4 * scale:
        return ""
    return f"two passes over the same images differ by up to {largest:.2g} (largest value {scale:.2g})"


@contextlib.contextmanager
def aside(device: torch.device | None = None) -> Iterator[None]:
    """Restore the caller's random generators afterwards, that of a GPU too if `device` is one."""
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002 (networks draw from it)
    try:
        with torch.random.fork_rng([device] if device is not None and device.type == "cuda" else []):
            yield
    finally:
        random.setstate(ours)
        np.random.set_state(theirs)  # noqa: NPY002
