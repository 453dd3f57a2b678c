"""The exhibits of strengths, of layers thrown away, and of the search for an objective better in both."""

from __future__ import annotations

import pytest

from penultimate.paper.claims.strengths import complete
from penultimate.paper.exhibits.better import better, kept_candidates
from penultimate.paper.exhibits.strengths import (
    FURTHER,
    SHOWN,
    beside_softmax,
    distinct,
    doses,
    pareto_front,
    projectors,
    slopes,
    strengths_of,
)
from penultimate.results.rows import Run
from tests.claims import run_of
from tests.claims.test_dose_claims import planted_strengths, priced
from tests.claims.test_sets import SEEDS, planted_projectors, transfer
from tests.results import planted

OBJECTIVE = "squared_error(kappa=9, scale=1.28, target=3.75)"


@pytest.fixture(scope="module")
def smallest() -> Run:
    return run_of(planted_strengths(priced(-2.0), "sweep_smallest", (200, 201, 202)))


def test_a_curve_joins_the_strengths_of_a_family_through_softmax(smallest: Run) -> None:
    panel = doses(smallest).figures[0].panels[0]
    softmax = next(point for point in panel.points if point.slug == "softmax")
    curves = {curve.slug: curve.points for curve in panel.curves if not curve.faint}
    assert len(curves) == 7
    assert sum(curve.faint for curve in panel.curves) == 7 * 3
    assert curves["label_smoothing"][0] == (softmax.x, softmax.y)
    assert [x for x, _ in curves["label_smoothing"]] == sorted(x for x, _ in curves["label_smoothing"])


def test_a_strength_that_diverged_in_one_seed_is_on_no_curve_and_is_named() -> None:
    without = [("logit_penalty(beta=0.0024)", 201)]
    run = run_of(planted_strengths(priced(-2.0), "sweep_smallest", (200, 201, 202), without=without))
    shown = doses(run)
    assert "On no curve, since not every seed has them: Logit penalty (β = 0.0024)." in shown.notes
    assert any("0.0024" in label for table in shown.tables for label in table.labels)
    assert "Logit penalty (β = 0.0024)" not in {label for _, label, _ in complete(strengths_of(run)).index}


def test_further_families_have_a_price_that_no_rule_judges() -> None:
    shown = doses(run_of(planted_strengths(priced(-2.0), seeds=(200, 201, 202), noise=0.01)))
    assert {curve.slug for curve in shown.figures[0].panels[0].curves} == {*SHOWN}
    prices = next(table for table in shown.tables if table.name == "doses_prices")
    assert {*FURTHER} < {*prices.slugs}
    assert prices.notes == ("Judged by no rule: Projector, Center loss and Entropy.",)


def test_the_front_is_what_nothing_beats_in_both_and_covariates_find_the_price(smallest: Run) -> None:
    found = strengths_of(smallest)
    means = distinct(found).groupby(level=["family", "strength"]).mean()
    front = pareto_front(distinct(found))
    for key, one in means.iterrows():
        better_in_both = (means[["accuracy", "linear"]] >= one[["accuracy", "linear"]]).all(axis=1)
        assert (key in front.index) == (better_in_both.sum() == 1)
    fitted = slopes(found, ["separation"])
    assert fitted is not None
    assert 0.1 * fitted[0].slope == pytest.approx(-2.0, abs=0.2)
    assert beside_softmax(smallest, found) is None


def test_layers_that_some_objective_lacks_leave_gaps_and_no_mean() -> None:
    without = [(OBJECTIVE, 2, seed) for seed in SEEDS]
    shown = projectors(run_of(planted_projectors(transfer(0.8), without=without)))
    table = next(table for table in shown.tables if table.name == "projectors_networks")
    assert "Mean of the objectives (depth 1)" in table.labels
    assert "Mean of the objectives (depth 2)" not in table.labels
    assert "On no curve, since not every seed has them: Squared error (depth 2)." in shown.notes
    one = projectors(run_of(planted_projectors(transfer(0.8), seeds=(203,), noise=0)))
    table = next(table for table in one.tables if table.name == "projectors_networks")
    assert table.to_pandas().set_index("Objective").loc["Softmax (depth 2)", "linear_gain"] == pytest.approx(
        1.6
    )


def test_a_run_without_such_networks_shows_none_of_these() -> None:
    for exhibit in (doses, projectors, better):
        shown = exhibit(planted.run())
        assert not shown.is_measured
        assert shown.notes[0].startswith("Not measured: `penultimate run ")


def test_all_twelve_candidates_come_with_the_package_by_score() -> None:
    scores = [one.score for one in kept_candidates()]
    assert len(scores) == 12
    assert scores == sorted(scores, reverse=True)
