"""The kinds of rule: functions that make a rule, which judges the numbers of a run or of the paper.

A rule returns its verdict, or None if what it asks for was not measured. Objectives are compared within
seeds, since a seed is a draw of the data that all share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from penultimate import specs
from penultimate.data.catalog import SHARES
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR, COMBINATIONS, COSINE_DECAY, ONE_DRAW, SWEEP
from penultimate.paper.claims import effects, filed
from penultimate.paper.claims.effects import Array, Effect, Runs, Unit
from penultimate.paper.claims.filed import LEAST_OBJECTIVES, LEAST_RUNS, LEAST_TASKS, LEAST_TEMPERATURES
from penultimate.paper.claims.numbers import (
    ACCURACY,
    ALTERNATIVES,
    BASELINE,
    FALL,
    FRESH,
    LABELS,
    LINEAR,
    ROBUST,
    SEPARATION,
    SNAPSHOTS,
    Frame,
    Numbers,
    Quantity,
    by_seed,
    least,
    mean,
)
from penultimate.paper.claims.verdicts import Judged, judge_all, judge_groups, not_judged, too_few
from penultimate.results.means import printed
from penultimate.results.rows import Objective, Run, both, epochs, pairs, seeds
from penultimate.results.text import counted, fixed, listed
from penultimate.statistics import spearman

Rule: TypeAlias = "Callable[[Numbers], Judged | None]"
Sides: TypeAlias = Mapping[str, Sequence[tuple[int, bool]]]
"""The differences of each alternative from softmax that are tested: the sign, and whether they are denied."""
LOWER, HIGHER, NOT_HIGHER = ((-1, False),), ((1, False),), ((1, True),)
CKA = Unit("{} of CKA", 3)
MISPRINT = 76.0
"""A printed combination below this is a failed run or a misprint (NOTES.md): its neighbours are 5 above."""


def label_of(slug: str) -> str:
    """Return the name of one of the paper's objectives for readers."""
    return PRESETS[slug].label


