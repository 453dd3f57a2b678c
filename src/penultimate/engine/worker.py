"""The processes of a study, which do one step after another, each with its threads, plug-ins and GPU."""

from __future__ import annotations

import contextlib
import shutil
import traceback
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from penultimate import registry, specs
from penultimate.engine.execute import DamagedParentError, execute
from penultimate.engine.messages import Damaged, Died, Done, Ending, Failed
from penultimate.engine.process import Source, limit_threads, plain, prepare, unfit
from penultimate.files import FULL
from penultimate.graph import Step
from penultimate.plugins import one_line
from penultimate.store import SMALL, Store
from penultimate.study.graph import Graph
from penultimate.userfile import first_line


def runs_user_code(step: Step, graph: Graph) -> bool:
    """Return whether a step calls a plug-in or a user's Python file, itself or in a network or data set."""
    return any(map(_is_made_by_user, (step, *(graph.steps[parent] for parent in step.parents))))


def _is_made_by_user(step: Step) -> bool:
    config = step.config
    if "plugins" in config or "built" in config or str(config.get("source")).startswith("folder:"):
        return True
    backbone = config.get("backbone")
    return backbone is not None and registry.entry("backbone", specs.parse(backbone).name).is_plugin


def serve(connection: Connection, files: Iterable[Source]) -> None:
    """Do the steps that come through the connection, and answer each with its progress and its ending."""
    with contextlib.suppress(EOFError, BrokenPipeError):
        limit_threads()
        refusal = unfit(files)
        while True:
            root, step = connection.recv()
            connection.send(refusal or attempt(Store(root), step, lambda news: connection.send(plain(news))))


def attempt(store: Store, step: Step, progress: Callable[[dict[str, Any]], None]) -> Ending:
    """Do a step in this process, and return its ending.

    A step that fails because a parent was set aside meanwhile, for another step found it damaged, says so.
    """
    prepare(step.resources)
    try:
        return Done(execute(store, step, progress))
    except DamagedParentError as error:
        return Damaged(error.parent, str(error))
    except (Exception, SystemExit) as error:
        for parent in step.parents:
            if parent not in step.absent and not store.is_whole(parent):
                return Damaged(parent, f"step {parent} is missing or damaged")
        return _ending_of(error, store.root)


def _ending_of(error: BaseException, root: Path) -> Died | Failed:
    """Return the ending that a step's exception means for the study, whose store is on this disk."""
    import torch
    from torch.multiprocessing.spawn import ProcessExitedException

    if isinstance(error, torch.AcceleratorError):
        return Died(f"lost its GPU ({first_line(error)})")
    if isinstance(error, ProcessExitedException):
        return Died(f"lost one of those that share the training ({first_line(error)})")
    return Failed(one_line(error), "".join(traceback.format_exception(error)), _is_of_full_disk(error, root))


def _is_of_full_disk(error: BaseException, root: Path) -> bool:
    """Return whether a full disk caused an error, for which NumPy's array writer gives no error number."""
    if not isinstance(error, OSError):
        return False
    return error.errno in FULL or (error.errno is None and shutil.disk_usage(root).free < SMALL)
