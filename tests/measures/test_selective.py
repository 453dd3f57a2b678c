"""Selective classification as a step: numbers by four scores, the norm of the holdout, no logits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.measures.banks import CLASSES, bank, flawless
from tests.measures.steps import Parents, measured, value
from tests.oracles import confidence as oracle

from penultimate import FeatureBank, RequestError
from penultimate.measures.selective import NORMS, SCORES, best_norm
from penultimate.metrics.confidence import CONFIDENCES, normalised_logit
from penultimate.metrics.selective import augrc, aurc, excess_aurc, risk_coverage


def test_every_score_has_the_numbers_of_its_ranking(tmp_path: Path) -> None:
    test, holdout = bank(2), bank(1)
    outcome = measured("selective", Parents(tmp_path).bank("test", test).bank("holdout", holdout))
    right = test.predictions == test.labels
    chosen = best_norm(holdout)
    scores = {name: score(test.logits) for name, score in CONFIDENCES.items()}
    scores["normalised_logit"] = normalised_logit(test.logits, chosen)
    assert outcome.facts == {}
    assert value(outcome.rows, "logit_norm") == chosen
    (points,) = [row for row in outcome.rows if row.metric == "risk_coverage"]
    assert points.value == len(test)  # fewer than 100
    for name, confidence in scores.items():
        for metric, area in (("aurc", aurc), ("aurc_excess", excess_aurc), ("augrc", augrc)):
            found = value(outcome.rows, metric, setting=f"score={name}")
            assert found == pytest.approx(area(confidence, right), abs=1e-12)
        assert risk_coverage(confidence, right).risk[-1] == pytest.approx(1 - right.mean())


def test_the_norm_is_the_best_of_the_holdout_and_may_be_said(tmp_path: Path) -> None:
    test, holdout = bank(2), bank(1, sure=0.7)
    right = (holdout.predictions == holdout.labels).tolist()
    assert holdout.logits is not None
    areas = {}
    for p in NORMS:
        confidence = [oracle.normalised_logit(row, p) for row in holdout.logits.astype(float).tolist()]
        areas[p] = float(oracle.aurc([1 - right[i] for i in np.argsort(confidence)[::-1]]))
    parents = Parents(tmp_path).bank("test", test).bank("holdout", holdout)
    assert value(measured("selective", parents).rows, "logit_norm") == min(areas, key=areas.__getitem__)
    assert value(measured("selective", parents, {"norm": 3}).rows, "logit_norm") == 3
    alone = measured("selective", Parents(tmp_path / "alone").bank("test", test))
    assert value(alone.rows, "logit_norm") == 4


def test_two_classes_lack_the_normalised_logit_and_keep_the_rest(tmp_path: Path) -> None:
    whole = bank(3)
    assert whole.logits is not None
    two = FeatureBank(whole.features, whole.labels % 2, whole.logits[:, :2], whole.ids)
    outcome = measured("selective", Parents(tmp_path).bank("test", two))
    assert outcome.facts["undefined"] == (
        "normalised logit: the normalised logit of two classes is the same for every image"
    )
    assert {row.setting for row in outcome.rows if row.metric == "aurc"} == {
        f"score={name}" for name in SCORES if name != "normalised_logit"
    }


def test_a_network_that_is_always_right_has_no_risk_and_constant_logits_rank_nothing(tmp_path: Path) -> None:
    rows = measured("selective", Parents(tmp_path).bank("test", flawless(bank(4)))).rows
    assert {row.value for row in rows if row.metric in ("aurc", "augrc", "aurc_excess")} == {0.0}
    same = replace(bank(4), logits=np.zeros((60, CLASSES), np.float32))
    rows = measured("selective", Parents(tmp_path / "same").bank("test", same)).rows
    areas = [row.value for row in rows if row.metric == "aurc"]
    assert areas == pytest.approx([1 - 1 / CLASSES] * len(SCORES))


def test_a_bank_without_logits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no logits"):
        measured("selective", Parents(tmp_path).bank("test", replace(bank(5), logits=None)))
