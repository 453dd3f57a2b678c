"""What a tuning leaves: the record, choices as study data, exhibits; and the command that makes them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import runpy
import shlex
from pathlib import Path

import pytest
from tests.records.stores import described, finished, prepared
from tests.tuning.planted import (
    planted_runner,
    run_source,
    three_seeds,
)

from penultimate.cli import main
from penultimate.engine.observer import Observer, Summary
from penultimate.errors import DamagedFileError
from penultimate.records.reading import reference_tuning, study_folder, study_folders
from penultimate.records.tuning import Tuning, read_tuning, searches_held, write_tuning
from penultimate.report import exhibit, read_study
from penultimate.store import Store
from penultimate.study import load_study
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.graph import Graph
from penultimate.study.selection import restrict, with_added
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.tuning.chosen import chosen_source
from penultimate.tuning.conduct import conduct, plan_tuning
from penultimate.tuning.run import TuningResult, record_of, tune
from penultimate.tuning.words import result_lines, run_with_choice, summary_lines

# -- the record -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuning() -> Tuning:
    plan = plan_tuning(three_seeds())
    return record_of(plan, conduct(plan, planted_runner, "penultimate tune all"))


def test_the_record_reads_back_to_what_was_written(tuning: Tuning, tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    assert read_tuning(path) is None
    write_tuning(path, tuning)
    assert read_tuning(path) == tuning
    whole = path.read_text()
    for damage in (whole[:-30], whole.replace("0.1", "0.2", 1), "{}", "[]"):
        path.write_text(damage)
        with pytest.raises(DamagedFileError, match=r"tuning\.json' is not what was written.*writes it again"):
            read_tuning(path)


def test_a_record_has_one_setting_before_and_after_it_is_written(tmp_path: Path) -> None:
    """A pair is a list in JSON, and a record of earlier lacks the settings that recipes have got since."""
    study = override(three_seeds(), ["recipe.augmentation.crop=0.1,1.0"])
    plan = plan_tuning(study, ["dropout"])
    tuning = record_of(plan, conduct(plan, planted_runner))
    write_tuning(tmp_path / "tuning.json", tuning)
    again = read_tuning(tmp_path / "tuning.json")
    assert again is not None
    assert again.setting == tuning.setting
    earlier = {name: value for name, value in tuning.recipe.items() if name != "at_once"}
    assert dataclasses.replace(again, recipe=earlier).setting == tuning.setting
    other = dataclasses.replace(again, recipe={**tuning.recipe, "at_once": 32})
    assert other.setting != tuning.setting


def test_the_start_is_that_of_the_objectives_own_recipe() -> None:
    smoke = load_study("smoke")
    usual = smoke.main.recipe.learning_rate
    changes = {"dropout": {"learning_rate": 2 * usual}}
    grids = runs_by_recipe(("softmax", "dropout"), smoke.main.recipe, changes, backbones=smoke.main.backbones)
    study = dataclasses.replace(smoke, networks=grids)
    (alone,) = conduct(plan_tuning(study, ["dropout"]), planted_runner)
    assert str(alone.at_start) == f"dropout(keep=0.7) with recipe.learning_rate={2 * usual}"
    rates = {"recipe.learning_rate": (usual, 2 * usual)}
    (beside,) = conduct(plan_tuning(study, ["dropout"], rates), planted_runner)
    assert str(beside.at_start) == str(alone.at_start)


def test_the_choices_are_study_data(tuning: Tuning) -> None:
    nine = run_source(chosen_source(tuning))
    assert nine == tuple(one.best.objective for one in tuning.objectives if one.best)
    assert override(load_study("nine"), [f"objectives={nine!r}"]).objectives == nine
    assert "penultimate tune all" in chosen_source(tuning)
    assert "holdout of glyphs" in chosen_source(tuning)


def test_a_single_search_leaves_the_others_as_the_study_has_them() -> None:
    plan = plan_tuning(three_seeds(), ["dropout"], {"recipe.learning_rate": (0.5, 2.0)}, 12)
    tuned = conduct(plan, planted_runner, 'a "command" with \\ and """')
    nine = run_source(chosen_source(record_of(plan, tuned)))
    studys = list(three_seeds().objectives)
    assert tuned[0].best is not None
    studys[4] = tuned[0].best.objective
    assert nine == tuple(studys)


def test_the_summary_names_choice_accuracy_and_cells(tuning: Tuning) -> None:
    lines = summary_lines(tuning, ["dropout"])
    (dropout,) = (tuned for tuned in tuning.objectives if tuned.slug == "dropout")
    assert dropout.best is not None
    assert dropout.best.objective in lines[1]
    assert f"{100 * dropout.best.mean:.2f}" in lines[1]
    assert "9 of 9" in lines[1]
    assert not any("sigmoid" in line for line in lines)


