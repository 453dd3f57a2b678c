"""Further scores of features as steps: the functions' numbers; what has no value costs the others nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured
from tests.measures.test_transferability import bank

from penultimate.features.bank import FeatureBank
from penultimate.measures.catalogue import measurement
from penultimate.metrics.dimension import rankme, stable_rank
from penultimate.metrics.target_collapse import cdnv


@pytest.mark.parametrize(("what", "before"), [("compactness", ""), ("source_compactness", "source_")])
def test_numbers_are_those_of_the_functions(tmp_path: Path, what: str, before: str) -> None:
    train = bank(0)
    rows = measured(what, Parents(tmp_path).bank("train", train)).rows
    expected = {
        "cdnv": cdnv(train.features, train.labels),
        "rankme": rankme(train.features),
        "stable_rank": stable_rank(train.features),
    }
    assert {row.metric: row.value for row in rows} == {
        before + name: value for name, value in expected.items()
    }
    assert {row.metric for row in rows} == {each.metric for each in measurement(what).yields or ()}
    units = {each.metric: each.unit for each in measurement(what).yields or ()}
    assert all(row.unit == units[row.metric] for row in rows)


def test_what_has_no_value_costs_the_others_nothing(tmp_path: Path) -> None:
    train = bank(0)
    constant = FeatureBank(np.ones((40, 6), np.float32), train.labels)
    outcome = measured("compactness", Parents(tmp_path / "a").bank("train", constant))
    assert {row.metric for row in outcome.rows} == {"rankme"}
    assert "fills no direction" in outcome.facts["undefined"]
    one = FeatureBank(train.features, np.zeros(40, np.int64))
    outcome = measured("compactness", Parents(tmp_path / "b").bank("train", one))
    assert {row.metric for row in outcome.rows} == {"rankme", "stable_rank"}
