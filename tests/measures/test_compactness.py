"""Further scores of features as steps: the functions' numbers; what has no value costs the others nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured, value
from tests.measures.test_transferability import bank

from penultimate.features.bank import FeatureBank
from penultimate.measures.catalogue import measurement
from penultimate.measures.inputs import sample
from penultimate.metrics.dimension import intrinsic_dimension, spectrum_shape
from penultimate.metrics.target_collapse import cdnv, ncti_terms


@pytest.mark.parametrize(("what", "before"), [("compactness", ""), ("source_compactness", "source_")])
def test_numbers_are_those_of_the_functions(tmp_path: Path, what: str, before: str) -> None:
    train = bank(0)
    rows = measured(what, Parents(tmp_path).bank("train", train)).rows
    shape, dimension = spectrum_shape(train.features), intrinsic_dimension(train.features)
    expected = {
        "cdnv": cdnv(train.features, train.labels),
        **{
            f"ncti_{name}": value
            for name, value in ncti_terms(train.features, train.labels)._asdict().items()
        },
        "rankme": shape.rankme,
        "stable_rank": shape.stable_rank,
        "alpha_req": shape.alpha,
        "dimension_two_nn": dimension.two_nn,
        "dimension_mle": dimension.mle,
    }
    assert {row.metric: row.value for row in rows} == {
        before + name: value for name, value in expected.items()
    }
    assert {row.metric for row in rows} == {each.metric for each in measurement(what).yields or ()}
    units = {each.metric: each.unit for each in measurement(what).yields or ()}
    assert all(row.unit == units[row.metric] for row in rows)


def test_of_many_images_ncti_and_dimensions_are_of_the_same_sample(tmp_path: Path) -> None:
    train = bank(0, 90)
    rows = measured("compactness", Parents(tmp_path).bank("train", train), {"images": 60, "points": 50}).rows
    chosen = sample(90, 60)
    terms = ncti_terms(train.features[chosen], train.labels[chosen])
    assert value(rows, "ncti_nearest") == terms.nearest
    assert value(rows, "dimension_mle") == intrinsic_dimension(train.features[sample(90, 50)]).mle
    assert value(rows, "cdnv") == cdnv(train.features, train.labels)


def test_a_collapsed_and_a_constant_bank_say_what_has_no_value(tmp_path: Path) -> None:
    train = bank(0)
    collapsed = FeatureBank(np.eye(3, 6, dtype=np.float32)[train.labels], train.labels)
    outcome = measured("compactness", Parents(tmp_path / "a").bank("train", collapsed))
    assert {row.metric for row in outcome.rows} == {"cdnv", "rankme", "stable_rank"}
    assert "NCTI is undefined" in outcome.facts["undefined"]
    assert "five different points" in outcome.facts["undefined"]
    constant = FeatureBank(np.ones((40, 6), np.float32), train.labels)
    outcome = measured("compactness", Parents(tmp_path / "b").bank("train", constant))
    assert not outcome.rows
    one = FeatureBank(train.features, np.zeros(40, np.int64))
    outcome = measured("compactness", Parents(tmp_path / "c").bank("train", one))
    assert {row.metric for row in outcome.rows} == {
        *("rankme", "stable_rank", "alpha_req", "dimension_two_nn", "dimension_mle")
    }
