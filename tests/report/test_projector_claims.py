"""The rules on a disposable last block: planted truths, and oracles of every statistic."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from scipy import stats

from penultimate.data.catalog import card
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.joint import SETS, judge_set
from penultimate.paper.claims.projectors import (
    DEPTHS,
    OBJECTIVES,
    PROJECTOR_CLAIMS,
    PROJECTOR_RULES,
    behind,
    projector_spoken,
)
from penultimate.paper.claims.trials import Assessment
from penultimate.paper.claims.verdicts import judge
from penultimate.records.table import Row, Table
from penultimate.report.base import StudyResults
from penultimate.report.measurements import admit
from penultimate.study import load_study

SEEDS = (200, 201, 202, 203, 204)
PLAIN = dict(zip(OBJECTIVES, (0.0, 0.4, -0.3, -0.5, -4.6), strict=True))
"""Each objective's linear transfer less softmax's, with no layer thrown away, in points."""
Truth = Callable[[str, int], float]
"""A value, in points, by the objective and how many layers are thrown away."""


def transfer(gain: float = 0.0, kept: float = 1.0) -> Truth:
    """Transfer that gains so much with every layer, and keeps this share of the objectives' differences."""
    middle = fmean(PLAIN.values())
    return lambda spec, depth: 81 + middle + gain * depth + (PLAIN[spec] - middle) * kept**depth


def level(spec: str, depth: int) -> float:
    return 77.0


def rows_of(
    arm: str | None, spec: str, seed: int, values: dict[str, float], targets: Sequence[str]
) -> list[Row]:
    """One network's rows: test and transfer accuracies in points, and R²."""
    base: dict[str, Any] = {
        "step": "s",
        "objective": spec,
        "backbone": "glyphnet",
        "arm": arm,
        "seed": seed,
        "draw": seed,
        "source": "glyphs",
    }
    of_test = {**base, "unit": "fraction", "split": "test"}
    of_train = {**base, "unit": "ratio", "split": "train"}
    rows = []
    if "separation" in values:
        rows.append(Row(**of_train, target="glyphs", metric="class_separation", value=values["separation"]))
    if "accuracy" in values:
        rows.append(Row(**of_test, target="glyphs", metric="top1", value=values["accuracy"] / 100))
    for kind, target in product(("linear", "knn"), targets):
        if kind in values:
            metric = f"{kind}_{card(target).accuracy}"
            rows.append(Row(**of_test, target=target, metric=metric, value=values[kind] / 100))
    return rows


def planted_projectors(
    linear: Truth,
    knn: Truth | None = None,
    accuracy: Truth = level,
    seeds: Collection[int] = SEEDS,
    noise: float = 0.1,
    without: Collection[tuple[str, int, int]] = (),
    measured: Collection[str] = ("separation", "accuracy", "linear", "knn"),
) -> StudyResults:
    """The study `sweep` with this truth in the networks that the rules look at, and no others."""
    description = load_study("sweep").describe()
    rows: list[Row] = []
    for spec, depth, seed in product(OBJECTIVES, DEPTHS, seeds):
        if (spec, depth, seed) in without:
            continue
        draw = np.random.default_rng([*spec.encode(), depth, seed]).normal
        shift = 0.5 * (seed - 202)
        values = {
            "separation": 0.36 - 0.02 * depth + 0.1 * (OBJECTIVES.index(spec) == 4) + 0.001 * float(draw()),
            "accuracy": accuracy(spec, depth) + shift + noise * float(draw()),
            "linear": linear(spec, depth) + shift + noise * float(draw()),
            "knn": (knn or linear)(spec, depth) + shift + noise * float(draw()),
        }
        arm = None if not depth else "projector" if spec == "softmax" else BEHIND_A_PROJECTOR
        own = {name: value for name, value in values.items() if name in measured}
        rows += rows_of(arm, behind(spec, depth), seed, own, description["targets"])
    return StudyResults(description, Table(rows))


def judged(results: StudyResults) -> dict[str, Assessment]:
    found = judge(gather(admit(results, allow_limited=True)), PROJECTOR_CLAIMS)
    return {one.claim.key: one.ours for one in found}


def verdicts(results: StudyResults) -> dict[str, str]:
    return {key.removeprefix("projector_"): one.verdict for key, one in judged(results).items()}


def by_seed(results: StudyResults, metric: str, depth: int, spec: str) -> list[float]:
    """The mean over targets in per cent of a network of every seed, straight from the rows."""
    values: dict[int, list[float]] = {}
    own = behind(spec, depth)
    for row in results.table:
        if row.metric.startswith(metric) and row.objective == own:
            values.setdefault(int(row.seed or 0), []).append(100 * row.value)
    return [fmean(values[seed]) for seed in sorted(values)]


