"""What a process of a study does: one step after another, each with its threads, as an engine sends them.

The local engine starts it as `python -m penultimate.engine.worker FD`, so that no `__main__` of the caller is
imported again; it ends when its parent ends, however that ended.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penultimate.engine.messages import Damaged, Died, Done, EndedError, Ending, Failed, Ready
from penultimate.engine.process import begin, fitness, load, plain
from penultimate.files import FULL
from penultimate.plugins import told
from penultimate.store import SMALL, Store
from penultimate.study.graph import Step
from penultimate.userfile import first_line


def attempt(store: Store, step: Step, progress: Callable[[dict[str, Any]], None]) -> Ending:
    """Do a step, with its threads, in this process; how it ended comes back, exceptions included."""
    import torch

    from penultimate.engine.execute import DamagedParentError, describe_failure, execute

    torch.set_num_threads(step.resources.threads)
    try:
        return Done(execute(store, step, progress))
    except DamagedParentError as error:
        return Damaged(error.parent, str(error))
    except EndedError as error:
        return error.ending
    except torch.AcceleratorError as error:
        return Died(f"lost its GPU ({first_line(error)})")
    except (Exception, SystemExit) as error:
        return Failed(told(error), describe_failure(error), _is_of_full_disk(error, store.root))


def _is_of_full_disk(error: BaseException, root: Path) -> bool:
    """Whether a disk without room is behind an error: arrays that NumPy writes to a file give no number."""
    if not isinstance(error, OSError):
        return False
    return error.errno in FULL or (error.errno is None and shutil.disk_usage(root).free < SMALL)


def main() -> None:
    connection = begin()

    def progress(news: dict[str, Any]) -> None:
        connection.send(plain(news))

    with contextlib.suppress(EOFError, BrokenPipeError):
        fit = fitness()
        if isinstance(fit, Ready):
            fit = load(connection.recv())
        connection.send(fit)
        while isinstance(fit, Ready):
            root, step = connection.recv()
            connection.send(attempt(Store(root), step, progress))


if __name__ == "__main__":
    main()
