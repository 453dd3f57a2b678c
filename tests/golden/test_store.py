"""A store that earlier code left is read, and nothing in it is done again.

`store.tar.xz` was written on 28 November 2026, with the variables of `tests.golden.portable`, on a store that
several machines share. It has all that the code of that day left: locks with leases, the partial folder of a
lost lease, and a record of the files that a plug-in opened. The images of its two data sets, 1.5 MB, are
taken from the smoke study, which has the same.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import penultimate
from tests.inprocess import InProcess

import penultimate as pu
from penultimate.study import load_study

SMOKE = load_study("smoke")
STUDY = dataclasses.replace(
    SMOKE,
    name="kept",
    targets=("digits_smoke",),
    networks=(
        dataclasses.replace(
            SMOKE.runs[0],
            objectives=SMOKE.runs[0].objectives[:2],
            backbones=("glyphnet(width=2, features=8)",),
        ),
    ),
    measure=(
        *("accuracy", "class_separation", "collapse", "layers", "dynamics"),
        *("similarity", "agreement", "linear", "knn"),
    ),
)
MADE = ("data", "train", "extract", "sheet")
"""The kinds of steps that measure nothing."""


@pytest.fixture
def store(finished_smoke: Path, tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name("store.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    for folder in (tmp_path / "runs/steps").glob("data.*"):
        for images in (finished_smoke / "runs/steps" / folder.name).glob("*.images.npy"):
            shutil.copy(images, folder)
    return tmp_path / "runs"


def rows(store: Path) -> list[dict[str, Any]]:
    """The rows of all steps, as they lie there."""
    found = sorted((store / "steps").glob("*/rows.jsonl"))
    return [json.loads(line) for path in found for line in path.read_text("utf-8").splitlines()]


def test_everything_in_it_is_done_and_has_its_rows(store: Path) -> None:
    before = {path: path.read_bytes() for path in (store / "steps").rglob("*") if path.is_file()}
    assert "29 of 29 steps" in penultimate("status", "--out", str(store), cwd=store).stdout
    assert len(pu.plan(STUDY, store).done) == 29
    frame = pu.results(store, "kept")
    assert len(frame) == 145
    columns = ["step", "metric", "value"]
    lying = sorted([row[name] for name in columns] for row in rows(store))
    assert sorted(frame[columns].values.tolist()) == lying
    summary = pu.run(STUDY, store)
    assert (summary.computed, summary.cached) == (0, 29)
    assert {path: path.read_bytes() for path in before} == before


def test_its_networks_and_features_are_measured_as_they_were(store: Path) -> None:
    """On any kind of machine: given the same networks, rounding changes no number by more than 1e-7.

    The gap of a probe's certificate is itself made of rounding, below 1e-4.
    """
    before = rows(store)
    for folder in (store / "steps").iterdir():
        if not folder.name.startswith(MADE):
            shutil.rmtree(folder)
    assert pu.run(STUDY, store, engine=InProcess()).computed == 16
    now = rows(store)
    assert [{**row, "value": 0} for row in now] == [{**row, "value": 0} for row in before]
    assert [row["value"] for row in now] == pytest.approx(
        [row["value"] for row in before], rel=1e-3, abs=1e-4
    )
