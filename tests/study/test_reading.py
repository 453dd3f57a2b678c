"""What is read from a store is what its steps have written, or it is said which file is not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from penultimate.errors import DamagedFileError
from penultimate.store import Store
from penultimate.study.context import ROWS
from penultimate.study.reading import STUDY_FILE, StudyFolder, study_folder
from penultimate.table import Row, write_rows
from tests.conftest import penultimate

STEP = "spectra.softmax-s0-glyphs.0123456789abcdef"
GONE = "train.cosine_softmax-s1.0123456789abcdef"
MACHINE = {
    "commit": "",
    "dirty": False,
    "host": "here",
    "seconds": 1.0,
}


def made(root: Path) -> StudyFolder:
    """A study of two finished steps; the second diverged, and left no row."""
    store = Store(root)
    store.prepare()
    folder = store.begin(STEP)
    write_rows(folder / ROWS, [Row(step=STEP, metric="singular_values", value=5.0, unit="points")])
    np.savez(folder / "singular_values.npz", weights=np.arange(5.0))
    store.finish(STEP, {"step": "spectra", "status": "done", "about": {}, **MACHINE})
    folder = store.begin(GONE)
    write_rows(folder / ROWS, [])
    about = {"slug": "cosine_softmax", "objective": "cosine_softmax(scale=1, temperature=0.01)", "seed": 1}
    gone = {"step": "train", "status": "diverged", "reason": "NaN", "about": about}
    store.finish(GONE, {**gone, **MACHINE})
    path = root / "studies" / "made"
    path.mkdir()
    description = {"name": "made", "command": "penultimate run made", "steps": [STEP, GONE], "limited": False}
    (path / STUDY_FILE).write_text(json.dumps(description))
    return study_folder(path)


def spoil(path: Path) -> None:
    """Another byte in the middle, of which the file's time says nothing."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def test_rows_and_arrays_are_read(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert [row.value for row in folder.table()] == [5.0]
    assert folder.arrays(STEP, "singular_values")["weights"].tolist() == [0, 1, 2, 3, 4]


def test_changed_rows_are_not_read_as_results(tmp_path: Path) -> None:
    folder = made(tmp_path)
    spoil(folder.store.folder(STEP) / ROWS)
    with pytest.raises(DamagedFileError, match=rf"{ROWS} is not what was written.*penultimate run made"):
        study_folder(tmp_path).table()


def test_changed_arrays_are_not_drawn(tmp_path: Path) -> None:
    folder = made(tmp_path)
    spoil(folder.store.folder(STEP) / "singular_values.npz")
    with pytest.raises(DamagedFileError, match=r"singular_values\.npz is not what was written"):
        study_folder(tmp_path).arrays(STEP, "singular_values")


def test_which_run_diverged_is_told_beside_its_step(tmp_path: Path) -> None:
    told = made(tmp_path).provenance()
    assert told["diverged"] == {GONE: "NaN"}
    assert told["diverged_runs"] == {GONE: ["cosine_softmax(scale=1, temperature=0.01)", 1]}


@pytest.mark.parametrize("content", ["{", "[]", '{"name": "smoke"}', "\x00"])
def test_a_description_that_is_none_is_named_and_written_anew(smoke: Path, content: str) -> None:
    file = smoke / "runs/studies/smoke/study.json"
    whole = file.read_text()
    file.write_text(content)
    with pytest.raises(DamagedFileError, match=r"study\.json' does not describe a study"):
        study_folder(smoke / "runs", "smoke")
    answer = penultimate("run", "smoke", cwd=smoke)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert file.read_text() == whole
