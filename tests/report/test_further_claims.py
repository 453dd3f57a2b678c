"""The second set of rules: on studies of a known truth, against oracles and SciPy, and how often they err."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from scipy import stats

from penultimate.data.catalog import card
from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.paper.claims.criteria import CRITERIA, FURTHER, Criterion, FurtherCriteria
from penultimate.paper.claims.effects import Verdict, all_of, decide, difference, each
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.further import (
    FURTHER_CLAIMS,
    FURTHER_RULES,
    further_reasons,
    further_spoken,
)
from penultimate.paper.claims.patterns import on_better
from penultimate.paper.claims.quoted import paper
from penultimate.paper.claims.spreads import spread_ratio
from penultimate.paper.claims.stated import CLAIMS
from penultimate.paper.claims.verdicts import Judged, judge
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import admit
from tests.oracles import claims as oracle
from tests.report.planted import NINE, as_in_the_paper, planted
from tests.report.reading import described, with_rows

TASKS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
SHIFTED = ("glyphs_v2", "glyphs_a", "glyphs_r", "glyphs_sketch")
SEEDS = (0, 1, 2, 3, 4)
LAYERS = ("block1", "block2", "block3", "penultimate")
COMBINED = ("dropout + sigmoid", "cosine_softmax + sigmoid", "dropout + label_smoothing")
PARTS = ("dropout", "sigmoid", "cosine_softmax", "label_smoothing")
FOUR = ("softmax", "sigmoid", "logit_penalty", "cosine_softmax")
HOLDS: Verdict = "holds"
FAILS: Verdict = "does not hold"
OPEN: Verdict = "undecided"
Value = Callable[[int, int, int], float]
"""A number by the places of its objective, its seed and its task."""


def spec(text: str) -> str:
    return resolve(text).canonical


def row(objective: str, seed: int, metric: str, value: float, **facts: Any) -> Row:
    base: dict[str, Any] = {"source": "glyphs", "target": "glyphs", "split": "test", "unit": "fraction"}
    return Row(
        step="s",
        objective=spec(objective),
        seed=seed,
        draw=seed,
        backbone="glyphnet",
        status="done",
        metric=metric,
        value=value,
        **{**base, **facts},
    )


def study(
    rows: Sequence[Row], targets: Sequence[str] = TASKS, objectives: Sequence[str] = NINE
) -> StudyResults:
    """A study that holds these rows alone, with the arms that the claims read."""
    empty = planted({name: {} for name in objectives}, SEEDS)
    main, *_ = empty.description["networks"]
    arms = {"autoaugment": FOUR, "combinations": COMBINED}
    grids = [
        main,
        *({**main, "arm": arm, "objectives": [spec(one) for one in of]} for arm, of in arms.items()),
    ]
    listed = [
        *empty.description["objectives"],
        *({"slug": spec(one), "label": one, "spec": spec(one)} for one in COMBINED),
    ]
    return with_rows(described(empty, targets=list(targets), networks=grids, objectives=listed), rows)


def judged(results: StudyResults, **options: Any) -> dict[str, Judged]:
    return {one.claim.key: one for one in judge(gather(admit(results)), FURTHER_CLAIMS, **options)}


def accuracies(
    kind: str, targets: Sequence[str], value: Value, seeds: Sequence[int] = SEEDS
) -> Iterator[Row]:
    """Rows of transfer (linear, fine_tuned) or of accuracy on shifted sets (top1), in per cent."""
    for (place, name), seed, (at, target) in itertools.product(enumerate(NINE), seeds, enumerate(targets)):
        metric = kind if kind == "top1" else f"{kind}_{card(target).accuracy}"
        setting = "head=fresh" if kind == "fine_tuned" else None
        yield row(name, seed, metric, value(place, seed, at) / 100, target=target, setting=setting)


def noise(seed: int, size: float = 0.05) -> Value:
    values = size * np.random.default_rng(seed).normal(size=(len(NINE), 10, 10))
    return lambda place, of_seed, task: float(values[place, of_seed, task])


def spread(by: float, seed: int, draw: float = 0.0) -> Value:
    """Objectives a step of `by` points apart, more so on later tasks; a seed adds `draw` points to all."""
    chance = noise(seed)
    return lambda place, of_seed, task: (
        80 + by * place * (0.8 + 0.1 * task) + draw * of_seed + chance(place, of_seed, task)
    )


# The rules are data of a set of their own.


def test_the_second_set_is_dated_and_told() -> None:
    assert {claim.since for claim in FURTHER_CLAIMS} == {FURTHER_RULES}
    assert f"of {FURTHER_RULES}" in further_spoken()[0]
    assert len({claim.key for claim in EVERY_CLAIM}) == len(EVERY_CLAIM) > len(CLAIMS) + len(FURTHER_CLAIMS)
    for field in dataclasses.fields(FurtherCriteria):
        number = getattr(FURTHER, field.name)
        assert isinstance(number, Criterion)
        assert len(number.reason) > 60
        assert dict(further_reasons())[field.name] == number


def test_the_reasons_say_what_is_so() -> None:
    linear, tuned, shifted = (paper(aspect) for aspect in ("linear", "fine_tuned", "robust"))
    rest = [name for name in NINE if name != "squared_error"]

    def ratio(x: dict[str, float], among: Sequence[str]) -> float:
        return round(stdev(x[name] for name in among) / stdev(linear[name] for name in among), 2)

    assert [ratio(tuned, NINE), ratio(shifted, NINE)] == [0.06, 0.07]
    assert [ratio(tuned, rest), ratio(shifted, rest)] == [0.16, 0.20]
    assert round(0.9 / 23.0, 3) == 0.039 < FURTHER.little.value
    below = {name: round(tuned["softmax"] - tuned[name], 1) for name in NINE}
    least = FURTHER.little.value * (100 - tuned["softmax"])
    assert sorted(gap for gap in below.values() if gap > least) == [0.6, 1.0, 1.1]
    rows = published.printed("neurips_tableE3_autoaugment_separation")
    by_arm = {
        arm: [float(one["class_separation_r2"]) for one in rows if one["augmentation"] == arm]
        for arm in ("standard", "autoaugment")
    }
    moved = max(abs(a - b) for a, b in zip(*by_arm.values(), strict=True)) / stdev(by_arm["standard"])
    assert 0.06 < moved <= 0.07


def test_the_papers_table_2_is_faced() -> None:
    """It erases most of the spread, and leaves three objectives below softmax by more than counts."""
    shown = judged(study([]))
    erases, alike = (shown[key].printed for key in ("fine_tuning_erases", "fine_tuned_alike"))
    assert erases is not None
    assert alike is not None
    assert "a ratio of 0.06" in erases.ours
    assert alike.verdict == "does not hold"
    for name in ("Logit normalization", "Cosine softmax", "Squared error"):
        assert name in alike.reason
    assert "Dropout" not in alike.reason


def test_what_is_not_measured_is_folded_with_the_command_that_measures_it() -> None:
    truth = as_in_the_paper()
    made = exhibit("claims", planted(truth, alike=(60.0, 50.0)))
    commands = {gap.what: gap.command for gap in made.missing}
    assert commands == {
        **dict.fromkeys(
            (
                "Fine-tuned networks",
                "Transfer of a second architecture",
                "Accuracy of further architectures",
                "Likeness (CKA) of layers before and after fine-tuning",
                "Linear transfer in the course of training",
                "Transfer to images of several labels",
            ),
            "penultimate run evidence",
        ),
        **dict.fromkeys(
            ("Ensembles of networks", "Penultimate activations that are not zero"),
            "penultimate run glyphs",
        ),
        "Likeness (CKA) of layers, two networks of each objective": "penultimate run glyphs",
        "Accuracy and class separation under AutoAugment": "penultimate run evidence",
        "Combinations of objectives": "penultimate run evidence",
        "Accuracy on shifted test sets": "penultimate run glyphs",
    }
    assert len(made.tables[0].rows) == len(EVERY_CLAIM) - 17
    assert "17 claims more could be judged if what they need were measured." in made.notes


# Spread.


def test_a_ratio_of_spreads_is_the_literal_one() -> None:
    random = np.random.default_rng(3)
    effect = random.normal(size=(6, 1, 1))
    x, y = (
        scale * effect + 0.3 * random.normal(size=(6, 3, 3)) + random.normal(size=(1, 3, 1))
        for scale in (1, 4)
    )
    ratio, drawn = oracle.spread_ratios(x.tolist(), y.tolist())
    share, (low, high) = 0.05, np.quantile(drawn, [0.005, 0.995])
    border = dataclasses.replace(FURTHER, far=Criterion(float(np.quantile(drawn, 1 - share)), "an end"))
    found = spread_ratio(x, y, same_tasks=True, further=border)
    assert found is not None
    assert found.value == pytest.approx(ratio)
    least, effect_on = border.far.value, found.effect
    ends = (effect_on.estimate, effect_on.low, effect_on.high)
    assert ends == pytest.approx((least - ratio, least - high, least - low))
    assert effect_on.p_for == pytest.approx(5 * np.mean([one >= least for one in drawn]), abs=0.06)


def test_chance_between_runs_is_no_spread() -> None:
    """Without a difference in truth the spread is 0 in the mean, where that of the means is not."""
    random = np.random.default_rng(5)
    y = np.arange(9.0)[:, None, None] + 0.1 * random.normal(size=(9, 3, 8))
    found = [spread_ratio(random.normal(size=(9, 3, 8)), y, same_tasks=True) for _ in range(20)]
    assert np.median([one.of_x for one in found if one]) < 0.1
    assert spread_ratio(y, np.zeros((9, 3, 8)), same_tasks=True) is None


@pytest.mark.parametrize(
    ("targets", "seeds", "why"),
    [
        (TASKS[:7], SEEDS, "Too few: seven tasks; eight tasks or more are needed."),
        (TASKS, SEEDS[:2], "Two runs each: too few to know how far runs differ by chance"),
    ],
)
def test_too_few_tasks_or_runs_decide_nothing(targets: Sequence[str], seeds: Sequence[int], why: str) -> None:
    rows = [
        *accuracies("linear", targets, spread(1.0, 1), seeds),
        *accuracies("fine_tuned", targets, spread(0.1, 2), seeds),
    ]
    ours = judged(study(rows, targets))["fine_tuning_erases"].ours
    assert (ours.verdict, ours.judged) == ("undecided", False)
    assert ours.reason.startswith(why)


# Fine-tuned, none apart from softmax.


def fine_tuned(gains: Sequence[float], size: float) -> list[Row]:
    chance = noise(7, size)
    return list(
        accuracies(
            "fine_tuned", TASKS, lambda place, seed, task: 80 + gains[place] + chance(place, seed, task)
        )
    )


@pytest.mark.long
@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_equivalence_is_two_one_sided_tests(size: float) -> None:
    rows = fine_tuned([0.0] * 9, size)
    by_seed = {
        name: [
            100 * fmean(one.value for one in rows if one.objective == spec(name) and one.seed == s)
            for s in SEEDS
        ]
        for name in NINE
    }
    softmax = by_seed.pop("softmax")
    margin = FURTHER.little.value * (100 - fmean(softmax))
    worst = 0.0
    for values in by_seed.values():
        apart = [a - b for a, b in zip(values, softmax, strict=True)]
        below = stats.ttest_1samp(apart, margin, alternative="less").pvalue
        above = stats.ttest_1samp(apart, -margin, alternative="greater").pvalue
        worst = max(worst, below, above)
    verdict = judged(study(rows))["fine_tuned_alike"].ours.verdict
    assert verdict == ("holds" if worst <= CRITERIA.one_sided else "undecided")


# Layers.


def likeness(gaps: Sequence[float], size: float = 0.01, objectives: Sequence[str] = NINE) -> list[Row]:
    """CKA of two networks an objective, in each layer higher by its gap for two of one objective."""
    random, networks = np.random.default_rng(11), list(itertools.product(objectives, (0, 1)))
    rows = []
    for (a, s), (b, r) in itertools.combinations(networks, 2):
        for layer, gap in zip(LAYERS, gaps, strict=True):
            value = 0.7 + gap * (a == b) + size * float(random.normal())
            facts = {"layer": layer, "layer_b": layer, "objective_b": spec(b), "seed_b": r, "unit": "ratio"}
            rows.append(row(a, s, "cka", value, **facts))
    return rows


def test_one_objective_apart_leaves_open_how_far_objectives_are_apart_and_says_of_how_many() -> None:
    """A large difference that is one objective's alone: a jackknife over objectives cannot show it."""
    rows = likeness((0.0, 0.0, 0.0, 0.0), size=0.001)
    alone = NINE[-1]
    apart = [
        dataclasses.replace(one, value=one.value - 0.3)
        if one.layer == LAYERS[-1]
        and one.objective != one.objective_b
        and resolve(alone).canonical in (one.objective, one.objective_b)
        else one
        for one in rows
    ]
    ours = judged(study(apart))["last_layers"].ours
    assert ours.verdict == "undecided"
    assert "In the last layers CKA is higher within than between for nine of nine objectives." in ours.reason


