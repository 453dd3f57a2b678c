"""Images decoded in worker processes, once for however many networks look at them.

What goes from a worker to its parent is uint8, a quarter of what floats are, and is normalised there, batch
by batch. The workers are a pool of the standard library's: torch's DataLoader answers the death of a worker
with an error from a signal handler, which is raised wherever the parent is just then, and again whenever
another of its children ends.

JPEGs are decoded whole. Pillow's draft mode would decode a large one at a half or a quarter of its size, and
faster; but what is resized from it is another image than torchvision's, and so it is not used.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from penultimate.data.decoding import middle_square
from penultimate.data.disk.preparation import Geometry, Preparation
from penultimate.data.listing import Listing
from penultimate.errors import DamagedFileError, PenultimateError, RequestError
from penultimate.processes import usable_cores, with_variables

AHEAD = 2
"""Batches that are being decoded, or wait, for each worker."""
Piece = TypeVar("Piece")
Read = TypeVar("Read")


@dataclass(frozen=True)
class Decoded:
    """A batch: of each geometry the images that could be read, and which those are.

    start, stop   the stretch of the listing that was read
    rows          int64 [b], the positions in the listing of the images, ascending
    images        of each geometry uint8 [b crop crop 3]
    left_out      of those that could not be read the position, and why
    remarks       of those that hold more than was read the position, and what (see `read_colours`)
    """

    start: int
    stop: int
    rows: np.ndarray
    images: dict[Geometry, UInt8[np.ndarray, "b crop crop 3"]]
    left_out: list[tuple[int, str]]
    remarks: list[tuple[int, str]]

    def prepared(self, preparation: Preparation) -> UInt8[Tensor, "b crop crop 3"]:
        """Return the images as this preparation resizes and crops them."""
        return torch.from_numpy(self.images[preparation.geometry])


def decoded(
    listing: Listing,
    preparations: Sequence[Preparation],
    batch_size: int = 64,
    workers: int | None = None,
    start: int = 0,
    upright: bool = True,
) -> Generator[Decoded, None, None]:
    """Yield the images of a listing from `start` on, in order, batch by batch,
    as each preparation wants them.

    An image is decoded once, and resized once for each geometry. `workers` is the number of processes that
    decode (0: this one; None: one for each core); it changes no bit of what comes. `upright=False` leaves the
    rotations in EXIF data unapplied, as torchvision's ImageFolder and timm do. Of a listing whose images are
    `cropped` already, each is resized to the crop whole. What cannot be read is in
    `Decoded.left_out`, and its row is missing from the images. Raises PenultimateError if a worker is killed.
    """
    if workers is None:
        workers = usable_cores()
    stretches = [
        range(at, min(at + batch_size, len(listing))) for at in range(start, len(listing), batch_size)
    ]
    read = _Reader(listing, tuple(dict.fromkeys(each.geometry for each in preparations)), upright)
    yield from in_order(read, stretches, min(workers, len(stretches)) if len(stretches) > 1 else 0)


def in_order(
    read: Callable[[Piece], Read], pieces: Iterable[Piece], workers: int
) -> Generator[Read, None, None]:
    """Yield what is read of each piece, in their order: by that many processes, ahead of the caller (0:
    by this one).

    The pieces may be endless. Raises what `read` raises, and PenultimateError if a worker is killed.
    """
    if not workers:
        yield from map(read, pieces)
        return
    with ProcessPoolExecutor(workers, initializer=_serve, initargs=(read,)) as pool:
        waiting: deque[Future[Read]] = deque()
        try:
            for piece in pieces:
                with with_variables({"PYTHONSAFEPATH": "1"}):  # a submission may start a process
                    waiting.append(pool.submit(_served, piece))
                if len(waiting) > AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise PenultimateError(
                "a process that decodes images was killed, mostly because memory ran out: give fewer workers;"
                " nothing done is lost, and the same call continues from here"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


_reader: Callable[[Any], Any]
"""Of a worker process: what it reads with."""


def _serve(reader: Callable[[Any], Any]) -> None:
    """Make a worker of a process, which leaves Ctrl-C to its parent and ends with it."""
    global _reader
    _reader = reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _served(piece: Any) -> Any:
    return _reader(piece)


class _Reader:
    """Batches of a listing, by their stretch of it; what a worker is sent."""

    def __init__(self, listing: Listing, geometries: tuple[Geometry, ...], upright: bool) -> None:
        self.listing, self.geometries, self.upright = listing, geometries, upright

    def __call__(self, stretch: range) -> Decoded:
        squares: dict[Geometry, list[np.ndarray]] = {each: [] for each in self.geometries}
        rows: list[int] = []
        left_out: list[tuple[int, str]] = []
        remarks: list[tuple[int, str]] = []
        for row in stretch:
            try:
                image, remarked = self.listing.colours(row, self.upright)
                path = Path(self.listing.name(row))
                framed = [
                    middle_square(path, image, each[1] if self.listing.cropped else each[0], *each[1:])
                    for each in self.geometries
                ]
            except (DamagedFileError, RequestError) as error:
                left_out.append((row, str(error)))
                continue
            rows.append(row)
            remarks += [(row, remark) for remark in remarked]
            for each, square in zip(self.geometries, framed, strict=True):
                squares[each].append(square)
        images = {
            each: np.stack(found) if found else np.empty((0, each[1], each[1], 3), np.uint8)
            for each, found in squares.items()
        }
        return Decoded(stretch.start, stretch.stop, np.array(rows, np.int64), images, left_out, remarks)
