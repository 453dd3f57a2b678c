"""The kinds of rule: functions that make a rule, which judges the numbers of a run or of the paper.

A rule returns the effects that it tests, or None if what it asks for was not measured. Objectives are
compared within seeds, since a seed is a draw of the data that all share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from penultimate import specs
from penultimate.data.catalog import SHARES
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import COMBINATIONS, COSINE_DECAY, ONE_DRAW, SWEEP
from penultimate.paper.claims.effects import corrected, of_ranks, of_trend, rho_over_seeds
from penultimate.paper.claims.evidence import (
    ACCURACY,
    ALTERNATIVES,
    BASELINE,
    FALL,
    FRESH,
    GAP,
    LABELS,
    LINEAR,
    RELEARNED,
    SEPARATION,
    SNAPSHOTS,
    Evidence,
    Quantity,
    in_order,
    least,
    shots_of,
    trained_here,
)
from penultimate.paper.claims.margins import (
    FAR,
    LEAST_CONTRAST,
    LEAST_GAIN,
    LEAST_OBJECTIVES,
    LEAST_TEMPERATURES,
    LITTLE,
    PLATEAU,
)
from penultimate.paper.claims.trials import (
    MEAN_RHO,
    RHO,
    Judged,
    Trial,
    Trials,
    Unit,
    alone,
    refused,
    too_few,
    too_few_runs,
)
from penultimate.results.means import printed
from penultimate.results.rows import Run, both, epochs, pairs
from penultimate.results.text import counted, fixed, listed
from penultimate.statistics import spearman

if TYPE_CHECKING:
    from penultimate.paper.claims.evidence import Frame, Runs

Rule: TypeAlias = "Callable[[Evidence], Trials | Judged | None]"
Sides: TypeAlias = Mapping[str, Sequence[tuple[int, bool]]]
"""The differences of each alternative from softmax that are tested: the sign, and whether they are denied."""
LOWER, HIGHER, NOT_HIGHER = ((-1, False),), ((1, False),), ((1, True),)
CKA = Unit("{} of CKA", 3)
MISPRINT = 76.0
"""A printed combination below this is a failed run or a misprint (NOTES.md): its neighbours are 5 above."""


def _label(slug: str) -> str:
    return PRESETS[slug].label


# Softmax and the alternatives.


def compared(
    of: Evidence, quantity: Quantity, sides: Sides, share: float = LEAST_GAIN, task: str = ""
) -> Trials | None:
    """Return the differences of alternatives from softmax; `share` is the share of its errors that counts."""
    softmax, alternatives = of.beside_softmax(quantity, task)
    present = {slug: alternatives[slug] for slug in sides if slug in alternatives}
    if softmax is None or not present:
        return None
    margin, unit, trials = least(quantity, softmax, share), quantity.unit, list[Trial]()
    for slug, runs in present.items():
        either = unit.text.format(f"±{fixed(margin, unit.digits)}") + " or beyond"
        for sign, denied in sides[slug]:
            effect, count = of.effect((runs, softmax), (sign, -sign), margin)
            words = either if len(sides[slug]) > 1 else ""
            trials.append(Trial(effect, unit, _label(slug), denied, sign, count, words))
    level = f"R² {fixed(softmax.mean(), 3)}" if quantity.top == 1 else f"{fixed(softmax.mean(), 1)} %"
    return Trials(
        {"": trials},
        lead=f"Softmax {level}",
        absent=[_label(slug) for slug in sides if slug not in present],
    )


def better(quantity: Quantity, objective: str) -> Rule:
    """Make the rule that the objective's mean is above softmax's, corrected for being one of several."""

    def rule(of: Evidence) -> Trials | None:
        family = compared(of, quantity, dict.fromkeys(ALTERNATIVES, HIGHER))
        own = [each for each in family.every if each.name == _label(objective)] if family else []
        if not family or not own:
            label = _label(objective)
            gone = of.run is not None and objective in _diverged(of.run)
            return refused("–", f"No run of {label} is left: all diverged.") if gone else None
        tested = {each.name: each.effect for each in family.every if _is_tested(of, each)}
        effect = corrected(tested).get(own[0].name, own[0].effect)
        return alone(replace(own[0], effect=effect, name=""))

    return rule


def _is_tested(of: Evidence, trial: Trial) -> bool:
    return trial.is_tested and of.is_enough(trial.runs)


def _diverged(run: Run) -> list[str]:
    gone = run.frame[(run.frame["status"] == "diverged") & run.frame["arm"].isna()]["objective"]
    return [str(slug) for slug in run.slugs(gone.dropna().drop_duplicates())]


def best_of_all(quantity: Quantity, sign: int = 1, among: Sequence[str] = ALTERNATIVES) -> Rule:
    """Make the rule that softmax's mean is above (or below: -1) that of each of these objectives."""
    return lambda of: compared(of, quantity, dict.fromkeys(among, LOWER if sign > 0 else HIGHER))


