"""Start a process of a study with its threads, plug-ins, GPU, and a socket to the process that started it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from penultimate.engine.devices import VISIBLE
from penultimate.engine.messages import Died, Failed, Ready, Unfit
from penultimate.errors import PenultimateError
from penultimate.files import FULL
from penultimate.graph import Resources
from penultimate.plugins import load_source, loaded, one_line
from penultimate.store import SMALL
from penultimate.userfile import first_line
from penultimate.variables import CPU, CUDA, device

REPRODUCIBLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""The workspace setting without which cuBLAS may sum in a different order each time."""


def variables(threads: int) -> dict[str, str]:
    """Return the environment for starting a process with this many threads.

    It makes the process decode file names as this one does, even if this one was started with -X utf8.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    spelling = {"PYTHONUTF8": "1"} if sys.flags.utf8_mode else {}
    return {**dict.fromkeys(names, str(threads)), **REPRODUCIBLE, **spelling}


def prepare(needs: Resources) -> None:
    """Set this process to a step's threads and, on a GPU, to deterministic algorithms."""
    import torch

    torch.set_num_threads(needs.threads)
    on_gpu = needs.gpus > 0
    if on_gpu or torch.are_deterministic_algorithms_enabled():  # the call imports torch._inductor
        torch.use_deterministic_algorithms(on_gpu, warn_only=True)


Source: TypeAlias = tuple[str, bytes]


def sources() -> list[Source]:
    """Return this process's plug-in files for `load`, so that a file edited meanwhile changes no run."""
    return [(str(plugin.path), plugin.source) for plugin in loaded()]


def load(files: Iterable[Source]) -> Ready | Unfit:
    """Load plug-in files from their text; files that are loaded already are kept."""
    try:
        for path, source in files:
            load_source(path, source)
    except PenultimateError as error:
        return Unfit(
            f"{error} (in a process of the study, which begins in the current folder and has nothing that"
            " this session has defined or put on its path)"
        )
    return Ready()


def ending_of(error: BaseException, root: Path) -> Died | Failed:
    """Return the ending that a step's exception means for the study, whose store is on this disk."""
    import torch

    if isinstance(error, torch.AcceleratorError):
        return Died(f"lost its GPU ({first_line(error)})")
    return Failed(one_line(error), "".join(traceback.format_exception(error)), _is_of_full_disk(error, root))


def _is_of_full_disk(error: BaseException, root: Path) -> bool:
    """Return whether a full disk caused an error, for which NumPy's array writer gives no error number."""
    if not isinstance(error, OSError):
        return False
    return error.errno in FULL or (error.errno is None and shutil.disk_usage(root).free < SMALL)


def plain(news: dict[str, Any]) -> dict[str, Any]:
    """Return a step's news in types that any process can load."""
    made: dict[str, Any] = json.loads(json.dumps(news, default=float))
    return made


def _end_with_parent(parent: int) -> None:
    """Watch for the parent's end, because a parent killed with -9 sends nothing; all work stays resumable."""
    while os.getppid() == parent:
        time.sleep(0.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpid(), signal.SIGKILL)  # together with the processes that a step has started
    os._exit(1)


def begin() -> Connection:
    """Return the socket to the parent process; this process leaves Ctrl-C to the parent and ends with it.

    Processes that a step starts must not hold the socket, because they would hide its end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    handle = int(sys.argv[1])
    os.set_inheritable(handle, False)
    connection = Connection(handle)
    os.register_at_fork(after_in_child=connection.close)
    return connection


def fitness() -> Ready | Unfit:
    """Import PyTorch, check the GPU if one is needed, and return whether the process is ready."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return Unfit(f"PyTorch cannot be imported: {first_line(error)}")
    if device(CPU) == CUDA and not torch.cuda.is_available():
        named = os.environ.get(VISIBLE)
        which = f"GPU '{named}'" if named else "a GPU"
        return Unfit(
            f"PyTorch {torch.__version__} cannot use {which}; --gpus 0 runs the study on the CPU, and"
            f" {VISIBLE} names the GPUs that may be used. Nothing done is lost"
        )
    return Ready()
