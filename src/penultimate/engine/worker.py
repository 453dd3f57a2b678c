"""The worker process of a study, which runs the steps that an engine sends, each with its threads.

The local engine starts it as `python -m penultimate.engine.worker FD`, so that the caller's `__main__` is not
imported again. It ends when its parent ends, however that happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from penultimate.engine.messages import Damaged, Done, EndedError, Ending, Ready
from penultimate.engine.process import begin, ending_of, fitness, load, plain, prepare
from penultimate.graph import Step
from penultimate.store import Store


def attempt(store: Store, step: Step, progress: Callable[[dict[str, Any]], None]) -> Ending:
    """Run a step with its threads in this process; return its ending, including any exception."""
    from penultimate.engine.execute import DamagedParentError, execute

    prepare(step.resources)
    try:
        return Done(execute(store, step, progress))
    except DamagedParentError as error:
        return Damaged(error.parent, str(error))
    except EndedError as error:
        return error.ending
    except (Exception, SystemExit) as error:
        return ending_of(error, store.root)


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
