"""The GPUs of this machine, and the shares of them that processes use."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess

from penultimate.errors import RequestError
from penultimate.variables import CUDA, DEVICE, device

VISIBLE = "CUDA_VISIBLE_DEVICES"
ASKED = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
ALMOST = 1e-6


def gpus() -> tuple[str, ...]:
    """Return the machine's GPUs by their names for CUDA_VISIBLE_DEVICES; none without a driver.

    The names in that variable are trusted, up to a "-1", which ends the list. No tensor library is imported.
    """
    listed = os.environ.get(VISIBLE)
    if listed is None:
        listed = ""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            driver = subprocess.run(ASKED, capture_output=True, text=True, timeout=30, check=True)
            listed = ",".join(driver.stdout.split())
    names = (name.strip() for name in listed.split(","))
    return tuple(filter(None, itertools.takewhile(lambda name: name != "-1", names)))


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
            "the study's networks run on GPUs, and this machine has none that can be used (nvidia-smi finds"
            f" none, or {VISIBLE} names none); --gpus 0 runs them on the CPU, where studies of ImageNet's"
            " size take years: penultimate plan STUDY --gpus 0 says how long"
        )
    if share > len(found):
        raise RequestError(
            f"a training of the study is shared by {share:g} GPUs, and this machine has {len(found)} that can"
            f" be used; give --gpus {len(found)}"
        )
    of_each = max(1, int(1 / share + ALMOST))
    return [{VISIBLE: gpu, DEVICE: device(CUDA)} for _ in range(of_each) for gpu in found]
