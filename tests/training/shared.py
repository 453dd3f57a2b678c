"""Trainings that processes share: run as a script, one of them; imported, the same cases for one process.

python -m tests.training.shared INDEX COUNT MEETING FOLDER CASE...
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from penultimate.data.augmentation.settings import Augmentation
from penultimate.training import Recipe, TrainingResult, train
from penultimate.training.run import Run
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=2, batch_size=16, ghost_batch=4, learning_rate=0.02, snapshot_every=1)
VARIED = Augmentation(shift=2, flip=True, autoaugment=True)
CASES = {
    "plain": ("softmax", RECIPE),
    "augmented": ("sigmoid", replace(RECIPE, augmentation=VARIED)),
    "dropout": ("dropout(keep=0.7)", RECIPE),
    "mixed": ("cosine_softmax", replace(RECIPE, augmentation=Augmentation(mixup=0.5))),
    "parts": ("dropout(keep=0.7) + label_smoothing", replace(RECIPE, at_once=8)),
    "own decay": ("softmax", replace(RECIPE, head_decay=0.1)),
    "projected": (
        "projector(depth=1, width=24) + center_loss + dropout(keep=0.7)",
        replace(RECIPE, ghost_batch=8, epochs=1),
    ),
    "first steps": ("projector(depth=2, width=24) + sigmoid", replace(RECIPE, ghost_batch=8, steps=3)),
    "fixed": ("simplex_etf + sigmoid", RECIPE),
    "best": ("softmax", replace(RECIPE, stopping="best", patience=1, epochs=3)),
    "again": ("dropout(keep=0.7)", replace(RECIPE, epochs=3, averaging_window=0.3)),
    "killed": ("dropout(keep=0.7)", replace(RECIPE, epochs=3, averaging_window=0.3)),
    "diverges": ("softmax", replace(RECIPE, learning_rate=1e30, epochs=6)),
}
KILLED_AT = 21


def trained(case: str, folder: Path) -> TrainingResult:
    """Two hundred images, so that an epoch's last batch is incomplete; 63 held out, which is odd."""
    objective, recipe = CASES[case]
    folder.mkdir(parents=True, exist_ok=True)
    return train(objective, TINY, squares(200, 0), squares(63, 1), recipe, 5, folder, checkpoint_seconds=0.0)


def shared(folder: Path, *cases: str, count: int = 2) -> list[subprocess.CompletedProcess[str]]:
    """That many processes train the cases together, each in a folder of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PYTHONPATH": "src:.", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    place = [str(count), str(folder / f"meeting-{cases[0]}"), str(folder), *cases]
    command = [sys.executable, "-m", "tests.training.shared"]
    processes = [
        subprocess.Popen(
            [*command, str(index), *place], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for index in range(count)
    ]
    told = [process.communicate(timeout=300) for process in processes]
    return [
        subprocess.CompletedProcess(process.args, process.returncode, *said)
        for process, said in zip(processes, told, strict=True)
    ]


advance = Run.advance


def killed(run: Run, batch: tuple[Tensor, Tensor]) -> None:
    if run.step == KILLED_AT:
        os.kill(os.getpid(), signal.SIGKILL)
    advance(run, batch)


def main(arguments: Sequence[str]) -> None:
    import torch.distributed as dist

    index, count, meeting, folder, *cases = arguments
    dist.init_process_group("gloo", Path(meeting).as_uri(), rank=int(index), world_size=int(count))
    for case in cases:
        if case == "killed" and index == "1":
            Run.advance = killed  # type: ignore[method-assign]
        result = trained(case, Path(folder) / case)
        print(case, result.status, result.epoch, result.reason, sep="|")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
