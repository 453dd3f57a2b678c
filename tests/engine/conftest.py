"""Shared by the tests of engines: a plug-in of chores, loaded as a user loads one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.chores import PLUGIN
from tests.plugged import plugged


@pytest.fixture(scope="module")
def chores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The measurement `chore`."""
    file = tmp_path_factory.mktemp("plugin") / "chores.py"
    file.write_text(PLUGIN)
    with plugged(file):
        yield


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