def mean_at(results: StudyResults, metric: str, depth: int) -> np.ndarray:
    return np.mean([by_seed(results, metric, depth, spec) for spec in OBJECTIVES], axis=0)


def test_the_rules_are_dated_and_told() -> None:
    assert PROJECTOR_RULES[:10] == "2026-11-27"
    assert f"of {PROJECTOR_RULES[:10]}," in projector_spoken()[0]
    assert not {claim.key for claim in PROJECTOR_CLAIMS} & {claim.key for claim in EVERY_CLAIM}
    assert {claim.since for claim in PROJECTOR_CLAIMS} == {PROJECTOR_RULES}
    assert PROJECTOR_CLAIMS in [one.claims for one in SETS]


@pytest.mark.parametrize(
    ("linear", "knn", "accuracy", "found"),
    [
        (
            transfer(0.8, 0.4),
            transfer(0.8),
            lambda spec, depth: 77 + 0.5 * depth,
            {"gain": "holds", "gain_knn": "holds", "spread": "holds", "accuracy": "holds"},
        ),
        (
            transfer(-0.8, 1.2),
            transfer(0.0),
            lambda spec, depth: 77 - 0.5 * depth,
            dict.fromkeys(("gain", "gain_knn", "spread", "accuracy"), "does not hold"),
        ),
        (
            transfer(0.0),
            transfer(-0.8),
            level,
            {
                "gain": "does not hold",
                "gain_knn": "does not hold",
                "spread": "does not hold",
                "accuracy": "holds",
            },
        ),
    ],
)
def test_a_planted_truth_is_found(linear: Truth, knn: Truth, accuracy: Truth, found: dict[str, str]) -> None:
    assert verdicts(planted_projectors(linear, knn, accuracy)) == found


def test_noise_leaves_everything_open() -> None:
    found = judged(planted_projectors(transfer(0.1, 0.97), noise=2.5))
    assert {one.verdict for one in found.values()} == {"undecided"}
    assert all(one.judged for one in found.values())


def test_the_gain_is_tested_over_seeds_and_pages_test_stands_beside_it() -> None:
    results = planted_projectors(transfer(0.3, 0.8), transfer(-0.2), noise=0.6)
    found = judged(results)
    for key, metric in (("projector_gain", "linear"), ("projector_gain_knn", "knn")):
        means = [mean_at(results, metric, depth) for depth in DEPTHS]
        gain = means[2] - means[0]
        low, high = stats.ttest_1samp(gain, 0).confidence_interval()
        said = found[key].ours
        assert f"{gain.mean():+.2f} points".replace("-", "−") in said
        assert f"({low:.2f} to {high:.2f})".replace("-", "−") in said
        assert f"{means[1].mean():.2f} % at depth 1" in said
        page = stats.page_trend_test(np.array(means).T)
        assert f"within five seeds: L = {page.statistic:g}, p " in found[key].reason
        softmax = fmean(by_seed(results, metric, 0, "softmax"))
        margin = 0.01 * (100 - softmax)
        p_for = stats.ttest_1samp(gain, 0, alternative="greater").pvalue
        p_against = stats.ttest_1samp(gain, margin, alternative="less").pvalue
        holds = gain.mean() >= margin and p_for <= 0.025
        assert found[key].verdict == (
            "holds" if holds else "does not hold" if p_against <= 0.025 else "undecided"
        )


def test_pages_test_decides_nothing() -> None:
    """Depth 1 far above depth 2: no rise over depths, and the gain from none to two holds all the same."""
    found = judged(planted_projectors(lambda spec, depth: 81 + (0, 3, 1)[depth]))["projector_gain"]
    assert found.verdict == "holds"
    assert "L = 65, p = 0.079." in found.reason
    without = [(spec, 1, seed) for spec, seed in product(OBJECTIVES[1:], SEEDS)]
    found = judged(planted_projectors(transfer(1.0), without=without))["projector_gain"]
    assert found.verdict == "holds"
    assert "Page" not in found.reason
    assert "at depth 1" not in found.ours


def test_the_spread_is_that_of_the_objectives_without_the_noise_of_runs() -> None:
    """Against the covariance of every two seeds, by NumPy; and without noise it is the plain one."""
    for noise in (0.0, 1.0):
        results = planted_projectors(transfer(0.0, 0.3**0.5), noise=noise)
        found = judged(results)["projector_spread"]
        spreads = []
        for depth in (0, 2):
            table = np.array([by_seed(results, "linear", depth, spec) for spec in OBJECTIVES])
            every = np.cov(table, rowvar=False)
            spreads.append(float(np.sqrt(every[~np.eye(len(every), dtype=bool)].mean())))
        assert (
            f"Spread {spreads[0]:.2f} points with no layer thrown away, {spreads[1]:.2f} with two"
            in found.ours
        )
        fall = f"−{spreads[0] - spreads[1]:.2f} points of spread in linear transfer"
        assert fall in found.ours
        assert found.ours.endswith("five objectives, eight tasks, five runs each")
        assert found.verdict == "holds"
        if not noise:
            assert spreads == pytest.approx([stdev(PLAIN.values()), 0.3 * stdev(PLAIN.values())], rel=1e-6)
    few = planted_projectors(transfer(0.0, 0.3))
    fewer = dataclasses.replace(
        few, description={**few.description, "targets": few.description["targets"][:7]}
    )
    assert "Too few: seven tasks" in judged(fewer)["projector_spread"].reason


