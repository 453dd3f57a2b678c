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
from penultimate.study.tracing import explain
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
    assert told["diverged_runs"] == {GONE: ["cosine_softmax(scale=1, temperature=0.01)", 1, None]}


def twins(root: Path) -> StudyFolder:
    """A study of two architectures: the second's steps are done first, and one of its runs diverged."""
    store = Store(root)
    store.prepare()
    steps = []
    for backbone, digest, status in (
        ("plain", "a", "done"),
        ("net", "b", "done"),
        ("plain", "c", "diverged"),
    ):
        about = {
            "slug": "softmax",
            "objective": "softmax",
            "seed": 0,
            "backbone": backbone,
            "target": "glyphs",
        }
        config: dict[str, object] = {"layers": [f"{backbone}1"], "num_features": len(backbone)}
        steps.append(f"accuracy.softmax-s0-glyphs.{16 * digest}")
        folder = store.begin(steps[-1])
        facts = {key: value for key, value in about.items() if key != "slug"}
        row = Row(step=steps[-1], metric="top1", split="test", value=0.25, **facts)  # type: ignore[arg-type]
        write_rows(folder / ROWS, [row] if status == "done" else [])
        packages = {"torch": "2", "numpy": "2"}
        known = {"packages": packages, "threads": 1, "processor": "", "python": "3", "config": config}
        store.finish(
            steps[-1],
            {
                "step": "accuracy",
                "status": status,
                "about": about,
                "parents": [],
                **MACHINE,
                **known,
                **config,
            },
        )
    path = root / "studies" / "twins"
    path.mkdir()
    description = {
        **{"name": "twins", "command": "penultimate run twins", "steps": steps, "limited": False},
        **{"backbones": ["net", "plain"], "source": "glyphs", "targets": []},
        "objectives": [{"slug": "softmax", "label": "Softmax", "spec": "softmax"}],
    }
    (path / STUDY_FILE).write_text(json.dumps(description))
    return study_folder(path)


def test_of_two_architectures_the_first_describes_the_layers(tmp_path: Path) -> None:
    described = twins(tmp_path).described()
    assert (described["layers"], described["num_features"]) == (["net1"], 3)


def test_numbers_and_steps_of_two_architectures_are_told_apart(tmp_path: Path) -> None:
    folder = twins(tmp_path)
    told = explain(folder, "softmax", None)
    assert "  net  seed 0  top1" in told
    assert "  plain  seed 0  top1" in told
    assert f"accuracy.softmax-s0-glyphs.{16 * 'a'} (plain)" in told
    (gone,) = folder.diverged()
    assert folder.called(gone) == f"{gone} (plain)"
    assert folder.provenance()["diverged_runs"] == {gone: ["softmax", 0, "plain"]}


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
