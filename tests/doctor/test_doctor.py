"""What the doctor says of a store: sound, or what is not and what mends it. It changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.records.stores import SOFTMAX, described, finished, prepared

from penultimate.cli import main
from penultimate.doctor.results import look_at_store
from penultimate.engine.run import exclusively
from penultimate.files import read_sealed, write_sealed
from penultimate.locks import flocked
from penultimate.records.reading import study_folder
from penultimate.store import SCHEMA, Store

STEP = "accuracy.softmax-s0.0123456789abcdef"


def made(root: Path, name: str = "mine") -> Store:
    """A study of one finished step."""
    store = prepared(root)
    (store.begin(STEP) / "bank.npz").write_bytes(bytes(100_000))
    described(store, name, [finished(store, STEP, SOFTMAX, [{"metric": "top1", "value": 0.5}])])
    return store


def flip(path: Path) -> None:
    """Another bit in the middle, of which the file's time says nothing."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def state(root: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()}


def unsound(root: Path) -> dict[str, str]:
    """What is not sound, and what is to be done about it."""
    return {finding.text: finding.remedy for finding in look_at_store(root) if finding.remedy}


def test_a_sound_store_is_called_sound_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs")
    before = state(tmp_path)
    assert main(["doctor", "--out", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    for part in ("cores", "of memory", "free on the disk", "Python 3.", "torch ", "commit ", "All is sound."):
        assert part in said
    assert "mine: 1 of 1 steps" in said
    assert "1 step, 2 files, 100.1 kB: as they were written" in said
    assert "reference runs of the package: every file is what was kept" in said
    assert state(tmp_path) == before


@pytest.mark.long
@pytest.mark.parametrize("is_there", [True, False])
def test_a_store_without_anything_is_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_there: bool
) -> None:
    out = tmp_path / "runs"
    if is_there:
        prepared(out)
    assert main(["doctor", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert (
        f"'{out}' {'is empty' if is_there else 'does not exist'}; a study fills it: penultimate run" in said
    )
    assert out.exists() == is_there


def test_a_file_is_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["doctor", "--out", str(tmp_path / "file")]) == 2
    assert "is a file; give --out a folder" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("name", ["bank.npz", "rows.jsonl", "meta.json"])
def test_a_damaged_file_is_named_with_the_command_that_heals_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    store = made(tmp_path)
    flip(store.folder(STEP) / name)
    assert main(["doctor", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"! step {STEP}: {name} is not what was written" in said
    assert f"to do: penultimate run mine --verify --out {tmp_path}" in said
    assert "To be done: 1." in said


def test_a_damaged_step_that_no_study_needs_may_go(tmp_path: Path) -> None:
    store = made(tmp_path)
    other = finished(store, "knn.other.0", SOFTMAX)
    (store.folder(other) / "rows.jsonl").unlink()
    assert unsound(tmp_path) == {
        f"step {other}: rows.jsonl is missing": f"no study here needs it: rm -r {store.folder(other)}"
    }


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_a_description_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    made(tmp_path, "tune-mine")
    file = tmp_path / "studies/tune-mine/study.json"
    (file.parent / "report.html").touch()
    flip(file) if damage == "flipped" else file.unlink()
    ((text, remedy),) = unsound(tmp_path).items()
    assert f"'{file}' is " in text
    assert f"(penultimate tune all --study mine --out {tmp_path})" in remedy


def test_a_page_of_what_is_gone_is_named(tmp_path: Path) -> None:
    made(tmp_path)
    study = study_folder(tmp_path, "mine")
    (study.path / "report.state").write_bytes(study.state())
    assert unsound(tmp_path) == {}
    shutil.rmtree(tmp_path / "steps" / STEP)
    ((text, remedy),) = unsound(tmp_path).items()
    assert text == "the page of mine does not show what the study has, or shows what is gone"
    assert remedy.startswith("penultimate run mine")


def test_two_folders_of_one_study_are_named(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.copytree(tmp_path / "studies/mine", tmp_path / "studies/copy")
    ((text, remedy),) = unsound(tmp_path).items()
    assert "copy/study.json' describes study 'mine'" in text
    assert remedy == f"delete '{tmp_path / 'studies/copy'}' if it is a copy, else call it 'mine' again"


def test_work_that_was_left_is_named_and_work_in_progress_is_not(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    described(store, "mine", [STEP])
    (store.begin(STEP) / "checkpoint-0").write_bytes(b"0" * 99)
    ((text, remedy),) = unsound(tmp_path).items()
    assert f"step {STEP} was begun (99 bytes in " in text
    assert "checkpoint-0 is not what was written (its sha256 differs), and is passed over" in text
    assert remedy == f"penultimate run mine --out {tmp_path}"
    with flocked(tmp_path / "locks" / STEP):
        assert not unsound(tmp_path)
    with exclusively(store, tmp_path / "studies/mine"):
        assert not unsound(tmp_path)
        told = [finding.text for finding in look_at_store(tmp_path)]
        assert [text for text in told if "mine is being run, by " in text and f"{os.getpid()}" in text]
    assert unsound(tmp_path)


def test_what_was_set_aside_is_counted_and_stray_files_are_named(tmp_path: Path) -> None:
    store = made(tmp_path)
    store.set_aside(finished(store, "knn.other.0", SOFTMAX))
    stray = tmp_path / "studies/mine/.study.json.abc.tmp"
    stray.write_bytes(b"half")
    assert unsound(tmp_path) == {"1 temporary file of processes that were killed": f"rm {stray}"}
    told = [finding.text for finding in look_at_store(tmp_path)]
    assert [text for text in told if "holds what was set aside: 1 thing, " in text]


def test_steps_of_another_version_and_a_clock_set_back_are_named(tmp_path: Path) -> None:
    store = made(tmp_path)
    meta = store.folder(STEP) / "meta.json"
    later = time.time() + 3600
    os.utime(meta, (later, later))
    ((text, remedy),) = unsound(tmp_path).items()
    assert "the clock is behind the times of files here" in text
    assert remedy.startswith("set the clock; results are sound")
    write_sealed(meta, read_sealed(meta, SCHEMA), SCHEMA + 1)
    ((text, remedy),) = unsound(tmp_path).items()
    assert (
        f"another version of penultimate (schema {SCHEMA + 1}; this one reads {SCHEMA}); 1 step in all"
        in text
    )
    assert remedy == "give --out another folder"


def test_it_can_be_stopped(tmp_path: Path) -> None:
    store = made(tmp_path)
    meta = store.folder(STEP) / "meta.json"
    with (store.folder(STEP) / "bank.npz").open("r+b") as file:
        file.truncate(40 << 30)
    content = read_sealed(meta, SCHEMA)
    content["files"]["bank.npz"]["bytes"] = 40 << 30
    write_sealed(meta, content, SCHEMA)
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "penultimate.cli", "doctor", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    while "commit" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "\npenultimate: stopped; nothing was changed\n")
    assert json.loads(meta.read_text())["id"] == STEP