def test_layers_are_judged_by_the_jackknife_over_objectives() -> None:
    rows = likeness((0.01, 0.0, 0.1, 0.05), size=0.05)
    by_layer = {
        layer: {
            (str(one.objective), one.seed or 0, str(one.objective_b), one.seed_b or 0): one.value
            for one in rows
            if one.layer == layer
        }
        for layer in (LAYERS[0], LAYERS[-1])
    }
    shown = judged(study(rows))["last_layers"].ours.ours.replace("−", "-")
    for layer, pairs in by_layer.items():
        values = oracle.likeness_gaps(pairs)
        low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert f"{fmean(values):+.3f} ({low:.3f} to {high:.3f}) in {layer}" in shown


def test_layers_of_networks_without_a_seed_are_none_of_the_objectives() -> None:
    rows = likeness((0.0, 0.0, 0.1, 0.2))
    facts = {"objective": "theirs", "objective_b": "ours", "seed": None, "draw": None, "seed_b": None}
    given = [dataclasses.replace(rows[0], layer=one, layer_b=one, **facts) for one in ("layer1", "layer2")]
    with_given, without = (judged(study(of))["last_layers"].ours for of in ([*rows, *given], rows))
    assert with_given == without


def test_layers_are_those_of_networks_that_saw_one_draw_where_the_study_has_such() -> None:
    rows = likeness((0.0, 0.0, 0.1, 0.2))
    main = study(rows)
    first, *others = main.description["networks"]
    arm = {**first, "arm": "one draw", "draws": 9}
    of_arm = [dataclasses.replace(one, arm="one draw", draw=9, value=one.value / 2) for one in rows]
    for among in ([*rows, *of_arm], of_arm):
        results = with_rows(described(study(among), networks=[first, *others, arm]), [])
        halved, whole = (judged(of)["last_layers"].ours.ours for of in (results, main))
        assert re.findall(r"([+][.0-9]+) \(", whole) == ["+0.002", "+0.198"]
        assert re.findall(r"([+][.0-9]+) \(", halved) == ["+0.001", "+0.099"]


