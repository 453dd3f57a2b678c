"""Class overlap beside the paper's, and whom each score would have picked: from rows of a known truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.paper.exhibits.scores import EXHIBIT
from penultimate.records.table import Row, Table
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import admit
from tests.oracles.report import spearman_rho
from tests.report.planted import NINE, as_in_the_paper, planted
from tests.report.reading import cell, column_of, described, glyphs, only, panels, table_of, with_rows

ACCURACY = {
    "softmax": (90.0, 70.0),
    "sigmoid": (80.0, 75.0),
    "dropout": (70.0, 60.0),
    "squared_error": (60.0, 50.0),
}
"""Linear transfer to the two tasks of a planted study: syllabics and newfaces."""
LOGME = {
    "softmax": (0.4, 0.1),
    "sigmoid": (0.3, 0.2),
    "dropout": (0.2, 0.3),
    "squared_error": (0.1, 0.4),
}
TASKS = ("syllabics", "newfaces")
DROPOUT = resolve("dropout").canonical


def with_scores(
    scores: Mapping[str, Mapping[str, tuple[float, float]]], seeds: tuple[int, ...] = (0, 1)
) -> StudyResults:
    """The planted study with {metric: {objective: its values on the two tasks}}."""
    truth = {
        name: {"linear_syllabics": first, "linear_newfaces": second, "separation": second / 100}
        for name, (first, second) in ACCURACY.items()
    }
    results = planted(truth, seeds, noise=0.0)
    rows = [
        Row(**{**facts(name, seed, target), "metric": metric, "value": value, "step": "s"})
        for metric, values in scores.items()
        for name, of_tasks in values.items()
        for seed in seeds
        for target, value in zip(TASKS, of_tasks, strict=True)
    ]
    return dataclasses.replace(results, table=Table([*results.table, *rows]))


def facts(name: str, seed: int, target: str) -> dict[str, Any]:
    return {
        "objective": resolve(name).canonical,
        "backbone": "glyphnet",
        "source": "glyphs",
        "seed": seed,
        "draw": seed,
        "target": target,
        "split": "train",
        "unit": "nats",
        "status": "done",
    }


def test_a_score_picks_whom_it_promises_most_and_pays_what_that_costs() -> None:
    """LogME is right on syllabics, and on newfaces picks the worst: 25 points below the best."""
    built = exhibit("scores", with_scores({"logme": LOGME}))
    table = table_of(built, "scores_picks")
    (row,) = (row for row in table.rows if row.label == "LogME")
    assert [one.text for one in row.cells] == [
        "1",
        "12.5",
        "Softmax",
        "Squared error",
        "any of four objectives",
    ]
    assert [one.best for one in row.cells] == [False, False, True, False, False]
    best, always = table.rows[0], next(row for row in table.rows if row.label == "Always softmax")
    assert [one.text for one in best.cells] == ["2", "0.0", "Softmax", "Sigmoid", "Softmax"]
    assert [one.text for one in always.cells] == ["1", "2.5", "Softmax", "Softmax", "Softmax"]
    random = table.rows[-1]
    losses = [max(column) - sum(column) / 4 for column in zip(*ACCURACY.values(), strict=True)]
    assert [one.value for one in random.cells[:2]] == [0.5, pytest.approx(sum(losses) / 2)]
    assert built.finding == (
        "Ours: least is lost by a pick by LogME, 12.5 points of accuracy in the mean over tasks; a pick at"
        " random loses 13.1, softmax throughout 2.5. Most often the best is a pick by LogME, on one of two"
        " tasks; one at random is so on 0.5, softmax on one (two runs each: a direction, no more)."
    )


def test_objectives_that_share_the_highest_score_are_each_as_likely_to_be_picked() -> None:
    """On syllabics softmax (right) ties with dropout (20 points below), on newfaces all four are level."""
    on_syllabics = {"softmax": -0.4, "sigmoid": -0.9, "dropout": -0.4, "squared_error": -2.0}
    tied = {name: (value, -7.0) for name, value in on_syllabics.items()}
    table = table_of(exhibit("scores", with_scores({"leep": tied})), "scores_picks")
    (row,) = (row for row in table.rows if row.label == "LEEP")
    of_newfaces = [75.0 - accuracy for _, accuracy in ACCURACY.values()]
    assert row.cells[0].value == pytest.approx(1 / 2 + 1 / 4)
    assert row.cells[1].value == pytest.approx((20 / 2 + sum(of_newfaces) / 4) / 2)
    assert [one.text for one in row.cells[2:4]] == ["Softmax or Dropout", "any of four objectives"]
    assert not any(one.best for one in row.cells[2:4])


def test_any_of_the_equally_best_is_right() -> None:
    """Transfer is the same for all: whoever is picked is right, and nothing is lost."""
    results = with_scores({"leep": {name: (-value[0], -value[1]) for name, value in LOGME.items()}})
    kept = only(results, lambda row: not row.metric.startswith("linear_"))
    level = [row for row in results.table if row.metric.startswith("linear_")]
    same = with_rows(kept, [dataclasses.replace(row, value=0.5) for row in level])
    table = table_of(exhibit("scores", same), "scores_picks")
    (row,) = (row for row in table.rows if row.label == "LEEP")
    assert [one.text for one in row.cells[:4]] == ["2", "0.0", "Squared error", "Softmax"]
    assert table.rows[-1].cells[0].text == "2"


def test_scores_and_transfer_are_of_the_same_runs() -> None:
    """Scores of two seeds of four: the other two, whose draw makes dropout best, count in no number."""
    some, all_four = with_scores({"logme": LOGME}), with_scores({}, (0, 1, 2, 3))
    later = [
        dataclasses.replace(row, value=0.99)
        for row in all_four.table
        if row.seed in (2, 3) and row.metric.startswith("linear_") and row.objective == DROPOUT
    ]
    rows = [row for row in all_four.table if row.seed in (2, 3) and row.metric.startswith("linear_")]
    mixed = with_rows(some, [row for row in rows if row.objective != DROPOUT] + later)
    shown, expected = exhibit("scores", mixed), exhibit("scores", some)
    for table, of_two in zip(shown.tables, expected.tables, strict=True):
        assert [row.cells for row in table.rows] == [row.cells for row in of_two.rows]
    assert [panel.points for panel in panels(shown).values()] == [
        panel.points for panel in panels(expected).values()
    ]
    assert shown.finding == expected.finding
    why = {row.seed for row in mixed.table if EXHIBIT.with_shared_seeds(admit(mixed)).shows(row, "glyphnet")}
    assert why == {0, 1}


def test_where_some_objectives_were_scored_only_these_are_compared() -> None:
    """Softmax, the best on syllabics, has no score: neither chance nor the best is of it."""
    some = {name: of for name, of in LOGME.items() if name != "softmax"}
    built = exhibit("scores", with_scores({"logme": some, "leep": some}))
    best, logme, *_ = table_of(built, "scores_picks").rows
    assert [one.text for one in best.cells[2:4]] == ["Sigmoid", "Sigmoid"]
    assert [one.text for one in logme.cells[:2]] == ["1", "12.5"]
    assert not any("not measured of every objective" in note for note in built.notes)
    assert built.finding.startswith("Ours: least is lost by a pick by ")


def test_linear_transfer_of_none_that_has_a_score_is_said_to_be_missing() -> None:
    """Softmax alone has a score, and is alone without linear transfer."""
    scored = with_scores({"logme": {"softmax": (0.4, 0.1)}})
    results = only(scored, lambda row: not (row.metric.startswith("linear_") and row.objective == "softmax"))
    assert [gap.what for gap in exhibit("scores", results).missing] == ["Linear transfer"]


def test_ranks_are_correlated_task_by_task_and_in_the_mean() -> None:
    table = table_of(exhibit("scores", with_scores({"logme": LOGME})), "scores_ranks")
    for key, place in (("syllabics", 0), ("newfaces", 1)):
        expected = spearman_rho([of[place] for of in LOGME.values()], [of[place] for of in ACCURACY.values()])
        assert column_of(table, key)["LogME"].value == pytest.approx(expected)
    assert column_of(table, "mean")["LogME"].text == "–"  # all scores are equal in the mean
    assert column_of(table, "mean")["LogME"].detail == "too few different values"


def test_scores_of_which_less_is_more_are_turned_round() -> None:
    """NC1 on the task, and the pretraining R² that the paper finds to go against transfer."""
    results = with_scores({"target_nc1": LOGME, "h_score": LOGME})
    built = exhibit("scores", results)
    ranks = table_of(built, "scores_ranks")
    assert column_of(ranks, "syllabics")["NC1"].value == -1
    assert column_of(ranks, "syllabics")["H-score"].value == 1
    assert column_of(ranks, "newfaces")["Pretraining R²"].value == pytest.approx(-1)
    picks = column_of(table_of(built, "scores_picks"), "syllabics")
    assert (picks["NC1"].text, picks["H-score"].text) == ("Squared error", "Softmax")
    drawn = panels(built)
    assert set(drawn) == {"scores-h_score", "scores-target_nc1"}
    assert {point.objective for point in drawn["scores-h_score"].points} == set(ACCURACY)


def test_the_same_list_is_that_of_the_other_tasks() -> None:
    """Of two tasks each is picked for by the other: sigmoid for syllabics, softmax for newfaces."""
    built = exhibit("scores", with_scores({"logme": LOGME}))
    picks = table_of(built, "scores_picks")
    (row,) = (row for row in picks.rows if row.label == "Always the same list")
    assert [one.text for one in row.cells] == ["0", "7.5", "Sigmoid", "Softmax", "–"]
    of_tasks = list(zip(*ACCURACY.values(), strict=True))
    expected = spearman_rho(*of_tasks)
    ranks = table_of(built, "scores_ranks")
    for task in TASKS:
        assert column_of(ranks, task)["Always the same list"].value == pytest.approx(expected)
    assert column_of(ranks, "mean")["Always the same list"].text == "–"
    alone = only(with_scores({"logme": LOGME}), lambda row: row.target != "newfaces")
    single = exhibit("scores", described(alone, targets=["syllabics"]))
    assert not any(row.label == "Always the same list" for table in single.tables for row in table.rows)


def test_ncti_joins_its_terms_over_the_networks_of_a_task() -> None:
    """Each term is scaled to 0 .. 1: of the spread within classes less is more."""
    level = dict.fromkeys(ACCURACY, (1.0, 1.0))
    spread = {name: (first, first) for name, (first, _) in LOGME.items()}
    terms = {"ncti_simplex": LOGME, "ncti_nearest": level, "ncti_within": spread}
    built = exhibit("scores", with_scores(terms))
    ranks = table_of(built, "scores_ranks")
    assert column_of(ranks, "syllabics")["NCTI"].text == "–"  # the first term less the third is 0 for all
    expected = spearman_rho([of for _, of in LOGME.values()], [of for _, of in ACCURACY.values()])
    assert column_of(ranks, "newfaces")["NCTI"].value == pytest.approx(expected)
    assert cell(table_of(built, "scores"), "softmax", "ncti")[0] == pytest.approx((0 + (0 - 1)) / 2)


@pytest.mark.parametrize(
    ("metric", "label", "sign"),
    [
        *(("cdnv", "CDNV", -1), ("rankme", "RankMe", 1), ("stable_rank", "Stable rank", 1)),
        *(("alpha_req", "α-ReQ", -1), ("dimension_mle", "Intrinsic dimension (MLE)", -1)),
    ],
)
def test_further_scores_have_the_direction_that_their_authors_give(
    metric: str, label: str, sign: int
) -> None:
    ranks = table_of(exhibit("scores", with_scores({metric: LOGME})), "scores_ranks")
    assert column_of(ranks, "syllabics")[label].value == pytest.approx(sign)


def test_an_objective_without_a_score_is_not_picked_and_the_page_says_so() -> None:
    """LEEP needs probabilities, which squared error does not give."""
    values = {name: of for name, of in LOGME.items() if name != "squared_error"}
    built = exhibit("scores", with_scores({"leep": values, "nce": LOGME}))
    picks = column_of(table_of(built, "scores_picks"), "newfaces")
    assert (picks["LEEP"].text, picks["NCE"].text) == ("Dropout", "Squared error")
    lacks = "LEEP: not measured of every objective, so left out of this comparison."
    assert lacks in built.notes
    assert "LEEP" not in built.finding
    assert "a pick by NCE" in built.finding
    shown = table_of(built, "scores")
    assert column_of(shown, "leep")["squared_error"].text == "–"
    assert cell(shown, "softmax", "nce")[0] == pytest.approx(0.25)


def test_without_scores_the_exhibit_says_so_and_the_page_leaves_it_out() -> None:
    built = exhibit("scores", glyphs())
    assert [gap.what for gap in built.missing] == ["Transferability scores"]
    assert not built.wanted
    asking = described(glyphs(), measure=["linear", "leep"])
    assert exhibit("scores", asking).wanted


def overlapping(results: StudyResults) -> StudyResults:
    rows = []
    for seed in (0, 1):
        for target, assigned, shared in (("syllabics", 0.2, 0), ("newfaces", 0.5, 40)):
            common = facts("softmax", seed, target)
            rows += [
                Row(
                    **{**common, "split": split, "unit": "fraction"},
                    step="s",
                    metric="assignment_accuracy",
                    value=value,
                )
                for split, value in (("train", 0.9), ("test", assigned + seed / 100))
            ]
            rows.append(
                Row(**{**common, "unit": "count"}, step="s", metric="semantic_overlap", value=float(shared))
            )
    return dataclasses.replace(results, table=Table([*results.table, *rows]))


def test_class_overlap_stands_beside_linear_transfer_and_the_papers_table() -> None:
    built = exhibit("tableF1", overlapping(with_scores({})))
    table = table_of(built, "tableF1")
    assert [row.label for row in table.rows] == ["Canadian syllabics", "New faces†"]
    assert [one.text for one in table.rows[0].cells] == ["40", "0", "20.5", "90.0", "–"]
    assert [one.text for one in table.rows[1].cells] == ["40", "40", "50.5", "70.0", "–"]
    assert "less than half of the linear one on one of two tasks, not on New faces" in " ".join(built.notes)
    printed = table_of(built, "tableF1_published")
    rows = list(published.printed("neurips_tableF1_class_overlap"))
    assert len(printed.rows) == len(rows) == 8
    for row, shown in zip(rows, printed.rows, strict=True):
        assert [one.text for one in shown.cells[:-1]] == [*row.values()][1:]
    assert printed.columns == table.columns


def test_the_rank_correlation_of_separation_stands_beside_each_task_and_the_papers() -> None:
    truth = as_in_the_paper()
    results = overlapping(planted(truth, (0, 1), noise=0.0))
    table = table_of(exhibit("tableF1", results), "tableF1")
    separation = [truth[name]["separation"] for name in NINE]
    for row, task in zip(table.rows, ("linear", "linear_newfaces"), strict=True):
        rho = spearman_rho(separation, [truth[name][task] for name in NINE])
        assert row.cells[-1].value == pytest.approx(rho)
        assert row.cells[-1].text == f"{rho:.2f}".replace("-", "−")
    printed = table_of(exhibit("tableF1", results), "tableF1_published")
    of_paper = {row.label: row.cells[-1].text for row in printed.rows}
    assert of_paper.pop("Pets") == "−0.62"
    assert (min(of_paper.values()), max(of_paper.values())) == ("−0.90", "−0.97")


@pytest.mark.parametrize(("count", "is_shown"), [(5, False), (6, True)])
def test_of_fewer_objectives_than_a_claim_takes_no_rank_correlation_is_shown(
    count: int, is_shown: bool
) -> None:
    truth = {name: means for name, means in as_in_the_paper().items() if name in NINE[:count]}
    table = table_of(exhibit("tableF1", overlapping(planted(truth))), "tableF1")
    assert [row.cells[-1].value is not None for row in table.rows] == [is_shown] * 2


def test_without_overlap_the_papers_table_stands_alone() -> None:
    built = exhibit("tableF1", glyphs())
    assert [table.name for table in built.tables] == ["tableF1_published"]
    assert [gap.what for gap in built.missing] == ["Class overlap of a softmax network"]
    without = only(overlapping(with_scores({})), lambda row: not row.metric.startswith("linear"))
    (first, *_) = table_of(exhibit("tableF1", without), "tableF1").rows
    assert [one.text for one in first.cells[-2:]] == ["–", "–"]
