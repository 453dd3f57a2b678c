"""Text is read and written in UTF-8 whatever the locale, and what a terminal lacks ends no command."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penultimate.cli import main
from tests.data.published import put_image
from tests.evaluation.pictures import split_folders

SOURCES = Path("src/penultimate")
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
"""The environment of a process whose locale has no letter beyond ASCII."""


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_what_a_terminal_lacks_is_shown_as_a_question_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """Rich's marks, tables, errors, and names that no encoding has: a byte of a name that is no text."""
    for name in ("Ärger", "日本", os.fsdecode(b"caf\xe9")):
        for number in range(3):
            put_image(tmp_path / "dätä" / name / f"{number}.jpg", 0, number)
    (tmp_path / "dätä" / "日本" / os.fsdecode(b"\xff.jpg")).write_bytes(b"no image")
    commands = (
        (["data", "check", str(tmp_path / "dätä")], 1),
        (["status", "--verify", "--out", str(tmp_path / "≤")], 0),
        (["list", "objectives"], 0),
        (["check", "--example", "loss"], 0),
        (["status", "--out", str(tmp_path / os.fsdecode(b"\xff"))], 0),
        (["show", "täble", "--out", str(tmp_path)], 2),
    )
    for command, expected in commands:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2))
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        assert main(command) == expected
        told = out.buffer.getvalue() + err.buffer.getvalue()  # type: ignore[attr-defined]
        assert told.decode(encoding)


def run_in_ascii(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **ASCII, "PYTHONPATH": str(SOURCES.parent.resolve())}
    command = [sys.executable, "-m", "penultimate.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


def test_a_locale_of_ascii_reads_names_of_all_kinds(tmp_path: Path) -> None:
    for name in ("Ärger", os.fsdecode(b"caf\xe9")):
        for number in range(3):
            put_image(tmp_path / "data" / name / f"ü{number}.jpg", 0, number)
    done = run_in_ascii(tmp_path, "data", "check", "data")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"2 classes; 0 cannot be read" in done.stdout


NET = """# Ünder another name
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
"""


@pytest.mark.long
def test_an_evaluation_in_a_locale_of_ascii_is_that_of_any_other(tmp_path: Path) -> None:
    split_folders(tmp_path / "data", ("Ärger", "日本", os.fsdecode(b"caf\xe9")), 9, 6)
    (tmp_path / "net.py").write_text(NET, "utf-8")
    options = ("--model", "n=net.py:build", "--data", "t=data", "--size", "32", "--processes", "1")
    done = run_in_ascii(tmp_path, "evaluate", *options)
    assert (done.returncode, done.stderr) == (0, b"")
    assert main(["status", "--out", str(tmp_path / "runs")]) == 0
    assert main(["show", "ranking", "--out", str(tmp_path / "runs")]) == 0
