"""The claim that an objective is better than softmax in both, on pairs of a known truth; the candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import stats

from penultimate.data.catalog import card
from penultimate.objectives.presets import resolve
from penultimate.paper.claims.both import (
    BOTH_CLAIMS,
    BOTH_RULES,
    CANDIDATES,
    CHOOSING,
    CONFIRMING,
    KEPT_CANDIDATES,
    NEW_CANDIDATES,
    both_spoken,
    candidates,
    is_pair,
)
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.joint import SETS, judge_set
from penultimate.paper.claims.trials import Assessment
from penultimate.paper.page.statements import headline
from penultimate.paper.studies.world import BETTER_SEARCH as SEARCH
from penultimate.records.table import Row, Table
from penultimate.report import exhibit, read_reference
from penultimate.report.base import StudyResults
from penultimate.report.measurements import admit
from tests.report.planted import planted

SEEDS = tuple(range(230, 238))
OTHER = "projector(depth=1)"
SOFTMAX = {"accuracy": 77.0, "linear": 81.0, "knn": 80.0}


def forged(
    gains: Mapping[str, Mapping[str, float]],
    name: str = "better",
    tasks: Sequence[str] = CONFIRMING,
    seeds: Sequence[int] = SEEDS,
    noise: float = 0.3,
    without: Sequence[tuple[str, int]] = (),
    limited: bool = False,
    label: str = "",
) -> StudyResults:
    """Softmax and objectives that gain so many points on it: {spec: {accuracy, linear, knn: points}}.

    Every number has normal noise of `noise` points, and a draw of the world adds the same to all of a seed.
    """
    listed = {"softmax": dict.fromkeys(SOFTMAX, 0.0), **gains}
    rows: list[Row] = []
    for (place, text), seed in product(enumerate(listed), seeds):
        random = np.random.default_rng([place, seed])
        world = float(np.random.default_rng(seed).normal()) * 2
        base: dict[str, Any] = {
            "step": "s",
            "objective": resolve(text).canonical,
            "backbone": "glyphnet",
            "source": "glyphs",
            "seed": seed,
            "draw": seed,
            "status": "limited" if limited else "done",
        }
        if (text, seed) in without:
            base |= {"status": "diverged", "step": f"train.{place}-s{seed}.00", "epoch": 1}
            rows.append(Row(metric="top1", value=0.1, target="glyphs", split="train", **base))
            continue
        places = [("accuracy", "top1", "glyphs")]
        places += [(kind, f"{kind}_{card(t).accuracy}", t) for kind, t in product(("linear", "knn"), tasks)]
        for kind, metric, target in places:
            if kind in listed[text]:
                points = SOFTMAX[kind] + listed[text][kind] + world + noise * float(random.normal())
                facts = {"metric": metric, "target": target, "split": "test", "unit": "fraction"}
                rows.append(Row(value=points / 100, **facts, **base))
        separation = {"metric": "class_separation", "split": "train", "target": "glyphs", "unit": "ratio"}
        rows.append(Row(value=0.36 - 0.01 * place, **separation, **base))
    labels = {list(listed)[-1]: label} if label else {}
    described = planted({text: {} for text in listed}, seeds, limited=limited, labels=labels).description
    return StudyResults({**described, "name": name, "targets": list(tasks)}, Table(rows))


def pair(accuracy: float, linear: float, knn: float = 0.0, **how: Any) -> StudyResults:
    return forged({OTHER: {"accuracy": accuracy, "linear": linear, "knn": knn}}, **how)


def judged(results: StudyResults) -> dict[str, Assessment]:
    measurements = admit(results, allow_limited=True)
    return {one.claim.key: one.ours for one in judge_set(measurements, BOTH_CLAIMS)}


def by_seed(results: StudyResults, metric: str) -> dict[str, dict[int, float]]:
    """Means over tasks of a kind of accuracy in per cent, straight from the rows."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in results.table:
        if row.metric.startswith(metric) and row.status == "done" and row.split == "test":
            found.setdefault(str(row.objective), {}).setdefault(int(row.seed or 0), []).append(row.value)
    return {spec: {s: 100 * float(np.mean(of)) for s, of in runs.items()} for spec, runs in found.items()}


def verdict_of(results: StudyResults, kind: str) -> str:
    """The rule once more, by SciPy: t-tests over seeds, one-sided .025, Holm over both against it."""
    other, for_it, against = resolve(OTHER).canonical, [], []
    for metric in ("top1", f"{kind}_"):
        runs = by_seed(results, metric)
        seeds = [seed for seed in runs["softmax"] if seed in runs[other]]
        own, softmax = (np.array([runs[spec][seed] for seed in seeds]) for spec in (other, "softmax"))
        margin = 0.01 * (100 - np.mean(list(runs["softmax"].values())))
        above = stats.ttest_rel(own, softmax, alternative="greater").pvalue
        for_it.append(above <= 0.025 and (own - softmax).mean() >= margin)
        against.append(stats.ttest_rel(own, softmax + margin, alternative="less").pvalue)
    if 2 * min(against) <= 0.025:
        return "does not hold"
    return "holds" if all(for_it) else "undecided"


