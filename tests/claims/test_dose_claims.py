"""The rules on families of strengths: planted truths, and oracles of the statistics."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from penultimate.paper.claims.effects import corrected
from penultimate.paper.claims.filed import FAMILIES, PAIRS
from penultimate.paper.claims.numbers import Numbers
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.strengths import (
    compared_pair,
    complete,
    lines,
    price,
    price_of_pairs,
    prices,
    strengths,
)
from penultimate.paper.claims.verdicts import Judged
from penultimate.paper.exhibits.strengths import SHOWN
from penultimate.records.table import Row, Table
from penultimate.study import load_study
from tests.claims import judged, means_by_seed, rows_of, run_of
from tests.oracles import claims as oracle
from tests.planted import StudyResults

SOFTMAX = 0.36
"""The class separation at strength zero."""
STEP = {"squared_error": 0.04, "sigmoid": 0.05, "logit_norm": 0.03}
"""The class separation from one strength to the next; .045 for all other families."""
Truth = Callable[[str, float], float]
"""Transfer, in points, by family and class separation."""


def priced(price: float, at: float = 81.0) -> Truth:
    return lambda family, separation: at + price * (separation - 0.4) / 0.1


def planted_strengths(
    linear: Truth,
    study: str = "sweep",
    seeds: Collection[int] = (200, 201, 202, 203, 204),
    noise: float = 0.1,
    accuracy: Truth = lambda family, separation: 77.0,
    without: Collection[tuple[str, int]] = (),
) -> StudyResults:
    """A study of strengths with this truth; a network has one value in all the arms to which it belongs."""
    description = load_study(study).describe()
    rows: list[Row] = []
    for block in description["networks"]:
        family = block["arm"]
        if family not in SHOWN:
            continue
        specs = list(
            dict.fromkeys(
                spec for one in description["networks"] if one["arm"] == family for spec in one["objectives"]
            )
        )
        for spec, seed in itertools.product(block["objectives"], seeds):
            if (spec, seed) in without:
                continue
            draw = np.random.default_rng([*spec.encode(), seed]).normal
            first = 0.30 if family in ("logit_norm", "cosine_softmax") else SOFTMAX
            first = 0.52 if family == "squared_error" else first
            separation = first + specs.index(spec) * STEP.get(family, 0.045) + 0.001 * float(draw())
            shift = 0.5 * (seed - 202)
            values = {"separation": separation}
            values["accuracy"] = accuracy(family, separation) + shift + 0.05 * float(draw())
            for kind in ("linear", "knn"):
                values[kind] = linear(family, separation) + shift + noise * float(draw())
            rows += rows_of(spec, seed, values, description["targets"], family)
    main = [dataclasses.replace(row, arm=None) for row in rows if row.arm == "label_smoothing"]
    return StudyResults(description, Table([*main, *rows]))


def found_in(results: StudyResults) -> pd.DataFrame:
    return strengths(Numbers(run_of(results)))


def judged_doses(results: StudyResults) -> dict[str, Judged]:
    return judged(results, claims_of("dose"))


def verdicts(results: StudyResults) -> dict[str, str]:
    return {key: one.verdict for key, one in judged_doses(results).items()}


def test_one_price_for_all_confirms_every_claim() -> None:
    found = judged_doses(planted_strengths(priced(-3.0)))
    assert {one.verdict for key, one in found.items() if key != "dose_strengths"} == {"holds"}
    assert "Confirmed at equal accuracy" in found["dose_reading"].reason


def test_a_rise_with_separation_refutes_every_claim() -> None:
    found = judged_doses(planted_strengths(priced(2.0)))
    for key in ("dose_reading", "dose_pairs", "dose_pairs_knn", "dose_slopes", "dose_window", "dose_overall"):
        assert found[key].verdict == "does not hold", key
    reason = found["dose_reading"].reason
    assert reason.startswith(
        "Rejected: at equal accuracy a fall that counts is ruled out; transfer rises with R²"
    )
    assert found["dose_one_line"].verdict == "holds"


def test_no_price_at_all_is_no_fall_that_counts() -> None:
    found = verdicts(planted_strengths(priced(0.0)))
    assert found["dose_pairs"] == found["dose_overall"] == found["dose_reading"] == "does not hold"


def test_noise_leaves_everything_open() -> None:
    found = verdicts(planted_strengths(priced(-0.6), noise=3.0))
    assert {found[key] for key in ("dose_reading", "dose_pairs", "dose_slopes", "dose_one_line")} == {
        "undecided"
    }


def test_one_family_that_rises_refutes_the_reading_but_not_its_pairs() -> None:
    found = judged_doses(
        planted_strengths(lambda family, x: priced(4.0 if family == "cosine_softmax" else -3.0)(family, x))
    )
    assert found["dose_pairs"].verdict == "holds"
    assert found["dose_reading"].verdict == "does not hold"
    assert "transfer rises with R² in Cosine softmax" in found["dose_reading"].reason
    assert found["dose_overall"].verdict == "undecided"


def test_families_with_lines_of_their_own_refute_the_reading() -> None:
    """All slopes are alike; normalised heads lie two points lower, as they do in the reference run."""
    lower = {"logit_norm", "cosine_softmax"}
    found = judged_doses(
        planted_strengths(lambda family, x: priced(-3.0, 79.0 if family in lower else 81.0)(family, x))
    )
    assert found["dose_slopes"].verdict == "holds"
    assert found["dose_one_line"].verdict == "does not hold"
    assert "by 0.5 points or more: transfer at R² = 0.40." in found["dose_one_line"].reason
    assert found["dose_reading"].reason.startswith("Rejected: the families lie on different lines.")


def test_prices_of_their_own_refute_one_line_too() -> None:
    found = judged_doses(
        planted_strengths(lambda family, x: priced(-6.0 if family == "sigmoid" else -1.5)(family, x))
    )
    assert "price for each .1 of R²" in found["dose_one_line"].reason
    assert found["dose_one_line"].verdict == "does not hold"


def test_pairs_count_only_at_equal_accuracy_and_where_separation_rises() -> None:
    """Where accuracy falls by 2 points for each .1 of R², no pair counts, and the study cannot confirm."""
    unequal = judged_doses(planted_strengths(priced(-3.0), accuracy=lambda family, x: 77 - 20 * (x - 0.36)))
    assert not unequal["dose_pairs"].judged
    assert unequal["dose_pairs"].reason.count("equal accuracy is not shown") == len(PAIRS)
    assert unequal["dose_reading"].verdict == "undecided"
    only = judged_doses(
        planted_strengths(
            priced(-3.0), accuracy=lambda family, x: 77 - 40 * (x - 0.36) * (family == "squared_error")
        )
    )
    assert "he mean of three pairs" in only["dose_pairs"].numbers
    assert "Not judged: Squared error, equal accuracy is not shown" in only["dose_pairs"].reason
    assert only["dose_pairs"].verdict == "holds"


def test_the_smallest_design_is_judged_by_what_it_has() -> None:
    results = planted_strengths(priced(-3.0), "sweep_smallest", (200, 201, 202))
    found = judged_doses(results)
    pairs = found["dose_pairs"]
    assert "he mean of two pairs" in pairs.numbers
    assert pairs.verdict == "holds"
    for told in (
        "Not judged: Label smoothing, no network of label_smoothing(alpha=0.1).",
        "Not judged: Squared error, no network of squared_error(kappa=9, scale=1.28, target=7.5).",
    ):
        assert told in pairs.reason
    assert found["dose_slopes"].verdict == "holds"
    window = found["dose_window"]
    assert not window.judged
    assert "Not judged, with fewer than two strengths here: Cosine softmax." in window.reason
    assert "dose_strengths" not in found
    reading = found["dose_reading"]
    assert reading.verdict == "undecided"
    assert reading.reason.startswith("Silent: ")


def test_a_strength_that_diverged_is_left_out() -> None:
    gone = [("logit_penalty(beta=0.0094)", 201), ("logit_penalty(beta=0.0094)", 204)]
    found = judged_doses(planted_strengths(priced(-3.0), without=gone))
    assert found["dose_slopes"].verdict == "holds"
    kept = complete(found_in(planted_strengths(priced(-3.0), without=gone)))
    specs = {spec for family, spec, _ in kept.index if family == "logit_penalty"}
    assert len(specs) == 4
    assert "logit_penalty(beta=0.0094)" not in specs


@pytest.mark.parametrize("seeds", [(), (200,), (200, 201)])
def test_too_few_seeds_and_none_decide_nothing(seeds: tuple[int, ...]) -> None:
    found = judged_doses(planted_strengths(priced(-3.0), seeds=seeds))
    assert not any(one.judged for one in found.values())
    assert bool(found) == bool(seeds)


def test_a_limited_run_is_no_evidence() -> None:
    results = planted_strengths(priced(-3.0))
    limited = dataclasses.replace(results, description={**results.description, "limited": True})
    assert {*verdicts(limited).values()} == {"undecided"}


def test_prices_of_families_are_scipys_slopes_tested_by_t_over_seeds() -> None:
    results = planted_strengths(priced(-1.0), noise=0.6)
    found = {family: price(of) for family, of in prices(found_in(results)).items()}
    effects = corrected({family: effect for family, effect in found.items() if effect})
    plain = []
    for family in FAMILIES:
        x, y = (means_by_seed(results, metric, family) for metric in ("class_separation", "linear"))
        slopes = [
            0.1 * stats.linregress([x[s][seed] for s in x], [y[s][seed] for s in x]).slope
            for seed in range(200, 205)
        ]
        estimate, low, high, p_for, p_against = oracle.linear_contrast([slopes], [-1], 0.5)
        assert effects[family].estimate == pytest.approx(estimate, rel=1e-6)
        assert effects[family].low == pytest.approx(low, rel=1e-5, abs=1e-6)
        assert effects[family].high == pytest.approx(high, rel=1e-5, abs=1e-6)
        assert p_for == pytest.approx(
            stats.ttest_1samp(slopes, 0, alternative="less").pvalue, rel=1e-4, abs=1e-9
        )
        plain.append((p_for, p_against))
    for side, name in enumerate(("p_for", "p_against")):
        p_values = [each[side] for each in plain]
        in_order = sorted(p_values)
        stepped = list(
            itertools.accumulate(
                (min(1.0, (len(in_order) - place) * p) for place, p in enumerate(in_order)), max
            )
        )
        wanted = [stepped[in_order.index(p)] for p in p_values]
        assert [getattr(effects[family], name) for family in FAMILIES] == pytest.approx(
            wanted, rel=1e-4, abs=1e-9
        )


def test_the_price_of_pairs_is_the_paired_difference_over_the_mean_rise() -> None:
    results = planted_strengths(priced(-1.2), noise=0.3)
    pairs = [compared_pair(found_in(results), pair) for pair in PAIRS]
    of_pairs = []
    for one in pairs:
        x, y, top1 = (
            means_by_seed(results, metric, one.pair.family)
            for metric in ("class_separation", "linear", "top1")
        )
        rise = fmean(x[one.pair.strong].values()) - fmean(x[one.pair.weak].values())
        gains = [(y[one.pair.strong][seed] - y[one.pair.weak][seed]) for seed in range(200, 205)]
        of_pairs.append([0.1 * gain / rise for gain in gains])
        more = one.more["linear"], one.more["separation"].mean()
        assert (0.1 * more[0] / more[1]).tolist() == pytest.approx(of_pairs[-1])
        apart = [(top1[one.pair.strong][seed] - top1[one.pair.weak][seed]) for seed in range(200, 205)]
        both = [
            stats.ttest_1samp(apart, end, alternative=side).pvalue
            for end, side in ((-0.75, "greater"), (0.75, "less"))
        ]
        assert (one.why_not == "") == (max(both) <= 0.05)
    effect = price_of_pairs(pairs)
    assert effect is not None
    means = [fmean(of) for of in zip(*of_pairs, strict=True)]
    theirs = stats.ttest_1samp(means, 0, alternative="less")
    assert (effect.estimate, effect.p_for) == pytest.approx((-fmean(means), theirs.pvalue), rel=1e-6)


def test_the_test_of_one_line_is_the_analysis_of_variance_written_out() -> None:
    results = planted_strengths(
        lambda family, x: priced(-2.0, 81.3 if family == "sigmoid" else 81.0)(family, x), noise=0.5
    )
    found = judged_doses(results)["dose_one_line"]
    kept = [of for family, of in lines(found_in(results)).items() if family != "squared_error"]
    for table in (
        np.array([[line.height(0.4) for line in of.values()] for of in kept]),
        np.array([[0.1 * line.slope for line in of.values()] for of in kept]),
    ):
        families, seeds = table.shape
        rows, blocks = table.mean(1, keepdims=True), table.mean(0, keepdims=True)
        between = seeds * ((rows - table.mean()) ** 2).sum() / (families - 1)
        left = ((table - rows - blocks + table.mean()) ** 2).sum() / ((families - 1) * (seeds - 1))
        assert f"F({families - 1}, {(families - 1) * (seeds - 1)}) = {between / left:.1f}" in found.numbers
        apart = float(np.ptp(rows))
        assert f"{apart:.2f} points apart" in found.numbers


def test_the_overall_price_needs_seeds_and_families_to_agree() -> None:
    """One family with a price far from the others' leaves seeds sure and families not."""
    results = planted_strengths(
        lambda family, x: priced(-20.0 if family == "label_smoothing" else -0.2)(family, x)
    )
    found = judged_doses(results)["dose_overall"]
    assert "over seeds: holds" in found.reason.lower()
    assert found.verdict == "undecided"
    families = [fmean(of.values()) for of in prices(found_in(results)).values()]
    p = 2 * stats.ttest_1samp(families, 0, alternative="less").pvalue
    assert f"over families: undecided (p = {p:.2f})" in found.reason


def test_a_price_of_two_seeds_is_none() -> None:
    assert price({0: -1.0, 1: -2.0}) is None
