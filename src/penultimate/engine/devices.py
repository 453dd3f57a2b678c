"""The GPUs of this machine, and the shares of them that processes use."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess

from penultimate.errors import RequestError
from penultimate.variables import CUDA, DEVICE, device

VISIBLE = "CUDA_VISIBLE_DEVICES"
ASKED = ("nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits")
MIB = 1 << 20
ALMOST = 1e-6


def gpus() -> tuple[str, ...]:
    """Return the machine's GPUs by their names for CUDA_VISIBLE_DEVICES; none without a driver.

    The names in that variable are trusted, up to a "-1", which ends the list. No tensor library is imported.
    """
    told = os.environ.get(VISIBLE)
    if told is None:
        return tuple(uuid for _, uuid, _ in _driver())
    names = (part.strip() for line in told.splitlines() for part in line.split(","))
    return tuple(filter(None, itertools.takewhile(lambda name: name != "-1", names)))


def gpu_memory() -> int | None:
    """Return the bytes of the smallest usable GPU, or None if the driver does not report it."""
    visible = gpus()
    sizes = [
        MIB * int(size)
        for index, uuid, size in _driver()
        if size.isdigit() and any(name == index or uuid.startswith(name) for name in visible)
    ]
    return min(sizes, default=None)


def _driver() -> list[tuple[str, str, str]]:
    """Return number, name and memory in MiB of each GPU from the driver; empty without a driver."""
    told = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ASKED, capture_output=True, encoding="utf-8", errors="replace", timeout=30, check=True
        ).stdout
    rows = (tuple(part.strip() for part in line.split(",")) for line in told.splitlines())
    return [(row[0], row[1], row[2]) for row in rows if len(row) == len(("index", "uuid", "memory"))]


def places_on_gpus(share: float) -> list[dict[str, str]]:
    """Return the environments of processes, each with its share of a GPU, in the order of the GPUs.

    For a step that spans several GPUs there is a process on each. Raises RequestError if there are too few.

    >>> import os
    >>> os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    >>> [place["CUDA_VISIBLE_DEVICES"] for place in places_on_gpus(0.5)]
    ['0', '1', '0', '1']
    >>> del os.environ["CUDA_VISIBLE_DEVICES"]
    """
    found = gpus()
    if not found:
        raise RequestError(
            f"the study's networks run on GPUs ({share:g} {'each' if share > 1 else 'of one each'}), and this"
            f" machine has none that can be used (nvidia-smi finds none, or {VISIBLE} names none); --gpus 0"
            " runs them on the CPU, where studies of ImageNet's size take years: penultimate plan STUDY"
            " --gpus 0 says how long, and 'quickstart' asks the same in minutes"
        )
    if share > len(found):
        raise RequestError(
            f"a training of the study is shared by {share:g} GPUs, and this machine has {len(found)} that can"
            f" be used; give --gpus {len(found)}"
        )
    return [
        {VISIBLE: gpu, DEVICE: device(CUDA)} for _ in range(max(1, int(1 / share + ALMOST))) for gpu in found
    ]
