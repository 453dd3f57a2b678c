"""A study on two pages: what is read back is what was measured; what was changed is refused."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import penultimate
from tests.records.stores import SOFTMAX, described, finished, prepared

from penultimate import registry
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import write_sealed
from penultimate.records.archive import (
    ARRAYS_FILE,
    KEYS,
    ROWS_FILE,
    KeptStudy,
    keep,
    read_kept,
)
from penultimate.records.provenance import provenance
from penultimate.records.reading import StudyFolder, study_folder
from penultimate.records.references import KEPT
from penultimate.records.table import Row
from penultimate.results.exhibit import Shown, show
from penultimate.results.rows import read_run, run_of_kept

COLUMNS = ("objective", "backbone", "arm", "seed", "draw", *KEYS[1:])


def place(row: Row) -> tuple[object, ...]:
    kind = (row.step or "").partition(".")[0]
    return (kind, *(getattr(row, name) for name in COLUMNS))


def test_every_row_comes_back_to_nine_digits(finished_smoke: Path, tmp_path: Path) -> None:
    folder = study_folder(finished_smoke / "runs")
    keep(folder, tmp_path)
    expected = {place(row): row.value for row in folder.table() if row.unit != "loss"}
    kept = read_kept(tmp_path)
    assert {place(row): row.value for row in kept.table} == pytest.approx(expected, rel=1e-8, nan_ok=True)
    assert len(expected) > 100
    last = max(file.stat().st_mtime for file in folder.store.root.glob("steps/*/meta.json"))
    measured = str(datetime.fromtimestamp(last, UTC).date())
    assert kept.provenance == json.loads(json.dumps({**provenance(folder), "measured": measured}))


def test_the_same_study_gives_the_same_bytes(finished_smoke: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        keep(study_folder(finished_smoke / "runs"), tmp_path / name)
    for file in (KEPT, ROWS_FILE, ARRAYS_FILE):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_arrays_come_back_to_four_digits(finished_smoke: Path, tmp_path: Path) -> None:
    folder = study_folder(finished_smoke / "runs")
    keep(folder, tmp_path)
    kept = read_kept(tmp_path)
    live = {place(row): row for row in folder.table() if row.unit == "points"}
    again = {place(row): row for row in kept.table if row.unit == "points"}
    assert live.keys() == again.keys()
    assert {row.metric for row in again.values()} >= {"layer_cka", "hardness_density", "singular_values"}
    for key, row in again.items():
        expected = folder.arrays(str(live[key].step), row.metric)
        found = kept.arrays(str(row.step), row.metric)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            if np.issubdtype(values.dtype, np.floating):
                np.testing.assert_allclose(found[name], values, rtol=6.2e-5, atol=1e-37)
            else:
                np.testing.assert_array_equal(found[name], values)


def test_figures_are_drawn_from_kept_arrays(finished_smoke: Path, tmp_path: Path) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    kept = read_kept(tmp_path)
    results = run_of_kept(kept)
    before, drawn = read_run(finished_smoke / "runs"), set()
    for name in registry.names("exhibit"):
        live = show(name, before, allow_limited=True)
        again = show(name, results, allow_limited=True)
        assert texts(again) == texts(live), name
        panels = [panel.name for figure in live.figures for panel in figure.panels]
        assert [panel.name for figure in again.figures for panel in figure.panels] == panels
        drawn |= {name} if live.is_measured and panels else set()
    assert drawn >= {"figure2", "figureC4", "figureD3", "figureE1", "figureE2", "figureE3"}


def texts(shown: Shown) -> list[str]:
    return [text for table in shown.tables for row in table.shown() for text in row]


@pytest.mark.parametrize("file", [KEPT, ROWS_FILE, ARRAYS_FILE])
def test_a_damaged_byte_is_named_with_its_file_and_so_is_a_missing_file(
    finished_smoke: Path, tmp_path: Path, file: str
) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    whole = (tmp_path / file).read_bytes()
    for place in range(0, len(whole), len(whole) // 25):
        changed = bytearray(whole)
        changed[place] ^= 1
        (tmp_path / file).write_bytes(changed)
        with pytest.raises(DamagedFileError, match=f"{file}' is not what was written"):
            read_kept(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(RequestError, match=f"no kept study in '{tmp_path}': {file} is missing"):
        read_kept(tmp_path)


@pytest.mark.parametrize("schema", [2, 4])
def test_a_study_that_another_version_has_kept_is_named(
    finished_smoke: Path, tmp_path: Path, schema: int
) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    card = json.loads((tmp_path / KEPT).read_text())
    del card["sha256"]
    write_sealed(tmp_path / KEPT, card, schema)
    with pytest.raises(RequestError) as error:
        read_kept(tmp_path)
    told = f"was written by another version of penultimate (schema {schema}; this one reads 3)"
    assert told in str(error.value)


def test_numbers_that_do_not_exist_or_have_no_end_are_kept(tmp_path: Path) -> None:
    values = {"top1": 0.1 + 0.2, "top5": None, "mean_loss": math.inf, "ece": -math.inf}
    rows = [{"metric": metric, "value": value} for metric, value in values.items()]
    store = prepared(tmp_path)
    keep(described(store, "mine", [finished(store, "accuracy.a", SOFTMAX, rows)]), tmp_path / "kept")
    kept = {row.metric: row.value for row in read_kept(tmp_path / "kept").table}
    assert kept == {"top1": 0.3, "top5": math.nan, "mean_loss": math.inf, "ece": -math.inf}


def test_an_older_run_is_read() -> None:
    kept = read_kept(Path(__file__).parents[1] / "kept" / "glyphs")
    assert len(kept.table) == 25285
    assert (
        sum(row.unit == "points" and len(kept.arrays(str(row.step), row.metric)) > 0 for row in kept.table)
        == 206
    )


def test_an_unfinished_study_is_not_kept(smoke: Path, tmp_path: Path) -> None:
    (step,) = (smoke / "runs/steps").glob("linear.softmax-s0-digits_smoke*")
    shutil.rmtree(step)
    answer = penultimate("keep", "--to", "kept", cwd=smoke)
    assert answer.returncode == 2
    assert "not finished (1 linear missing)" in answer.stderr
    assert not (smoke / "kept").exists()


def test_a_folder_of_another_study_stays_as_it_is(finished_smoke: Path, tmp_path: Path) -> None:
    folder = study_folder(finished_smoke / "runs", "smoke")
    other = dataclasses.replace(folder, description={**folder.description, "name": "other"})
    keep(folder, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(RequestError, match=r"holds the kept study 'smoke'; give --to another folder"):
        keep(other, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    (tmp_path / KEPT).write_bytes(before[KEPT][:-9])  # what is damaged is kept again
    keep(folder, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def header(folder: Path) -> list[str]:
    with (folder / ROWS_FILE).open(newline="") as file:
        return next(csv.reader(file))


def condensed(folder: StudyFolder, to: Path) -> tuple[dict[tuple[object, ...], float], KeptStudy]:
    """Every row's value by its place before, and the study as it is read back."""
    keep(folder, to)
    return {place(row): row.value for row in folder.table() if row.unit != "loss"}, read_kept(to)