def test_the_rules_are_dated_and_told() -> None:
    assert BOTH_RULES[:10] == "2026-11-27"
    assert f"of {BOTH_RULES[:10]}," in both_spoken()[0]
    assert not {claim.key for claim in BOTH_CLAIMS} & {claim.key for claim in EVERY_CLAIM}
    assert {*CHOOSING} | {*CONFIRMING} == {*SEARCH.targets} | {*CONFIRMING}
    assert not {*CHOOSING} & {*CONFIRMING}
    keys = [claim.key for each in SETS for claim in each.claims]
    assert len(keys) == len({*keys})


@pytest.mark.parametrize(
    ("gains", "noise", "verdict", "opening"),
    [
        (
            (1.0, 1.0, 1.0),
            0.3,
            "holds",
            "Projector (depth = 1, width = 512) is better than softmax in both: +",
        ),
        ((1.0, -1.0, -1.0), 0.3, "does not hold", "Projector (depth = 1, width = 512) is not better than"),
        ((-1.0, 1.0, 1.0), 0.3, "does not hold", "Projector (depth = 1, width = 512) is not better than"),
        (
            (0.3, 0.3, 0.3),
            1.5,
            "undecided",
            "Whether Projector (depth = 1, width = 512) is better than softmax",
        ),
        (
            (1.0, 0.3, 0.3),
            0.8,
            "undecided",
            "Whether Projector (depth = 1, width = 512) is better than softmax",
        ),
    ],
)
def test_the_verdict_is_that_of_scipy_and_opens_the_page(
    gains: tuple[float, float, float], noise: float, verdict: str, opening: str
) -> None:
    results = pair(*gains, noise=noise)
    found = judged(results)
    assert found["better_in_both"].verdict == verdict_of(results, "linear") == verdict
    assert found["better_in_both_knn"].verdict == verdict_of(results, "knn")
    said = headline(admit(results))
    assert said.answer.startswith(opening)
    assert said.decides
    other = resolve(OTHER).canonical
    for metric, words in (("top1", "points of test accuracy"), ("linear_", "points of linear transfer")):
        runs = by_seed(results, metric)
        difference = np.array([runs[other][seed] - runs["softmax"][seed] for seed in SEEDS])
        low, high = stats.t.interval(0.95, 7, difference.mean(), stats.sem(difference))
        text = f"{difference.mean():+.2f} {words} ({low:.2f} to {high:.2f})".replace("-", "−")
        assert text in said.answer


@pytest.mark.parametrize("seed", range(12))
def test_near_the_edge_the_correction_is_holms(seed: int) -> None:
    """Truths between no gain and one that counts, where a correction decides now and then."""
    random = np.random.default_rng(seed)
    accuracy, linear = (float(value) for value in random.uniform(-0.6, 0.6, 2))
    results = pair(accuracy, linear, linear, noise=float(random.uniform(0.2, 0.8)))
    for key, kind in (("better_in_both", "linear"), ("better_in_both_knn", "knn")):
        assert judged(results)[key].verdict == verdict_of(results, kind)


def test_fewer_than_three_seeds_decide_nothing_and_it_is_said_how_to_get_more() -> None:
    for count, said in ((1, "One run each: too few"), (2, "Two runs each: too few")):
        results = pair(1.0, 1.0, seeds=SEEDS[:count])
        assert {(one.verdict, one.judged) for one in judged(results).values()} == {("undecided", False)}
        told = headline(admit(results))
        assert told.answer.startswith(
            "This study cannot say yet whether Projector (depth = 1, width = 512) is"
        )
        assert said in told.answer
        assert "So far: +" in told.answer
        assert "`--seeds 0-2` trains three of each" in told.answer
        assert not told.decides
    assert headline(admit(pair(1.0, 1.0, seeds=(0, 1, 2), noise=0.05))).decides


def test_what_was_not_measured_is_named() -> None:
    told = headline(admit(forged({OTHER: {"accuracy": 1.0}}))).answer
    assert "linear transfer is not measured of both." in told.lower()
    assert "So far: +" in told
    to_come = {"steps": {"linear": (0, 16)}, "command": "penultimate run better"}
    results = dataclasses.replace(forged({OTHER: {"accuracy": 1.0}}), provenance=to_come)
    assert headline(admit(results)).answer.endswith(" To go on: `penultimate run better`.")
    assert "linear transfer is not measured" in headline(admit(pair(1.0, 1.0, tasks=()))).answer.lower()
    told = headline(admit(forged({OTHER: {}}))).answer
    assert "Accuracy on the classes trained on and linear transfer are not measured of both." in told
    assert "So far" not in told


def test_a_diverged_network_is_left_out_of_the_pair() -> None:
    results = pair(1.0, 1.0, 1.0, without=[(OTHER, SEEDS[0])])
    found = judged(results)["better_in_both"]
    assert found.verdict == verdict_of(results, "linear") == "holds"
    assert "seven runs each" in found.ours
    gone = judged(pair(1.0, 1.0, without=[(OTHER, seed) for seed in SEEDS[2:]]))["better_in_both"]
    assert (gone.verdict, gone.judged) == ("undecided", False)