def missing(objectives: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the names of the objectives that have no numbers."""
    known = {*there}
    return [label_of(slug) for slug in objectives if slug not in known]


# Softmax and the alternatives.


def differences(
    of: Numbers, quantity: Quantity, sides: Sides, share: float = filed.LEAST_GAIN, task: str = ""
) -> list[Effect]:
    """Return how alternatives differ from softmax; `share` is the share of its errors that counts."""
    runs, found = of.runs(quantity, task), list[Effect]()
    softmax = runs.get(BASELINE, {})
    margin = least(quantity, softmax, share) if softmax else 0.0
    for slug in sides if softmax else ():
        for sign, denied in sides[slug] if slug in runs else ():
            shown = {"unit": quantity.unit, "name": label_of(slug), "denied": denied, "sign": sign}
            found.append(of.effect((runs[slug], softmax), (sign, -sign), margin, **shown))
    return found


def beside_softmax(
    of: Numbers, quantity: Quantity, sides: Sides, share: float = filed.LEAST_GAIN
) -> Judged | None:
    """Judge that alternatives differ from softmax in these ways."""
    found, runs = differences(of, quantity, sides, share), of.runs(quantity)
    if not found:
        return None
    softmax = mean(runs[BASELINE])
    level = f"R² {fixed(softmax, 3)}" if quantity.top == 1 else f"{fixed(softmax, 1)} %"
    return judge_all(found, lead=f"Softmax {level}", absent=missing(sides, runs))


def better(quantity: Quantity, objective: str) -> Rule:
    """Make the rule that the objective's mean is above softmax's, corrected for being one of several."""

    def rule(of: Numbers) -> Judged | None:
        found = {one.name: one for one in differences(of, quantity, dict.fromkeys(ALTERNATIVES, HIGHER))}
        found |= effects.corrected({name: one for name, one in found.items() if one.tested})
        own = found.get(label_of(objective))
        return judge_all([replace(own, name="")]) if own else None

    return rule


def best_of_all(quantity: Quantity, sign: int = 1, among: Sequence[str] = ALTERNATIVES) -> Rule:
    """Make the rule that softmax's mean is above (or below: -1) that of each of these objectives."""
    return lambda of: beside_softmax(of, quantity, dict.fromkeys(among, LOWER if sign > 0 else HIGHER))


def unbeaten(quantity: Quantity) -> Rule:
    """Make the rule that no alternative's mean is above softmax's."""
    return lambda of: beside_softmax(of, quantity, dict.fromkeys(ALTERNATIVES, NOT_HIGHER))


def only(quantity: Quantity, objectives: Sequence[str]) -> Rule:
    """Make the rule that the means of these objectives, and of no other alternative, are above softmax's."""
    sides = {**dict.fromkeys(ALTERNATIVES, NOT_HIGHER), **dict.fromkeys(objectives, HIGHER)}
    return lambda of: beside_softmax(of, quantity, sides)


def alike(quantity: Quantity) -> Rule:
    """Make the rule that no alternative is much better or worse than softmax: an equivalence test of each."""
    sides = dict.fromkeys(ALTERNATIVES, ((1, True), (-1, True)))
    return lambda of: beside_softmax(of, quantity, sides, filed.LITTLE)


def some_better(tasks: Sequence[str]) -> Rule:
    """Make the rule that on the first of these tasks some objective that separates further beats softmax."""

    def rule(of: Numbers) -> Judged | None:
        task = next((one for one in tasks if one in of.tasks(LINEAR)), "")
        apart = {slug: mean(runs) for slug, runs in of.runs(SEPARATION).items()}
        if not task or BASELINE not in apart:
            return None
        further = [slug for slug in ALTERNATIVES if apart.get(slug, 0.0) > apart[BASELINE]]
        found = differences(of, LINEAR, dict.fromkeys(further, NOT_HIGHER), task=task)
        return judge_all(found, any_of=True) if found else None

    return rule


def best_for_most(quantity: Quantity, share: float = 0.0) -> Rule:
    """Make the rule that softmax is above every alternative on this share of tasks, by default on most.

    To hold, as many must pass as are needed: with u of T, p_(u) (T - u + 1) <= a over their own p, each an
    intersection over alternatives. To fail, T - u + 1 of them must, likewise.

    Benjamini and Heller, 2008.
    """
    noun = {LABELS: "label", SNAPSHOTS: "snapshot"}.get(quantity, "task")

    def rule(of: Numbers) -> Judged | None:
        tasks, lower = of.tasks(quantity), dict.fromkeys(ALTERNATIVES, LOWER)
        by_task = {task: differences(of, quantity, lower, task=task) for task in tasks}
        if not by_task or not all(by_task.values()):
            return None
        total, best, tied = len(by_task), 0, 0
        needed = math.ceil(round(share * total, 3)) if share else total // 2 + 1
        for runs in (of.runs(quantity, task) for task in by_task):
            # To a millionth of a point, so that ties stay ties in a kept study with nine digits.
            means = [round(mean(runs[slug]), 6) for slug in (BASELINE, *ALTERNATIVES) if slug in runs]
            best += means[0] == max(means)
            tied += means[0] == max(means) and means.count(means[0]) > 1
        lead = f"Softmax best on {best} of {total} {noun}s{f' (tied on {tied})' if tied else ''}"
        absent = [] if share else missing(ALTERNATIVES, of.runs(quantity, tasks[0]))
        return judge_groups(by_task, needed, lead=lead, noun=noun, absent=absent)

    return rule


def below(quantity: Quantity, limit: float, objectives: Sequence[str]) -> Rule:
    """Make the rule that the mean of each of these objectives is below a limit."""
    percent = Unit("{} % of activations", 1, has_sign=False)
    shown: dict[str, Any] = {"unit": percent, "sign": -1, "offset": limit}

    def rule(of: Numbers) -> Judged | None:
        gaps = {
            slug: {seed: limit - value for seed, value in runs.items()}
            for slug, runs in of.runs(quantity).items()
        }
        there = [slug for slug in objectives if slug in gaps]
        found = [of.effect((gaps[slug],), (1,), name=label_of(slug), **shown) for slug in there]
        return judge_all(found, absent=missing(objectives, gaps)) if found else None

    return rule


def adds(arm: str) -> Rule:
    """Make the rule that in an arm alternatives beat softmax there, and themselves outside."""

    def rule(of: Numbers) -> Judged | None:
        inside, outside, found = of.at(arm).runs(ACCURACY), of.runs(ACCURACY), list[Effect]()
        for slug in ALTERNATIVES if BASELINE in inside else ():
            if slug in inside and slug in outside:
                softmax = inside[BASELINE]
                others = {"on softmax, augmented too": softmax, "on itself without": outside[slug]}
                for words, other in others.items():
                    shown = {"unit": ACCURACY.unit, "name": f"{label_of(slug)} {words}"}
                    margin = least(ACCURACY, softmax)
                    found.append(of.effect((inside[slug], other), (1, -1), margin, **shown))
        return judge_all(found) if found else None

    return rule


def no_single_best(of: Numbers) -> Judged | None:
    """Judge that every objective is beaten by another one on some benchmark."""
    benchmarks: dict[str, dict[str, Runs]] = {}
    if of.run is None:
        table = printed("iclr_table1_accuracy")
        for title, name in (("ImageNet", "imagenet"), ("CIFAR-10", "cifar10"), ("CIFAR-100", "cifar100")):
            column = table[f"{name}_top1_percent"]
            benchmarks[title] = {label_of(slug): {0: value} for slug, value in column.items()}
    else:
        small = [(backbone, Numbers(of.run, COSINE_DECAY, backbone)) for backbone in of.run.further]
        for title, at in ((of.run.title, of), *small):
            labels = of.run.labels(at.arm)
            benchmarks[title] = {labels[slug]: runs for slug, runs in at.runs(ACCURACY).items()}
    benchmarks = {title: runs for title, runs in benchmarks.items() if runs}
    groups, best = dict[str, list[Effect]](), list[str]()
    for title, runs in benchmarks.items():
        best.append(f"Best on {title}: {max((mean(of_one), label) for label, of_one in runs.items())[1]}")
        margin = least(ACCURACY, runs.get(label_of(BASELINE), next(iter(runs.values()))))
        for label, rival in itertools.permutations(runs, 2):
            shown = {"unit": ACCURACY.unit, "name": f"{rival} on {title}", "denied": True}
            effect = of.effect((runs[rival], runs[label]), (1, -1), margin, **shown)
            groups.setdefault(label, []).append(effect)
    if len(benchmarks) < 2 or not groups:
        return None
    return judge_groups(groups, len(groups), any_of=True, lead="; ".join(best), noun="objective")


# Orders of objectives, and of temperatures.


def ranked(x: Quantity, y: Quantity, sign: int, denied: bool = False) -> Rule:
    """Make the rule that x and y rank the objectives alike (1) or oppositely (-1); 0 or `denied`: not so.

    A seed is a draw of the world. If all that are ranked have enough seeds in common, only these count, so
    that no mean is lower because of a harder draw.
    """
    signs, denied = (sign,) if sign else (1, -1), denied or not sign

    def rule(of: Numbers) -> Judged | None:
        sides = both(of.frame(x), of.frame(y))
        if sides[0].empty:
            return None
        needed = 1 if of.is_printed else LEAST_RUNS
        enough = [slug for slug, count in sides[0].count().items() if count >= needed]
        of_x, of_y = (side[enough] if len(enough) >= LEAST_OBJECTIVES else side for side in sides)
        if len(kept := of_x.dropna().index) >= needed:
            of_x, of_y = of_x.loc[kept], of_y.loc[kept]
        counts = of_x.count().tolist()
        over_seeds = effects.rho_over_seeds(of_x, of_y) if min(counts) > 1 else None
        means = of_x.mean().round(12).tolist(), of_y.mean().round(12).tolist()
        every = [effects.of_ranks(*means, one, over_seeds, denied=denied) for one in signs]
        found = [one for one in every if one]
        why_not = ""
        if sides[0].shape[1] < LEAST_OBJECTIVES or not found:
            why_not = too_few([sides[0].shape[1]], LEAST_OBJECTIVES, "objective")
        elif len(enough) < LEAST_OBJECTIVES:
            why_not = too_few(counts, LEAST_RUNS, "run")
        return judge_all(found, why_not=why_not)

    return rule


def _by_temperature(of: Numbers, quantity: Quantity) -> Frame:
    """Return the frame of the sweep in ascending order of its temperatures."""
    frame = of.at(SWEEP).frame(quantity)
    values = {name: float(name) for name in frame} if of.run is None else of.run.temperatures(SWEEP)
    kept = {slug: f"τ = {value:g}" for slug, value in values.items() if slug in frame}
    return frame[[*kept]].rename(columns=kept)


def trend(quantity: Quantity, sign: int) -> Rule:
    """Make the rule that a quantity rises (1) or falls (-1) with temperature, within seeds (Page's test)."""

    def rule(of: Numbers) -> Judged | None:
        frame = _by_temperature(of, quantity)
        if frame.empty:
            return None
        blocks, count = frame.dropna().to_numpy().tolist(), frame.shape[1]
        effect = effects.of_trend(blocks, sign) if blocks else None
        is_few = effect is None or count < LEAST_TEMPERATURES
        n = count if of.is_printed else len(blocks)
        tested = of.is_printed or n >= LEAST_RUNS
        found = [replace(effect, n=n, tested=tested)] if effect else []
        return judge_all(found, why_not=too_few([count], LEAST_TEMPERATURES, "temperature") if is_few else "")

    return rule


def levels(quantity: Quantity) -> Rule:
    """Make the rule that the mean A rises up to the middle temperature and is level above it.

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. The claim holds if all bounds are met, uncorrected; it fails if
    one is broken, corrected.
    """

    def rule(of: Numbers) -> Judged | None:
        groups = by_seed(_by_temperature(of, quantity))
        if not groups:
            return None
        names, count = [*groups], len(groups)
        middle, found = (count - 1) // 2, list[Effect]()
        for upper, side in itertools.product(range(middle + 1, count), (1, -1)):
            weights = [0.0] * count
            weights[0], weights[middle], weights[upper] = -filed.PLATEAU, filed.PLATEAU + side, -side
            found.append(of.effect([*groups.values()], weights, name=names[upper]))
        shown = dict.fromkeys((names[0], names[middle], names[-1]))
        lead = ", ".join(f"{fixed(mean(groups[name]), 1)} % at {name}" for name in shown)
        why_not = too_few([count], LEAST_TEMPERATURES, "temperature") if count < LEAST_TEMPERATURES else ""
        return judge_all(found, lead=lead, why_not=why_not)

    return rule


# A number for each seed.

Values: TypeAlias = "Callable[[Numbers], tuple[Runs, float] | None]"
"""Returns the number of each seed, and the smallest mean that counts."""


def positive(values: Values, unit: Unit) -> Rule:
    """Make the rule that the mean over seeds of some number is above zero."""

    def rule(of: Numbers) -> Judged | None:
        found = values(of)
        return judge_all([of.effect(found[:1], (1,), found[1], unit=unit)]) if found and found[0] else None

    return rule


def softmax_falls(of: Numbers) -> tuple[Runs, float] | None:
    """Return how far softmax's R² ends below its peak."""
    values, softmax = of.runs(FALL).get(BASELINE), of.runs(SEPARATION).get(BASELINE)
    return (values, least(SEPARATION, softmax)) if values and softmax else None


def none_falls(of: Numbers) -> Judged | None:
    """Judge that the R² of no alternative ends below its peak."""
    softmax, falls = of.runs(SEPARATION).get(BASELINE), of.runs(FALL)
    there = [slug for slug in ALTERNATIVES if slug in falls]
    if softmax is None or not there:
        return None
    margin, shown = least(SEPARATION, softmax), {"unit": FALL.unit, "denied": True}
    return judge_all(
        [of.effect((falls[slug],), (1,), margin, name=label_of(slug), **shown) for slug in there]
    )


def shared_slope(of: Numbers) -> tuple[Runs, float] | None:
    """Return, for each seed, the slope of the tasks' rho (R² with transfer) over their shares of classes.

    The share is that of a task's classes that pretraining has. Left out are, for each seed, tasks on which
    all transfer alike.
    """
    separation, table = of.frame(SEPARATION), printed("neurips_tableF1_class_overlap")
    every = {**table["semantic_class_overlap_classes"].div(table["classes"]), "newfaces": 1.0, **SHARES}
    tasks = {task: of.frame(LINEAR, task) for task in of.tasks(LINEAR)}
    shares = [every.get(task, 0.0) for task in tasks]
    if len({*shares}) < 2 or separation.shape[1] < 3:
        return None
    slopes = {}
    for seed, row in separation.dropna().iterrows():
        rows = [frame.reindex(index=[seed], columns=separation.columns).iloc[0] for frame in tasks.values()]
        if not any(of_task.isna().any() for of_task in rows):
            slopes[int(seed)] = slope_over(shares, [spearman(row, one, exact=False).rho for one in rows])
    return {seed: slope for seed, slope in slopes.items() if slope == slope}, filed.LEAST_CONTRAST


def slope_over(shares: Sequence[float], rhos: Sequence[float]) -> float:
    """Return the least-squares slope of rho over shares; without a rho, a point is left out.

    If tasks share all of their classes or none, it is the difference of two means; if all share alike, NaN.

    >>> slope_over([1.0, 0.5, 0.0, 0.0], [-0.5, -0.75, -1.0, math.nan])
    0.5
    """
    from statistics import linear_regression

    kept = [(share, rho) for share, rho in zip(shares, rhos, strict=True) if rho == rho]
    if len({share for share, _ in kept}) < 2:
        return math.nan
    return linear_regression(*zip(*kept, strict=True)).slope


def layers_move(of: Numbers) -> tuple[Runs, float] | None:
    """Return by how much fine-tuning leaves softmax's first third of layers more alike (CKA) than its last.

    It is the mean over the tasks, of each network that has all of them.
    """
    moved = []
    for target in of.run.targets if of.run else ():
        facts = {"target": target, "setting": FRESH, **of.where}
        every = (seeds(of.study, "fine_tuned_cka", layer=layer, **facts) for layer in of.layers())
        found = [frame[BASELINE] for frame in every if BASELINE in frame]
        third = len(found) // 3
        if found:
            moved.append(sum(found[:third]) / third - sum(found[-third:]) / third)
    return ((sum(moved) / len(moved)).dropna().to_dict(), filed.LEAST_GAIN) if moved else None


def only_accuracy(arm: str) -> Rule:
    """Make the rule that in this arm accuracy is higher than in the main one, and separation unchanged."""

    def rule(of: Numbers) -> Judged | None:
        plain, other = ([at.frame(each) for each in (ACCURACY, SEPARATION)] for at in (of, of.at(arm)))
        slugs = [slug for slug in other[0] if all(slug in frame for frame in (*plain, *other))]
        if len(slugs) < 2:
            return None
        changes = [
            (after[slugs] - before[slugs]).dropna().mean(axis=1)
            for before, after in zip(plain, other, strict=True)
        ]
        shared = changes[0].index.intersection(changes[1].index)
        gain, change = (of_one[shared].to_dict() for of_one in changes)
        softmax = by_seed(plain[0])[BASELINE if BASELINE in plain[0] else slugs[0]]
        spread = float(plain[1][slugs].mean().std())
        facts: dict[str, Any] = {"unit": SEPARATION.unit, "name": "Separation", "denied": True}
        found = [
            of.effect((gain,), (1,), least(ACCURACY, softmax), unit=ACCURACY.unit, name="Accuracy"),
            *(of.effect((change,), (one,), filed.FAR * spread, sign=one, **facts) for one in (1, -1)),
        ]
        return judge_all(found, lead=f"{counted(len(slugs), 'objective')}, R² spread by {fixed(spread, 3)}")

    return rule


def no_sum(of: Numbers) -> Judged | None:
    """Judge that combined objectives are no better than the better of their parts, in the mean."""
    softmax, wholes = _printed_combinations() if of.run is None else _combinations(of.run)
    if not wholes or softmax is None:
        return None
    shared = [seed for seed in wholes[0][0] if all(seed in runs for one in wholes for runs in one)]
    lead = f"Mean of {counted(len(wholes), 'combination')}"
    if not shared:
        return not_judged(lead, "No seed has all combinations and their parts.")
    gains = [on_better(whole, parts, shared) for whole, *parts in wholes]
    runs = {seed: math.fsum(one[seed] for one in gains) / len(gains) for seed in shared}
    shown = {"unit": Unit("{} points of holdout accuracy"), "denied": True}
    return judge_all([of.effect((runs,), (1,), least(ACCURACY, softmax), **shown)], lead=lead)


def on_better(whole: Runs, parts: Sequence[Runs], shared: Sequence[int]) -> Runs:
    """Return, for each seed, the combination less the part that is best in the mean of the other seeds."""
    gains = {}
    for seed in shared:
        others = [other for other in shared if other != seed] or [seed]
        best = max(parts, key=lambda part: mean({other: part[other] for other in others}))
        gains[seed] = whole[seed] - best[seed]
    return gains


def _combinations(run: Run) -> tuple[Runs | None, list[list[Runs]]]:
    """Return softmax's best holdout accuracies, and those of combinations, each followed by its parts'."""
    recipes, best = [], list[dict[frozenset[str], Runs]]()
    for arm in (COMBINATIONS, ""):
        grids = run.grids(arm)
        trained = {spec for grid in grids for spec in grid.get("objectives", ())}
        highest = by_seed(epochs(run, "top1", "holdout", arm=arm, scale=100.0).max().unstack(level=0))
        found: dict[frozenset[str], Runs] = {}
        for slug, _, spec in run.objectives(arm):
            if spec in trained and slug in highest:
                terms = frozenset(str(term) for term in specs.parse_sum(spec) if term.name != BASELINE)
                found[terms] = highest[slug]
        best.append(found)
        recipes.append(grids[0].get("recipe") if grids else None)
    wholes = []
    for terms, runs in best[0].items() if recipes[0] == recipes[1] else ():
        own = [best[1][part] for term in sorted(terms) if (part := frozenset({term})) in best[1]]
        if 1 < len(terms) == len(own):
            wholes.append([runs, *own])
    return best[1].get(frozenset()), wholes


def _printed_combinations() -> tuple[Runs, list[list[Runs]]]:
    """Return the same of the paper's table C.4."""
    found = {
        (str(base), row["added_regularizer"], row["regularizer_value"]): float(row["holdout_top1_percent"])
        for base, row in printed("neurips_tableC4_combinations", numbers=False).iterrows()
    }
    wholes = list[list[Runs]]()
    for (base, added, strength), value in found.items():
        keys = (base, "none", ""), (BASELINE, added, strength)
        if base != BASELINE and added != "none" and {*keys} <= {*found} and value > MISPRINT:
            wholes.append([{0: value}, *({0: found[key]} for key in keys)])
    return {0: found[BASELINE, "none", ""]}, wholes


# Pairs of networks.


def _pairs(of: Numbers, metric: str) -> Frame:
    """Return the rows of two networks, of the arm that has one draw of the images if there is one."""
    if of.run is None:
        return pd.DataFrame()
    arm = ONE_DRAW if ONE_DRAW in of.run.arms else of.arm
    return pairs(of.run, metric, arm=arm, backbone=of.backbone)


def _apart(found: Frame) -> Frame:
    """Return the pairs of networks of different seeds that were trained here."""
    return found[(found["seed"] >= 0) & (found["seed_b"] >= 0) & (found["seed"] != found["seed_b"])]


def pseudo_values(statistic: Callable[[object], float], units: Sequence[object]) -> Runs:
    """Return the jackknife's n m - (n - 1) m' for each unit, where m' is the statistic without that unit.

    Of two units, they are m itself, without a spread.

    Arvesen, 1969.
    """
    n, whole = len(units), statistic(None)
    return {at: n * whole - (n - 1) * (statistic(unit) if n > 2 else whole) for at, unit in enumerate(units)}


def closer(found: Frame, left: object = None, by: str = "objective") -> float:
    """Return how much more alike two networks of one objective are than two of different ones.

    Pairs with a network of the objective, or the seed, that is left out do not count.
    """
    found = found[(found[by] != left) & (found[f"{by}_b"] != left)]
    is_same = found["objective"] == found["objective_b"]
    return float(found["value"][is_same].mean() - found["value"][~is_same].mean())


def kinship(of: Numbers) -> tuple[Runs, float] | None:
    """Return how much more alike networks of one objective err than of two, in per cent, by seeds."""
    found = _pairs(of, "agreement_same_when_both_wrong")
    if found.empty:
        return None
    found = _apart(found)
    units = sorted({*found["seed"], *found["seed_b"]})
    gains = pseudo_values(lambda seed: 100 * closer(found, seed, "seed"), units)
    others = 100 * float(found["value"][found["objective"] != found["objective_b"]].mean())
    return {} if any(map(math.isnan, gains.values())) else gains, filed.LEAST_GAIN * (100 - others)


def last_layers(of: Numbers) -> Judged | None:
    """Judge that networks of one objective are more alike than of two in the last layers alone."""
    found = _pairs(of, "cka")
    if found.empty:
        return None
    found = _apart(found[found["layer"].notna() & (found["layer"] == found["layer_b"])])
    by_layer = {layer: rows for layer in of.layers() if len(rows := found[found["layer"] == layer])}
    is_same = found["objective"] == found["objective_b"]
    objectives, third = sorted({*found["objective"][is_same]}), len(by_layer) // 3
    if not third or not objectives:
        return None
    if len(objectives) < LEAST_OBJECTIVES:
        return not_judged("", too_few([len(objectives)], LEAST_OBJECTIVES, "objective"))
    ends = [*by_layer][:third], [*by_layer][-third:]

    def gap(layers: Sequence[str]) -> Runs:
        return pseudo_values(
            lambda left: math.fsum(closer(by_layer[one], left) for one in layers) / third, objectives
        )

    first, last = gap(ends[0]), gap(ends[1])
    rest = found[~is_same].groupby("layer", observed=True)["value"].mean()
    margin = filed.LEAST_GAIN * (1 - float(rest[ends[1]].mean()))
    shown = [of.effect((values,), (1,), margin, unit=CKA) for values in (first, last)]
    words = [listed(layers) for layers in ends]
    lead = f"CKA within less between objectives: {shown[0].text} in {words[0]}, {shown[1].text} in {words[1]}"
    first_too = of.effect((last, first), (filed.FAR, -1), name=words[0])
    return judge_all([replace(shown[1], unit=None, name=words[1]), first_too], lead=lead)


def no_mixture(of: Numbers) -> Judged | None:
    """Judge that ensembles of two objectives are no better than the better of these alone, in the mean."""
    found, softmax = _pairs(of, "ensemble_top1"), of.runs(ACCURACY).get(BASELINE)
    if found.empty or softmax is None:
        return None
    sizes = found["setting"].map(lambda text: int(str(text).partition("models=")[2] or 0))
    mixed = found["objective"] != found["objective_b"]
    found = found[sizes == (sizes[mixed] if mixed.any() else sizes).max()]
    values = {frozenset((row.objective, row.objective_b)): 100 * row.value for row in found.itertuples()}
    objectives = [slug for slug in of.study.labels(ONE_DRAW, "") if frozenset({slug}) in values]
    gains = {
        pair: value - max(values[frozenset({one})] for one in pair)
        for pair, value in values.items()
        if len(pair) == 2 and pair <= {*objectives}
    }
    if not gains:
        return None
    lead = f"Mean of {counted(len(gains), 'mixture')} of {counted(len(objectives), 'objective')}"
    if len(objectives) < LEAST_OBJECTIVES:
        return not_judged(lead, too_few([len(objectives)], LEAST_OBJECTIVES, "objective"))
    by_objective = pseudo_values(
        lambda left: float(np.mean([value for pair, value in gains.items() if left not in pair])), objectives
    )
    shown = {"unit": ACCURACY.unit, "denied": True}
    return judge_all([of.effect((by_objective,), (1,), least(ACCURACY, softmax), **shown)], lead=lead)


# How far objectives are spread.


def by_task(frames: Sequence[Frame], objectives: Sequence[str], shared: Sequence[int]) -> Array:
    """Return the values of frames, one a task, as an array [objective, seed, task]."""
    stacked: Array = np.stack([of.loc[[*shared], [*objectives]].to_numpy().T for of in frames], axis=-1)
    return stacked


def narrower(x: Quantity, y: Quantity) -> Rule:
    """Make the rule that the spread of the objectives' means is far smaller in x than in y."""

    def rule(of: Numbers) -> Judged | None:
        sides = [[of.frame(quantity, task) for task in of.tasks(quantity)] for quantity in (x, y)]
        if not all(sides):
            return None
        if of.is_printed:
            ratio = float(of.frame(x).iloc[0].std() / of.frame(y).iloc[0].std())
            return judge_all([effects.exact(filed.FAR - ratio, 0.0, **effects.OF_RATIO)])
        frames = [
            {slug: {*runs} for slug, runs in by_seed(frame).items()} for side in sides for frame in side
        ]
        whole = {
            slug: set.intersection(*(of_one.get(slug, set()) for of_one in frames)) for slug in frames[0]
        }
        usable = [slug for slug, of_one in whole.items() if len(of_one) >= LEAST_RUNS]
        shared = sorted(set.intersection(*(whole[slug] for slug in usable))) if usable else []
        noun, enough = ("shifted test set", filed.LEAST_SETS) if x is ROBUST else ("task", LEAST_TASKS)
        runs = min(map(len, filter(None, whole.values())), default=0)
        for count, least_count, what in (
            (sum(map(bool, whole.values())), LEAST_OBJECTIVES, "objective"),
            (len(shared) if len(usable) >= LEAST_OBJECTIVES else runs, LEAST_RUNS, "run"),
            (len(sides[0]), enough, noun),
            (len(sides[1]), LEAST_TASKS, "task"),
        ):
            if count < least_count:
                return not_judged("", too_few([count], least_count, what))
        of_x, of_y = (by_task(side, usable, shared) for side in sides)
        found = effects.of_ratio(of_x, of_y, of.tasks(x) == of.tasks(y), n=len(shared))
        if found is None:
            return not_judged("", f"No spread beyond chance in {y.name}, of which to take a share.")
        apart, effect = found
        lead = f"Spread {fixed(apart.of_x, 2)} points in {x.name}, {fixed(apart.of_y, 2)} in {y.name}"
        return judge_all([effect], lead=lead)

    return rule


def on_wide_grids(rule: Rule) -> Rule:
    """Make a rule on fine-tuned networks, which is not judged where fine-tuning's grid was too narrow."""

    def checked(of: Numbers) -> Judged | None:
        found = rule(of)
        if of.run is None or found is None or not found.judged:
            return found
        facts = {"setting": FRESH, **of.where}
        cells = [seeds(of.run, "fine_tuned_edges", "train", target=task, **facts) for task in of.run.targets]
        best, on_edge = (
            sum(each.shape[1] for each in cells),
            sum(int((each.max() > 0).sum()) for each in cells),
        )
        if on_edge <= filed.MOST_EDGES * best:
            return found
        why = f"Not judged: {on_edge} of {best} best cells lie on the edge of their grid, where a tenth may."
        return not_judged(found.numbers, why, found.effects)

    checked.__module__, checked.__qualname__ = rule.__module__, rule.__qualname__
    return checked


# Wholes.


def elsewhere(rule: Rule) -> Rule:
    """Make the rule that another rule holds in a second architecture."""

    def other(of: Numbers) -> Judged | None:
        place = of.elsewhere()
        return None if place is None else rule(place)

    return other


def regained(among: Sequence[str]) -> Rule:
    """Make the rule that these gain on softmax as in the paper where the final layer has its own decay.

    A mean gain counts from a share of the paper's mean gain, both in softmax's errors. The networks are those
    of the first arm whose recipe has a weight decay of the final layer's own, as all the paper's.
    """

    def rule(of: Numbers) -> Judged | None:
        if of.run is not None:
            recipes = {
                arm: of.run.grids(arm)[0].get("recipe", {}) for arm in of.run.arms if of.run.grids(arm)
            }
            arms = [arm for arm, recipe in recipes.items() if recipe.get("head_decay") is not None]
            if not arms:
                return None
            of = of.at(arms[0])
        runs = of.runs(ACCURACY)
        there = [slug for slug in among if slug in runs]
        if BASELINE not in runs or not there:
            return None
        paper, softmax, count = Numbers().frame(ACCURACY).iloc[0], runs[BASELINE], len(there)
        gain = float((paper[[*among]] - paper[BASELINE]).mean() / (100 - paper[BASELINE]))
        margin, weights = filed.REGAINED * gain * (100 - mean(softmax)), [1 / count] * count + [-1]
        effect = of.effect([*(runs[slug] for slug in there), softmax], weights, margin, unit=ACCURACY.unit)
        absent = missing(among, runs)
        why_not = f"Not measured, or diverged: {listed(absent)}." if absent else ""
        return judge_all([effect], lead=f"Mean of {counted(count, 'alternative')}", why_not=why_not)

    return rule


# Softmax and one other objective.


def other_of(run: Run) -> Objective | None:
    """Return the objective of a study that trains softmax and one other, and has nothing else."""
    objectives = run.objectives()
    has_given = any("given" in block for block in run.description.get("networks", ()))
    if len(objectives) != 2 or len(run.arms) > 1 or has_given:
        return None
    others = [each for each in objectives if each.slug != BASELINE]
    return others[0] if len(others) == 1 else None


def gain(of: Numbers, quantity: Quantity) -> Effect | None:
    """Return what the other objective of a pair has more than softmax, or None if either has no value."""
    other, runs = None if of.run is None else other_of(of.run), of.runs(quantity)
    if other is None or not {other.slug, BASELINE} <= {*runs}:
        return None
    unit = Unit("{}" if quantity.top == 1 else "{} points", quantity.unit.digits)
    margin, sides = least(quantity, runs[BASELINE]), (runs[other.slug], runs[BASELINE])
    return of.effect(sides, (1, -1), margin, unit=unit, name=quantity.name)


def better_in_both(transfer: Quantity) -> Rule:
    """Make the rule that the one objective beside softmax is above it in test accuracy and in transfer.

    Both gains have to be shown, so that neither is corrected; that one is ruled out is corrected for two.
    """

    def rule(of: Numbers) -> Judged | None:
        found = [effect for quantity in (ACCURACY, transfer) if (effect := gain(of, quantity))]
        return judge_all(found) if len(found) == 2 else None

    return rule


# Hidden layers between the penultimate features and the head, which are thrown away after training.


def by_depth(of: Numbers, quantity: Quantity, task: str = "") -> dict[int, Frame]:
    """Return a quantity at every depth [seed, objective without layers], of those that have any."""
    measured: dict[str, pd.Series] = {}
    for arm in ("", "projector", BEHIND_A_PROJECTOR):
        frame = of.at(arm).frame(quantity, task)
        slugs = {each.slug: each.spec for each in of.study.objectives(arm)}
        measured = {**{slugs[slug]: frame[slug].dropna() for slug in frame}, **measured}
    own = {(spec, depth): filed.behind(spec, depth) for spec in filed.DISCARDING for depth in filed.DEPTHS}
    return {
        depth: pd.DataFrame(
            {spec: measured[own[spec, depth]] for spec in filed.DISCARDING if own[spec, depth] in measured}
        )
        for depth in filed.DEPTHS
    }


def discarded(test: str, quantity: Quantity = LINEAR) -> Rule:
    """Make a rule on two layers thrown away: "gain" in transfer, less "spread", or no "loss" of accuracy."""

    def rule(of: Numbers) -> Judged | None:
        if of.run is None or BEHIND_A_PROJECTOR not in of.run.arms:
            return None
        found = by_depth(of, quantity)
        plain, deep = found[filed.DEPTHS[0]], found[filed.DEPTHS[-1]]
        if plain.empty or all(found[depth].empty for depth in filed.DEPTHS[1:]):
            return None
        whole = {at: frame for at, frame in found.items() if frame.shape[1] == len(filed.DISCARDING)}
        lead = listed([f"{fixed(of.dropna().mean().mean(), 2)} % at depth {at}" for at, of in whole.items()])
        lacking = [resolve(spec).label for spec in filed.DISCARDING if spec not in plain or spec not in deep]
        if lacking:
            return not_judged(lead, f"Not measured at some depth, or diverged: {listed(lacking)}.")
        softmax = by_seed(plain)[BASELINE]
        margin = least(quantity, softmax)
        if test == "spread":
            return _spread_of_depths(of, quantity, (plain, deep), margin)
        if test == "loss":
            sides, shown = (plain[[BASELINE]], deep), {"denied": True, "sign": -1}
            lead = f"Softmax with no layer thrown away {fixed(mean(softmax), 2)} %; {lead}"
        else:
            sides, shown = (deep, plain), {}
        groups = [runs for side in sides for runs in by_seed(side).values()]
        weights = [sign / side.shape[1] for side, sign in zip(sides, (1, -1), strict=True) for _ in side]
        return judge_all([of.effect(groups, weights, margin, unit=quantity.unit, **shown)], lead=lead)

    return rule


def _spread_of_depths(of: Numbers, quantity: Quantity, sides: Sequence[Frame], margin: float) -> Judged:
    """Return the fall of the objectives' spread in transfer from no layer thrown away to two."""
    tasks = [by_depth(of, quantity, task) for task in of.tasks(quantity)]
    by_side = [[task[depth] for task in tasks] for depth in (filed.DEPTHS[0], filed.DEPTHS[-1])]
    whole = [frame.dropna().index for of_side in ([*sides], *by_side) for frame in of_side]
    shared = sorted(set.intersection(*map(set, whole)))
    for count, enough, noun in ((len(tasks), LEAST_TASKS, "task"), (len(shared), LEAST_RUNS, "run")):
        if count < enough:
            return not_judged("", too_few([count], enough, noun))
    plain, deep = (by_task(of_side, filed.DISCARDING, shared) for of_side in by_side)
    apart = effects.spreads(deep, plain, True)
    falls = np.sqrt(apart.drawn_y) - np.sqrt(apart.drawn_x)
    facts = {"n": len(shared), "unit": Unit("{} points of spread in transfer"), "sign": -1}
    lead = f"Spread {fixed(apart.of_y, 2)} points with no layer thrown away, {fixed(apart.of_x, 2)} with two"
    return judge_all([effects.of_resamples(apart.of_y - apart.of_x, falls, margin, **facts)], lead=lead)
