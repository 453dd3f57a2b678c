"""What evaluated networks are shown with: boards, places, and nothing of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.records.stores import described, finished, prepared

from penultimate import register, registry
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation.boards import ProbedTask, board_of, records
from penultimate.evaluation.outputs import not_given
from penultimate.records.archive import read_kept
from penultimate.records.keeping import keep
from penultimate.records.reading import StudyFolder
from penultimate.report import exhibit, read_study
from penultimate.report.base import StudyResults
from penultimate.report.listing import states
from penultimate.report.measurements import admit
from penultimate.report.networks import StudyObjective
from penultimate.report.page.page import render_report
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.table import TableOfRuns
from penultimate.report.spec import Exhibit, all_exhibits
from penultimate.statistics.paired import Answers
from penultimate.study.foundation import word


def test_the_first_is_said_to_be_level_with_one_that_it_is_level_with() -> None:
    """The second is behind beyond chance, the third, which errs on other images, is not."""
    first, second, third = (np.zeros(1000, bool) for _ in range(3))
    first[:900] = True
    second[:885] = True
    third[100:980] = True
    networks = tuple(StudyObjective(name, name, name) for name in ("first", "second", "third"))
    answers = Answers(np.stack([first, second, third]), np.zeros(1000, int))
    board = board_of((ProbedTask("digits", "Digits", networks, answers),))
    assert board is not None
    assert [standing.network.slug for standing in board.standings] == ["first", "second", "third"]
    told = {(one.slug, other.slug): pair.is_told_apart for one, other, pair in board.pairs}
    assert (told["first", "second"], told["first", "third"]) == (True, False)
    assert [standing.place for standing in board.standings] == ["1–2", "2–3", "1–3"]
    assert [standing.is_unbeaten for standing in board.standings] == [True, False, True]
    assert "it is not told apart from third (2.0 points, p = " in board.sentence()
    assert "second" not in board.sentence()


LABELS = np.arange(12) % 3


def given(root: Path, names: Sequence[str], **settings: Any) -> StudyFolder:
    """A study of networks that were not trained in it, with an accuracy and predictions of each."""
    store, steps = prepared(root), []
    for number, name in enumerate(names):
        predicted = np.where(np.arange(12) < 12 - number, LABELS, (LABELS + 1) % 3)
        arrays = {"ids": np.arange(12), "labels": LABELS, "linear": predicted, "knn": predicted}
        columns = {"objective": name, "source": "digits_smoke", "target": "digits_smoke"}
        rows = [
            {"metric": "linear_top1", "value": float((predicted == LABELS).mean())},
            {"metric": "class_separation", "value": 0.5},
            {"metric": "probe_predictions", "value": 12, "unit": "points"},
        ]
        step = f"probed.net{number}-digits_smoke.0"
        steps.append(finished(store, step, columns, rows, arrays={"probe_predictions": arrays}))
    blocks = [{"given": dict.fromkeys(names, "timm:resnet18"), "measure": None}]
    networks = [{"slug": name, "label": name, "spec": name} for name in names]
    described_as = {"source": "digits_smoke", "targets": ["digits_smoke"], "measure": ["probed"]}
    whole = {**described_as, "networks": blocks, "objectives": networks, "title": "", "question": ""}
    return described(store, "mine", steps, **{**whole, **settings})


OF_PAPER = [one.name for one in all_exhibits() if one.section and one.name != "tableD1"]
OF_PAPER += ["claims", "doses"]


@pytest.mark.parametrize("names", [("softmax", "sigmoid"), ("first", "second")])
def test_networks_that_were_given_stand_beside_no_number_of_the_paper(
    tmp_path: Path, names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever they are called: the paper's softmax is an objective, this one is somebody's network."""
    given(tmp_path, names)
    for name in OF_PAPER:
        with pytest.raises(RequestError, match=r"not trained there.* show ranking --study mine"):
            exhibit(name, tmp_path)
    for command in (["show", "claims"], ["why", "table3", names[0]], ["show", "figure5"]):
        assert main([*command, "--out", str(tmp_path)]) == 2
        assert "penultimate show ranking --study mine" in capsys.readouterr().err
    for one in all_exhibits():
        if one.name not in OF_PAPER and one.shows_given:
            built = exhibit(one.name, tmp_path)
            assert "published" not in {table.source for table in built.tables}, one.name
            assert "paper" not in " ".join((built.caption, *built.notes)), one.name
    page = render_report(read_study(tmp_path))
    assert "Which network serves which task best" in page[""].decode()
    assert not [name for name in page if "published" in name or name.startswith("claims")]
    assert states(tmp_path)["table3"] == "not measured"


