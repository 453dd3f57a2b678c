"""Forged rows and arrays through `show`, `report` and `join`: named with their file, never a raw error."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.records.forgeries import ARRAYS, card_of, changed, changed_rows, copied, forge, packed, unpacked

from penultimate import registry
from penultimate.cli import main
from penultimate.errors import DamagedFileError, PenultimateError
from penultimate.measures.catalogue import built_in_yields
from penultimate.records.archive import ROWS_FILE, KeptStudy, read_kept
from penultimate.records.arrays import KINDS, NONE_POSSIBLE, array_forms, expect_arrays
from penultimate.records.keeping import keep
from penultimate.records.reading import study_folder
from penultimate.records.table import Row
from penultimate.report import render_exhibit_text
from penultimate.report.base import StudyResults
from penultimate.report.measurements import Measurements, admit
from penultimate.report.spec import Exhibit, all_exhibits, assemble


@pytest.fixture(scope="module")
def kept(finished_smoke: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "smoke"
    keep(study_folder(finished_smoke / "runs"), folder)
    return folder


FORMS = {
    metric: {name: form.partition(" ")[::2] for name, form in forms.items()}
    for metric, forms in array_forms().items()
}


def test_the_arrays_of_every_built_in_measurement_have_a_form() -> None:
    """What the exhibits of the package read; a plug-in's arrays are its own."""
    declared = {metric: one.arrays for metric, one in built_in_yields().items() if one.arrays}
    assert array_forms() == declared
    assert {kind for forms in FORMS.values() for kind, _ in forms.values()} == {*KINDS} - {"any"}
    assert all(dimensions for forms in FORMS.values() for _, dimensions in forms.values())


def formed(metric: str) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays of the form that a metric's have."""
    sizes = {"2": 2, "3": 3}
    kinds = {"text": "<U4", "byte": np.uint8, "number": np.float32, "share": np.float32}
    arrays = {}
    for name, (kind, dimensions) in FORMS[metric].items():
        shape = [sizes.setdefault(each, 4 + len(sizes)) for each in dimensions.split()]
        arrays[name] = (np.arange(np.prod(shape)) + 1).astype(kinds.get(kind, np.int64)).reshape(shape)
    return arrays


SUITED = {
    "number": {"zero"},
    "share": {"zero", "NaN"},
    "whole": {"zero", "negative", "large"},
    "count": {"large"},
    "id": set[str](),
    "text": {"text", "zero"},
    "byte": {"zero"},
}
"""What an array may be changed to and still be of its kind."""


@pytest.mark.parametrize("metric", FORMS)
def test_arrays_of_another_form_are_refused_by_name(metric: str) -> None:
    expect_arrays(metric, formed(metric))
    for name, (kind, dimensions) in FORMS[metric].items():
        shared = [of for other, (_, of) in FORMS[metric].items() if other != name]
        own = dimensions.split()[0] not in " ".join(shared).split() and len({*dimensions.split()}) == 1
        free = {"short", "long", "empty"} if own and dimensions in NONE_POSSIBLE else {"short", "long"}
        for what, change in ARRAYS.items():
            forged = {**formed(metric), name: change(formed(metric)[name])}
            if what in SUITED[kind] or (own and what in free and kind != "id"):
                continue
            with pytest.raises((ValueError, SystemError)):
                expect_arrays(metric, forged)
        with pytest.raises(ValueError, match=f"no array '{name}'"):
            expect_arrays(metric, {other: of for other, of in formed(metric).items() if other != name})


def test_arrays_of_a_plug_in_hold_numbers_or_text() -> None:
    expect_arrays("mine", {"heights": np.zeros((0, 3)), "names": np.array(["a"]), "is": np.array([True])})
    for wrong in (np.array(3.0), np.array([b"a"]), np.array([1j]), np.array(["2020"], "M8[Y]")):
        with pytest.raises(ValueError, match=r"'heights' is to be an array \[\.\.\.\] of numbers or text"):
            expect_arrays("mine", {"heights": wrong})


def shown(measurements: Measurements, exhibits: list[Exhibit]) -> list[str]:
    """What each exhibit says, or why it says nothing."""
    said = []
    for exhibit in exhibits:
        try:
            said.append(render_exhibit_text(assemble(exhibit, measurements)))
        except PenultimateError as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize("changes", [2, pytest.param(len(ARRAYS), marks=pytest.mark.long)])
