"""`penultimate tune`, what it leaves in a store, and what is read of a search there."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.records.stores import described, prepared
from tests.tuning.planted import plan_of, planted, three_seeds

from penultimate.cli import main
from penultimate.errors import DamagedFileError
from penultimate.files import write_sealed
from penultimate.records.archive import read_kept
from penultimate.records.reading import (
    SEARCH_FILE,
    SEARCH_SCHEMA,
    reference_tuning,
    study_folder,
    study_folders,
)
from penultimate.records.tuning import Tuning, searches_held
from penultimate.results.exhibit import show
from penultimate.study import load_study
from penultimate.study.selection import with_added
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.tuning.chosen import chosen_source, run_command
from penultimate.tuning.grid import search_study


@pytest.fixture(scope="module")
def found() -> Tuning:
    def score(cell: object, seed: int) -> float:
        return (sum(map(ord, str(cell))) % 997) / 1994 + 0.25 + 0.001 * seed

    return planted(search_study(three_seeds()), score)


# -- choices as study data --------------------------------------------------------------------------------


def run_source(source: str) -> dict[str, Any]:
    """The names in a file of choices, as a study file that imports them sees them."""
    names: dict[str, Any] = {}
    exec(compile(source, "chosen.py", "exec"), names)
    return names


def test_the_choices_are_study_data(found: Tuning) -> None:
    source = chosen_source(found, "penultimate tune all")
    names = run_source(source)
    nine = names["NINE"]
    assert nine == tuple(one.best.objective for one in found.objectives if one.best)
    ((objective, changes),) = names["RECIPE_CHANGES"].items()  # those of the study itself
    assert (objective.partition("(")[0], changes) == ("cosine_softmax", {"learning_rate": 0.6})
    assert override(load_study("nine"), [f"objectives={nine!r}"]).objectives == nine
    assert "    penultimate tune all\n" in source
    assert "holdout of glyphs alone" in source


def test_objectives_that_are_not_searched_stay_as_the_study_has_them() -> None:
    grids = {"keep": (0.5, 0.9), "recipe.learning_rate": (0.5, 2.0), "recipe.mixup": (0.0, 0.2)}
    search = search_study(three_seeds(), ["dropout"], grids, product=True)
    best = planted(search, lambda cell, seed: 0.25 * cell.values[0] + sum(cell.values) / 8)
    names = run_source(chosen_source(best, 'a "command" with \\ and """'))
    listed = list(three_seeds().objectives)
    listed[4] = "dropout(keep=0.9)"
    assert names["NINE"] == tuple(listed)
    assert names["RECIPE_CHANGES"] == {"dropout(keep=0.9)": {"learning_rate": 2.0, "mixup": 0.2}}


def test_where_every_cell_diverged_the_file_says_so() -> None:
    search = search_study(three_seeds(), ["dropout", "sigmoid"])
    lost = planted(search, lambda cell, seed: None if "dropout" in cell.objective else 0.5)
    source = chosen_source(lost, "penultimate tune dropout sigmoid")
    assert "dropout: every cell diverged" in source
    assert "dropout(" not in str(run_source(source)["NINE"])


def test_the_command_that_trains_a_choice_is_one_that_can_be_run() -> None:
    nine, search = load_study("nine"), load_study("matched_search")

    def command(study: Study, *objectives: str, grids: dict[str, tuple[float, ...]] | None = None) -> str:
        best = planted(search_study(study, objectives, grids), lambda cell, seed: 0.5)
        told = run_command(best, study, study.name, ["--seeds", "0"])
        name, options = shlex.split(told)[2], shlex.split(told)[3:]
        add = [word for before, word in itertools.pairwise(options) if before == "--add"]
        assert len(with_added(load_study(name), add).keys()) == len(load_study(name).keys()) + len(add)
        return told

    assert command(nine, "softmax", grids={"recipe.epochs": (14,)}) == "penultimate run nine --seeds 0"
    assert command(nine, "logit_norm + dropout").startswith(
        "penultimate run nine --seeds 0 --add 'dropout(keep="
    )
    of_search = command(search, "dropout", grids={"keep": (0.5,), "recipe.learning_rate": (0.7,)})
    assert of_search == (
        "penultimate run nine --seeds 0 --add 'dropout(keep=0.5) with recipe.learning_rate=0.7'"
    )


# -- the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["dropout", "--seeds", "1,1"], "seeds names 1 twice"),
        (["dropout", "--study", "quikstart"], "Did you mean 'quickstart'"),
        (["dropout", "--grid", "keep=0,0.5"], "keep must be a number in (0, 1]"),
        (["dropout", "--processes", "0"], "at least 1"),
        (["dropout", "--budget", "7"], "The option --budget is gone: every cell of the grids is trained"),
        (["dropout", "--expansions", "2"], "give a wider --grid"),
        (["dropout", "--data", "digits=here"], "study 'nine' does not need --data digits"),
        (["sigmoid", "--study", "imagenet_search"], "--data imagenet_tuning=FOLDER"),
        ([], "required: OBJECTIVE"),
    ],
)
def test_the_command_answers_a_wrong_request_in_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], answer: str
) -> None:
    assert main(["tune", *arguments, "--out", str(tmp_path / "runs")]) == 2
    assert answer in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


COMMAND = ["tune", "label_smoothing", "softmax", "--study", "smoke", "--seeds", "0,1"]
COMMAND += ["--grid", "alpha=0.1,0.3", "--set", "recipe.epochs=1", "--processes", "1"]


