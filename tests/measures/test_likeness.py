"""Likeness of two networks as a step: the functions' numbers on one sample; bad input."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measures.steps import KEY, Parents, measured, value
from tests.measures.test_transferability import bank

from penultimate.engine.execute import Outcome
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.measures.catalogue import measurement
from penultimate.measures.inputs import sample
from penultimate.metrics.likeness import mutual_neighbours, procrustes
from penultimate.metrics.similarity import minibatch_cka

OTHER = dataclasses.replace(KEY, seed=1)


def with_ids(made: FeatureBank) -> FeatureBank:
    return FeatureBank(made.features, made.labels, None, np.arange(len(made)))


def made(root: Path, one: FeatureBank, other: FeatureBank, **settings: Any) -> Outcome:
    parents = Parents(root).bank("test", one).bank("test", other, OTHER)
    return measured("pair_likeness", parents, {"permutations": 19, **settings}, key=None)


def test_numbers_are_those_of_the_functions_on_the_sample(tmp_path: Path) -> None:
    one, other = with_ids(bank(0)), with_ids(bank(1))
    outcome = made(tmp_path, one, other, images=30)
    chosen = sample(40, 30)
    x, y = one.features[chosen], other.features[chosen]
    assert value(outcome.rows, "likeness_cka") == pytest.approx(minibatch_cka([x], [y]), rel=1e-6)
    assert value(outcome.rows, "procrustes") == pytest.approx(procrustes(x, y), rel=1e-9)
    assert value(outcome.rows, "mutual_neighbours") == pytest.approx(mutual_neighbours(x, y, 10))
    assert {row.metric for row in outcome.rows} == {
        each.metric for each in measurement("pair_likeness").yields or ()
    }
    assert {(row.seed, row.seed_b) for row in outcome.rows} == {(0, 1)}
    again = made(tmp_path / "again", with_ids(bank(2)), with_ids(bank(3)), images=30)
    assert again.facts["sample"] == outcome.facts["sample"]
    more = made(tmp_path / "more", one, other, images=31)
    assert more.facts["sample"] != outcome.facts["sample"]


def test_small_last_batches_are_spread_over_the_others(tmp_path: Path) -> None:
    outcome = made(tmp_path, with_ids(bank(0)), with_ids(bank(1)), batch_size=13)
    assert 0 <= value(outcome.rows, "likeness_cka_p") <= 1


def test_constant_features_and_few_images_have_no_value(tmp_path: Path) -> None:
    one = with_ids(bank(0))
    constant = FeatureBank(np.ones((40, 6), np.float32), one.labels, None, one.ids)
    outcome = made(tmp_path / "constant", one, constant)
    assert {row.metric for row in outcome.rows} == {"mutual_neighbours"}
    assert "CKA is undefined" in outcome.facts["undefined"]
    few = with_ids(bank(0, 3))
    assert "needs 4 test images" in made(tmp_path / "few", few, few).facts["undefined"]


def test_other_images_are_refused(tmp_path: Path) -> None:
    one = with_ids(bank(0))
    for place, other in enumerate(
        (with_ids(bank(0, 39)), FeatureBank(one.features, one.labels, None, np.arange(40) + 1))
    ):
        with pytest.raises(RequestError, match="other images"):
            made(tmp_path / str(place), one, other)
