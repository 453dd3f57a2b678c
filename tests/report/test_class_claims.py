"""The claims on the number of classes, on studies of a known truth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.evidence import StudyEvidence, gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.joint import judge_set
from penultimate.paper.claims.label_spaces import (
    CLASS_CLAIMS,
    CLASS_RULES,
    COMPARED,
    change_effect,
    changes_by_draw,
    class_digest,
    class_spoken,
    label_spaces,
    prices,
)
from penultimate.paper.claims.trials import Assessment
from penultimate.paper.claims.verdicts import judge
from penultimate.paper.studies.class_counts import SEEDS, STUDY
from penultimate.records.table import Row, Table
from penultimate.report import exhibit
from penultimate.report.base import StudyResults
from penultimate.report.measurements import admit
from tests.report.planted import planted

R2 = {"softmax": 0.36, "logit_penalty": 0.41, "squared_error": 0.45}
COUNTS = (16, 32, 64, 128)


def of_counts(
    price: Callable[[int], float],
    noise: float = 0.02,
    counts: Sequence[int] = COUNTS,
    seeds: Sequence[int] = SEEDS,
    without: Sequence[tuple[int, str, int]] = (),
) -> StudyResults:
    """A study in which each .1 of R² goes with `price(K)` points of transfer, plus noise.

    `without`: networks (K, objective, seed) that diverged.
    """
    rows: list[Row] = []
    for classes in counts:
        (runs,) = (runs for runs in STUDY.runs if runs.classes == classes)
        truth, gone = {}, []
        for spec in runs.objectives:
            name = resolve(spec).preset
            transfer = 80 + math.log2(classes) + 10 * price(classes) * (R2[name] - 0.4)
            truth[spec] = {"accuracy": 70.0, "separation": R2[name], "linear": transfer, "knn": transfer - 1}
            gone += [(spec, seed) for k, one, seed in without if (k, one) == (classes, name)]
        part = planted(truth, seeds, noise, without=gone)
        rows += [dataclasses.replace(row, arm=runs.arm or None) for row in part.table]
    described = STUDY.describe() | {"targets": list(part.description["targets"])}
    kept = [grid for grid in described["networks"] if grid["classes"] in counts]
    return StudyResults({**described, "networks": kept}, Table(rows))


def evidence_of(results: StudyResults) -> StudyEvidence:
    return gather(admit(results))


def judged(results: StudyResults) -> dict[str, Assessment]:
    return {one.claim.key: one.ours for one in judge_set(admit(results), CLASS_CLAIMS)}


def test_the_rules_are_dated_digested_and_told() -> None:
    assert (CLASS_RULES[:10], class_digest()[:12]) == ("2026-11-26", "0a1f41aa0b9d")
    assert f"sha256 {class_digest()[:12]}" in class_spoken()[0]
    assert not {claim.key for claim in CLASS_CLAIMS} & {claim.key for claim in EVERY_CLAIM}
    assert {resolve(spec).preset for runs in STUDY.runs for spec in runs.objectives} == {*COMPARED}


def test_a_price_that_is_there_at_every_number_holds_and_does_not_change() -> None:
    found = judged(of_counts(lambda _: -2.0))
    assert {key: one.verdict for key, one in found.items()} == {
        "classes_price": "holds",
        "classes_price_knn": "holds",
        "classes_change": "does not hold",
        "classes_change_knn": "does not hold",
    }
    assert found["classes_price"].ours.startswith("Points for each .1 of R²: K = 16 −2.0")
    assert found["classes_price"].ours.endswith("36 networks, three draws")
    assert found["classes_price"].reason.endswith("(corrected), with 16, 32, 64 and 128 classes.")


def test_a_price_that_shrinks_with_the_classes_is_found() -> None:
    found = judged(of_counts(lambda classes: -4.0 + 0.5 * (math.log2(classes) - 4)))
    assert found["classes_change"].verdict == found["classes_change_knn"].verdict == "holds"
    assert found["classes_change"].ours.startswith("+0.5")
    assert found["classes_change"].reason.endswith("and so in every draw.")
    grows = judged(of_counts(lambda classes: -1.0 - 0.5 * (math.log2(classes) - 4)))
    assert grows["classes_change"].verdict == "does not hold"


def test_one_number_at_which_transfer_rises_refutes_the_price() -> None:
    found = judged(of_counts(lambda classes: 1.0 if classes == 16 else -2.0))
    assert found["classes_price"].verdict == "does not hold"
    assert "Excluded (corrected), a fall that counts, with 16 classes." in found["classes_price"].reason


def test_where_chance_is_large_it_stays_open() -> None:
    found = judged(of_counts(lambda _: -1.0, noise=3.0))
    assert {one.verdict for one in found.values()} == {"undecided"}
    assert all(one.judged for one in found.values())


def test_the_change_agrees_with_least_squares_on_dummies() -> None:
    results = of_counts(lambda classes: -3.0 + 0.3 * math.log2(classes), noise=0.5)
    spaces = label_spaces(evidence_of(results))
    effect = change_effect(spaces)
    rows = [
        (one.classes, draw, x, y)
        for one in spaces
        for draw in one.draws
        for x, y in zip(*one.line(draw), strict=True)
    ]
    blocks = sorted({(classes, draw) for classes, draw, _, _ in rows})
    design = np.array(
        [
            [float((classes, draw) == block) for block in blocks] + [x, (math.log2(classes) - 5.5) * x]
            for classes, draw, x, _ in rows
        ]
    )
    y = np.array([row[3] for row in rows])
    solved, *_ = np.linalg.lstsq(design, y, rcond=None)
    rest = y - design @ solved
    degrees = len(y) - design.shape[1]
    error = math.sqrt(rest @ rest / degrees * np.linalg.inv(design.T @ design)[-1, -1])
    assert degrees == 22
    assert effect is not None
    assert effect.estimate == pytest.approx(0.1 * solved[-1])
    reach = stats.t.ppf(0.975, degrees) * 0.1 * error
    assert (effect.low, effect.high) == pytest.approx((effect.estimate - reach, effect.estimate + reach))


def test_the_price_of_a_number_is_the_slope_within_draws() -> None:
    spaces = label_spaces(evidence_of(of_counts(lambda _: -2.0, noise=0.5)))
    effects = prices(spaces)
    assert list(effects) == list(COUNTS)
    for one in spaces:
        x, y = (np.array(side) for side in zip(*map(one.line, one.draws), strict=True))
        x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
        slope = (x * y).sum() / (x * x).sum()
        assert effects[one.classes].estimate == pytest.approx(-0.1 * slope)


def test_holding_asks_for_the_sign_of_every_draw() -> None:
    results = of_counts(lambda classes: -4.0 + 0.8 * (math.log2(classes) - 4), noise=0.1)
    effect = change_effect(label_spaces(evidence_of(results)))
    assert effect is not None
    assert effect.low > 0
    turned = [
        dataclasses.replace(row, value=row.value + 0.25 * (row.arm is None) - 0.2 * (row.arm == "16 classes"))
        if row.seed == SEEDS[0] and "squared" in str(row.objective) and row.metric.startswith("linear_")
        else row
        for row in of_counts(lambda classes: -4.0 + 0.3 * math.log2(classes)).table
    ]
    turned = [
        dataclasses.replace(row, value=row.value - 0.5 * (row.arm is None))
        if row.seed == SEEDS[1] and "squared" in str(row.objective) and row.metric.startswith("linear_")
        else row
        for row in turned
    ]
    spaces = label_spaces(evidence_of(dataclasses.replace(results, table=Table(turned))))
    assert min(changes_by_draw(spaces).values()) < 0 < max(changes_by_draw(spaces).values())


def test_a_diverged_network_is_left_out_and_named() -> None:
    gone = [(64, "squared_error", SEEDS[1])]
    found = judged(of_counts(lambda _: -2.0, without=gone))["classes_price"]
    assert found.verdict == "holds"
    assert "35 networks, three draws" in found.ours
    assert found.reason.endswith(
        f" Left out, since they diverged or are not measured: squared error at 64 classes, seed {SEEDS[1]}."
    )


def test_a_number_without_enough_draws_keeps_the_rest_from_holding() -> None:
    gone = [(64, name, seed) for name in COMPARED[1:] for seed in SEEDS[1:]]
    found = judged(of_counts(lambda _: -2.0, without=gone))
    assert (found["classes_price"].verdict, found["classes_price"].judged) == ("undecided", False)
    assert " Not judged, with too few draws: 64 classes." in found["classes_price"].reason
    assert found["classes_change"].verdict == "does not hold"


def test_two_numbers_are_enough_for_a_change_and_two_draws_are_not() -> None:
    ends = judged(of_counts(lambda classes: -4.0 + 0.5 * math.log2(classes), counts=(16, 128)))
    assert ends["classes_change"].verdict == "holds"
    few = judged(of_counts(lambda _: -2.0, seeds=SEEDS[:2]))
    assert {(one.verdict, one.judged) for one in few.values()} == {("undecided", False)}


def test_objectives_of_plugins_that_are_not_loaded_are_passed_over() -> None:
    results = of_counts(lambda classes: -4.0)
    grids = [
        {**grid, "objectives": [*grid["objectives"], "nobody_loaded(a=1)"]}
        for grid in results.description["networks"]
    ]
    more = dataclasses.replace(results, description={**results.description, "networks": grids})
    assert judged(more) == judged(results)
    assert exhibit("classes", more).tables[0] == exhibit("classes", results).tables[0]


def test_a_study_with_one_number_of_classes_is_not_asked_but_told_what_to_run() -> None:
    for results in (of_counts(lambda _: -2.0, counts=(128,)), planted({"softmax": {"linear": 70.0}})):
        assert judge_set(admit(results), CLASS_CLAIMS) == ()
        (one, *_) = judge(evidence_of(results), CLASS_CLAIMS)
        assert one.ours.missing is not None
        assert one.ours.missing.command == "penultimate run class_counts"
        assert (one.printed, one.paper) == (None, "The number of classes is not varied")


def test_its_study_holds_the_images_constant_and_translates_the_strengths() -> None:
    assert [runs.classes for runs in STUDY.runs] == [128, 64, 32, 16]
    share: set[Any] = set()
    for runs in STUDY.runs:
        (penalty,) = (resolve(spec) for spec in runs.objectives if "penalty" in spec)
        beta, k = penalty.terms[0].arguments["beta"], runs.classes
        gaps = np.linspace(0.5, 15, 200_001)
        cost = np.log1p((k - 1) * np.exp(-gaps)) + beta * gaps**2
        share.add(round(float(gaps[cost.argmin()]) / math.log(k), 2))
        assert f"squared_error(kappa=9, scale={k / 100}, target=3.75)" in runs.objectives
    assert share == {1.53}
