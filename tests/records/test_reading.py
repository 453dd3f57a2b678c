"""What is read from a store is what its steps have written, or it is said which file is not."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.opening import opened
from tests.records.stores import SOFTMAX, described, finished, prepared

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import read_sealed, write_sealed
from penultimate.records.provenance import provenance
from penultimate.records.reading import LARGE, StudyFolder, study_folder, study_folders
from penultimate.records.table import ROWS
from penultimate.store import SCHEMA

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


def told(root: Path) -> tuple[object, ...]:
    folder = study_folder(root)
    return folder.description, list(folder.table()), provenance(folder)


def test_any_damaged_byte_of_a_description_is_seen(tmp_path: Path) -> None:
    file = made(tmp_path).path / "study.json"
    whole, right = file.read_bytes(), told(tmp_path)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        with pytest.raises(DamagedFileError, match=r"study\.json' is not what was written.*run the study"):
            told(tmp_path)
    file.write_bytes(whole)
    assert told(tmp_path) == right


def test_studies_come_in_the_order_in_which_they_were_last_run(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    for place, name in enumerate(("first", "second", "third", "first")):
        os.utime(described(store, name, []).path / "study.json", (place, place))
    assert [folder.name for folder in study_folders(tmp_path)] == ["first", "third", "second"]


@pytest.mark.parametrize("file", ["studies/smoke/study.json", "steps/*/meta.json"])
def test_a_store_of_a_newer_version_is_refused_by_every_command(
    smoke: Path, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(smoke)
    for path in Path("runs").glob(file):
        write_sealed(path, read_sealed(path, SCHEMA), SCHEMA + 1)
    before = {path: path.read_bytes() for path in Path("runs/steps").rglob("*") if path.is_file()}
    (study,) = Path("runs/studies").glob("*/study.json")
    described_before = study.read_bytes()
    for command in (
        "run smoke",
        "run smoke --verify",
        "status",
        "show table1 --allow-limited",
        "why table1 softmax",
        "report",
        "keep --to kept",
        *(["plan smoke"] if "steps" in file else []),
    ):
        assert main(command.split()) == 2, command
        said = capsys.readouterr()
        assert f"another version of penultimate (schema {SCHEMA + 1}; this one reads {SCHEMA})" in said.err
    assert main(["status", "--verify"]) == 2
    assert f"(schema {SCHEMA + 1}; this one reads {SCHEMA})" in "".join(capsys.readouterr())
    assert {path: path.read_bytes() for path in Path("runs/steps").rglob("*") if path.is_file()} == before
    assert study.read_bytes() == described_before or "steps" in file


def spoil(path: Path) -> None:
    """Another byte in the middle, of which the file's time says nothing."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def test_rows_arrays_and_pictures_are_read_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    folder = made(tmp_path)
    sheet = folder.store.begin("sheet.all.0") / "sheet.png"
    sheet.write_bytes(bytes(100))
    described(folder.store, "made", [STEP, finished(folder.store, "sheet.all.0", {})])
    read = {
        ROWS: lambda study: [row.value for row in study.table()],
        "singular_values.npz": lambda study: study.arrays(STEP, "singular_values")["weights"].tolist(),
        "sheet.png": lambda study: study.contact_sheet(),
    }
    for name, look in read.items():
        assert look(study_folder(tmp_path)) in ([5.0], [0, 1, 2, 3, 4], bytes(100))
        (path,) = (path for path in tmp_path.glob(f"steps/*/{name}") if path.stat().st_size)
        spoil(path)
        with pytest.raises(DamagedFileError, match=f"{name} is not what was written.*run made --verify"):
            look(study_folder(tmp_path))


def test_results_are_a_frame(tmp_path: Path) -> None:
    made(tmp_path)
    frame = pu.results(tmp_path)
    assert frame[["step", "metric", "value", "unit"]].to_numpy().tolist() == [
        [STEP, "singular_values", 5.0, "points"]
    ]
    described(prepared(tmp_path / "new"), "empty", [])
    assert len(pu.results(tmp_path / "new")) == 0
    with pytest.raises(RequestError, match="no study has been run in"):
        pu.results(tmp_path / "nowhere")


