"""What is read from a store is what its steps have written, or it is said which file is not."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import penultimate
from tests.opening import opened
from tests.records.stores import SOFTMAX, described, finished, prepared

from penultimate.errors import DamagedFileError
from penultimate.records.reading import StudyFolder, study_folder
from penultimate.records.table import ROWS

STEP = "spectra.softmax-s0-glyphs.0123456789abcdef"
GONE = "train.cosine_softmax-s1.0123456789abcdef"


def made(root: Path) -> StudyFolder:
    """A study of two finished steps; the second diverged, and left no row."""
    store = prepared(root)
    folder = store.begin(STEP)
    np.savez(folder / "singular_values.npz", weights=np.arange(5.0))
    finished(store, STEP, {}, [{"metric": "singular_values", "value": 5.0, "unit": "points"}])
    cold = {"objective": "cosine_softmax(scale=1, temperature=0.01)", "backbone": "net", "seed": 1, "draw": 1}
    finished(store, GONE, cold, status="diverged", reason="NaN")
    return described(store, "made", [STEP, GONE])


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


def test_what_is_done_is_counted_without_reading_it(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with opened(tmp_path) as files:
        assert folder.counts() == {"spectra": (1, 1), "train": (1, 1)}
    assert files == []
    with opened(tmp_path) as files:
        assert folder.diverged() == {GONE: "NaN"}
    assert files == [str(folder.store.folder(GONE) / "meta.json")]
    (folder.store.folder(STEP) / "meta.json").unlink()
    assert folder.counts()["spectra"] == (0, 1)


def test_rows_are_of_the_studys_arm_and_limited_where_it_is(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    rows = [
        {"metric": "top1", "value": value, "status": status}
        for value, status in ((0.5, "done"), (None, "diverged"))
    ]
    finished(store, GONE, SOFTMAX, rows)
    plain = described(store, "plain", [GONE]).table()
    study = described(store, "limited", [GONE], arms={GONE: "cold"}, limited=True)
    assert list(study.table()) == [
        dataclasses.replace(row, arm="cold", status="limited" if row.status == "done" else row.status)
        for row in plain
    ]
    assert plain[0].objective is plain[1].objective


def test_changed_arrays_are_not_drawn(tmp_path: Path) -> None:
    folder = made(tmp_path)
    spoil(folder.store.folder(STEP) / "singular_values.npz")
    with pytest.raises(DamagedFileError, match=r"singular_values\.npz is not what was written"):
        study_folder(tmp_path).arrays(STEP, "singular_values")


def test_which_network_diverged_is_told_beside_its_step(tmp_path: Path) -> None:
    told = made(tmp_path).provenance()
    assert told["diverged"] == {GONE: "NaN"}
    spec = "cosine_softmax(scale=1, temperature=0.01)"
    assert told["diverged_networks"] == {
        GONE: {"objective": spec, "backbone": "net", "arm": "", "seed": 1, "draw": 1}
    }


def test_rows_are_of_the_arm_that_the_study_names(tmp_path: Path) -> None:
    """Two studies share a step; to one of them its network belongs to an arm of its own."""
    store = prepared(tmp_path)
    step = finished(store, STEP, SOFTMAX, [{"metric": "top1", "value": 0.5}])
    plain = described(store, "plain", [step])
    other = described(store, "other", [step], arms={step: "longer"})
    assert [row.arm for row in plain.table()] == [None]
    assert [row.arm for row in other.table()] == ["longer"]


def twins(root: Path) -> StudyFolder:
    """A study of two architectures: the second's steps are done first, and one of its runs diverged."""
    store = prepared(root)
    steps = []
    for backbone, digest, status in (
        ("plain", "a", "done"),
        ("net", "b", "done"),
        ("plain", "c", "diverged"),
    ):
        columns = {**SOFTMAX, "backbone": backbone, "target": "glyphs"}
        layers: dict[str, Any] = {"layers": [f"{backbone}1"], "num_features": len(backbone)}
        rows = [{"metric": "top1", "split": "test", "value": 0.25}] if status == "done" else []
        step_id = f"train.softmax-s0.{16 * digest}"
        steps.append(finished(store, step_id, columns, rows, status=status, **layers))
    networks = [{"objectives": ["softmax"], "backbones": ["net", "plain"], "arm": ""}]
    return described(store, "twins", steps, networks=networks)


def test_of_two_architectures_the_first_describes_the_layers(tmp_path: Path) -> None:
    read = twins(tmp_path).described()
    assert (read["layers"], read["num_features"]) == (["net1"], 3)


def test_steps_of_two_architectures_are_told_apart(tmp_path: Path) -> None:
    folder = twins(tmp_path)
    (gone,) = folder.diverged()
    assert folder.called(gone) == f"{gone} (plain)"
    assert folder.provenance()["diverged_networks"][gone]["backbone"] == "plain"


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