def test_no_exhibit_meets_forged_arrays(kept: Path, tmp_path: Path, changes: int) -> None:
    whole, folder, refused = unpacked(kept), copied(kept, tmp_path / "kept"), 0
    drawn = [registry.entry("exhibit", name).resolve() for name in ("figure2", "figureD3", "figureE1")]
    drawn += [registry.entry("exhibit", name).resolve() for name in ("figureE2", "figureE3")]
    chance, seen = random.Random(0), set[str]()
    for name, values in whole.items():
        kind = name.partition("|")[2]
        if kind in seen:
            continue
        seen.add(kind)
        for what in chance.sample(sorted(ARRAYS), changes):
            forged = packed({**whole, name: ARRAYS[what](values)})
            forge(folder, card_of(kept), arrays=forged)
            said = shown(admit(StudyResults.of(read_kept(folder)), allow_limited=True), drawn)
            refused += any(f"'{folder}/arrays.npz': the arrays of" in each for each in said)
    assert len(seen) == 20
    assert refused > 0.8 * changes * len(seen)


@pytest.mark.parametrize("forgeries", [12, pytest.param(300, marks=pytest.mark.long)])
def test_no_exhibit_meets_forged_rows(kept: Path, tmp_path: Path, forgeries: int) -> None:
    chance, folder = random.Random(0), copied(kept, tmp_path / "kept")
    content, exhibits, used = (kept / ROWS_FILE).read_text(), list(all_exhibits()), 0
    refusals = []
    for _ in range(forgeries):
        rows = changed_rows(content, chance)
        forge(folder, card_of(kept), rows=rows.encode())
        try:
            study = read_kept(folder)
        except DamagedFileError as error:
            refusals.append(str(error))
            continue
        shown(admit(StudyResults.of(study), allow_limited=True), exhibits)
        used += 1
    assert used
    assert refusals
    assert all(f"'{folder}/rows.csv' is no file of a kept study: " in told for told in refusals)


def test_of_text_that_is_no_condition_a_row_has_no_settings() -> None:
    for text, expected in (("a=b, c=", {"a": "b", "c": ""}), ("fog", {}), ("a=b, fog", {"a": "b"})):
        assert Row(metric="top1", value=0.5, setting=text).settings == expected


def test_the_commands_name_the_file_of_a_forged_run(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = unpacked(kept)
    first = next(name for name in whole if name.endswith("singular_values|weights"))
    fogged = (kept / ROWS_FILE).read_text().replace("corruption=", "corruption ", 1).encode()
    forgeries = {
        "arrays.npz": {"arrays": packed({**whole, first: whole[first][:0]})},
        "rows.csv": {"rows": fogged},
        "kept.json": {"card": changed(card_of(kept), ("description", "targets"), 3)},
    }
    monkeypatch.chdir(tmp_path)
    for file, parts in forgeries.items():
        folder = copied(kept, tmp_path / file)
        forge(folder, **{"card": card_of(kept), **parts})
        monkeypatch.setattr("penultimate.records.archive.references", lambda at=folder: {"smoke": at})
        reference = ("--reference", "--study", "smoke")
        for command in (
            ("show", "figureE2", "--allow-limited", *reference),
            ("report", "--to", "page.html", *reference),
            ("join", "smoke", str(folder), "--to", "joined"),
        ):
            assert main(command) == 2, command
            assert f"{folder}/{file}'" in capsys.readouterr().err


def test_an_array_of_a_kept_run_is_checked_each_time_it_is_read(kept: Path) -> None:
    study = read_kept(kept)
    (row, *_) = study.table.where(metric="layer_cka")
    arrays = study.arrays(str(row.step), row.metric)
    forged = {**unpacked(kept), f"{row.step}|layer_cka|matrix": arrays["matrix"][:-1]}
    with pytest.raises(DamagedFileError, match=r"'matrix' is to be an array \[layers layers\] of float32"):
        KeptStudy(**{**dataclasses.asdict(study), "table": study.table, "packed": packed(forged)}).arrays(
            str(row.step), row.metric
        )
