"""A study on two pages: what is read back is what was measured; what was changed is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penultimate.errors import DamagedFileError, RequestError
from penultimate.report import exhibit
from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.study.kept import ARRAYS_FILE, KEPT, KEYS, ROWS_FILE, keep, read_kept, reference
from penultimate.study.reading import study_folder
from penultimate.table import Row
from tests.conftest import penultimate

COLUMNS = ("objective", "seed", *KEYS[1:])


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
    assert kept.provenance == json.loads(json.dumps(folder.provenance()))


def test_the_same_study_gives_the_same_bytes(finished_smoke: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        keep(study_folder(finished_smoke / "runs"), tmp_path / name)
    for file in (KEPT, ROWS_FILE, ARRAYS_FILE):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_exhibits_are_built_from_it(finished_smoke: Path, tmp_path: Path) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    kept = read_kept(tmp_path)
    results = StudyResults(kept.description, kept.table, None, kept.provenance)
    for name in ("table1", "table3", "figure5", "tableE2"):
        live = exhibit(name, finished_smoke / "runs", allow_limited=True)
        again = exhibit(name, results, allow_limited=True)
        assert texts(again) == texts(live)
        assert texts(live) or name == "figure5"


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


def test_equal_arrays_stand_in_the_archive_once(finished_smoke: Path, tmp_path: Path) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    with np.load(tmp_path / ARRAYS_FILE, allow_pickle=False) as archive:
        grids = [archive[name] for name in archive.files if name.endswith("hardness_density|points")]
    whole = [one for one in grids if one.ndim == 1]
    assert len(grids) == 3
    assert len({one.tobytes() for one in whole}) == len(whole) < 3


def test_figures_are_drawn_from_kept_arrays(finished_smoke: Path, tmp_path: Path) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    kept = read_kept(tmp_path)
    results = StudyResults(kept.description, kept.table, None, kept.provenance, kept.arrays)
    for name in ("figure2", "figureE1", "figureE2", "figureE3"):
        live = exhibit(name, finished_smoke / "runs", allow_limited=True)
        again = exhibit(name, results, allow_limited=True)
        assert [panel.name for figure in again.figures for panel in figure.panels] == [
            panel.name for figure in live.figures for panel in figure.panels
        ]
        assert live.figures


def test_arrays_that_were_not_kept_are_asked_for_in_vain(finished_smoke: Path, tmp_path: Path) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    with pytest.raises(RequestError, match="nothing was kept of the arrays of 'spectrum'"):
        read_kept(tmp_path).arrays("spectra.0.glyphnet", "spectrum")


def texts(shown: Exhibit) -> list[str]:
    return [cell.text for table in shown.tables for row in table.rows for cell in row.cells]


@pytest.mark.parametrize("file", [KEPT, ROWS_FILE, ARRAYS_FILE])
def test_a_changed_or_missing_page_is_refused(finished_smoke: Path, tmp_path: Path, file: str) -> None:
    keep(study_folder(finished_smoke / "runs"), tmp_path)
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(content[:-9] if file == KEPT else content.replace(b"0", b"1", 1))
    with pytest.raises(DamagedFileError):
        read_kept(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(RequestError, match=f"{file} is missing"):
        read_kept(tmp_path)


def test_an_unfinished_study_is_not_kept(smoke: Path, tmp_path: Path) -> None:
    (step,) = (smoke / "runs/steps").glob("linear.softmax-s0-digits_smoke*")
    (step / "meta.json").unlink()
    answer = penultimate("keep", "--to", "kept", cwd=smoke)
    assert answer.returncode == 2
    assert "not finished (1 linear missing)" in answer.stderr
    assert not (smoke / "kept").exists()


def test_a_place_that_can_be_no_folder_is_named(finished_smoke: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="file/inside' cannot be made a folder"):
        keep(study_folder(finished_smoke / "runs"), tmp_path / "file" / "inside")


def test_an_unknown_reference_is_told() -> None:
    with pytest.raises(RequestError, match="unknown reference run 'glyph'"):
        reference("glyph")