def test_a_loss_of_accuracy_is_that_of_all_objectives_on_softmax_with_none() -> None:
    """Squared error's own loss at no depth does not count; that of the five with two layers does."""
    results = planted_projectors(
        transfer(), accuracy=lambda spec, depth: 77 - 3.3 * spec.startswith("squared") * (depth < 2)
    )
    found = judged(results)["projector_accuracy"]
    assert found.verdict == "holds"
    loss = mean_at(results, "top1", 2) - np.array(by_seed(results, "top1", 0, "softmax"))
    assert f"{loss.mean():+.2f} points of test accuracy".replace("-", "−") in found.ours
    assert "Excluded" in found.reason
    small = judged(planted_projectors(transfer(), accuracy=lambda s, depth: 77 - 0.2 * depth))
    assert small["projector_accuracy"].verdict == "does not hold"
    assert "Beyond chance" in small["projector_accuracy"].reason


def test_one_objective_that_diverged_leaves_it_open_and_is_named() -> None:
    gone = [(OBJECTIVES[-1], 2, seed) for seed in SEEDS]
    for one in judged(planted_projectors(transfer(1.0), without=gone)).values():
        assert (one.verdict, one.judged) == ("undecided", False)
        assert one.reason.startswith("Not measured, or diverged: ")
        assert "Squared error at depth 2" in one.reason.replace("Projector + ", "")
    lost = [(OBJECTIVES[-1], 2, seed) for seed in SEEDS[:2]]
    some = planted_projectors(transfer(1.0, 0.3), noise=0.02, without=lost)
    found = judged(some)
    assert {one.verdict for one in found.values()} == {"holds"}
    assert all("three runs each" in one.ours for one in found.values())
    few = planted_projectors(transfer(1.0, 0.3), without=[(OBJECTIVES[-1], 2, seed) for seed in SEEDS[:4]])
    assert not any(one.judged for one in judged(few).values())
    one_each = [(OBJECTIVES[0], 0, seed) for seed in SEEDS[:2]] + [
        (OBJECTIVES[1], 2, seed) for seed in SEEDS[2:]
    ]
    assert not any(one.judged for one in judged(planted_projectors(transfer(1.0), without=one_each)).values())


@pytest.mark.parametrize("seeds", [(200,), (200, 201)])
def test_too_few_seeds_decide_nothing(seeds: tuple[int, ...]) -> None:
    found = judged(planted_projectors(transfer(1.0, 0.3), seeds=seeds))
    assert {(one.verdict, one.judged, one.missing) for one in found.values()} == {("undecided", False, None)}


def test_numbers_that_are_none_are_left_out() -> None:
    results = planted_projectors(transfer(1.0, 0.3))
    rows = [
        dataclasses.replace(row, value=float("nan"))
        if row.objective == behind(OBJECTIVES[2], 2) and row.seed == 203
        else row
        for row in results.table
    ]
    found = judged(dataclasses.replace(results, table=Table(rows)))
    assert {one.verdict for one in found.values()} == {"holds"}
    assert all("four runs each" in one.ours for one in found.values())


def test_a_study_without_the_arm_is_told_what_to_run_and_has_no_such_claims() -> None:
    results = planted_projectors(transfer(1.0))
    description = load_study("sweep_smallest").describe()
    rows = [row for row in results.table if row.arm is None]
    for none in (
        StudyResults(description, Table(rows)),
        dataclasses.replace(results, table=Table(rows)),
        planted_projectors(transfer(1.0), seeds=()),
    ):
        found = judged(none)
        assert {one.missing.command for one in found.values() if one.missing} == {"penultimate run sweep"}
        assert all(one.missing for one in found.values())
        assert judge_set(admit(none), PROJECTOR_CLAIMS) == ()
    pretrained = judged(planted_projectors(transfer(1.0), measured=("accuracy", "separation")))
    assert pretrained["projector_gain"].missing is not None
    assert pretrained["projector_accuracy"].verdict == "holds"


def test_the_paper_has_no_projector() -> None:
    found = judge(gather(admit(planted_projectors(transfer(1.0)))), PROJECTOR_CLAIMS)
    assert {(one.printed, one.paper) for one in found} == {(None, "")}
