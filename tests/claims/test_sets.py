"""The rules on layers that are thrown away, on two objectives, and on the final layer's decay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from scipy import stats

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.filed import CONFIRMING, DEPTHS, behind
from penultimate.paper.claims.filed import DISCARDING as OBJECTIVES
from penultimate.paper.claims.numbers import ACCURACY, ALTERNATIVES, BASELINE, Numbers
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.verdicts import Judged
from penultimate.paper.page.answers import answer
from penultimate.records.table import Row, Table
from penultimate.study import load_study
from tests.claims import judged, means_by_seed, rows_of, run_of
from tests.planted import NINE, StudyResults, described, planted

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
        rows += rows_of(behind(spec, depth), seed, own, description["targets"], arm)
    return StudyResults(description, Table(rows))


def thrown_away(results: StudyResults) -> dict[str, Judged]:
    found = judged(results, claims_of("projector"))
    return {key.removeprefix("projector_"): one for key, one in found.items()}


def by_seed(results: StudyResults, metric: str, depth: int, spec: str) -> list[float]:
    return [*means_by_seed(results, metric)[behind(spec, depth)].values()]


def mean_at(results: StudyResults, metric: str, depth: int) -> np.ndarray:
    return np.mean([by_seed(results, metric, depth, spec) for spec in OBJECTIVES], axis=0)


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
    made = thrown_away(planted_projectors(linear, knn, accuracy))
    assert {key: one.verdict for key, one in made.items()} == found


def test_noise_leaves_everything_open() -> None:
    found = thrown_away(planted_projectors(transfer(0.1, 0.97), noise=2.5))
    assert {(one.verdict, one.judged) for one in found.values()} == {("undecided", True)}


def test_the_gain_is_tested_over_seeds() -> None:
    results = planted_projectors(transfer(0.3, 0.8), transfer(-0.2), noise=0.6)
    for key, metric in (("gain", "linear"), ("gain_knn", "knn")):
        gain = mean_at(results, metric, 2) - mean_at(results, metric, 0)
        (effect,) = thrown_away(results)[key].effects
        assert (effect.low, effect.high) == pytest.approx(
            tuple(stats.ttest_1samp(gain, 0).confidence_interval()), abs=1e-6
        )
        assert effect.margin == pytest.approx(0.01 * (100 - fmean(by_seed(results, metric, 0, "softmax"))))


def test_the_spread_is_that_of_the_objectives_without_the_noise_of_runs() -> None:
    """Against the covariance of every two seeds, by NumPy; and without noise it is the plain one."""
    for noise in (0.0, 1.0):
        results = planted_projectors(transfer(0.0, 0.3**0.5), noise=noise)
        found = thrown_away(results)["spread"]
        spreads = []
        for depth in (0, 2):
            table = np.array([by_seed(results, "linear", depth, spec) for spec in OBJECTIVES])
            every = np.cov(table, rowvar=False)
            spreads.append(float(np.sqrt(every[~np.eye(len(every), dtype=bool)].mean())))
        assert found.effects[0].estimate == pytest.approx(spreads[0] - spreads[1])
        assert found.verdict == "holds"
        if not noise:
            assert spreads == pytest.approx([stdev(PLAIN.values()), 0.3 * stdev(PLAIN.values())], rel=1e-6)


def test_one_objective_that_diverged_leaves_it_open_and_is_named() -> None:
    gone = [(OBJECTIVES[-1], 2, seed) for seed in SEEDS]
    for one in thrown_away(planted_projectors(transfer(1.0), without=gone)).values():
        assert (one.verdict, one.judged) == ("undecided", False)
        assert "Squared error" in one.reason
    some = planted_projectors(transfer(1.0, 0.3), noise=0.02, without=gone[:2])
    assert {one.verdict for one in thrown_away(some).values()} == {"holds"}
    few = planted_projectors(transfer(1.0, 0.3), without=gone[:4])
    assert not any(one.judged for one in thrown_away(few).values())


# Softmax and one other objective.

EIGHT = tuple(range(230, 238))
OTHER = "projector(depth=1)"
SOFTMAX = {"accuracy": 77.0, "linear": 81.0, "knn": 80.0}


def forged(
    gains: Mapping[str, Mapping[str, float]],
    name: str = "better",
    tasks: Sequence[str] = CONFIRMING,
    seeds: Sequence[int] = EIGHT,
    noise: float = 0.3,
    limited: bool = False,
) -> StudyResults:
    """Softmax and objectives that gain so many points on it: {spec: {accuracy, linear, knn: points}}.

    Every number has normal noise of `noise` points, and a draw of the world adds the same to all of a seed.
    """
    listed = {"softmax": dict.fromkeys(SOFTMAX, 0.0), **gains}
    rows: list[Row] = []
    for (place, text), seed in product(enumerate(listed), seeds):
        random = np.random.default_rng([place, seed])
        world = float(np.random.default_rng(seed).normal()) * 2
        spec, status = resolve(text).canonical, "limited" if limited else "done"
        values = {
            kind: SOFTMAX[kind] + gain + world + noise * float(random.normal())
            for kind, gain in listed[text].items()
        }
        rows += rows_of(spec, seed, {**values, "separation": 0.36 - 0.01 * place}, tasks, status=status)
    described = planted({text: {} for text in listed}, seeds, limited=limited).description
    return StudyResults({**described, "name": name, "targets": list(tasks)}, Table(rows))


def pair(accuracy: float, linear: float, knn: float = 0.0, **how: Any) -> StudyResults:
    return forged({OTHER: {"accuracy": accuracy, "linear": linear, "knn": knn}}, **how)


def verdict_of(results: StudyResults, kind: str) -> str:
    """The rule once more, by SciPy: t-tests over seeds, one-sided .025, Holm over both against it."""
    other, for_it, against = resolve(OTHER).canonical, [], []
    for metric in ("top1", f"{kind}_"):
        runs = means_by_seed(results, metric)
        seeds = [seed for seed in runs["softmax"] if seed in runs[other]]
        own, softmax = (np.array([runs[spec][seed] for seed in seeds]) for spec in (other, "softmax"))
        margin = 0.01 * (100 - np.mean(list(runs["softmax"].values())))
        above = stats.ttest_rel(own, softmax, alternative="greater").pvalue
        for_it.append(above <= 0.025 and (own - softmax).mean() >= margin)
        against.append(stats.ttest_rel(own, softmax + margin, alternative="less").pvalue)
    if 2 * min(against) <= 0.025:
        return "does not hold"
    return "holds" if all(for_it) else "undecided"


@pytest.mark.parametrize(
    ("gains", "noise", "verdict"),
    [
        ((1.0, 1.0, 1.0), 0.3, "holds"),
        ((1.0, -1.0, -1.0), 0.3, "does not hold"),
        ((-1.0, 1.0, 1.0), 0.3, "does not hold"),
        ((0.3, 0.3, 0.3), 1.5, "undecided"),
        ((1.0, 0.3, 0.3), 0.8, "undecided"),
    ],
)
def test_the_verdict_is_that_of_scipy_and_opens_the_page(
    gains: tuple[float, float, float], noise: float, verdict: str
) -> None:
    results = pair(*gains, noise=noise)
    found = judged(results, claims_of("better"))
    assert found["better_in_both"].verdict == verdict_of(results, "linear") == verdict
    assert found["better_in_both_knn"].verdict == verdict_of(results, "knn")
    said = answer(run_of(results))
    assert f"linear transfer: {verdict}. " in said.sentence
    assert said.decides
    other = resolve(OTHER).canonical
    for metric in ("top1", "linear_"):
        runs = means_by_seed(results, metric)
        difference = np.array([runs[other][seed] - runs["softmax"][seed] for seed in EIGHT])
        low, high = stats.t.interval(0.95, 7, difference.mean(), stats.sem(difference))
        text = f"{difference.mean():+.2f} points ({low:.2f} to {high:.2f})".replace("-", "−")
        assert text in said.sentence


@pytest.mark.parametrize("seed", range(12))
def test_near_the_edge_the_correction_is_holms(seed: int) -> None:
    """Truths between no gain and one that counts, where a correction decides now and then."""
    random = np.random.default_rng(seed)
    accuracy, linear = (float(value) for value in random.uniform(-0.6, 0.6, 2))
    results = pair(accuracy, linear, linear, noise=float(random.uniform(0.2, 0.8)))
    for key, kind in (("better_in_both", "linear"), ("better_in_both_knn", "knn")):
        assert judged(results, claims_of("better"))[key].verdict == verdict_of(results, kind)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_seeds_decide_nothing(count: int) -> None:
    results = pair(1.0, 1.0, seeds=EIGHT[:count])
    assert not any(one.judged for one in judged(results, claims_of("better")).values())
    told = answer(run_of(results))
    assert told.sentence.startswith("Projector")
    assert "linear transfer: undecided. " in told.sentence
    assert not told.decides


def test_a_limited_pair_is_no_evidence() -> None:
    told = answer(run_of(pair(1.0, 1.0, limited=True)))
    assert "A limited run is no evidence." in told.sentence
    assert not told.decides


def test_only_a_study_of_softmax_and_one_other_is_asked() -> None:
    three = forged({OTHER: SOFTMAX, "sigmoid": SOFTMAX})
    without_softmax = planted({"sigmoid": {"accuracy": 70.0}, "dropout": {"accuracy": 70.0}})
    for results in (three, forged({}), without_softmax):
        assert not judged(results, claims_of("better"))


# The final layer's own weight decay.

GAINING = {name: {"accuracy": 75.0 + (0 if name == "softmax" else 1)} for name in NINE}
SEVEN = tuple(name for name in ALTERNATIVES if name != "squared_error")
LEVEL = {name: {"accuracy": 75.0} for name in NINE}


def trained(truth: dict[str, dict[str, float]], decay: object = 8e-5, **more: Any) -> StudyResults:
    """A planted study under a recipe with this weight decay of the final layer."""
    results = planted(truth, **more)
    (block,) = results.description["networks"]
    return described(results, networks=[{**block, "recipe": {"head_decay": decay}}])


def gains(results: StudyResults) -> Judged:
    return judged(results, claims_of("head_decay"))["head_decay_gains"]


def test_it_holds_where_they_gain_and_fails_where_they_do_not() -> None:
    assert [gains(trained(of)).verdict for of in (GAINING, LEVEL)] == ["holds", "does not hold"]


def test_half_of_the_papers_gain_in_softmaxs_errors_is_the_least_that_counts() -> None:
    means = Numbers().frame(ACCURACY).iloc[0]
    share = float((means[[*SEVEN]] - means[BASELINE]).mean() / (100 - means[BASELINE]))
    for factor, verdict in ((0.55, "holds"), (0.45, "does not hold")):
        gain = factor * share * 25
        truth = {name: {"accuracy": 75 + (gain if name in SEVEN else 0)} for name in NINE}
        assert gains(trained(truth, noise=0.01)).verdict == verdict


def test_a_study_with_the_usual_decay_is_not_asked_and_one_that_lacks_an_alternative_stays_open() -> None:
    assert not judged(trained(GAINING, None), claims_of("head_decay"))
    fewer = {name: of for name, of in GAINING.items() if name != "dropout"}
    assert gains(trained(fewer)).reason == "Not measured, or diverged: Dropout."
