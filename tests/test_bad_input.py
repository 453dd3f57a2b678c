"""Whatever the command and the library are given, they do it or say in a sentence what is wrong with it."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penultimate import registry
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.study import load_study
from tests.engine.processes import wait_for

# -- files that a user has written ---------------------------------------------------------------------------


def test_a_plugin_that_ends_its_process_when_it_is_called_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\nfrom penultimate import register\n\n@register.loss\ndef vanish(z, t): os._exit(0)\n\n"
    )
    try:
        assert main(["check", str(file)]) == 2
    finally:
        registry.forget("loss", "vanish")
    assert "a process that runs your code ended with code 0" in " ".join(capsys.readouterr().err.split())


def test_control_c_ends_a_check_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("open('begun', 'w')\nwhile True: pass\n")
    command = [sys.executable, "-m", "penultimate.cli", "check", "mine.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "begun").exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in said, "stopped" in said) == (130, False, True)


# -- settings ------------------------------------------------------------------------------------------------


def answered(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says when it refuses; "" when it does not."""
    code = main(arguments)
    said = capsys.readouterr()
    assert code in (0, 2)
    assert all(character.isprintable() or character == "\n" for character in said.err)
    assert len(said.err) < 3000
    assert said.err.startswith("penultimate: ") == (code == 2)
    return said.err if code else ""


@pytest.mark.parametrize(
    ("assignment", "answer"),
    [
        ("expected_seconds={'train': nan}", "expected_seconds must be of type Mapping[str, float]"),
        ("counterparts=5", "counterparts must be of type Mapping[str, Mapping[str, tuple[str, ...]]], not 5"),
        ("counterparts={'digit_smoke': {}}", "Did you mean 'digits_smoke'?"),
        ("limited=maybe", "limited must be of type bool, not 'maybe'"),
        ("name='" + "a" * 101 + "'", "at most 100 letters"),
        ("tuned_by=../smoke", "at most 100 letters"),
        ("tuned_by=one,two,one", "tuned_by names 'one' twice; name it once"),
        ("targets=[1]", "targets must be of type tuple[str, ...], not (1,)"),
        ("recipe.learning_rate=1" + "0" * 400, "learning_rate is a number above 0"),
        ("measure=relearning(shots=(5,1))", "shots must be an integer in [2, inf), got 1"),
        ("measure=distances(count=0)", "count must be an integer in [2, inf), got 0"),
        ("measure=similarity(passes=0)", "passes must be an integer in [1, 1000], got 0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], assignment: str, answer: str
) -> None:
    assert answer in answered(["plan", "smoke", "--set", assignment], capsys)


# -- places --------------------------------------------------------------------------------------------------


ODD_PLACES = (
    "",
    "file",
    "folder.py",
    "file/below",
    "missing",
    "missing/x",
    "..",
    "é",
    "a b",
    "new\nline",
    "-x",
)


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds a file and a folder."""
    inner = tmp_path / "above/inner"
    (inner / "folder.py").mkdir(parents=True)
    (inner / "file").write_text("x = 1\n")
    monkeypatch.chdir(inner)
    return inner


@pytest.mark.parametrize("place", ODD_PLACES)
def test_any_path_is_taken_or_refused(place: str, inner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["status"], ["plan", "smoke"], ["list", "exhibits"]):
        answered([*command, f"--out={place}"], capsys)
    for command in (["show", "table1"], ["why", "table1", "softmax"], ["report"], ["keep", "--to", "x"]):
        assert answered([*command, f"--out={place}"], capsys)
    for command in (["plan"], ["run"], ["check"], ["show"], ["tune"]):
        assert answered([*command, "--", place], capsys)
    for option in ("--plugin", "--seeds", "--only", "--processes", "--root"):
        answered(["plan", "smoke", f"{option}={place}"], capsys)
    assert sorted(path.name for path in inner.iterdir()) == ["file", "folder.py"]


def test_a_report_replaces_nothing_but_a_file(
    finished_smoke: Path, inner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--out", str(finished_smoke / "runs")]
    for place in (".", "folder.py", "file/below"):
        assert answered(["report", *store, "--to", place], capsys)
    for place in ("file", "file/below"):
        assert answered(["keep", *store, "--to", place], capsys)
    assert sorted(path.name for path in inner.iterdir()) == ["file", "folder.py"]


@pytest.mark.parametrize("name", ["..", "", "a/b", "x" * 101, "a b", "a\nb"])
def test_a_study_that_no_folder_can_be_called_by_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="a study's name consists of"):
        dataclasses.replace(load_study("smoke"), name=name)
