"""What a tuning leaves: the record, choices as study data, exhibits; and the command that makes them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import runpy
from pathlib import Path

import pytest

from penultimate import published
from penultimate.cli import main
from penultimate.errors import DamagedFileError, RequestError
from penultimate.report import read_study
from penultimate.report.exhibits import iclr_table_a2, table_a1
from penultimate.report.exhibits.base import ExhibitTable
from penultimate.study import load_study
from penultimate.study.reading import study_folder, study_folders
from penultimate.study.tuning import conduct, plan_tuning
from penultimate.study.tuning_record import Tuning, from_json, read_tuning
from penultimate.study.tuning_running import record_of
from penultimate.study.tuning_words import chosen_source, summary_lines
from penultimate.training.recipe import Recipe
from tests.report.synthetic import study as synthetic_study
from tests.study.planted_tuning import (
    planted_runner,
    run_source,
    three_seeds,
)

# -- the record -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuning() -> Tuning:
    plan = plan_tuning(three_seeds())
    return record_of(plan, conduct(plan, planted_runner, "penultimate tune all"))


def test_the_record_reads_back_to_what_was_written(tuning: Tuning, tmp_path: Path) -> None:
    assert from_json(json.loads(tuning.to_json())) == tuning
    path = tmp_path / "tuning.json"
    assert read_tuning(path) is None
    path.write_text(tuning.to_json())
    assert read_tuning(path) == tuning
    for damage in (tuning.to_json()[:-30], "{}", "[]"):
        path.write_text(damage)
        with pytest.raises(DamagedFileError, match="not the record of a tuning"):
            read_tuning(path)


def test_the_choices_are_study_data(tuning: Tuning) -> None:
    nine = run_source(chosen_source(tuning))
    assert nine == tuple(one.best.objective for one in tuning.objectives if one.best)
    assert dataclasses.replace(load_study("quickstart"), objectives=nine).objectives == nine
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
    dropout = tuning.of("dropout")
    assert dropout is not None
    assert dropout.best is not None
    assert dropout.best.objective in lines[1]
    assert f"{100 * dropout.best.mean:.2f}" in lines[1]
    assert "9 of 9" in lines[1]
    assert not any("sigmoid" in line for line in lines)


# -- the exhibits -----------------------------------------------------------------------------------------


def column(table: ExhibitTable, key: str) -> list[tuple[str, str]]:
    place = [one.key for one in table.columns].index(key)
    return [(row.objective, row.cells[place].text) for row in table.rows]


def described(tuning: Tuning | None, **more: object):  # type: ignore[no-untyped-def]
    results = synthetic_study((0, 1, 2))
    content = {} if tuning is None else {"tuning": json.loads(tuning.to_json())}
    return dataclasses.replace(results, description={**results.description, **content, **more})


def test_table_a1_holds_every_choice_beside_the_papers(tuning: Tuning) -> None:
    made = table_a1.build(described(tuning))
    ours, paper = made.tables
    assert (ours.source, paper.source) == ("ours", "published")
    expected = [
        (one.slug, f"{one.best.values[place]:.6g}")
        for one in tuning.objectives
        for place in range(len(one.axes))
        if one.best
    ]
    assert [pair for pair in column(ours, "chosen_value") if pair[1] != "–"] == expected
    printed = published.printed("neurips_tableA1_hyperparameters")
    assert [text for _, text in column(paper, "chosen_value")] == [
        row["chosen_value"] or "–" for row in printed
    ]
    assert [text for _, text in column(paper, "epochs")] == [row["epochs"] for row in printed]
    assert any("This study uses" in note for note in made.notes)


def test_the_figure_holds_every_cell_that_did_not_diverge(tuning: Tuning) -> None:
    (figure,) = table_a1.build(described(tuning)).figures
    drawn = [
        (one, place)
        for one in tuning.objectives
        for place in range(len(one.axes))
        if len(one.tried(place)) > 1
    ]
    assert len(figure.panels) == len(drawn)
    for panel, (one, place) in zip(figure.panels, drawn, strict=True):
        assert [point.y for point in panel.points] == [pytest.approx(100 * cell.mean) for cell in one.cells]
        (chosen,) = [point for point in panel.points if not point.faint]
        assert one.best is not None
        value = one.best.values[place]
        assert chosen.x == pytest.approx(math.log10(1 - value if one.slug == "dropout" else value))


def test_iclr_table_a2_holds_rates_and_decays(tuning: Tuning) -> None:
    ours, *papers = iclr_table_a2.build(described(tuning)).tables
    assert [paper.source for paper in papers] == ["published", "published"]
    place = [one.key for one in ours.columns].index("lr_times_weight_decay")
    recipe = Recipe()
    for row in ours.rows:
        assert row.cells[place].value == pytest.approx(recipe.learning_rate * recipe.weight_decay)
    rows = published.printed("iclr_tableA2_cifar_hyperparameters")
    shown = [text for paper in papers for _, text in column(paper, "learning_rate")]
    assert shown == [row["learning_rate"] for row in rows]


@pytest.mark.parametrize("build", [table_a1.build, iclr_table_a2.build])
def test_without_a_search_the_values_in_use_stand_there_and_it_is_said(build) -> None:  # type: ignore[no-untyped-def]
    made = build(described(None))
    assert any("not measured: run `penultimate tune all --study quickstart`" in note for note in made.notes)
    assert made.tables[0].title.startswith("The values that this study uses")
    assert made.figures == ()


@pytest.mark.parametrize("build", [table_a1.build, iclr_table_a2.build])
def test_the_search_of_a_limited_study_is_refused_unless_asked_for(build, tuning: Tuning) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match="--allow-limited"):
        build(described(tuning, limited=True))
    assert build(described(tuning, limited=True), allow_limited=True).limited


# -- the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["dropout", "--seeds", "1,1"], "seeds names 1 twice"),
        (["dropout", "--study", "quikstart"], "Did you mean 'quickstart'"),
        (["dropout", "--grid", "keep=0,0.5"], "keep must be a number in (0, 1]"),
        (["dropout", "--processes", "0"], "at least 1"),
        (["dropout", "--expansions", "-1"], "--expansions is a whole number"),
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
    (ours, _), notes = table_a1.build(results, allow_limited=True).tables, kept.objectives[0].remarks
    assert [row.label for row in ours.rows] == ["Softmax", "Label smoothing"]
    assert notes == ("Softmax: one cell, so there was nothing to choose",)
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


def test_a_tuning_is_not_taken_for_the_study_that_was_run_last(tmp_path: Path) -> None:
    for name, more in (("mine", {}), ("tune-mine", {"tunes": "mine"})):
        folder = tmp_path / "studies" / name
        folder.mkdir(parents=True)
        (folder / "study.json").write_text(json.dumps({"name": name, "steps": [], **more}))
    os.utime(tmp_path / "studies/mine/study.json", (0, 0))
    assert [one.name for one in study_folders(tmp_path)] == ["tune-mine", "mine"]
    assert study_folder(tmp_path).name == "mine"
    assert study_folder(tmp_path, "tune-mine").is_tuning


def test_the_search_of_a_study_is_found_beside_it(tuning: Tuning, tmp_path: Path) -> None:
    for name in ("quickstart", "tune-quickstart"):
        (tmp_path / "studies" / name).mkdir(parents=True)
    described = {"name": "quickstart", "steps": [], "limited": False}
    (tmp_path / "studies/quickstart/study.json").write_text(json.dumps(described))
    assert "tuning" not in study_folder(tmp_path, "quickstart").described()
    (tmp_path / "studies/tune-quickstart/tuning.json").write_text(tuning.to_json())
    assert from_json(study_folder(tmp_path, "quickstart").described()["tuning"]) == tuning


def test_the_search_of_another_study_stands_in_for_ones_own(tuning: Tuning, tmp_path: Path) -> None:
    (tmp_path / "studies/mine").mkdir(parents=True)
    described = {"name": "mine", "steps": [], "limited": False, "tuned_by": "rehearsal"}
    (tmp_path / "studies/mine/study.json").write_text(json.dumps(described))
    found = study_folder(tmp_path, "mine").tuning()
    assert found is not None
    assert (found.study, len(found.objectives)) == ("rehearsal", 9)  # the one that comes with the package
    for name in ("rehearsal", "mine"):
        (tmp_path / f"studies/tune-{name}").mkdir()
        own = dataclasses.replace(tuning, study=name)
        (tmp_path / f"studies/tune-{name}/tuning.json").write_text(own.to_json())
        assert study_folder(tmp_path, "mine").tuning() == own


def test_objectives_that_were_not_searched_are_named(tuning: Tuning) -> None:
    results = described(dataclasses.replace(tuning, objectives=tuning.objectives[1:]))
    (said,) = [note for note in table_a1.build(results).notes if note.startswith("Not searched")]
    assert tuning.objectives[0].slug in said
    assert tuning.objectives[1].slug not in said
    assert not any(note.startswith("Not searched") for note in table_a1.build(described(tuning)).notes)


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