def unbeaten(quantity: Quantity) -> Rule:
    """Make the rule that no alternative's mean is above softmax's."""
    return lambda of: compared(of, quantity, dict.fromkeys(ALTERNATIVES, NOT_HIGHER))


def only(quantity: Quantity, objectives: Sequence[str]) -> Rule:
    """Make the rule that the means of these objectives, and of no other alternative, are above softmax's."""
    sides = {**dict.fromkeys(ALTERNATIVES, NOT_HIGHER), **dict.fromkeys(objectives, HIGHER)}
    return lambda of: compared(of, quantity, sides)


def alike(quantity: Quantity) -> Rule:
    """Make the rule that no alternative is much better or worse than softmax: an equivalence test of each."""
    return lambda of: compared(of, quantity, dict.fromkeys(ALTERNATIVES, ((1, True), (-1, True))), LITTLE)


def some_better(tasks: Sequence[str]) -> Rule:
    """Make the rule that on the first of these tasks some objective that separates further beats softmax."""

    def rule(of: Evidence) -> Trials | None:
        task = next((one for one in tasks if one in of.tasks(LINEAR)), "")
        softmax, others = of.beside_softmax(SEPARATION)
        if not task or softmax is None:
            return None
        further = [slug for slug, runs in others.items() if runs.mean() > softmax.mean()]
        found = compared(of, LINEAR, dict.fromkeys(further, NOT_HIGHER), task=task)
        return replace(found, any_of=True, absent=()) if found else None

    return rule


def best_for_most(quantity: Quantity, share: float = 0.0) -> Rule:
    """Make the rule that softmax is above every alternative on this share of tasks, by default on most.

    To hold, as many must pass as are needed: with u of T, p_(u) (T - u + 1) <= a over their own p, each an
    intersection over alternatives. To fail, T - u + 1 of them must, likewise.

    Benjamini and Heller, 2008.
    """
    noun = {LABELS: "label", SNAPSHOTS: "snapshot"}.get(quantity, "task")

    def rule(of: Evidence) -> Trials | None:
        tasks = of.tasks(quantity)
        found = {
            task: compared(of, quantity, dict.fromkeys(ALTERNATIVES, LOWER), task=task) for task in tasks
        }
        by_task = {task: one for task, one in found.items() if one is not None}
        if not by_task or len(by_task) < len(found):
            return None
        total = len(by_task)
        needed = math.ceil(round(share * total, 3)) if share else total // 2 + 1
        best = tied = 0
        for task in by_task:
            softmax, others = of.beside_softmax(quantity, task)
            assert softmax is not None
            # To a millionth of a point, so that ties stay ties in a kept study with nine digits.
            means = [round(float(runs.mean()), 6) for runs in (softmax, *others.values())]
            best += means[0] == max(means)
            tied += means[0] == max(means) and means.count(means[0]) > 1
        lead = f"Softmax best on {best} of {total} {noun}s{f' (tied on {tied})' if tied else ''}"
        return Trials(
            {task: one.every for task, one in by_task.items()},
            needed,
            lead=lead,
            of_groups=noun,
            absent=() if share else next(iter(by_task.values())).absent,
        )

    return rule


def below(quantity: Quantity, limit: float, objectives: Sequence[str]) -> Rule:
    """Make the rule that the mean of each of these objectives is below a limit."""
    unit = Unit("{} % of activations", 1, has_sign=False)

    def rule(of: Evidence) -> Trials | None:
        _, runs = of.beside_softmax(quantity)
        trials = []
        for slug in (slug for slug in objectives if slug in runs):
            effect, count = of.effect((limit - runs[slug],), (1,))
            trials.append(Trial(effect, unit, _label(slug), sign=-1, runs=count, offset=limit))
        absent = [_label(slug) for slug in objectives if slug not in runs]
        return Trials({"": trials}, absent=absent) if trials else None

    return rule