def test_a_limited_study_is_no_evidence() -> None:
    results = pair(1.0, 1.0, limited=True)
    assert {(one.verdict, one.judged) for one in judged(results).values()} == {("undecided", False)}
    told = headline(admit(results, allow_limited=True))
    assert "A limited run is no evidence." in told.answer
    assert not told.decides


def test_only_a_study_of_softmax_and_one_other_that_it_trains_is_asked() -> None:
    assert is_pair(admit(pair(0.0, 0.0)))
    three = forged({OTHER: SOFTMAX, "sigmoid": SOFTMAX})
    alone = forged({})
    without_softmax = planted({"sigmoid": {"accuracy": 70.0}, "dropout": {"accuracy": 70.0}})
    grid = {**pair(0.0, 0.0).description["networks"][0], "arm": "longer"}
    of_arms = pair(0.0, 0.0)
    of_arms = dataclasses.replace(
        of_arms, description={**of_arms.description, "networks": [*of_arms.description["networks"], grid]}
    )
    with_given = forged({})
    given = {"given": {"resnet18": "timm:resnet18"}, "classifies": False, "measure": None}
    more = [
        *with_given.description["objectives"],
        {"spec": "resnet18", "slug": "resnet18", "label": "ResNet"},
    ]
    networks = [*with_given.description["networks"], given]
    with_given = dataclasses.replace(
        with_given, description={**with_given.description, "networks": networks, "objectives": more}
    )
    for results in (three, alone, without_softmax, of_arms, with_given):
        assert not is_pair(admit(results))
        assert judge_set(admit(results), BOTH_CLAIMS) == ()


def test_the_claims_stand_first_among_those_of_a_pair_and_on_no_other_page() -> None:
    built = exhibit("claims", pair(1.0, 1.0, 1.0))
    assert [row.label for row in built.tables[0].rows[:2]] == [claim.says for claim in BOTH_CLAIMS]
    assert both_spoken()[0] in built.notes
    other = exhibit("claims", forged({OTHER: SOFTMAX, "sigmoid": SOFTMAX}))
    assert not {claim.says for claim in BOTH_CLAIMS} & {row.label for row in other.tables[0].rows}
    assert both_spoken()[0] not in other.notes


def search(without: Sequence[tuple[str, int]] = ()) -> StudyResults:
    """A forged `better_search`, in which each candidate gains something else."""
    gains = {
        spec: {"accuracy": 0.4 * place - 1, "linear": 1.5 - 0.4 * place, "knn": 0.0}
        for place, spec in enumerate(NEW_CANDIDATES)
    }
    return forged(gains, "better_search", CHOOSING, SEARCH.main.seeds, without=without)


@pytest.fixture(scope="module")
def swept() -> StudyResults:
    return read_reference("sweep")


def test_candidates_are_those_of_pandas(swept: StudyResults) -> None:
    searched = search(without=[(NEW_CANDIDATES[0], SEARCH.main.seeds[0])])
    of_tasks = {f"linear_{card(task).accuracy}" for task in CHOOSING}
    expected = {}
    for results in (searched, swept):
        read = [row for row in results.table if row.metric in {"top1", *of_tasks} and not row.setting]
        frame = pandas.DataFrame([dataclasses.asdict(row) for row in read])
        plain = (frame.split == "test") & (frame.status == "done") & frame.epoch.isna()
        frame = frame[plain & (frame.seed.isin([200, 201, 202]) | (results is searched))]
        own = frame[(frame.metric == "top1") & (frame.target == "glyphs")]
        accuracy = own.drop_duplicates(["objective", "seed"]).set_index(["objective", "seed"]).value
        tasks = frame[frame.target.isin(CHOOSING) & frame.metric.isin(of_tasks)]
        tasks = tasks.drop_duplicates(["objective", "seed", "target"])
        transfer = tasks.groupby(["objective", "seed"]).value.agg(["mean", "count"])
        both = transfer[transfer["count"] == len(CHOOSING)].join(accuracy.rename("accuracy"), how="inner")
        gains = 100 * (both[["accuracy", "mean"]] - both.xs("softmax")[["accuracy", "mean"]])
        for text in NEW_CANDIDATES if results is searched else KEPT_CANDIDATES:
            spec = resolve(text).canonical
            if spec in gains.index.get_level_values(0):
                of = gains.xs(spec).dropna()
                expected[spec] = (len(of), of.accuracy.mean(), of["mean"].mean())
    found = candidates(admit(results) for results in (searched, swept))
    assert {one.spec for one in found} == {resolve(text).canonical for text in CANDIDATES} == {*expected}
    for one in found:
        count, accuracy, transfer = expected[one.spec]
        assert len(one.gains) == count
        assert (one.accuracy, one.transfer) == pytest.approx((accuracy, transfer))
        assert one.score == min(one.accuracy, one.transfer)
        assert one.study == ("sweep" if count == 3 else "better_search")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert [len(one.gains) for one in found].count(1) == 1
    assert len([one for one in found if one.study == "sweep"]) == len(KEPT_CANDIDATES)
