"""The quickstart's rule: planted slopes in three directions, its statistic against SciPy, and its answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from penultimate.paper.claims.filed import QUICK
from penultimate.paper.claims.numbers import LINEAR, SEPARATION, Numbers
from penultimate.paper.claims.quick import answer_quickly, is_quick
from penultimate.paper.claims.verdicts import Verdict, decide
from penultimate.paper.page.answers import answer
from penultimate.results.exhibit import show
from penultimate.study import load_study
from tests.claims import run_of
from tests.planted import StudyResults, planted

SEPARATIONS = (0.36, 0.41, 0.45)


def with_price(
    price: float, noise: float = 0.05, seeds: tuple[int, ...] = (0, 1, 2), limited: bool = False
) -> StudyResults:
    """The three objectives, with transfer that changes by so many points for each .1 of R²."""
    truth = {
        spec: {
            "separation": separation,
            "accuracy": 63.0 - 40 * max(0.0, separation - 0.41),
            "linear": 75.0 + price * (separation - 0.36) / 0.1,
            "knn": 70.0,
        }
        for spec, separation in zip(QUICK, SEPARATIONS, strict=True)
    }
    return planted(
        truth, seeds=seeds, noise=noise, draws=(0.0, 3.0, -2.0, 1.0)[: len(seeds)], limited=limited
    )


@pytest.mark.parametrize(
    ("price", "noise", "verdict", "words"),
    [
        (-4.0, 0.05, "holds", "the worse the features transfer"),
        (0.0, 0.05, "does not hold", "a fall that counts is ruled out"),
        (4.0, 0.05, "does not hold", "a fall that counts is ruled out"),
        (-1.0, 3.0, "undecided", "neither shown nor ruled out"),
    ],
)
def test_the_rule_falls_as_the_planted_truth_does(
    price: float, noise: float, verdict: Verdict, words: str
) -> None:
    run = run_of(with_price(price, noise))
    found = answer_quickly(run)
    assert found is not None
    assert decide(found.price) == verdict
    assert found.price.low <= -price <= found.price.high
    told = answer(run)
    assert told.decides
    assert told.sentence.startswith("Over three draws, each .1 of class separation goes with ")
    assert words in told.sentence
    assert told.points[0].startswith("Logit penalty against softmax: +0.0")


def test_the_slope_is_that_of_a_regression_with_an_intercept_for_each_draw() -> None:
    run = run_of(with_price(-2.0, 0.4))
    slugs = {one.spec: one.slug for one in run.objectives()}
    x, y = (
        Numbers(run).frame(of).rename(columns={slug: spec for spec, slug in slugs.items()})
        for of in (SEPARATION, LINEAR)
    )
    design = np.array(
        [[x[spec][s], *(s == other for other in (0, 1, 2))] for spec in QUICK for s in (0, 1, 2)]
    )
    transfer = np.array([y[spec][s] for spec in QUICK for s in (0, 1, 2)])
    coefficients, rest, *_ = np.linalg.lstsq(design, transfer)
    error = np.sqrt(rest[0] / 5 * np.linalg.inv(design.T @ design)[0, 0])
    low, high = stats.t.interval(0.95, 5, loc=-0.1 * coefficients[0], scale=0.1 * error)
    found = answer_quickly(run)
    assert found is not None
    assert (found.price.low, found.price.high) == pytest.approx((low, high))
    assert found.price.p_for == pytest.approx(stats.t.sf(-coefficients[0] / error, 5))


def test_two_draws_are_too_few_and_other_objectives_have_another_answer() -> None:
    few = run_of(with_price(-4.0, seeds=(0, 1)))
    assert answer_quickly(few) is None
    assert "cannot say yet" in answer(few).sentence
    assert not answer(few).decides
    assert not is_quick(run_of(with_price(-4.0, limited=True)))
    two = planted({spec: {"separation": 0.4, "linear": 70.0} for spec in QUICK[:2]}, seeds=(0, 1, 2))
    assert not is_quick(run_of(two))


def test_undecided_claims_are_left_out() -> None:
    run = run_of(with_price(-4.0))
    claims = show("claims", run)
    assert {*claims.tables[0].to_pandas()["verdict"]} == {"does not hold"}
    assert any("not decided by three objectives" in note for note in claims.notes)


def test_the_study_is_the_rules() -> None:
    study = load_study("quickstart")
    assert study.objectives == QUICK
    assert study.main.seeds == (0, 1, 2)
    assert {"accuracy", "class_separation", "linear"} <= {*study.measure}