@pytest.mark.long
def test_a_search_is_trained_shown_kept_and_not_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(COMMAND) == 0
    told = capsys.readouterr().out
    folder = study_folder("runs", "tune-smoke")
    search = folder.search()
    assert search is not None
    smoothed = search.objectives[0]
    assert smoothed.best is not None
    chosen = [line for line in told.splitlines() if line.endswith("chosen")]
    assert [line.split()[0] for line in chosen] == [smoothed.best.objective, "softmax"]
    assert f"{100 * smoothed.best.mean:.2f} ± {100 * (smoothed.best.standard_error or 0):.2f}" in chosen[0]
    assert len([*(tmp_path / "runs/steps").glob("train.*")]) == 3 * 2
    nine = runpy.run_path(str(folder.path / "chosen.py"))["NINE"]
    assert (nine[0], nine[-1]) == ("softmax", smoothed.best.objective)
    table = show("tableA1", "runs", "tune-smoke", allow_limited=True).tables[0]
    assert table.labels == ["Label smoothing", "Softmax"]
    before = {path: path.read_bytes() for path in folder.path.glob("*.*")}
    assert main(COMMAND) == 0
    assert "Everything is done already." in capsys.readouterr().out
    assert {path: path.read_bytes() for path in folder.path.glob("*.*")} == before
    assert main(["keep", "--study", "tune-smoke", "--to", "kept"]) == 0
    assert searches_held(read_kept("kept").description) == (search,)
    described(folder.store, "smoke", [])
    assert study_folder("runs", "smoke").searches() == (search,)


@pytest.mark.long
def test_a_search_that_is_killed_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penultimate.cli", *COMMAND]
    steps = tmp_path / "runs/steps"
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        while len([*steps.glob("train.*")]) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    partly = study_folder(tmp_path / "runs", "tune-smoke")
    assert not (partly.path / "chosen.py").exists()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "continuing" in again.stdout
    search = study_folder(tmp_path / "runs", "tune-smoke").search()
    assert search is not None
    assert all(one.best for one in search.objectives)


@pytest.mark.long
def test_where_every_run_diverges_the_command_fails_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rates = ["--grid", "recipe.learning_rate=1e18,1e20", "--set", "recipe.epochs=1"]
    assert main(["tune", "softmax", "--study", "smoke", "--processes", "1", *rates]) == 1
    told = capsys.readouterr()
    assert "every cell of softmax diverged (2 cells)" in told.err
    assert "diverged: softmax with recipe.learning_rate=1e+18, seed 0" in told.out
    assert "every cell diverged" in (tmp_path / "runs/studies/tune-smoke/chosen.py").read_text()


# -- searches in a store ----------------------------------------------------------------------------------


def leave(search: Tuning, root: Path, study: str) -> Tuning:
    """Leave a search as earlier versions did: with a record of its own."""
    own = dataclasses.replace(search, study=study)
    folder = described(prepared(root), own.name, [], tunes=study)
    write_sealed(folder.path / SEARCH_FILE, {**dataclasses.asdict(own), "budget": 9}, SEARCH_SCHEMA)
    return own


def test_a_search_of_an_earlier_version_is_read(found: Tuning, tmp_path: Path) -> None:
    described(prepared(tmp_path), "nine", [])
    assert "tuning" not in study_folder(tmp_path, "nine").described()
    own = leave(found, tmp_path, "nine")
    kept = json.loads(json.dumps(study_folder(tmp_path, "nine").described()))
    assert searches_held(kept) == (own,)
    file = tmp_path / "studies/tune-nine" / SEARCH_FILE
    file.write_bytes(file.read_bytes().replace(b"cells", b"cellz", 1))
    with pytest.raises(DamagedFileError, match=r"tuning\.json"):
        study_folder(tmp_path, "nine").searches()


def test_the_searches_that_a_study_names_stand_in_for_its_own(found: Tuning, tmp_path: Path) -> None:
    names = ["matched_search_scaled", "elsewhere", "matched_search"]
    described(prepared(tmp_path), "mine", [], tuned_by=names)
    packaged = tuple(map(reference_tuning, names))
    assert study_folder(tmp_path, "mine").searches() == (packaged[0], packaged[2])
    beside = leave(found, tmp_path, "elsewhere")
    assert study_folder(tmp_path, "mine").searches() == (packaged[0], beside, packaged[2])
    own = leave(found, tmp_path, "mine")
    assert study_folder(tmp_path, "mine").searches() == (own,)
    assert study_folder(tmp_path, "tune-mine").searches() == (own,)


def test_a_search_of_which_nothing_is_trained_is_none(tmp_path: Path) -> None:
    plan = plan_of(search_study(three_seeds()))
    described(prepared(tmp_path), "nine", [])
    described(prepared(tmp_path), "tune-nine", [], tunes="nine", search=dataclasses.asdict(plan))
    assert study_folder(tmp_path, "nine").searches() == ()
    empty = study_folder(tmp_path, "tune-nine").search()
    assert empty is not None
    assert empty.objectives == ()


def test_a_search_is_not_taken_for_the_study_that_was_run_last(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    described(store, "mine", [])
    described(store, "tune-mine", [], tunes="mine")
    assert [folder.name for folder in study_folders(tmp_path)] == ["tune-mine", "mine"]
    assert study_folder(tmp_path).name == "mine"
    assert study_folder(tmp_path, "tune-mine").is_search