def test_where_a_number_of_the_ranking_comes_from_is_traced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given(tmp_path, ("softmax", "sigmoid"))
    assert main(["why", "ranking", "sigmoid", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "linear_top1" in said
    assert "probed.net1-digits_smoke.0" in said


def test_an_exhibit_that_names_the_page_of_evaluations_stands_on_it(tmp_path: Path) -> None:
    given(tmp_path, ("first", "second"))
    separation = TableOfRuns("apart", "How far apart", (Quantity("class_separation", label="R2"),), "R2")
    one = Exhibit(
        "apart", "Registered elsewhere", "", (separation,), page="evaluation", measured_by="evaluate"
    )
    register.exhibit(one)
    try:
        page = render_report(read_study(tmp_path, "mine"))[""].decode()
    finally:
        registry.forget("exhibit", "apart")
    assert page.count("Registered elsewhere") >= 1
    assert "Further exhibits" in page
    assert "Further exhibits" not in render_report(read_study(tmp_path, "mine"))[""].decode()


def test_a_network_beside_trained_ones_is_no_objective_by_its_name(tmp_path: Path) -> None:
    """Here the study trains sigmoid alone, so that nothing is compared with softmax."""
    trained = {"objectives": ["sigmoid"], "backbones": ["net"], "seeds": [0], "draws": 0, "recipe": {}}
    blocks = [{"given": {"softmax": "timm:resnet18"}, "measure": None}, trained]
    measurements = admit(read_study(given(tmp_path, ("softmax",), networks=blocks).path))
    assert measurements.baseline == ""
    assert [(each.slug, each.label) for each in measurements.objectives] == [("network softmax", "softmax")]


@pytest.mark.parametrize(
    "names",
    [
        ("net", "net "),
        ("softmax", "softmax ", " softmax"),
        ("two words", "two  words"),
        ("caf\u00e9", "cafe\u0301"),
        ("a\u200bb", "ab"),
        ("Net", "net"),
        ("x" * 70 + "1", "x" * 70 + "2"),
        ("network softmax", "softmax"),
    ],
)
def test_names_that_look_alike_are_networks_of_their_own_wherever_they_are_shown(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    measurements = admit(read_study(given(tmp_path, names).path))
    shown = [each.label for each in measurements.objectives]
    assert len({*shown}) == len({each.slug for each in measurements.objectives}) == len(names)
    rows = records(measurements)
    assert len(rows) == 2 * len(names)
    assert [row["accuracy"] for row in rows[: len(names)]] == [(12 - each) / 12 for each in range(len(names))]
    assert {row["network"] for row in rows} == {*shown}
    ranking = exhibit("ranking", tmp_path)
    assert [row.label for row in ranking.tables[0].rows] == shown
    assert len(exhibit("comparisons", tmp_path).tables[0].rows) == len(names) * (len(names) - 1) // 2
    assert render_report(read_study(tmp_path))


@pytest.mark.parametrize("kept", [False, True])
def test_networks_of_one_word_in_step_ids_have_reasons_of_their_own(tmp_path: Path, kept: bool) -> None:
    names = ("net", "my net", "my-net", "x" * 45 + "1", "x" * 45 + "2")
    study = given(tmp_path, names[:1])
    steps = [*study.description["steps"]]
    for kind in ("probed", "classifier"):
        for number, name in enumerate(names[1:]):
            columns = {"objective": name, "source": "digits_smoke", "target": "digits_smoke"}
            step = f"{kind}.{word(name)}-digits_smoke.{number}"
            steps.append(finished(study.store, step, columns, undefined=f"reason {number} of {kind}"))
    described_as = {
        key: study.description[key] for key in ("source", "targets", "measure", "title", "question")
    }
    blocks = [{"given": dict.fromkeys(names, "timm:resnet18"), "measure": None}]
    objectives = [{"slug": name, "label": name, "spec": name} for name in names]
    study = described(study.store, "mine", steps, **described_as, networks=blocks, objectives=objectives)
    results = (
        StudyResults.of(read_kept(keep(study, tmp_path / "kept").parent)) if kept else read_study(study.path)
    )
    notes = exhibit("ranking", results).notes
    said = not_given(results)
    for number, name in enumerate(names[1:]):
        assert f"No number of {name} on digits_smoke: reason {number} of probed." in notes
        assert (
            f"As a classifier, {name} on digits_smoke has no number: reason {number} of classifier." in said
        )


def test_ranks_stand_with_tie_groups_and_what_could_have_been_found(tmp_path: Path) -> None:
    given(tmp_path, ("first", "second", "third"))
    ranks, power = exhibit("ranks", tmp_path).tables
    assert [row.label for row in ranks.rows] == ["first", "second", "third"]
    assert {row.cells[-1].text for row in ranks.rows} == {"a"}  # twelve images tell none apart
    assert [row.cells[0].value for row in ranks.rows] == [1, 2, 3]
    assert [cell.text for cell in power.rows[0].cells][:2] == ["12", "3 of 3"]
    assert "Which ranks are real" in render_report(read_study(tmp_path))[""].decode()


def test_one_network_alone_has_no_ranks(tmp_path: Path) -> None:
    given(tmp_path, ("first",))
    assert not exhibit("ranks", tmp_path).tables
