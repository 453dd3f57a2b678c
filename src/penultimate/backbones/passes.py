"""Passes of a network without gradients and autocast, and whether two passes agree."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

FEW = 8
"""The number of images on which two passes are compared."""
BESIDE = (
    "the features of an image differ by up to {:.2g} (largest value {:.2g}) with the images beside it in a"
    " batch (batch normalisation in training mode, say), and these are the features in their batches"
)
TRIES = 8
"""The largest number of passes compared with the first, if a network draws random numbers and they agree."""


class PassDifference(NamedTuple):
    """The largest difference between two passes over the same images, and the largest value of the first."""

    largest: float
    scale: float

    def __str__(self) -> str:
        largest, scale = f"{self.largest:.2g}", f"{self.scale:.2g}"
        return f"two passes over the same images differ by up to {largest} (largest value {scale})"


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


def difference(run: Callable[[], list[Tensor]], device: torch.device | None = None) -> PassDifference | None:
    """Return how far two passes differ, or None if they differ by no more than rounding.

    `run` makes a pass. If it draws random numbers and two passes agree, a few more passes are made. The
    caller's generators of PyTorch, NumPy and Python are restored.

    >>> layer = torch.nn.Dropout(0.5)
    >>> difference(lambda: [layer(torch.ones(4, 9))]).largest, difference(lambda: [torch.ones(2)])
    (2.0, None)
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with aside(devices):
        before, first = _drawn(devices), run()
        tries = TRIES if _drawn(devices) != before else 1
        found = (_between(first, run()) for _ in range(tries))
        return next((one for one in found if one is not None), None)


def influence(run: Callable[[Tensor], list[Tensor]], images: Tensor) -> PassDifference | None:
    """Return how far outputs for some images depend on other images in the batch, or None if they do not.

    >>> norm, images = torch.nn.BatchNorm1d(1), torch.tensor([[0.0], [2.0], [4.0], [6.0]])
    >>> influence(lambda batch: [norm(batch)], images) is None
    False
    >>> influence(lambda batch: [norm.eval()(batch)], images) is None
    True
    """
    half = len(images) // 2
    if not half:
        return None
    with aside([images.device] if images.device.type == "cuda" else []):
        whole = [values[:half] for values in run(images.clone())]
        return _between(whole, run(images[:half].clone()))


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


def _drawn(devices: list[torch.device]) -> tuple[object, ...]:
    """Return the states of all generators, for comparison."""
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in devices)]
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002
    return (*(state.numpy().tobytes() for state in states), random.getstate(), repr(numpy))


def _between(first: list[Tensor], second: list[Tensor]) -> PassDifference | None:
    """Return the difference between two passes' outputs, or None if it is only rounding."""
    worst: PassDifference | None = None
    for one, other in zip(first, second, strict=False):
        if one.shape != other.shape:
            return PassDifference(float("inf"), float("inf"))
        if not one.numel():
            continue
        coarse = 1e-5 if one.dtype in (torch.float32, torch.float64) else 1e-2
        values, again = (each.detach().double().nan_to_num(0, 0, 0) for each in (one, other))
        found = PassDifference(float((values - again).abs().max()), float(values.abs().max()))
        if found.largest > 10 * coarse * found.scale and (worst is None or found.largest > worst.largest):
            worst = found
    return worst
