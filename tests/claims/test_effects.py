"""Effects and jackknives against what they say, written out."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from penultimate.paper.claims.effects import of_independent, of_ranks, of_trend, rho_over_seeds
from penultimate.paper.claims.rules import closer, pseudo_values
from penultimate.statistics import page_p
from tests.oracles import claims as oracle

RANDOM = np.random.default_rng(23)


@pytest.mark.parametrize(("blocks", "length"), [(2, 5), (3, 4)])
def test_a_trend_is_tested_against_every_order(blocks: int, length: int) -> None:
    values = (RANDOM.normal(size=(blocks, length)) + 0.5 * np.arange(length)).tolist()
    found = of_trend(values, 1)
    assert found is not None
    assert found.estimate == pytest.approx(np.mean([oracle.rho(range(length), of) for of in values]))
    assert found.p_for == pytest.approx(oracle.page_p(values))
    theirs = stats.page_trend_test(values, method="exact").pvalue
    assert page_p(values) == pytest.approx(theirs)


def test_a_rank_correlation_has_fishers_interval_and_the_p_of_every_order() -> None:
    x, y = RANDOM.normal(size=(2, 7))
    found = of_ranks(x.tolist(), y.tolist(), -1)
    assert found is not None
    assert found.estimate == pytest.approx(-oracle.rho(x, y))
    assert (found.low, found.high) == pytest.approx(oracle.rank_interval(found.estimate, 7))
    assert found.p == pytest.approx(min(1, oracle.p_of_orders(x, y) if found.estimate > 0 else 1))


def test_seeds_are_drawn_for_all_objectives_at_once() -> None:
    x, y = (pd.DataFrame(RANDOM.normal(size=(3, 6)) + np.arange(6)) for _ in range(2))
    low, high = rho_over_seeds(x, y)
    least, most = oracle.bootstrap_extremes([x[c].to_dict() for c in x], [y[c].to_dict() for c in y])
    assert least <= low < high <= most


def test_independent_groups_are_compared_as_welch_does() -> None:
    groups = [RANDOM.normal(size=size) for size in (4, 7, 3)]
    found = of_independent([dict(enumerate(of)) for of in groups], (1.0, -0.5, -0.5), 0.3)
    literal = oracle.linear_contrast(groups, (1.0, -0.5, -0.5), 0.3)
    ours = found.estimate, found.low, found.high, found.p_for, found.p_against
    assert ours == pytest.approx(literal, abs=1e-5)


def test_the_likeness_of_kin_is_jackknifed_over_objectives() -> None:
    networks = [*itertools.product("abcd", range(3))]
    pairs = {(*one, *other): RANDOM.random() for one, other in itertools.combinations(networks, 2)}
    rows = [(*key, value) for key, value in pairs.items() if key[1] != key[3]]
    frame = pd.DataFrame(rows, columns=["objective", "seed", "objective_b", "seed_b", "value"])
    found = pseudo_values(lambda left: closer(frame, left), [*"abcd"])
    assert [*found.values()] == pytest.approx(oracle.likeness_gaps(pairs))
