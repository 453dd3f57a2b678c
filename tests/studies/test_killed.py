"""Shrunk studies, killed in a training and in an extraction, end in the same rows."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.studies.test_shrunk import part_of, rows

from penultimate.engine.run import run
from penultimate.study import Study

RUN = (
    "import sys; from pathlib import Path; from penultimate.engine.run import run;"
    " from tests.studies.test_shrunk import part_of;"
    " summary = run(part_of(sys.argv[1], Path(sys.argv[2])), sys.argv[3], 1);"
    " sys.exit(not summary.complete)"
)


def started(study: str, data: Path, out: Path) -> subprocess.Popen[bytes]:
    """The study in a process group of its own, which writes a checkpoint after every step."""
    command = [sys.executable, "-c", RUN, study, str(data), str(out)]
    seconds = {"PENULTIMATE_CHECKPOINT_SECONDS": "0"}
    return subprocess.Popen(command, env={**os.environ, **seconds}, start_new_session=True)


def killed_in(steps: str, study: str, data: Path, out: Path, within: float) -> None:
    """Start the study, and kill its whole process group at a random moment after these files are there.

    Where their step was over by then, it is started again: another such step is still to come.
    """
    for _ in range(10):
        process = started(study, data, out)
        try:
            while process.poll() is None and not list((out / "partial").glob(steps)):
                time.sleep(0.005)
            time.sleep(random.uniform(0, within))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL
        if list((out / "partial").glob(steps)):
            return
    raise AssertionError(f"no kill fell into {steps}")


@pytest.mark.long
@pytest.mark.parametrize("name", ["cifar100_wrn16_8", "imagenet_calibration"])
def test_a_study_killed_twice_ends_in_the_same_rows(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    study: Study = part_of(name, data)
    run(study, tmp_path / "whole", 1)
    killed_in("train.*/checkpoint*", name, data, tmp_path / "killed", within=0.2)
    killed_in("extract.*/*", name, data, tmp_path / "killed", within=0.02)
    assert started(name, data, tmp_path / "killed").wait() == 0
    whole = rows(tmp_path / "whole", study)
    assert whole
    assert rows(tmp_path / "killed", study) == whole
