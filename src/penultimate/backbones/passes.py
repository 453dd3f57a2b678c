"""Passes of a network without gradients and autocast, and whether two passes agree."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

FEW = 8
"""The number of images on which two passes are compared."""
TRIES = 8
"""The largest number of passes compared with the first, if a network draws random numbers and they agree."""


@contextlib.contextmanager
def plainly(device: torch.device | None = None) -> Iterator[None]:
    """Run networks without gradients and autocast, and compiled networks uncompiled.

    If the caller is in `torch.inference_mode`, that mode stays active.

    >>> with torch.autocast("cpu", torch.bfloat16), plainly():
    ...     (torch.ones(1, 2) @ torch.ones(2, 1)).dtype
    torch.float32
    """
    kinds = {"cpu", *([device.type] if device is not None else [])}
    with torch.no_grad(), contextlib.ExitStack() as opened:
        for kind in kinds:
            if torch.amp.is_autocast_available(kind):
                opened.enter_context(torch.autocast(kind, enabled=False))
        opened.enter_context(as_written())
        yield


@contextlib.contextmanager
def as_written() -> Iterator[None]:
    """Run compiled modules uncompiled, because a compiled module does not show its operations."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and importing it takes a second
        yield
        return
    with torch.compiler.set_stance("force_eager"):
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
    with aside([device] if device is not None and device.type == "cuda" else []):
        before, first = _drawn(), run().detach().double().nan_to_num(0, 0, 0)
        scale = float(first.abs().max()) if first.numel() else 0.0
        for _ in range(TRIES if _drawn() != before else 1):
            second = run().detach().double().nan_to_num(0, 0, 0)
            if first.shape != second.shape or not first.numel():
                return ""
            if (largest := float((first - second).abs().max())) > 1e-4 * scale:
                between = f"differ by up to {largest:.2g} (largest value {scale:.2g})"
                return f"two passes over the same images {between}"
    return ""


def _drawn() -> tuple[object, ...]:
    """Return the states of the generators, by which it shows that a pass has drawn from one."""
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002 (networks draw from it)
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), repr(numpy)


@contextlib.contextmanager
def aside(devices: Sequence[torch.device] = (), seed: int | None = None) -> Iterator[None]:
    """Restore the caller's random generators afterwards; `seed` sets them at the start."""
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002 (networks draw from it)
    try:
        with torch.random.fork_rng(devices=list(devices)):
            if seed is not None:
                torch.default_generator.manual_seed(seed)
                random.seed(seed)
                np.random.seed(seed)  # noqa: NPY002
            yield
    finally:
        random.setstate(ours)
        np.random.set_state(theirs)  # noqa: NPY002