def test_arms_settings_and_given_networks_come_back_under_the_names_of_their_networks(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    own = {"metric": "top1", "value": 0.25, "unit": "fraction", "split": "test", "target": "glyphs"}
    fog = {"metric": "corruption_error", "value": 0.5, "setting": "corruption=fog, severity=3"}
    ensemble = {"metric": "ensemble_top1", "value": 0.625, "setting": "models=2", "objective_b": "softmax"}
    shared = {"objective": "softmax", "backbone": "net"}
    steps = [
        finished(store, "accuracy.a", SOFTMAX, [own, fog]),
        finished(store, "accuracy.b", {**SOFTMAX, "seed": 1}, [{**own, "value": 0.75}]),
        finished(store, "knn.c", {"objective": "ours"}, [{**own, "metric": "knn_top1"}]),
        finished(store, "agreement.d", shared, [ensemble]),
    ]
    networks = [{"given": {"ours": "timm:resnet18"}, "classifies": False, "measure": None}]
    folder = described(store, "mine", steps, networks=networks, arms={"accuracy.b": ["longer"]})
    expected, kept = condensed(folder, tmp_path / "kept")
    assert {place(row): row.value for row in kept.table} == expected
    assert header(tmp_path / "kept") == [
        *KEYS,
        "softmax | net | seed 0, draw 0",
        "softmax | net | longer | seed 1, draw 0",
        "ours",
        "softmax | net",
    ]
    assert {row.arm for row in kept.table} == {None, "longer"}
    assert kept.description["networks"] == networks
    (back,) = (row for row in kept.table if row.metric == "corruption_error")
    assert back.settings == {"corruption": "fog", "severity": "3"}


def test_what_is_of_two_networks_is_kept_for_every_two(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    steps = []
    for number, (one, other) in enumerate((("a", "b"), ("a", "c"), ("b", "c"))):
        step = f"pair_cka.{one}-{other}.0"
        np.savez(store.begin(step) / "pair_map.npz", matrix=np.full((3, 3), number))
        pointing = {"metric": "pair_map", "value": 3, "unit": "points", "objective_b": other}
        steps.append(finished(store, step, {"objective": one}, [pointing]))
    expected, kept = condensed(described(store, "mine", steps), tmp_path / "kept")
    assert {place(row): row.value for row in kept.table} == expected
    found = [kept.arrays(str(row.step), row.metric)["matrix"][0, 0] for row in kept.table]
    assert found == [0, 1, 2]


def test_arrays_of_two_steps_that_no_condition_tells_apart_are_refused(tmp_path: Path) -> None:
    """The rows that point to them may say the same, that many points."""
    store = prepared(tmp_path)
    pointing = [{"metric": "curve", "value": 5.0, "unit": "points"}]
    steps = [
        finished(
            store, f"bent.{name}", SOFTMAX, pointing, arrays={"curve": {"heights": np.arange(5) + least}}
        )
        for least, name in enumerate("ab")
    ]
    with pytest.raises(
        RequestError, match=r"two arrays of one quantity: curve of '.*; Arrays\(\.\.\., setting"
    ):
        keep(described(store, "mine", steps), tmp_path / "kept")
    keep(described(store, "alone", steps[:1]), tmp_path / "kept")
