"""One process of a shared training, which `sharing` starts as python -m penultimate.engine.rank FD."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from penultimate.engine.messages import Died, Failed, Unfit
from penultimate.engine.process import begin, ending_of, fitness, load, plain, prepare
from penultimate.engine.sharing import BACKENDS, CAUSE, CONSEQUENCE, REFUSED
from penultimate.errors import PenultimateError
from penultimate.measures.inputs import Inputs


def main() -> None:
    connection = begin()
    with contextlib.suppress(EOFError, BrokenPipeError):
        files, step, folder, folders, (index, count, meeting) = connection.recv()

        def progress(news: dict[str, Any]) -> None:
            if index == 0:
                connection.send(plain(news))

        inputs = Inputs(step, folder, folders, progress)
        unfit = next((each for each in (fitness(), load(files)) if isinstance(each, Unfit)), None)
        refused = (REFUSED, Failed(unfit.reason)) if unfit else None
        connection.send(refused or _part(inputs, index, count, meeting))


def _part(inputs: Inputs, index: int, count: int, meeting: str) -> Any:
    """Run this process's part of the training; return its result or how it ended."""
    import torch.distributed as dist

    from penultimate.engine.execute import trained

    prepare(inputs.step.resources)
    place = Path(meeting).as_uri()
    try:
        dist.init_process_group(BACKENDS[inputs.device], place, rank=index, world_size=count)
        result = trained(inputs)
        dist.destroy_process_group()
        return result
    except (Exception, SystemExit) as error:
        ending = ending_of(error, inputs.folder)
        parted = isinstance(error, RuntimeError) and not isinstance(error, PenultimateError)
        return CAUSE if isinstance(ending, Died) else CONSEQUENCE if parted else REFUSED, ending


if __name__ == "__main__":
    main()