# -- the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["dropout", "--seeds", "1,1"], "seeds names 1 twice"),
        (["dropout", "--study", "quikstart"], "Did you mean 'quickstart'"),
        (["dropout", "--grid", "keep=0,0.5"], "keep must be a number in (0, 1]"),
        (["dropout", "--processes", "0"], "at least 1"),
        (["dropout", "--expansions", "-1"], "--expansions is a whole number"),
        (["dropout", "--data", "digits=here"], "study 'nine' does not need --data digits"),
        ([], "required: OBJECTIVE"),
    ],
)
def test_the_command_answers_a_wrong_request_in_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], answer: str
) -> None:
    assert main(["tune", *arguments, "--out", str(tmp_path / "runs")]) == 2
    assert answer in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


COMMAND = ["tune", "label_smoothing", "softmax", "--study", "smoke", "--seeds", "0,1", "--budget", "2"]
COMMAND += ["--grid", "alpha=0.1,0.3", "--set", "recipe.epochs=1", "--processes", "1"]


@pytest.mark.long
def test_a_tuning_is_trained_kept_shown_and_not_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(COMMAND) == 0
    folder = tmp_path / "runs/studies/tune-smoke"
    kept = read_tuning(folder / "tuning.json")
    assert kept is not None
    trained = {path.name for path in (tmp_path / "runs/steps").glob("train.*")}
    assert {run.step for one in kept.objectives for cell in one.cells for run in cell.runs} == trained
    assert len(trained) == 3 * 2
    nine = runpy.run_path(str(folder / "chosen.py"))["NINE"]
    assert nine[0] == "softmax"
    assert nine[-1] in ("label_smoothing(alpha=0.1)", "label_smoothing(alpha=0.3)")
    results = read_study(tmp_path / "runs", "tune-smoke")
    assert {row.step for row in results.table} == set(kept.steps())
    (ours, _), notes = exhibit("tableA1", results, allow_limited=True).tables, kept.objectives[0].remarks
    assert [row.label for row in ours.rows] == ["Softmax", "Label smoothing"]
    assert notes[0] == "Softmax: one cell, so there was nothing to choose"
    before = {path: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}
    capsys.readouterr()
    assert main(COMMAND) == 0
    assert "Every cell was done already." in capsys.readouterr().out
    assert {path: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == before
    assert main(["why", "tableA1", "label_smoothing", "--study", "tune-smoke"]) == 0
    why = capsys.readouterr().out
    (chosen,) = (one.best for one in kept.objectives if one.slug == "label_smoothing" and one.best)
    for run in chosen.runs:
        assert f"holdout  {run.accuracy:.6g}  (limited, epoch 1)" in why
        assert f"\n{run.step}\n" in why
    assert "chosen of 2 cells, by top-1 on the holdout alone" in why
    assert main(["status"]) == 0
    assert "tune-smoke: 8 of 8 steps, complete" in capsys.readouterr().out


class Planted:
    """An engine that leaves a curve in place of each training, with the seed's accuracy at its end."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        for step in graph.steps.values():
            if not store.holds(step.id):
                top1 = {"metric": "top1", "split": "holdout", "unit": "fraction", "epoch": 1}
                rows = [{**top1, "value": 0.5 + step.columns["seed"] / 8}] if step.name == "train" else []
                facts = {"epoch": 1, "content_digest": "d1ge57"}
                finished(store, step.id, step.columns, rows, step.parents, **facts)
        return Summary()


def test_what_was_tuned_with_the_same_settings_is_kept_and_with_others_makes_way(tmp_path: Path) -> None:
    def tuned(objective: str, budget: int, command: str) -> TuningResult:
        plan = plan_tuning(restrict(load_study("nine"), (), (0, 2)), [objective], budget=budget)
        return tune(plan, tmp_path, command=command, engine=Planted())

    def slugs() -> list[str]:
        kept = read_tuning(tmp_path / "studies/tune-nine/tuning.json")
        assert kept is not None
        return [one.slug for one in kept.objectives]

    assert tuned("dropout", 5, "first").made_way is None
    second = tuned("label_smoothing", 5, "second")
    assert (slugs(), second.made_way) == (["label_smoothing", "dropout"], None)
    (both,) = {one.best.mean for one in second.tuning.objectives if one.best}
    assert both == 0.5 + (0 + 2) / 16
    assert {*second.tuning.provenance["data"].values()} == {"d1ge57"}
    third = tuned("sigmoid", 6, "third")
    assert slugs() == ["sigmoid"]
    assert third.made_way is not None
    lines, errors = result_lines(third)
    assert (lines[-2:], errors) == (["  second", "  first"], [])
    assert set(third.tuning.steps()) < {path.name for path in (tmp_path / "steps").iterdir()}


def test_the_command_that_trains_a_choice_is_one_that_can_be_run(tmp_path: Path) -> None:
    nine, search = load_study("nine"), load_study("matched_search")

    def command(study: Study, *objectives: str, grids: dict[str, tuple[float, ...]] | None = None) -> str:
        plan = plan_tuning(restrict(study, (), (0, 2)), objectives, grids, budget=5)
        told = run_with_choice(tune(plan, tmp_path, engine=Planted()), study, study.name, ["--seeds", "0"])
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


def test_a_tuning_is_not_taken_for_the_study_that_was_run_last(tmp_path: Path) -> None:
    store = prepared(tmp_path)
    described(store, "mine", [])
    described(store, "tune-mine", [], tunes="mine")
    assert [folder.name for folder in study_folders(tmp_path)] == ["tune-mine", "mine"]
    assert study_folder(tmp_path).name == "mine"
    assert study_folder(tmp_path, "tune-mine").is_tuning


def leave(tuning: Tuning, root: Path, study: str) -> None:
    """Leave a tuning where that of a study lies."""
    folder = root / "studies" / f"tune-{study}"
    folder.mkdir()
    write_tuning(folder / "tuning.json", tuning)


def test_the_search_of_a_study_is_found_beside_it(tuning: Tuning, tmp_path: Path) -> None:
    described(prepared(tmp_path), "nine", [])
    assert "tuning" not in study_folder(tmp_path, "nine").described()
    leave(tuning, tmp_path, "nine")
    assert searches_held(study_folder(tmp_path, "nine").described()) == (tuning,)


def test_the_search_of_another_study_stands_in_for_ones_own(tuning: Tuning, tmp_path: Path) -> None:
    described(prepared(tmp_path), "mine", [], tuned_by="matched_search")  # as text: as it was once described
    (found,) = study_folder(tmp_path, "mine").searches()
    assert found == reference_tuning("matched_search")  # the one that comes with the package
    for name in ("matched_search", "mine"):
        own = dataclasses.replace(tuning, study=name)
        leave(own, tmp_path, name)
        assert study_folder(tmp_path, "mine").searches() == (own,)


def test_several_searches_stand_in_the_order_in_which_a_study_names_them(
    tuning: Tuning, tmp_path: Path
) -> None:
    names = ["matched_search_scaled", "elsewhere", "matched_search"]
    described(prepared(tmp_path), "mine", [], tuned_by=names)
    packaged = tuple(map(reference_tuning, names))
    assert study_folder(tmp_path, "mine").searches() == (packaged[0], packaged[2])
    beside = dataclasses.replace(tuning, study="elsewhere")
    leave(beside, tmp_path, "elsewhere")
    expected = (packaged[0], beside, packaged[2])
    kept = json.loads(json.dumps(study_folder(tmp_path, "mine").described()))
    assert searches_held(kept) == expected
    assert searches_held({**kept, "tuning": kept["tuning"][1]}) == (beside,)  # as it was once kept
    leave(dataclasses.replace(tuning, study="mine"), tmp_path, "mine")
    assert [search.study for search in study_folder(tmp_path, "mine").searches()] == ["mine"]


def test_only_a_tuning_has_a_record_of_its_own(tuning: Tuning, tmp_path: Path) -> None:
    described(prepared(tmp_path), "mine", [], tuned_by=["matched_search"])
    leave(tuning, tmp_path, "mine")
    described(Store(tmp_path), "tune-mine", [], tunes="mine", tuned_by=["matched_search"])
    assert study_folder(tmp_path, "mine").tuning() is None
    assert study_folder(tmp_path, "tune-mine").tuning() == tuning
    assert study_folder(tmp_path, "tune-mine").searches() == (tuning,)


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_a_record_that_is_damaged_or_missing_is_named_with_its_command(
    tuning: Tuning, tmp_path: Path, damage: str
) -> None:
    """Without it a tuning would show all its cells, and its study another search."""
    described(prepared(tmp_path), "mine", [])
    leave(tuning, tmp_path, "mine")
    described(Store(tmp_path), "tune-mine", [], tunes="mine", command="penultimate tune all --study mine")
    file = tmp_path / "studies/tune-mine/tuning.json"
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes().replace(b"cells", b"cellz", 1))
    said = rf"tuning\.json.*: penultimate tune all --study mine --out {tmp_path}"
    with pytest.raises(DamagedFileError, match=said):
        study_folder(tmp_path, "tune-mine").evidence()
    if damage == "missing":
        with pytest.raises(DamagedFileError, match=said):
            study_folder(tmp_path, "mine").searches()


@pytest.mark.long
def test_where_every_run_diverges_the_command_fails_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rates = ["--grid", "recipe.learning_rate=1e18,1e20", "--budget", "2", "--set", "recipe.epochs=1"]
    assert main(["tune", "softmax", "--study", "smoke", "--processes", "1", *rates]) == 1
    told = capsys.readouterr()
    assert "every cell of softmax diverged (2 cells)" in told.err
    assert "diverged: softmax with recipe.learning_rate=1e+18, seed 0" in told.out
    assert "every cell diverged" in (tmp_path / "runs/studies/tune-smoke/chosen.py").read_text()
