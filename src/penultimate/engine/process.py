"""What every process of a study is given: its threads, its plug-ins and its GPU."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, TypeAlias

from penultimate.engine.devices import VISIBLE
from penultimate.engine.messages import Unfit
from penultimate.errors import PenultimateError
from penultimate.graph import Resources
from penultimate.plugins import load_source, loaded
from penultimate.userfile import first_line
from penultimate.variables import CPU, CUDA, device

REPRODUCIBLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""The workspace setting without which cuBLAS may sum in a different order each time."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Source: TypeAlias = tuple[str, bytes]
"""The path of a plug-in file, and its text."""


def sources() -> list[Source]:
    """Return this process's plug-in files for others, so that a file edited meanwhile changes no run."""
    return [(str(plugin.path), plugin.source) for plugin in loaded()]


def variables(threads: int) -> dict[str, str]:
    """Return the environment of a process whose steps have this many threads."""
    return {**dict.fromkeys(THREADS, str(threads)), **REPRODUCIBLE}


def prepare(needs: Resources) -> None:
    """Set this process to a step's threads and, on a GPU, to deterministic algorithms."""
    import torch

    torch.set_num_threads(needs.threads)
    if needs.gpus or torch.are_deterministic_algorithms_enabled():  # which imports PyTorch's compilers
        torch.use_deterministic_algorithms(needs.gpus > 0, warn_only=True)


def limit_threads() -> None:
    """Set the threads of NumPy's and SciPy's BLAS, which a forked process has as its server loaded it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(int(os.environ[THREADS[0]]), "blas")


def unfit(files: Iterable[Source]) -> Unfit | None:
    """Load plug-in files from their text; return why this process can do no step, or None if it can."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return Unfit(f"PyTorch cannot be imported: {first_line(error)}")
    if device(CPU) == CUDA and not torch.cuda.is_available():
        which = f"GPU '{os.environ[VISIBLE]}'" if os.environ.get(VISIBLE) else "a GPU"
        return Unfit(
            f"PyTorch {torch.__version__} cannot use {which}; --gpus 0 runs the study on the CPU, and"
            f" {VISIBLE} names the GPUs that may be used. Nothing done is lost"
        )
    try:
        for path, source in files:
            load_source(path, source)
    except PenultimateError as error:
        return Unfit(f"{error} (in a process of the study, which has nothing that this session has defined)")
    return None


def plain(news: dict[str, Any]) -> dict[str, Any]:
    """Return a step's news in types that any process can load."""
    made: dict[str, Any] = json.loads(json.dumps(news, default=float))
    return made
