"""One worker process: takes steps from its parent over a socket, does them one after another, reports.

It is started as `python -m penultimate.study.worker FD`, so that no `__main__` of the caller is imported
again; it keeps to the threads it was started with, and ends when its parent ends, however that ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from penultimate.errors import PenultimateError
from penultimate.plugins import load_source, told
from penultimate.store import FULL, Store
from penultimate.study.graph import Step


def _end_with_parent(parent: int) -> None:
    """A parent killed with -9 tells nobody: look for it, and leave; what was done so far stays resumable."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    connection = Connection(int(sys.argv[1]))
    import torch

    from penultimate.study.steps import DamagedParentError, describe_failure, execute

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    with contextlib.suppress(EOFError, BrokenPipeError):
        for path, source in connection.recv():
            try:
                load_source(path, source)
            except PenultimateError as error:
                connection.send({"kind": "unfit", "reason": str(error)})
                return
        connection.send({"kind": "ready"})
        while True:
            root, content = connection.recv()
            step = Step.from_json(content)

            def progress(news: dict[str, Any], step_id: str = step.id) -> None:
                connection.send({"kind": "progress", "id": step_id, **news})

            try:
                meta = execute(Store(root), step, progress)
                answer = {"kind": "done", "id": step.id, "status": meta["status"], "meta": meta}
            except DamagedParentError as error:
                answer = {"kind": "damaged", "id": step.id, "parent": error.parent, "reason": str(error)}
            except Exception as error:
                reason = told(error)
                log = describe_failure(error)
                full = isinstance(error, OSError) and error.errno in FULL
                answer = {"kind": "failed", "id": step.id, "reason": reason, "log": log, "full": full}
            connection.send(answer)


if __name__ == "__main__":
    main()