def adds(arm: str) -> Rule:
    """Make the rule that in an arm alternatives beat softmax there, and themselves outside."""

    def rule(of: Evidence) -> Trials | None:
        softmax, inside = of.at(arm).beside_softmax(ACCURACY)
        _, outside = of.beside_softmax(ACCURACY)
        trials = []
        for slug, runs in inside.items():
            if softmax is None or slug not in outside:
                continue
            margin = least(ACCURACY, softmax)
            for words, other in (
                ("on softmax, augmented too", softmax),
                ("on itself without", outside[slug]),
            ):
                effect, count = of.effect((runs, other), (1, -1), margin)
                trials.append(Trial(effect, ACCURACY.unit, f"{_label(slug)} {words}", runs=count))
        return Trials({"": trials}) if trials else None

    return rule


def no_single_best(of: Evidence) -> Trials | None:
    """Judge that every objective is beaten by another one on some benchmark."""
    benchmarks = _benchmarks(of)
    groups, best = dict[str, list[Trial]](), []
    for title, frame in benchmarks.items():
        runs = {label: frame[label].dropna() for label in frame}
        margin = least(ACCURACY, runs.get(_label(BASELINE), next(iter(runs.values()))))
        best.append(f"Best on {title}: {frame.mean().idxmax()}")
        for label, rival in itertools.permutations(runs, 2):
            effect, count = of.effect((runs[rival], runs[label]), (1, -1), margin)
            trial = Trial(effect, ACCURACY.unit, f"{rival} on {title}", True, runs=count)
            groups.setdefault(label, []).append(trial)
    if not groups:
        return None
    return Trials(groups, len(groups), True, "; ".join(best), of_groups="objective")


def _benchmarks(of: Evidence) -> dict[str, Frame]:
    """Return the accuracies of all objectives, by their labels, on each benchmark."""
    if of.run is None:
        table = printed("iclr_table1_accuracy")
        columns = {"ImageNet": "imagenet", "CIFAR-10": "cifar10", "CIFAR-100": "cifar100"}
        return {
            title: table[f"{name}_top1_percent"].to_frame().T.set_axis([0]).rename(columns=_label)
            for title, name in columns.items()
        }
    run = of.run
    found = {}
    for backbone in run.further:
        frame = replace(of, arm=COSINE_DECAY, backbone=backbone).frame(ACCURACY)
        if not frame.empty:
            found[backbone] = frame.rename(columns=run.labels(COSINE_DECAY))
    return {run.title: of.frame(ACCURACY).rename(columns=run.labels()), **found} if found else {}


# Orders of objectives, and of temperatures.


def ranked(x: Quantity, y: Quantity, sign: int, denied: bool = False) -> Rule:
    """Make the rule that x and y rank the objectives alike (1) or oppositely (-1); 0 or `denied`: not so.

    A seed is a draw of the world. If all that are ranked have enough seeds in common, only these count, so
    that no mean is lower because of a harder draw.
    """
    signs, denied = (sign,) if sign else (1, -1), denied or not sign

    def rule(of: Evidence) -> Trials | None:
        sides = both(of.frame(x), of.frame(y))
        if sides[0].empty:
            return None
        enough = [slug for slug, count in sides[0].count().items() if of.is_enough(count)]
        chosen = enough if len(enough) >= LEAST_OBJECTIVES else [*sides[0]]
        of_x, of_y = _balanced(of, *(side[chosen] for side in sides))
        counts = of_x.count().tolist()
        over_seeds = rho_over_seeds(of_x, of_y) if min(counts) > 1 else None
        means = of_x.mean().round(12).tolist(), of_y.mean().round(12).tolist()
        trials = []
        for one in signs:
            effect = of_ranks(*means, one, over_seeds)
            if effect is None:
                few = f"{counted(len(chosen), 'objective')}, or all alike; {LEAST_OBJECTIVES} are needed"
                return refused("–", f"No rank correlation: {few}.")
            words = f"ρ = ±{fixed(effect.margin, 2)} or beyond" if len(signs) > 1 else ""
            trials.append(Trial(effect, RHO, "", denied, one, len(chosen), words))
        refusal = "" if len(enough) >= LEAST_OBJECTIVES else too_few_runs(counts)
        if sides[0].shape[1] < LEAST_OBJECTIVES:
            refusal = too_few(sides[0].shape[1], LEAST_OBJECTIVES, "objective")
        remark = (
            f" Left out for too few runs: {listed(left)}." if (left := _without(of, sides[0], chosen)) else ""
        )
        if of.run and {x, y} & {RELEARNED, GAP}:
            remark += f" Relearned from {shots_of(of)} images of each class."
        return Trials({"": trials}, refusal=refusal, remark=remark)

    return rule