def test_few_objectives_decide_nothing_on_layers() -> None:
    ours = judged(study(likeness((0, 0, 0, 0.2), objectives=NINE[:5])))["last_layers"].ours
    assert (ours.judged, ours.reason) == (
        False,
        "Too few: five objectives; six objectives or more are needed.",
    )


# Augmentation.


def augmented(gain: float, wider: float, size: float = 0.02) -> list[Row]:
    """Four objectives in the main arm and under AutoAugment: accuracy in points, R² as it is."""
    random, rows = np.random.default_rng(13), list[Row]()
    for (place, name), seed, arm in itertools.product(enumerate(FOUR), SEEDS, ("", "autoaugment")):
        top1 = 70 + place + gain * bool(arm) + seed + 10 * size * random.normal()
        r2 = 0.3 + 0.1 * place + wider * bool(arm) + size * random.normal() / 10
        rows.append(row(name, seed, "top1", top1 / 100, arm=arm or None))
        rows.append(row(name, seed, "class_separation", r2, arm=arm or None, split="train", unit="ratio"))
    return rows


def test_a_noisy_change_of_separation_is_not_shown_to_be_none() -> None:
    """No significant change of R² is no evidence that there is none."""
    ours = judged(study(augmented(9.0, 0.0, size=1.0)))["augmentation"].ours
    assert ours.verdict == "undecided"
    assert ours.reason.startswith("Neither shown nor excluded: ±")


