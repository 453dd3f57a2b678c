"""Text is read and written in UTF-8 whatever the locale, and what a terminal lacks ends no command."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate.cli import main
from tests.data.published import put_image
from tests.evaluation.pictures import split_folders

SOURCES = Path("src/penultimate")
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
"""The environment of a process whose locale has no letter beyond ASCII."""
OF_BYTES = ("Image.open", "members.open", "os.open", "packed.open", "tarfile.open", "webbrowser.open")
"""Functions called open that open no file, or one of bytes."""


def in_the_locales_encoding(source: str) -> Iterator[str]:
    """Yield the calls that read or write text without saying in which encoding."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        function, keywords = ast.unparse(call.func), {each.arg for each in call.keywords}
        name = function.rpartition(".")[2]
        if "encoding" in keywords or function in OF_BYTES:
            continue
        modes = [node.value for each in (*call.args, *call.keywords) for node in ast.walk(each)
                 if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
        are_bytes = any("b" in mode and set(mode) <= set("rwaxb+") for mode in modes)
        if (
            (name in ("open", "fdopen") and not are_bytes)
            or (name == "read_text" and not modes)
            or (name == "write_text" and len(call.args) < 2)
            or ("text" in keywords and "capture_output" in keywords)
            or "universal_newlines" in keywords
        ):
            yield f"{call.lineno}: {ast.unparse(call)}"


def test_every_text_file_is_opened_in_a_named_encoding() -> None:
    """As ruff's PLW1514, but also where the type of what is opened cannot be told."""
    found = {
        f"{path}:{call}"
        for path in SOURCES.rglob("*.py")
        for call in in_the_locales_encoding(path.read_text("utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("path.read_text()", True),
        ("path.read_text('utf-8')", False),
        ("(folder / NAME).write_text(text)", True),
        ("path.write_text(text, encoding='utf-8')", False),
        ("open(path)", True),
        ("path.open('a')", True),
        ("path.open(mode='rb')", False),
        ("path.open('r+b' if path.is_file() else 'w+b')", False),
        ("os.fdopen(handle, 'w')", True),
        ("subprocess.run(command, capture_output=True, text=True)", True),
        ("subprocess.run(command, capture_output=True)", False),
    ],
)
def test_what_counts_as_unnamed(call: str, is_found: bool) -> None:
    assert bool(list(in_the_locales_encoding(call))) == is_found


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
    (manifest,) = (tmp_path / "runs/steps").glob("data.*/manifest.json")
    for name in ("Ärger", "日本", r"caf\\xe9"):
        assert f'"{name}"' in manifest.read_text("utf-8")
    assert main(["status", "--out", str(tmp_path / "runs")]) == 0
    assert main(["show", "ranking", "--out", str(tmp_path / "runs")]) == 0