def _balanced(of: Evidence, x: Frame, y: Frame) -> tuple[Frame, Frame]:
    """Return the runs of the seeds that all have in common if these are enough, and otherwise all runs."""
    kept = x.dropna().index
    return (x.loc[kept], y.loc[kept]) if len(kept) and of.is_enough(len(kept)) else (x, y)


def _without(of: Evidence, frame: Frame, chosen: Sequence[str]) -> list[str]:
    return [of.study.labels(of.arm)[slug] for slug in frame if slug not in chosen] if of.run else []


def trend(quantity: Quantity, sign: int) -> Rule:
    """Make the rule that a quantity rises (1) or falls (-1) with temperature, within seeds (Page's test)."""

    def rule(of: Evidence) -> Trials | None:
        frame, names = _by_temperature(of, quantity)
        if frame.empty:
            return None
        noun = counted(len(names), "temperature")
        whole = frame.dropna()
        if of.is_printed:
            effect, runs = of_ranks([float(name) for name in frame], frame.iloc[0].tolist(), sign), len(names)
        else:
            effect, runs = (of_trend(whole.to_numpy().tolist(), sign) if len(whole) else None), len(whole)
        if effect is None:
            why = f"No trend: {noun}, or all alike, or no seed has all; {LEAST_TEMPERATURES} are needed."
            return refused("–", why)
        few = len(names) < LEAST_TEMPERATURES
        return alone(
            Trial(effect, MEAN_RHO if len(whole) > 1 else RHO, sign=sign, runs=runs),
            refusal=too_few(len(names), LEAST_TEMPERATURES, "temperature") if few else "",
        )

    return rule


def _by_temperature(of: Evidence, quantity: Quantity) -> tuple[Frame, list[str]]:
    """Return the frame of the sweep in ascending order of its temperatures, and their names."""
    frame = of.at(SWEEP).frame(quantity)
    values = {name: float(name) for name in frame} if of.run is None else of.run.temperatures(SWEEP)
    kept = [slug for slug in values if slug in frame]
    return frame[kept] if kept else frame.iloc[:0], [f"τ = {values[slug]:g}" for slug in kept]


def levels(quantity: Quantity) -> Rule:
    """Make the rule that the mean A rises up to the middle temperature and is level above it.

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. The claim holds if all bounds are met, uncorrected; it fails if
    one is broken, corrected.
    """

    def rule(of: Evidence) -> Trials | None:
        frame, names = _by_temperature(of, quantity)
        if frame.empty:
            return None
        groups = [frame[slug].dropna() for slug in frame]
        middle, trials, runs = (len(groups) - 1) // 2, [], 0
        for upper in range(middle + 1, len(groups)):
            for side in (1, -1):
                weights = [0.0] * len(groups)
                weights[0], weights[middle], weights[upper] = -PLATEAU, PLATEAU + side, -side
                words = f"a change by less than {PLATEAU:.0%} of the gain below {names[middle]}"
                effect, runs = of.effect(groups, weights)
                trials.append(Trial(effect, RHO, names[upper], runs=runs, least=words))
        means = [f"{fixed(group.mean(), 1)} % at {name}" for group, name in zip(groups, names, strict=True)]
        few = len(groups) < LEAST_TEMPERATURES
        refusal = too_few(len(groups), LEAST_TEMPERATURES, "temperature") if few else ""
        lead = ", ".join(dict.fromkeys((means[0], means[middle], means[-1])))
        return _told(Trials({"": trials}, lead=lead, refusal=refusal))

    return rule


def _told(trials: Trials) -> Trials:
    """Return trials whose lead has the numbers already."""
    return replace(trials, tells=False)


# A number for each seed.

Numbers: TypeAlias = "Callable[[Evidence], tuple[Runs, float] | None]"
"""Returns the number of each seed, and the smallest mean that counts."""


def positive(numbers: Numbers, unit: Unit) -> Rule:
    """Make the rule that the mean over seeds of some number is above zero."""

    def rule(of: Evidence) -> Trials | None:
        found = numbers(of)
        if found is None or not len(found[0]):
            return None
        effect, runs = of.effect((found[0],), (1,), found[1])
        return alone(Trial(effect, unit, runs=runs))

    return rule


def softmax_falls(of: Evidence) -> tuple[Runs, float] | None:
    """Return how far softmax's R² ends below its peak."""
    values, (softmax, _) = of.beside_softmax(FALL)[0], of.beside_softmax(SEPARATION)
    return None if values is None or softmax is None else (values, least(SEPARATION, softmax))