# Combinations.


def combined(gain: float, size: float = 0.1, seeds: Sequence[int] = SEEDS) -> list[Row]:
    """Parts of 70, 71, 72 and 73 %, and combinations above the better of theirs, the first epoch higher."""
    chance = np.random.default_rng(17).normal
    parts = {"softmax": 69.0, **{name: 70.0 + place for place, name in enumerate(PARTS)}}
    wholes = {one: gain + max(parts[part] for part in one.split(" + ")) for one in COMBINED}
    return [
        row(
            name,
            seed,
            "top1",
            (value + seed + size * float(chance()) - epoch) / 100,
            split="holdout",
            epoch=epoch,
            arm="combinations" if name in wholes else None,
        )
        for name, value in (*parts.items(), *wholes.items())
        for seed in seeds
        for epoch in (1, 2)
    ]


def spreads_of(kind: str, targets: Sequence[str], by: float) -> list[Row]:
    """A point between objectives in linear transfer, and so much in another quantity, under harder draws."""
    linear = accuracies("linear", TASKS, spread(1.0, 1, draw=2.0))
    return [*linear, *accuracies(kind, targets, spread(by, 2, draw=3.0))]


TABLE: tuple[tuple[str, Callable[[], Sequence[Row]], Verdict, str], ...] = (
    *(
        (
            "fine_tuning_erases",
            partial(spreads_of, "fine_tuned", TASKS, by),
            verdict,
            ", 99 %), nine objectives, eight tasks",
        )
        for by, verdict in ((0.1, HOLDS), (1.0, FAILS), (0.25, OPEN))
    ),
    *(
        (
            "robustness",
            partial(spreads_of, "top1", SHIFTED, by),
            verdict,
            "four shifted test sets, five runs each",
        )
        for by, verdict in ((0.1, HOLDS), (1.0, FAILS))
    ),
    # Four in a hundred of softmax's 20 % of errors are 0.8 points.
    *(
        ("fine_tuned_alike", partial(fine_tuned, gains, 0.2), verdict, "least in its favour: ")
        for gains, verdict in (
            ([0.0] * 9, HOLDS),
            ([0.0] * 8 + [-1.6], FAILS),
            ([0.0, 1.6] + [0.0] * 7, FAILS),
            ([0.0] * 8 + [-0.75], OPEN),
        )
    ),
    *(
        ("last_layers", partial(likeness, gaps), verdict, "in penultimate, nine objectives")
        for gaps, verdict in (
            ((0.0, 0.0, 0.1, 0.2), HOLDS),
            ((0.2, 0.1, 0.0, 0.0), FAILS),
            ((0.2, 0.2, 0.2, 0.2), FAILS),
            ((0.0, 0.0, 0.0, 0.0), OPEN),
            ((0.05, 0.0, 0.1, 0.2), OPEN),
        )
    ),
    # A quarter of the spread of R² of 0.3, 0.4, 0.5 and 0.6 is 0.032.
    *(
        ("augmentation", partial(augmented, *change), verdict, "spread among the objectives 0.130")
        for change, verdict in (
            ((2.0, 0.0), HOLDS),
            ((-2.0, 0.0), FAILS),
            ((2.0, 0.1), FAILS),
            ((2.0, -0.1), FAILS),
            ((0.0, 0.1), FAILS),
        )
    ),
    # One in a hundred of softmax's 30 % of errors (69 + 2 of seeds - 1) is 0.3 points.
    *(
        ("combinations", partial(combined, gain), verdict, "mean of three combinations; the best: ")
        for gain, verdict in ((0.0, HOLDS), (-1.0, HOLDS), (1.0, FAILS), (0.3, OPEN))
    ),
)


