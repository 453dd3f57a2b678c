"""The claim on the final layer's own weight decay, on studies of a known truth."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.head_decay import (
    HEAD_DECAY_CLAIMS,
    HEAD_DECAY_RULES,
    head_decay_spoken,
)
from penultimate.paper.claims.quoted import paper
from penultimate.paper.claims.trials import Assessment
from penultimate.paper.claims.verdicts import Judged, judge
from penultimate.paper.studies import searches
from penultimate.records.table import Table
from penultimate.report import exhibit
from penultimate.report.base import StudyResults
from penultimate.report.measurements import admit
from penultimate.study import load_study
from tests.report.planted import NINE, planted
from tests.report.reading import described

GAINING = {name: {"accuracy": 75.0 + (0 if name == "softmax" else 1)} for name in NINE}
SEVEN = tuple(name for name in NINE if name not in ("softmax", "squared_error"))
LEVEL = {name: {"accuracy": 75.0} for name in NINE}


def trained(truth: dict[str, dict[str, float]], decay: object = 8e-5, **more: Any) -> StudyResults:
    """A planted study under a recipe with this weight decay of the final layer."""
    results = planted(truth, **more)
    (block,) = results.description["networks"]
    return described(results, networks=[{**block, "recipe": {"head_decay": decay}}])


def judged(results: StudyResults) -> Judged:
    (one,) = judge(gather(admit(results)), HEAD_DECAY_CLAIMS)
    return one


def ours(results: StudyResults) -> Assessment:
    return judged(results).ours


def test_the_rule_is_dated_and_told() -> None:
    assert HEAD_DECAY_RULES[:10] == "2026-11-26"
    assert f"of {HEAD_DECAY_RULES[:10]}," in head_decay_spoken()[0]
    assert not {claim.key for claim in HEAD_DECAY_CLAIMS} & {claim.key for claim in EVERY_CLAIM}


def test_it_holds_where_they_gain_and_fails_where_they_do_not() -> None:
    found = ours(trained(GAINING))
    assert (found.verdict, ours(trained(LEVEL)).verdict) == ("holds", "does not hold")
    assert "points of test accuracy" in found.ours
    assert found.ours.endswith("mean of seven alternatives: 4.0 in a hundred of softmax's errors")
    assert "One by one, gains are beyond chance for seven of seven: Label smoothing, " in found.reason
    assert "Squared error" not in found.reason
    assert ours(trained(LEVEL)).reason.endswith(" One by one, gains are beyond chance for none of seven.")


def test_half_of_the_papers_gain_in_softmaxs_errors_is_the_least_that_counts() -> None:
    means = paper("accuracy")
    share = sum(means[name] - means["softmax"] for name in SEVEN) / 7 / (100 - means["softmax"])
    for factor, verdict in ((0.55, "holds"), (0.45, "does not hold")):
        gain = factor * share * 25
        truth = {name: {"accuracy": 75 + (gain if name in SEVEN else 0)} for name in NINE}
        found = ours(trained(truth, noise=0.01))
        assert found.verdict == verdict
        assert f"{0.5 * share * 25:.2f} points" in found.reason


def test_the_mean_decides_and_the_count_is_told_beside_it() -> None:
    """Three that gain by far carry the mean of the seven; four that lose a little do not take it back."""
    truth = {name: {"accuracy": 75 + (3.0 if name in SEVEN[:3] else -0.1)} for name in NINE}
    truth["softmax"] = {"accuracy": 75.0}
    found = ours(trained(truth))
    assert found.verdict == "holds"
    assert "One by one, gains are beyond chance for three of seven: " in found.reason


def test_where_chance_is_large_it_stays_undecided() -> None:
    found = ours(trained(GAINING, noise=9.0))
    assert (found.verdict, found.judged) == ("undecided", True)
    assert "beyond chance for none of seven." in found.reason


def test_a_study_with_the_usual_decay_is_not_judged_but_told_what_to_run() -> None:
    for usual in (planted(GAINING), trained(GAINING, None)):
        found = ours(usual)
        assert (found.verdict, found.judged) == ("undecided", False)
        assert found.missing is not None
        assert found.missing.command == "penultimate run head_decay"


def test_the_networks_are_found_in_an_arm_too() -> None:
    results = trained(GAINING)
    (block,) = results.description["networks"]
    arms = [{**block, "recipe": {}}, {**block, "arm": "final layer"}]
    level = list(planted(LEVEL).table)
    moved = [dataclasses.replace(row, arm="final layer") for row in results.table]
    both = dataclasses.replace(described(results, networks=arms), table=Table([*level, *moved]))
    assert ours(both) == ours(results)


def test_an_alternative_that_diverged_leaves_it_open() -> None:
    gone = [("sigmoid", seed) for seed in range(5)]
    found = ours(trained(GAINING, without=gone))
    assert (found.verdict, found.judged, found.reason) == (
        "undecided",
        False,
        "Not measured, or diverged: Sigmoid.",
    )
    few = ours(trained(GAINING, seeds=(0, 1)))
    assert not few.judged
    assert "two runs each" in few.reason.lower()


def test_the_papers_side_is_its_printed_table() -> None:
    means = paper("accuracy")
    gain = sum(means[name] - means["softmax"] for name in SEVEN) / 7
    one = judged(planted(LEVEL))
    said = one.paper
    assert said.startswith(f"+{gain:.2f} points of test accuracy (")
    assert "), eight runs each, mean of seven alternatives" in said
    assert f": {100 * gain / (100 - means['softmax']):.1f} in a hundred of softmax's errors" in said
    assert one.printed is not None
    assert one.printed.verdict == "holds"
    assert " One by one, gains are beyond chance for seven of seven: " in one.printed.reason


def test_its_study_has_the_papers_strengths_and_decay() -> None:
    study = load_study("head_decay")
    blocks = study.runs
    assert {block.recipe.head_decay for block in blocks} == {8e-5}
    assert {block.seeds for block in blocks} == {(200, 201, 202, 203, 204)}
    usual = {dataclasses.replace(block.recipe, head_decay=None) for block in blocks}
    assert usual == {
        searches.RECIPE,
        dataclasses.replace(searches.RECIPE, learning_rate=0.6),
    }
    strengths = {
        *("softmax", "label_smoothing(alpha=0.1)", "sigmoid", "final_layer_l2(lambda_final=0.0008)"),
        *("dropout(keep=0.7)", "logit_penalty(beta=0.0006)", "logit_norm(temperature=0.04)"),
        *("cosine_softmax(scale=1, temperature=0.05)", "squared_error(kappa=9, scale=1.28, target=3.75)"),
    }
    assert {text for block in blocks for text in block.objectives} == strengths
    (own,) = [block for block in blocks if block.recipe.learning_rate == 0.6]
    assert own.objectives == (resolve("cosine_softmax").canonical,)
    assert len(study.targets) == 8


@pytest.mark.parametrize(("decay", "shown"), [(8e-5, True), (None, False)])
def test_the_table_of_claims_shows_it_where_a_final_layer_has_its_own_decay(
    decay: float | None, shown: bool
) -> None:
    drawn = exhibit("claims", trained(GAINING, decay))
    rows = {row.label: row.cells for row in drawn.tables[0].rows}
    assert (HEAD_DECAY_CLAIMS[0].says in rows) == shown
    if shown:
        assert "holds" in [cell.text for cell in rows[HEAD_DECAY_CLAIMS[0].says]]