def none_falls(of: Evidence) -> Trials | None:
    """Judge that the R² of no alternative ends below its peak."""
    softmax, _ = of.beside_softmax(SEPARATION)
    _, values = of.beside_softmax(FALL)
    if not values or softmax is None:
        return None
    trials = []
    for slug, runs in values.items():
        effect, count = of.effect((runs,), (1,), least(SEPARATION, softmax))
        trials.append(Trial(effect, FALL.unit, _label(slug), True, runs=count))
    return Trials({"": trials})


def shared_slope(of: Evidence) -> tuple[Runs, float] | None:
    """Return, for each seed, the slope of the tasks' rho (R² with transfer) over their shares of classes.

    The share is that of a task's classes that pretraining has. Left out are, for each seed, tasks on which
    all transfer alike.
    """
    import pandas as pd

    separation = of.frame(SEPARATION)
    separation = separation if of.is_printed else trained_here(separation).dropna(axis=1, how="all")
    tasks = {task: of.frame(LINEAR, task) for task in of.tasks(LINEAR)}
    shares = {**_shares(), "newfaces": 1.0, **SHARES}
    if len({shares.get(task, 0.0) for task in tasks}) < 2 or separation.shape[1] < 3:
        return None
    slopes = {}
    for seed in separation.dropna().index:
        rows = {task: _row(frame, seed, [*separation]) for task, frame in tasks.items()}
        if any(row is None for row in rows.values()):
            continue
        across = separation.loc[seed].tolist()
        slope = slope_over(
            [
                (shares.get(task, 0.0), spearman(across, row, exact=False).rho)
                for task, row in rows.items()
                if row is not None
            ]
        )
        if not math.isnan(slope):
            slopes[seed] = slope
    return pd.Series(slopes, dtype=float), LEAST_CONTRAST


def _row(frame: Frame, seed: object, columns: list[str]) -> list[float] | None:
    if seed not in frame.index or not {*columns} <= {*frame}:
        return None
    row = frame.loc[seed, columns]
    return None if row.isna().any() else row.tolist()


def _shares() -> dict[str, float]:
    table = printed("neurips_tableF1_class_overlap")
    return dict(table["semantic_class_overlap_classes"].div(table["classes"]))


