"""What a relation would show at a narrower range: against loops, normal theory and the kept runs."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats

from penultimate import RequestError
from penultimate.paper.claims.effects import BySeed
from penultimate.paper.page.statements import headline
from penultimate.paper.printed import mean_of_printed
from penultimate.paper.restriction import (
    Narrowed,
    _noise,
    _span,
    narrowed,
    restricted_sentence,
    restriction_table,
)
from penultimate.report import exhibit, read_reference
from penultimate.report.measurements import Measurements, admit
from penultimate.report.shapes.numbers import printed_rows
from penultimate.statistics import Restricted, restricted_correlation
from tests.oracles import statistics as oracle
from tests.report.planted import NINE, planted
from tests.report.synthetic import study

REFERENCE = [0.3, 0.4, 0.5, 0.6, 0.8], [76.0, 74.5, 71.0, 69.5, 60.0]
PLACES = [0.35, 0.36, 0.37, 0.375, 0.38, 0.39, 0.60]


def test_shares_are_those_of_studies_simulated_one_after_another() -> None:
    noise, observed, draws = 0.8, 0.0, 3000
    found = restricted_correlation(REFERENCE, PLACES, observed, noise)
    assert found is not None
    for share, wanted in (
        (found.as_high, lambda rho: rho >= observed),
        (found.as_low, lambda rho: rho <= observed + 1e-12),
        (found.beyond_chance, lambda rho: abs(rho) > 0.7857),  # scipy's table at n = 7, two-sided .05
    ):
        slow = oracle.restricted_share(REFERENCE, PLACES, noise, draws, 1, wanted)
        assert share == pytest.approx(slow, abs=4 * math.sqrt(max(slow * (1 - slow), 0.001) / draws))
    assert found.low <= found.median <= found.high


def test_many_points_show_what_normal_theory_says() -> None:
    """Thorndike's r at a fraction u of the range, and Pearson's 6/pi asin(r/2) for the ranks of normals."""
    n, u = 400, 0.3
    quantiles = [NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)]
    rng = np.random.default_rng(5)
    reference = (
        quantiles,
        [-x + 0.7 * float(e) for x, e in zip(quantiles, rng.standard_normal(n), strict=True)],
    )
    r = float(np.corrcoef(*reference)[0, 1])
    narrow = r * u / math.sqrt(1 + r * r * (u * u - 1))
    found = restricted_correlation(reference, [u * x for x in quantiles], 0.0, draws=400)
    assert found is not None
    assert found.median == pytest.approx(6 / math.pi * math.asin(narrow / 2), abs=0.02)


def test_a_pair_far_from_all_others_is_left_to_chance() -> None:
    """With two far ends, only the order of the two near ones is open: its share is a normal probability."""
    reference = [0.0, 1.0, 2.0, 3.0], [0.5, -1.5, -1.5, -3.5]
    line = scipy.stats.linregress(*reference)
    scatter = math.sqrt(
        sum((y - line.intercept - line.slope * x) ** 2 for x, y in zip(*reference, strict=True)) / 2
    )
    found = restricted_correlation(reference, [0.0, 100.0, 100.4, 200.0], observed=-0.9)
    right = NormalDist().cdf(-line.slope * 0.4 / (scatter * math.sqrt(2)))
    assert found is not None
    assert found.as_high == pytest.approx(1 - right, abs=0.012)
    assert found.beyond_chance == 0  # four points have no p below .05
    assert restricted_correlation(reference, [0.0, 100.0, 100.4, 200.0], observed=-0.9) == found


@pytest.mark.parametrize(
    ("reference", "x"),
    [
        (([0.3, 0.4], [1.0, 2.0]), PLACES),
        (([0.3, 0.3, 0.3], [1.0, 2.0, 3.0]), PLACES),
        (REFERENCE, PLACES[:3]),
        (REFERENCE, [0.4] * 5),
    ],
)
def test_without_a_line_or_points_there_is_no_simulation(
    reference: tuple[list[float], list[float]], x: list[float]
) -> None:
    assert restricted_correlation(reference, x, 0.0) is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"x": [0.1, 0.2, math.nan, 0.3]}, "finite"),
        ({"observed": math.nan}, "finite"),
        ({"noise": -0.1}, "zero or more"),
        ({"draws": 0}, "one or more"),
        ({"reference": ([0.1, 0.2, 0.3], [1.0, 2.0])}, "pairs"),
    ],
)
def test_a_wrong_input_is_answered_in_a_sentence(change: dict[str, object], word: str) -> None:
    given = {"reference": REFERENCE, "x": PLACES, "observed": 0.0, **change}
    with pytest.raises(RequestError, match=word):
        restricted_correlation(**given)  # type: ignore[arg-type]


def test_equal_places_share_their_rank_and_a_perfect_line_stays_perfect() -> None:
    line = [0.0, 1.0, 2.0], [0.0, -1.0, -2.0]
    found = restricted_correlation(line, [1, 2, 3, 4, 5], 0.0)
    assert found == Restricted(-1.0, -1.0, -1.0, 1.0, 0.0, 1.0)
    tied = restricted_correlation(line, [1, 2, 3, 4, 4], 0.0, noise=1e-9)
    assert tied is not None
    assert tied.median == pytest.approx(oracle.spearman([1, 2, 3, 4, 4], [5, 4, 3, 2, 1]))


@pytest.fixture(scope="module")
def measured() -> Measurements:
    return admit(read_reference("evidence"))


@pytest.fixture(scope="module")
def narrow(measured: Measurements) -> Narrowed:
    found = narrowed(measured)
    assert found is not None
    return found


def test_the_reference_run_is_narrower_than_the_paper_and_the_page_says_so(
    measured: Measurements, narrow: Narrowed
) -> None:
    separation = measured.runs("class_separation", split="train")
    means = sorted(float(np.mean([*runs.values()])) for runs in separation.values())
    assert narrow.span == pytest.approx(means[-2] - means[0])
    printed = sorted(float(r["class_separation_r2"]) for r in printed_rows("neurips_table3_class_separation"))
    assert narrow.in_paper == pytest.approx(printed[-2] - printed[0])
    told = headline(admit(read_reference("glyphs")))
    assert "nine objectives (eight of them within .06 of R² of each other)," in told.answer
    assert narrow.within in told.details[0]
    assert "neither confirms nor refutes it, where eight of nine lie within .06 of R²" in told.details[0]
    assert told.details[1].endswith("are pooled: 9 draws of this run and 5 of `sweep`.")
    built = exhibit("figure5", measured.results)
    assert restricted_sentence(narrow) in built.notes
    linear, *_ = next(table for table in built.tables if table.name == "figure5_restricted").rows
    assert linear.cells[1].value == narrow.whole.median


def test_its_simulation_is_the_papers_line_and_scatter(measured: Measurements, narrow: Narrowed) -> None:
    rows = printed_rows("neurips_table1_linear")
    across = {
        r["objective"]: float(r["class_separation_r2"])
        for r in printed_rows("neurips_table3_class_separation")
    }
    reference = [across[row["objective"]] for row in rows], [mean_of_printed(row) for row in rows]
    places = [
        float(np.mean([*runs.values()])) for runs in measured.runs("class_separation", split="train").values()
    ]
    slow = oracle.restricted_share(reference, places, 0.84, 2000, 3, lambda rho: rho <= narrow.whole.median)
    assert slow == pytest.approx(0.5, abs=0.08)
    assert narrow.whole.as_high < 0.005
    assert 0.18 < narrow.whole.beyond_chance < 0.26
    assert "by itself not a ρ as high as +0.27" in restricted_sentence(narrow)


def test_noise_is_that_of_means_without_the_draws() -> None:
    table = np.random.default_rng(0).normal(size=(6, 5))
    shifted = table + 10 * np.arange(5)
    runs: list[BySeed] = [dict(enumerate(row.tolist())) for row in shifted]
    left = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    assert _noise(runs) == pytest.approx(math.sqrt((left**2).sum() / (5 * 4) / 5))
    assert _span([5.0, 1.0, 1.2, 1.1]) == pytest.approx(0.2)


def test_a_wide_range_is_not_called_narrow_and_agreement_is_no_contradiction() -> None:
    wide = {
        spec: {"separation": 0.3 + 0.06 * place, "linear": 80.0 - place} for place, spec in enumerate(NINE)
    }
    measured = admit(planted(wide, seeds=(0, 1, 2)))
    found = narrowed(measured)
    assert found is not None
    assert not found.is_narrow
    assert found.aside == ""
    assert restriction_table(measured).notes == ()
    assert "where" not in headline(measured).details[0]
    agreeing = dataclasses.replace(found, whole=dataclasses.replace(found.whole, as_high=0.5, as_low=0.5))
    assert "do not contradict" in restricted_sentence(agreeing)
    stronger = dataclasses.replace(found, whole=dataclasses.replace(found.whole, as_high=1.0, as_low=0.01))
    assert "stronger than the paper's line explains" in restricted_sentence(stronger)


@pytest.mark.parametrize(
    "results",
    [
        study((0,)),
        study((0, 1), limited=True),
        study((0, 1), objectives=("softmax", "sigmoid", "label_smoothing(alpha=0.1)")),
        study((0, 1), probes=()),
        study((0, 1), separation=False),
    ],
    ids=["one seed", "limited", "three objectives", "no probe", "no separation"],
)
def test_what_cannot_be_simulated_is_left_out(results: object) -> None:
    measured = admit(results, allow_limited=True)  # type: ignore[arg-type]
    assert narrowed(measured) is None
    assert restriction_table(measured).tables == ()
