"""`penultimate tune`, what it leaves in a store, and what is read of a search there."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from pathlib import Path

import pytest
from tests.records.stores import described, prepared
from tests.tuning.planted import plan_of, planted, three_seeds

from penultimate.cli import main
from penultimate.records.archive import read_kept
from penultimate.records.reading import reference_tuning, study_folder, study_folders
from penultimate.records.tuning import searches_held
from penultimate.results.exhibit import show
from penultimate.study import load_study
from penultimate.study.selection import with_added
from penultimate.study.spec import Study
from penultimate.tuning.grid import run_command, search_study


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
def test_where_every_run_diverges_the_command_fails_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rates = ["--grid", "recipe.learning_rate=1e18,1e20", "--set", "recipe.epochs=1"]
    assert main(["tune", "softmax", "--study", "smoke", "--processes", "1", *rates]) == 1
    told = capsys.readouterr()
    assert "every cell of softmax diverged (2 cells)" in told.err
    assert "diverged: softmax with recipe.learning_rate=1e+18, seed 0" in told.out


# -- searches in a store ----------------------------------------------------------------------------------


def test_the_searches_that_a_study_names_stand_in_for_its_own(tmp_path: Path) -> None:
    names = ["matched_search_scaled", "elsewhere", "matched_search"]
    described(prepared(tmp_path), "mine", [], tuned_by=names)
    packaged = tuple(map(reference_tuning, names))
    assert packaged[1] is None
    assert study_folder(tmp_path, "mine").searches() == (packaged[0], packaged[2])


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