def slope_over(points: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of points (share, rho); without a rho, a point is left out.

    If tasks share all of their classes or none, it is the difference of two means; if all share alike, NaN.

    >>> slope_over([(1.0, -0.5), (0.5, -0.75), (0.0, -1.0), (0.0, math.nan)])
    0.5
    """
    from statistics import linear_regression

    kept = [(share, rho) for share, rho in points if not math.isnan(rho)]
    if len({share for share, _ in kept}) < 2:
        return math.nan
    return linear_regression([share for share, _ in kept], [rho for _, rho in kept]).slope


def layers_move(of: Evidence) -> tuple[Runs, float] | None:
    """Return by how much fine-tuning leaves softmax's first third of layers more alike (CKA) than its last.

    It is the mean over the tasks, of each network that has all of them.
    """
    if of.run is None:
        return None
    frames = []
    for target in of.run.targets:
        rows = of.run.rows("fine_tuned_cka", target=target, arm=of.arm, backbone=of.backbone, about="all")
        rows = rows[(rows["setting"] == FRESH) & rows["layer"].notna() & (rows["objective"] == BASELINE)]
        if len(rows):
            frame = rows.assign(layer=rows["layer"].astype(str)).pivot(
                index="seed", columns="layer", values="value"
            )
            frame = frame[in_order(of.run, frame)]
            third = frame.shape[1] // 3
            frames.append(frame.iloc[:, :third].mean(axis=1) - frame.iloc[:, -third:].mean(axis=1))
    return (sum(frames) / len(frames), LEAST_GAIN) if frames else None


def only_accuracy(arm: str) -> Rule:
    """Make the rule that in this arm accuracy is higher than in the main one, and separation unchanged."""

    def rule(of: Evidence) -> Trials | None:
        plain, other = (
            [at.frame(quantity) for quantity in (ACCURACY, SEPARATION)] for at in (of, of.at(arm))
        )
        slugs = [slug for slug in other[0] if all(slug in frame for frame in (*plain, *other))]
        if not slugs:
            return None
        gain, change = (
            (after[slugs] - before[slugs]).dropna().mean(axis=1)
            for before, after in zip(plain, other, strict=True)
        )
        seeds = gain.index.intersection(change.index)
        gain, change = gain[seeds], change[seeds]
        if len(slugs) < 2:
            return refused("–", "One objective has no spread of R², of which to take a share.")
        baseline = plain[0][BASELINE if BASELINE in plain[0] else slugs[0]].dropna()
        spread = float(plain[1][slugs].mean().std())
        margin, unit = FAR * spread, SEPARATION.unit
        either = unit.text.format(f"±{fixed(margin, 3)}") + " or beyond"
        effect, runs = of.effect((gain,), (1,), least(ACCURACY, baseline))
        trials = [Trial(effect, ACCURACY.unit, "Accuracy", runs=runs)]
        for sign in (1, -1):
            effect, runs = of.effect((change,), (sign,), margin)
            trials.append(Trial(effect, unit, "Separation", True, sign, runs, either))
        return Trials(
            {"": trials}, lead=f"{counted(len(slugs), 'objective')} with a spread of R² of {fixed(spread, 3)}"
        )

    return rule


def no_sum(of: Evidence) -> Trials | None:
    """Judge that combined objectives are no better than the better of their parts, in the mean."""
    softmax, wholes = _combinations(of)
    if not wholes or softmax is None:
        return None
    seeds = [
        seed
        for seed in wholes[0][1].index
        if all(seed in runs.index for _, whole, parts in wholes for runs in (whole, *parts))
    ]
    if not seeds:
        return refused(counted(len(wholes), "combination"), "No seed has all combinations and their parts.")
    gains = {
        label: on_better(whole[seeds], [part[seeds] for part in parts]) for label, whole, parts in wholes
    }
    mean = sum(gains.values()) / len(gains)
    effect, runs = of.effect((mean,), (1,), least(ACCURACY, softmax))
    unit = Unit("{} points of holdout accuracy")
    return alone(
        Trial(effect, unit, denied=True, runs=runs), f"Mean of {counted(len(wholes), 'combination')}"
    )


def on_better(whole: Runs, parts: Sequence[Runs]) -> Runs:
    """Return, for each seed, the combination less the part that is best in the mean of the other seeds."""
    import pandas as pd

    gains = {}
    for seed in whole.index:
        others = whole.index.drop(seed) if len(whole) > 1 else whole.index
        better = max(parts, key=lambda part: float(part[others].mean()))
        gains[seed] = whole[seed] - better[seed]
    return pd.Series(gains)


def _combinations(of: Evidence) -> tuple[Runs | None, list[tuple[str, Runs, list[Runs]]]]:
    """Return softmax's best holdout accuracies, and those of combinations with those of their parts."""
    if of.run is None:
        return _printed_combinations()
    run, grids = of.run, [of.run.grids(arm) for arm in ("", COMBINATIONS)]
    combined, single = (_best_epochs(run, arm) for arm in (COMBINATIONS, ""))
    recipes = [of_arm[0].get("recipe") if of_arm else None for of_arm in grids]
    terms = {each.slug: _terms(each.spec) for arm in ("", COMBINATIONS) for each in run.objectives(arm)}
    alone_ = {terms[slug]: single[slug].dropna() for slug in single if len(terms[slug]) < 2}
    labels, wholes = run.labels(COMBINATIONS), []
    for slug in combined if recipes[0] == recipes[1] else ():
        parts = [alone_[part] for term in sorted(terms[slug]) if (part := frozenset({term})) in alone_]
        if 1 < len(terms[slug]) == len(parts):
            wholes.append((labels[slug], combined[slug].dropna(), parts))
    return alone_.get(frozenset()), wholes


def _best_epochs(run: Run, arm: str) -> Frame:
    """Return the highest holdout accuracy of each run [seed, objective]."""
    best: Frame = epochs(run, "top1", "holdout", arm=arm, scale=100.0).max().unstack(level=0)
    return best


def _terms(spec: str) -> frozenset[str]:
    """Return the parts of an objective without softmax; none for a given network."""
    try:
        return frozenset(str(term) for term in specs.parse_sum(spec) if term.name != BASELINE)
    except RequestError:
        return frozenset()


def _printed_combinations() -> tuple[Runs, list[tuple[str, Runs, list[Runs]]]]:
    import pandas as pd

    texts = printed("neurips_tableC4_combinations", numbers=False)
    found = {
        (base, row["added_regularizer"], row["regularizer_value"]): float(row["holdout_top1_percent"])
        for base, row in texts.iterrows()
    }
    wholes = []
    for (base, added, strength), value in found.items():
        parts = [found.get((base, "none", "")), found.get((BASELINE, added, strength))]
        if base != BASELINE and added != "none" and None not in parts and value > MISPRINT:
            label = f"{_label(base)} and {_label(added)}"
            wholes.append((label, pd.Series([value]), [pd.Series([part]) for part in parts]))
    return pd.Series([found[BASELINE, "none", ""]]), wholes


# Pairs of networks.


def _pairs(of: Evidence, metric: str) -> Frame | None:
    """Return the rows of two networks, of the arm that has one draw of the images if there is one."""
    if of.run is None:
        return None
    arm = ONE_DRAW if ONE_DRAW in of.run.arms else of.arm
    found = pairs(of.run, metric, arm=arm, backbone=of.backbone)
    return found if len(found) else None


def _apart(found: Frame) -> Frame:
    """Return the pairs of networks of different seeds that were trained here."""
    return found[found["seed"].notna() & found["seed_b"].notna() & (found["seed"] != found["seed_b"])]


def kinship(of: Evidence) -> tuple[Runs, float] | None:
    """Return how much more alike networks of one objective err than of two, in per cent, for each seed."""
    found = _pairs(of, "agreement_same_when_both_wrong")
    if found is None:
        return None
    gains, others = kin(_apart(found))
    return 100 * gains, LEAST_GAIN * (100 - 100 * others)


def kin(found: Frame) -> tuple[Runs, float]:
    """Return how much more alike two networks of one objective are than two of different objectives.

    The difference of the two means over pairs is m. Since a seed is in many pairs, the result for each seed
    is the jackknife's pseudo-value n m - (n - 1) m', where m' leaves that seed out; for two seeds it is m
    itself, without a spread. There are no values if either kind of pair is missing, also without a seed. The
    second result is the mean likeness of networks of different objectives.

    Arvesen, 1969.
    """
    import pandas as pd

    same = found["objective"] == found["objective_b"]
    seeds = sorted({*found["seed"], *found["seed_b"]})

    def gain(without: object) -> float:
        kept = (found["seed"] != without) & (found["seed_b"] != without)
        return float(found.loc[kept & same, "value"].mean() - found.loc[kept & ~same, "value"].mean())

    n, whole = len(seeds), gain(None)
    left = {seed: gain(seed) if n > 2 else whole for seed in seeds}
    others = float(found.loc[~same, "value"].mean())
    if any(map(math.isnan, left.values())):
        return pd.Series(dtype=float), others
    return pd.Series({seed: n * whole - (n - 1) * one for seed, one in left.items()}), others


def last_layers(of: Evidence) -> Trials | None:
    """Judge that networks of one objective are more alike than of two in the last layers alone."""
    found = _pairs(of, "cka")
    if found is None or of.run is None:
        return None
    found = _apart(found[found["layer"].notna() & (found["layer"] == found["layer_b"])])
    by_layer = {name: found[found["layer"] == name] for name in in_order(of.run, found["layer"].unique())}
    same = found[found["objective"] == found["objective_b"]]
    objectives = sorted({*same["objective"]})
    if len(by_layer) < 3 or not objectives:
        return None
    extent = counted(len(objectives), "objective")
    if len(objectives) < LEAST_OBJECTIVES:
        few = too_few(len(objectives), LEAST_OBJECTIVES, "objective")
        return refused(f"{extent}, {counted(len(by_layer), 'layer')}", few)
    third = len(by_layer) // 3
    names = [*by_layer][:third], [*by_layer][-third:]

    def likeness(layer: str, among: Sequence[str]) -> tuple[float, float]:
        rows = by_layer[layer]
        kept = rows[rows["objective"].isin(among) & rows["objective_b"].isin(among)]
        own = kept["objective"] == kept["objective_b"]
        return float(kept.loc[own, "value"].mean()), float(kept.loc[~own, "value"].mean())

    def gap(of_layers: Sequence[str]) -> Callable[[Sequence[str]], float]:
        def between(among: Sequence[str]) -> float:
            sides = [likeness(layer, among) for layer in of_layers]
            return math.fsum(one - other for one, other in sides) / len(of_layers)

        return between

    of_first, of_last = (jackknife(gap(of_layers), objectives) for of_layers in names)
    others = math.fsum(likeness(layer, objectives)[1] for layer in names[1]) / third
    margin, runs = LEAST_GAIN * (1 - others), len(objectives)
    of_both, _ = of.effect((of_last, of_first), (FAR, -1))
    shown, last = (of.effect((values,), (1,), margin)[0] for values in (of_first, of_last))
    words = f"a difference below {FAR:g} of that in the last layers"
    labels = [listed(of_layers) for of_layers in names]
    trials = (Trial(last, CKA, labels[1], runs=runs), Trial(of_both, CKA, labels[0], runs=runs, least=words))
    lead = (
        f"CKA within less between objectives {Trial(shown, CKA).text} in {labels[0]},"
        f" {Trial(last, CKA).text} in {labels[1]}"
    )
    return _told(Trials({"": trials}, lead=lead))


def jackknife(gap: Callable[[Sequence[str]], float], objectives: Sequence[str]) -> Runs:
    """Return the pseudo-values n m - (n - 1) m' of the objectives, of which the gap m' leaves out one."""
    import pandas as pd

    n, whole = len(objectives), gap(objectives)
    return pd.Series(
        [n * whole - (n - 1) * gap([other for other in objectives if other != left]) for left in objectives]
    )


def no_mixture(of: Evidence) -> Trials | None:
    """Judge that ensembles of two objectives are no better than the better of these alone, in the mean."""
    found = _pairs(of, "ensemble_top1")
    softmax, _ = of.beside_softmax(ACCURACY)
    if found is None or softmax is None:
        return None
    sizes = found["setting"].map(lambda text: int(str(text).partition("models=")[2] or 0))
    mixed = found["objective"] != found["objective_b"]
    found = found[sizes == (sizes[mixed] if mixed.any() else sizes).max()]
    place = {slug: number for number, slug in enumerate(of.study.labels(ONE_DRAW, ""))}
    values = {
        tuple(sorted((row.objective, row.objective_b), key=lambda slug: place[slug])): 100 * row.value
        for row in found.itertuples()
    }
    objectives = [slug for slug in place if (slug, slug) in values]
    mixtures = {pair: v for pair, v in values.items() if pair[0] != pair[1] and {*pair} <= {*objectives}}
    if not mixtures:
        return None
    extent = f"Mean of {counted(len(mixtures), 'mixture')} of {counted(len(objectives), 'objective')}"
    if len(objectives) < LEAST_OBJECTIVES:
        return refused(extent, too_few(len(objectives), LEAST_OBJECTIVES, "objective"))

    def gain(among: Sequence[str]) -> float:
        gains = [
            value - max(values[a, a], values[b, b])
            for (a, b), value in mixtures.items()
            if {a, b} <= {*among}
        ]
        return math.fsum(gains) / len(gains)

    effect, runs = of.effect((jackknife(gain, objectives),), (1,), least(ACCURACY, softmax))
    return alone(Trial(effect, ACCURACY.unit, denied=True, runs=runs), extent)


# Wholes.


def elsewhere(rule: Rule) -> Rule:
    """Make the rule that another rule holds in a second architecture."""

    def other(of: Evidence) -> Trials | Judged | None:
        place = of.elsewhere()
        return None if place is None else rule(place)

    return other


def regained(among: Sequence[str], share: float) -> Rule:
    """Make the rule that these gain on softmax as in the paper where the final layer has its own decay.

    `share` is the share of the paper's mean gain, in softmax's errors, from which a mean gain counts.
    """

    def rule(of: Evidence) -> Trials | None:
        own = _with_own_decay(of)
        softmax, runs = own.beside_softmax(ACCURACY) if own else (None, {})
        there = [runs[slug] for slug in among if slug in runs]
        if own is None or softmax is None or not there:
            return None
        paper = Evidence().frame(ACCURACY).iloc[0]
        gain = float((paper[[*among]] - paper[BASELINE]).mean() / (100 - paper[BASELINE]))
        margin, count = share * gain * (100 - float(softmax.mean())), len(there)
        effect, seeds = own.effect([*there, softmax], [1 / count] * count + [-1], margin)
        absent = [_label(slug) for slug in among if slug not in runs]
        refusal = f"Not measured, or diverged: {listed(absent)}." if absent else ""
        lead = f"Mean of {counted(count, 'alternative')}"
        return alone(Trial(effect, ACCURACY.unit, runs=seeds), lead, refusal)

    return rule


def _with_own_decay(of: Evidence) -> Evidence | None:
    """Return the first arm whose recipe has a weight decay of the final layer's own, as all the paper's."""
    if of.run is None:
        return of
    for arm in of.run.arms:
        grids = of.run.grids(arm)
        if grids and grids[0].get("recipe", {}).get("head_decay") is not None:
            return of.at(arm)
    return None
