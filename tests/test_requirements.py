"""The lock files install, on each platform, exactly what the package and its tests need there."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.pinned import DOCS, PLATFORMS, ROOT, RUNTIME, TESTS, closure, pinned_on, pins


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_locks_pin_what_is_needed_on_each_platform_and_nothing_else(platform: str) -> None:
    assert pinned_on(platform, "requirements.lock") == closure(RUNTIME, platform)
    both = pinned_on(platform, "requirements.lock", "requirements-test.lock")
    assert both == closure(RUNTIME + TESTS, platform)


def test_the_locks_pin_the_versions_that_are_installed_here() -> None:
    for name, pin in pins("requirements.lock", "requirements-test.lock").items():
        if pin.marker is None or pin.marker.evaluate({"extra": ""}):
            assert pin.specifier.contains(metadata.version(name), prereleases=True), name


def test_the_lock_of_the_documentation_agrees_with_the_others() -> None:
    locked = pins("requirements.lock", "requirements-test.lock", "requirements-docs.lock")
    assert {Requirement(one).name for one in DOCS} <= locked.keys()


def test_demo_installs_a_third_of_the_packages_where_there_is_no_cuda() -> None:
    runtime = pinned_on("macOS on arm64", "requirements.lock")
    assert len(runtime) < 40
    assert not runtime & {"pytest", "ray", "timm", "torchvision", "datasets", "onnx", "mypy"}


def python_script(folder: Path, name: str, version: tuple[int, int]) -> None:
    """Write a stand-in for a Python interpreter, which answers as one of that version does."""
    answer = f'case "$*" in *version_info*) exit {int(version < (3, 11))};; esac\n'
    (folder / name).write_text(f'#!/bin/sh\n{answer}echo "{name} $*"\nexit 3\n')
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": (3, 12)}, "python3 -m venv"),
        ({"python": (3, 13)}, "python -m venv"),
        ({"python3": (3, 9), "python3.12": (3, 12)}, "python3.12 -m venv"),
        ({"python3": (3, 14), "python3.11": (3, 11)}, "python3.11 -m venv"),
        ({"python3": (3, 10)}, "Python 3.11 or later"),
        ({}, "Python 3.11 or later"),
    ],
)
def test_make_takes_any_python_from_3_11_on(
    tmp_path: Path, there: dict[str, tuple[int, int]], chosen: str
) -> None:
    for name in ("make", "sh", "touch", "uname", "cat", "echo"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=False).stdout.strip()
        if found:
            (tmp_path / name).symlink_to(found)
    for name, version in there.items():
        python_script(tmp_path, name, version)
    for file in ("Makefile", "requirements.lock", "pyproject.toml"):
        (tmp_path / file).symlink_to(ROOT / file)
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment.pop("MAKEFLAGS", None)
    answer = subprocess.run(
        ["make", "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode != 0
    assert chosen in answer.stdout + answer.stderr
