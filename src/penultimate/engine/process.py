"""How a process of a study begins: with threads, plug-ins, a GPU, and a socket to what started it."""

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
from penultimate.plugins import load_source, loaded, told
from penultimate.store import SMALL
from penultimate.userfile import first_line
from penultimate.variables import CPU, CUDA, device

REPRODUCIBLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Without it cuBLAS may sum in another order each time."""


def variables(threads: int) -> dict[str, str]:
    """Return the environment that a process with this many threads is started in.

    It spells file names as this process does, also where this one was started with -X utf8.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    spelling = {"PYTHONUTF8": "1"} if sys.flags.utf8_mode else {}
    return {**dict.fromkeys(names, str(threads)), **REPRODUCIBLE, **spelling}


def prepare(needs: Resources) -> None:
    """Have this process compute with a step's threads; on a GPU, what is the same each time."""
    import torch

    torch.set_num_threads(needs.threads)
    torch.use_deterministic_algorithms(needs.gpus > 0, warn_only=True)


Source: TypeAlias = tuple[str, bytes, dict[str, str]]


def sources() -> list[Source]:
    """Return the plug-in files of this process and what they read, as `load` takes them:
    a file edited meanwhile changes no run.
    """
    return [(str(plugin.path), plugin.source, dict(plugin.reads)) for plugin in loaded()]


def load(files: Iterable[Source]) -> Ready | Unfit:
    """Load plug-in files from their text; those that are loaded already stay."""
    try:
        for path, source, reads in files:
            load_source(path, source, reads)
    except PenultimateError as error:
        return Unfit(
            f"{error} (in a process of the study, which begins in the current folder and has nothing that"
            " this session has defined or put on its path)"
        )
    return Ready()


def ending_of(error: BaseException, root: Path) -> Died | Failed:
    """Return what an exception that a step raised means for the study, whose store is on this disk."""
    import torch

    if isinstance(error, torch.AcceleratorError):
        return Died(f"lost its GPU ({first_line(error)})")
    return Failed(told(error), "".join(traceback.format_exception(error)), _is_of_full_disk(error, root))


def _is_of_full_disk(error: BaseException, root: Path) -> bool:
    """Return whether a disk without room is behind an error: arrays that NumPy writes to a file give no
    number.
    """
    if not isinstance(error, OSError):
        return False
    return error.errno in FULL or (error.errno is None and shutil.disk_usage(root).free < SMALL)


def plain(news: dict[str, Any]) -> dict[str, Any]:
    """News of a step in types that any process knows."""
    made: dict[str, Any] = json.loads(json.dumps(news, default=float))
    return made


def _end_with_parent(parent: int) -> None:
    """A parent killed with -9 tells nobody: look for it, and leave; what was done so far stays resumable."""
    while os.getppid() == parent:
        time.sleep(0.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpid(), signal.SIGKILL)  # with those that a step has started
    os._exit(1)


def begin() -> Connection:
    """Return the socket to the process that started this one, on which Ctrl-C is left to that one,
    and ends with it.

    No process that a step starts holds the socket, or else its end would be hidden.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    handle = int(sys.argv[1])
    os.set_inheritable(handle, False)
    connection = Connection(handle)
    os.register_at_fork(after_in_child=connection.close)
    return connection


def fitness() -> Ready | Unfit:
    """Note that a process is ready: the slow import is done, and its GPU is there if it needs one."""
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