@pytest.mark.long
@pytest.mark.parametrize(("key", "rows", "verdict", "said"), TABLE)
def test_a_rule_finds_what_the_rows_hold(
    key: str, rows: Callable[[], Sequence[Row]], verdict: Verdict, said: str
) -> None:
    ours = judged(study(rows()))[key].ours
    assert ours.verdict == verdict
    assert said in ours.ours


def test_the_better_part_is_sought_in_the_other_seeds() -> None:
    """Equal parts and a combination like them: against the better of each seed it would lose by chance."""
    rows = [
        dataclasses.replace(one, value=0.7 + 0.02 * float(np.random.default_rng([19, place]).normal()))
        for place, one in enumerate(combined(0.0, seeds=range(40)))
    ]
    shown = judged(study(rows))["combinations"].ours.ours
    assert abs(float(shown.partition(" ")[0].replace("−", "-"))) < 0.8


def test_parts_of_another_recipe_are_no_parts() -> None:
    results = study(combined(0.0))
    main, *others = results.description["networks"]
    changed = described(results, networks=[{**main, "recipe": {"epochs": 3}}, *others])
    assert "not measured" in judged(changed)["combinations"].ours.reason


# How often they err, and how often they decide.


def two_spreads(ratio: float, random: np.random.Generator, n: int, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Nine objectives on t tasks and on eight: a spread of a point on these, and more on some tasks."""
    effect = random.normal(size=9)
    effect = (effect - effect.mean()) / effect.std(ddof=1)
    sides = []
    for scale, tasks in ((ratio, t), (1.0, 8)):
        load = np.exp(0.5 * random.normal(size=tasks)) / np.exp(0.125)
        of_task = 0.3 * random.normal(size=(9, 1, tasks))
        chance = 0.1 * random.normal(size=(9, n, tasks)) + 0.03 * random.normal(size=(9, n, 1))
        sides.append(scale * (effect[:, None, None] * load + of_task) + chance)
    return sides[0], sides[1]


@pytest.mark.long
@pytest.mark.parametrize(("n", "t"), [(3, 4), (3, 8), (5, 4), (5, 8)])
def test_a_ratio_at_the_border_is_seldom_decided_and_others_often(n: int, t: int) -> None:
    random = np.random.default_rng([n, t])
    fewer = dataclasses.replace(FURTHER, resamples=Criterion(2000, "in less time"))

    def verdicts(ratio: float, trials: int) -> list[Verdict]:
        found = (
            spread_ratio(*two_spreads(ratio, random, n, t), t == 8, further=fewer) for _ in range(trials)
        )
        return [decide(one.effect) for one in found if one]

    border, small, large = verdicts(0.25, 400), verdicts(0.06, 100), verdicts(0.6, 100)
    for wrong in ("holds", "does not hold"):
        assert border.count(wrong) / len(border) <= 0.032 + 3 * (0.03 * 0.97 / 400) ** 0.5
    assert small.count("holds") > 85
    assert large.count("does not hold") > 40
    assert small.count("does not hold") == large.count("holds") == 0


def of_seeds(values: np.ndarray) -> dict[int | None, float]:
    return {seed: float(value) for seed, value in enumerate(values)}


def counted_apart(
    trials: int, gain: float, n: int, size: float, random: np.random.Generator
) -> list[Verdict]:
    """Eight alternatives in runs that differ by `size` points, one of them apart by `gain`; 0.8 counts."""
    found = []
    for _ in range(trials):
        softmax, *others = size * random.normal(size=(9, n)) + np.eye(9)[1][:, None] * gain
        effects = {
            f"{place} {sign}": difference([of_seeds(other), of_seeds(softmax)], (sign, -sign), 0.8)
            for place, other in enumerate(others)
            for sign in (1, -1)
        }
        tested = {key: one for key, one in effects.items() if one is not None}
        found.append(all_of(each(tested, tested).values()))
    return found


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 5])
def test_alike_is_seldom_found_at_the_border_and_often_where_it_is_true(n: int) -> None:
    random = np.random.default_rng(n)
    border, none, twice = (counted_apart(400, gain, n, 0.1, random) for gain in (0.8, 0.0, 1.6))
    assert border.count("holds") / 400 <= 0.025 + 3 * (0.025 * 0.975 / 400) ** 0.5
    assert none.count("holds") > 340
    assert none.count("does not hold") == 0
    assert twice.count("does not hold") > 230


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 5])
def test_combinations_are_seldom_misjudged(n: int) -> None:
    """Five parts and seven combinations with the reference run's spread between runs; 0.2 points count."""
    random, found = np.random.default_rng(n), {}
    for gain in (-0.5, 0.0, 0.2, 1.0):
        found[gain] = []
        for _ in range(400):
            means = np.array([0.3, 0.9, 0.7, 0.1, 1.2])
            singles = [of_seeds(one) for one in means[:, None] + 0.34 * random.normal(size=(5, n))]
            gains = []
            for a, b in ((0, 1), (0, 2), (0, 3), (4, 1), (4, 2), (4, 3), (3, 2)):
                whole = of_seeds(max(means[a], means[b]) + gain + 0.34 * random.normal(size=n))
                gains.append([*on_better(whole, [singles[a], singles[b]], range(n)).values()])
            effect = difference([of_seeds(np.mean(gains, 0))], [1], 0.2)
            assert effect is not None
            found[gain] += each({"gain": effect}, ("gain",)).values()
    slack = 3 * (0.025 * 0.975 / 400) ** 0.5
    assert found[0.2].count("holds") / 400 <= 0.025 + slack
    assert found[0.0].count("does not hold") / 400 <= 0.025 + slack
    assert found[-0.5].count("holds") > 250
    assert found[1.0].count("does not hold") > 360
