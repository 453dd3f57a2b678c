"""Shared by the tests: one smoke study, run once; arrays' shapes checked as their annotations say."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

import tests.typechecker  # noqa: F401  (the hook finds it by name)
from tests.golden.portable import PORTABLE

if TYPE_CHECKING:
    from penultimate.records.table import Table

# On a busy machine an example may take any time, which is no fault of what is tested.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_warn_always(True)  # else only the first test that provokes a warning of PyTorch would fail
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and text would be as narrow
os.unsetenv("COLUMNS")  # and readline, which pytest loads, without a trace in os.environ
for _signal, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) is signal.SIG_IGN:  # under nohup; what the tests start would ignore it too
        signal.signal(_signal, _usual)
ROOT = Path(__file__).parents[1]
# Only modules whose functions take arrays: elsewhere a wrong type is answered by an error written for people.
SHAPED = ["metrics", "backbones", "data.augmentation.transforms", "networks.trained", "networks.given"]
SHAPED += ["features.extraction"]
SHAPED += [f"objectives.{module}" for module in ("losses", "heads", "penalties", "objective")]
# The 10,000 calls within a fit are checked by `make test-all`, and in one process by `make test`.
OUTER = ("linear", "knn", "multilabel", "estimator", "inputs", "arrays", "neighbours", "validation")
SHAPED += ["probes"] if "CHECK_EVERY_SHAPE" in os.environ else [f"probes.{module}" for module in OUTER]
install_import_hook([f"penultimate.{module}" for module in SHAPED], "tests.typechecker.check")


def penultimate(*arguments: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "penultimate.cli", *arguments],
        cwd=cwd,
        env={**os.environ, **PORTABLE},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def rows_in(path: Path | str, study: str = "") -> Table:
    """Return the rows of a study, by default of the one that was run last."""
    from penultimate.records.reading import study_folder

    return study_folder(path, study).table()


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once for all the processes of pytest-xdist (do not write to it)."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, made = base / name, base / f"{name}.made"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            made.touch()
    return folder


@pytest.fixture(scope="session")
def finished_smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the smoke study has been run (do not write to it: take `smoke`)."""

    def run(folder: Path) -> None:
        answer = penultimate("run", "smoke", cwd=folder, timeout=600)
        assert answer.returncode == 0, answer.stdout + answer.stderr

    return made_once(tmp_path_factory, "finished-smoke", run)


@pytest.fixture
def smoke(finished_smoke: Path, tmp_path: Path) -> Path:
    """A copy of the finished smoke study, to be spoilt."""
    shutil.copytree(finished_smoke / "runs", tmp_path / "runs")
    return tmp_path


@pytest.fixture(scope="session")
def finished_given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the study `given` has been run (do not write to it)."""
    from tests.networks.given import run_with_given

    return (
        made_once(tmp_path_factory, "finished-given", lambda folder: run_with_given(folder / "runs")) / "runs"
    )


@pytest.fixture(scope="session")
def finished_miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the study of `tests.miniature` has been run (do not write to it).

    In a process of its own, where warnings are errors too, but the shapes of arrays are not checked: for its
    probes that takes longer than all else.
    """

    def run(folder: Path) -> None:
        paths = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        command = [sys.executable, "-W", "error", "-c", "from tests.miniature import run; run()"]
        subprocess.run(command, cwd=folder, env={**os.environ, **paths}, check=True)

    return made_once(tmp_path_factory, "finished-miniature", run) / "runs"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk here")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