def counted(root: Path, many: int = LARGE) -> StudyFolder:
    store = prepared(root)
    rows = [
        {"metric": f"m{n % 7}", "layer": f"block{n % 3}" if n % 2 else None, "value": n} for n in range(many)
    ]
    rows[3]["value"] = None
    return described(store, "counted", [finished(store, "many.softmax.0", SOFTMAX, rows)])


def test_the_rows_of_a_large_study_are_cached_until_its_steps_change(tmp_path: Path) -> None:
    folder = counted(tmp_path)
    rows = list(folder.table())
    assert {path.name for path in folder.path.iterdir()} == {"study.json", "rows.parquet", "rows.state"}
    with opened(tmp_path) as files:
        assert list(study_folder(tmp_path).table()) == rows
    assert not any(file.endswith(ROWS) for file in files)
    assert len(pd.read_parquet(folder.path / "rows.parquet")) == len(rows)
    arm = described(folder.store, "counted", folder.description["steps"], arms={"many.softmax.0": ["cold"]})
    assert set(arm.table().column("arm")) == {"cold"}
    more = finished(folder.store, "more.softmax.0", SOFTMAX, [{"metric": "top1", "value": 0.5}])
    grown = described(folder.store, "counted", [*folder.description["steps"], more])
    assert list(grown.table())[:-1] == rows
    folder.store.set_aside(more)
    assert list(grown.table()) == rows


@pytest.mark.parametrize("name", ["rows.parquet", "rows.state"])
def test_a_damaged_or_missing_cache_is_written_again(tmp_path: Path, name: str) -> None:
    folder = counted(tmp_path)
    rows = list(folder.table())
    whole = (folder.path / name).read_bytes()
    spoil(folder.path / name)
    assert list(study_folder(tmp_path).table()) == rows
    assert (folder.path / name).read_bytes() == whole
    (folder.path / name).unlink()
    assert list(study_folder(tmp_path).table()) == rows


def test_rows_are_of_the_studys_arm_and_limited_where_it_is(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    rows = [
        {"metric": "top1", "value": value, "status": status}
        for value, status in ((0.5, "done"), (None, "diverged"))
    ]
    finished(store, GONE, SOFTMAX, rows)
    plain = described(store, "plain", [GONE]).table()
    study = described(store, "limited", [GONE], arms={GONE: ["cold"]}, limited=True)
    assert list(study.table()) == [
        dataclasses.replace(row, arm="cold", status="limited" if row.status == "done" else row.status)
        for row in plain
    ]


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        ({}, [None]),
        ({STEP: ["longer"]}, ["longer"]),
        ({STEP: ["", "longer"]}, [None, "longer"]),  # two arms train the same network
    ],
)
def test_rows_are_of_the_arms_that_the_study_names(
    tmp_path: Path, arms: dict[str, Any], told: list[str | None]
) -> None:
    """Studies share a step; its network belongs to other arms in each."""
    store = prepared(tmp_path)
    step = finished(store, STEP, SOFTMAX, [{"metric": "top1", "value": 0.5}])
    study = described(store, "plain", [step], arms=arms)
    assert [row.arm for row in study.table()] == told


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
        kind = "accuracy" if status == "done" else "train"
        step_id = f"{kind}.softmax-s0-glyphs.{16 * digest}"
        steps.append(finished(store, step_id, columns, rows, status=status, **layers))
    networks = [{"objectives": ["softmax"], "backbones": ["net", "plain"], "arm": ""}]
    return described(store, "twins", steps, networks=networks)


def test_of_two_architectures_the_first_describes_the_layers(tmp_path: Path) -> None:
    read = twins(tmp_path).described()
    assert (read["layers"], read["num_features"]) == (["net1"], 3)
