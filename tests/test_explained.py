"""Shares of variance that choices explain: against regressions on dummies, and for designs with holes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from penultimate import RequestError
from penultimate.statistics import crossed_part, explained_shares

CROSSED = list(itertools.product("abc", "xy", "01"))


def of_regression(y: np.ndarray, levels: list[str]) -> float:
    """R squared of a regression on one column for each level."""
    dummies = np.array([[one == level for level in sorted({*levels})] for one in levels], float)
    fitted = dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]
    return float(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def test_shares_are_those_of_regressions_on_dummies_and_do_not_overlap() -> None:
    random = np.random.default_rng(5)
    effects = {level: random.normal(0, 2) for level in "abcxy01"}
    y = np.array([sum(effects[level] for level in one) + random.normal(0, 0.3) for one in CROSSED])
    levels = {name: [one[place] for one in CROSSED] for place, name in enumerate(("kind", "side", "half"))}
    shares = explained_shares(y.tolist(), levels)
    assert shares is not None
    for name, of in levels.items():
        assert shares[name] == pytest.approx(of_regression(y, of))
    every = np.array([[one[p] == level for p in range(3) for level in "abcxy01"] for one in CROSSED], float)
    left = ((y - every @ np.linalg.lstsq(every, y, rcond=None)[0]) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert sum(shares.values()) == pytest.approx(1 - left)
    shifted = explained_shares((1e3 * y - 7).tolist(), levels)
    assert shifted == pytest.approx(shares)


def test_estimates_that_do_not_vary_have_no_shares() -> None:
    levels = {"side": "xyxy", "half": "0011"}
    assert explained_shares([0.3] * 4, levels) is None
    assert explained_shares([], {"side": ()}) is None
    assert explained_shares([1.0, 2.0, 1.0, 2.0], levels) == {"side": 1.0, "half": 0.0}


@pytest.mark.parametrize(
    ("estimates", "levels", "word"),
    [
        ([1.0, 2.0, 3.0], {"side": "xyx", "half": "001"}, r"no estimate for \('y', '1'\)"),
        ([1.0, 2.0], {"side": "xyx"}, "a level for each"),
        ([1.0, math.nan], {"side": "xy"}, "finite"),
        ([1.0, 2.0, 3.0], {"side": "xyx"}, "differ in a level"),
    ],
)
def test_a_design_with_holes_is_answered_in_a_sentence(
    estimates: list[float], levels: dict[str, str], word: str
) -> None:
    with pytest.raises(RequestError, match=word):
        explained_shares(estimates, levels)


def test_the_crossed_part_has_every_combination_of_its_levels() -> None:
    holes = [one for one in CROSSED if one[:2] != ("c", "y")] + [("d", "x", "0")]
    kept = [holes[at] for at in crossed_part(holes)]
    assert sorted(kept) == sorted(itertools.product("ab", "xy", "01"))
    assert crossed_part(CROSSED) == [*range(len(CROSSED))]
    assert crossed_part([]) == []
    assert crossed_part([("a", "x"), ("b", "y")]) in ([0], [1])
    with pytest.raises(RequestError, match="as many choices"):
        crossed_part([("a",), ("b", "y")])
