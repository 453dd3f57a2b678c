"""Claims that nothing changes: fine-tuned accuracy, R² under augmentation, combinations of objectives.

Each needs a test of equivalence: it holds if a change that counts is excluded, not if none is found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import median, stdev

from penultimate.objectives.presets import PRESETS
from penultimate.paper import published
from penultimate.paper.arms import COMBINATIONS
from penultimate.paper.claims.aspects import ELSEWHERE, NAMES
from penultimate.paper.claims.comparisons import AgainstSoftmax, compare, least_difference
from penultimate.paper.claims.criteria import Criteria, Criterion, FurtherCriteria
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    all_of,
    common_seeds,
    difference,
    each,
)
from penultimate.paper.claims.evidence import (
    BASELINE,
    Assessment,
    Evidence,
    not_judged,
    of_all_alternatives,
    paper,
    unmeasured,
)
from penultimate.paper.claims.rules import Alike, OnlyAccuracy
from penultimate.paper.claims.wording import (
    COPIES,
    amount,
    difference_text,
    level_text,
    not_enough_runs,
    range_text,
    runs_each,
)
from penultimate.paper.combined import best_epochs, of_one_recipe, terms_of
from penultimate.report.measurements import ByRun, Seed
from penultimate.report.text import counted, fixed, signed
from penultimate.statistics import mean


def alike(evidence: Evidence, rule: Alike, criteria: Criteria, further: FurtherCriteria) -> Assessment:
    """Judge whether every alternative's mean is as high as softmax's, by two one-sided tests for each."""
    compared = compare(evidence, rule.aspect, _with_least(criteria, further.little), blocks=True)
    if compared is None or not compared.alternatives:
        return unmeasured(NAMES[rule.aspect], ELSEWHERE[rule.aspect])
    ours = _farthest_text(compared)
    up, down = compared.tested(1), compared.tested(-1)
    if not up:
        return compared.untested(ours, compared.alternatives)
    sides = {**up, **{f"-{slug}": effect for slug, effect in down.items()}}
    found = each(sides, sides, criteria)
    verdicts = {slug: all_of((found[slug], found[f"-{slug}"])) for slug in up}
    least = f"{amount(compared.margin, rule.aspect)} or more"

    def why(names: str) -> dict[Verdict, str]:
        return {
            "holds": f"Excluded for each of {counted(len(verdicts), 'alternative')}: {least}, up or down.",
            "does not hold": f"Apart from softmax beyond chance (corrected), by an estimated {least}:"
            f" {names}.",
            "undecided": f"Open for {names}: {least}, up or down, is neither shown nor excluded.",
        }

    return of_all_alternatives(ours, verdicts, why)


def _with_least(criteria: Criteria, least: Criterion) -> Criteria:
    """Return the criteria with another share of softmax's errors as the least difference that counts."""
    return dataclasses.replace(criteria, least_gain=least)


def _farthest_text(compared: AgainstSoftmax) -> str:
    far = max(compared.alternatives, key=lambda slug: abs(compared.gain(slug)))
    level = level_text(mean(compared.softmax.values()), compared.aspect)
    return f"Softmax {level}; farthest alternative: {PRESETS[far].label}, {compared.text(far)}"


def alike_in_paper(rule: Alike, further: FurtherCriteria) -> str:
    """Return the printed means that differ from softmax's by at least the smallest difference that counts."""
    means = paper(rule.aspect)
    softmax = means[BASELINE]
    least = further.little.value * (100 - softmax)
    far = {name: value - softmax for name, value in means.items() if abs(value - softmax) >= least}
    said = ", ".join(f"{PRESETS[name].label} {signed(gain, 1)}" for name, gain in far.items())
    level = level_text(softmax, rule.aspect)
    return (
        f"Softmax {level}; {counted(len(far), 'alternative')} of {len(means) - 1} apart by"
        f" {amount(least, rule.aspect)} or more: {said}"
    )


def only_accuracy(
    evidence: Evidence, rule: OnlyAccuracy, criteria: Criteria, further: FurtherCriteria
) -> Assessment:
    """Judge whether an arm raises accuracy and leaves class separation alone, in the mean over objectives."""
    arm = dataclasses.replace(evidence, measurements=evidence.measurements.in_arm(rule.arm))
    plain = [evidence.values("accuracy"), evidence.values("separation")]
    other = [arm.values("accuracy"), arm.values("separation")]
    specs = [spec for spec in other[0] if all(spec in runs for runs in (*plain, *other))]
    if not specs:
        return unmeasured(NAMES["augmented"], ELSEWHERE["augmented"])
    seeds = common_seeds(runs[spec] for runs in (*plain, *other) for spec in specs)
    gain, change = (
        _mean_gains(before, after, specs, seeds) for before, after in zip(plain, other, strict=True)
    )
    counts = f"{counted(len(specs), 'objective')}, {runs_each([len(seeds)])}"
    if len(seeds) < criteria.least_runs.value:
        return not_judged(counts, not_enough_runs([len(seeds)], criteria))
    if len(specs) < 2:
        return not_judged(counts, "One objective has no spread of R², of which to take a share.")
    softmax, _ = evidence.alternatives("accuracy")
    least = least_difference("accuracy", mean((softmax or plain[0][specs[0]]).values()), criteria)
    spread = stdev(mean(plain[1][spec].values()) for spec in specs)
    margin = further.far.value * spread
    found = {
        "up": difference([gain], [1], least, criteria),
        "wider": difference([change], [1], margin, criteria),
        "narrower": difference([change], [-1], margin, criteria),
    }
    effects = {name: effect for name, effect in found.items() if effect is not None}
    if len(effects) < len(found):
        return not_judged(counts, COPIES)
    ours = (
        f"Accuracy {_with_interval(effects['up'], 2, ' points')}, R² {_with_interval(effects['wider'], 3)}"
        f" (spread among the objectives {fixed(spread, 3)}), {counts}"
    )
    verdicts = each(effects, ("wider", "narrower"), criteria)
    same = all_of((verdicts["wider"], verdicts["narrower"]))
    gains: dict[Verdict, str] = {
        "holds": f"Accuracy rises beyond chance, by an estimated {fixed(least, 2)} points or more",
        "does not hold": f"a gain in accuracy of {fixed(least, 2)} points or more is excluded (corrected)",
        "undecided": "accuracy: a gain is neither shown nor excluded",
    }
    changes: dict[Verdict, str] = {
        "holds": f"a change of R² by {fixed(margin, 3)} or more is excluded",
        "does not hold": f"R² changes beyond chance (corrected), by an estimated {fixed(margin, 3)} or more",
        "undecided": f"a change of R² by {fixed(margin, 3)} or more is neither shown nor excluded",
    }
    why = f"{gains[verdicts['up']]}; {changes[same]}."
    return Assessment(ours, all_of((verdicts["up"], same)), f"{why[0].upper()}{why[1:]}")


def _mean_gains(before: ByRun, after: ByRun, specs: Sequence[str], seeds: Sequence[Seed]) -> BySeed:
    return {seed: mean([after[spec][seed] - before[spec][seed] for spec in specs]) for seed in seeds}


def _with_interval(effect: Effect, digits: int, unit: str = "") -> str:
    return f"{signed(effect.estimate, digits)}{unit} ({range_text(effect.low, effect.high, digits)})"


def only_accuracy_in_paper(rule: OnlyAccuracy) -> str:
    """Return the paper's mean gain in accuracy, its mean change of R², and the largest change of R²."""
    rows = published.printed("neurips_tableE3_autoaugment_separation")
    by_arm = [
        {row["objective"]: row for row in rows if row["augmentation"] == arm}
        for arm in ("standard", rule.arm)
    ]
    top1, r2 = (
        {name: float(by_arm[1][name][key]) - float(by_arm[0][name][key]) for name in by_arm[0]}
        for key in ("imagenet_top1_percent", "class_separation_r2")
    )
    largest = max(r2, key=lambda name: abs(r2[name]))
    return (
        f"Accuracy {signed(mean(top1.values()), 2)} points, R² {signed(mean(r2.values()), 3)} (largest"
        f" change: {PRESETS[largest].label}, {signed(r2[largest], 3)}), {counted(len(r2), 'objective')}"
    )


def no_sum(evidence: Evidence, criteria: Criteria) -> Assessment:
    """Judge whether combinations gain nothing over the better of their parts, in the mean."""
    measurements = evidence.measurements
    combined, single = best_epochs(measurements, COMBINATIONS), best_epochs(measurements)
    by_term = {_terms(spec): runs for spec, runs in single.items() if len(_terms(spec)) == 1}
    wholes = {
        spec: (runs, [by_term[part] for part in _parts(spec) if part in by_term])
        for spec, runs in combined.items()
        if len(_parts(spec)) > 1
    }
    wholes = {spec: both for spec, both in wholes.items() if len(both[1]) == len(_parts(spec))}
    if not wholes or not of_one_recipe(measurements):
        return unmeasured(NAMES["combined"], ELSEWHERE["combined"])
    seeds = common_seeds(runs for whole, parts in wholes.values() for runs in (whole, *parts))
    counts = f"{counted(len(wholes), 'combination')}, {runs_each([len(seeds)])}"
    if len(seeds) < criteria.least_runs.value:
        return not_judged(counts, not_enough_runs([len(seeds)], criteria))
    gains = {spec: on_better(whole, parts, seeds) for spec, (whole, parts) in wholes.items()}
    softmax = next((runs for spec, runs in single.items() if not _terms(spec)), {})
    if not softmax:
        return unmeasured(NAMES["combined"], ELSEWHERE["combined"])
    margin = least_difference("accuracy", 100 * mean(softmax.values()), criteria)
    means: BySeed = {seed: 100 * mean([gain[seed] for gain in gains.values()]) for seed in seeds}
    effect = difference([means], [1], margin, criteria)
    if effect is None:
        return not_judged(counts, COPIES)
    best = max(gains, key=lambda spec: mean(gains[spec].values()))
    label = measurements.in_arm(COMBINATIONS).objective(best).label
    highest = signed(100 * mean(gains[best].values()), 2)
    ours = f"{difference_text(effect.estimate, effect, [len(seeds)], 'combined')}, mean of"
    ours += f" {counted(len(wholes), 'combination')}; the best: {label}, {highest}"
    (verdict,) = each({"gain": effect}, ("gain",), criteria).values()
    least = f"a gain of {amount(margin, 'accuracy')} or more"
    why = {
        "holds": f"Excluded: {least}.",
        "does not hold": f"Beyond chance, and by an estimated {amount(margin, 'accuracy')} or more.",
        "undecided": f"Neither shown nor excluded: {least}.",
    }[verdict]
    return Assessment(ours, verdict, why)


def _terms(spec: str) -> frozenset[str]:
    """Return the parts of an objective without softmax."""
    return frozenset(str(term) for term in terms_of(spec) if term.name != "softmax")


def _parts(spec: str) -> list[frozenset[str]]:
    return [frozenset({term}) for term in sorted(_terms(spec))]


def on_better(whole: BySeed, parts: Sequence[BySeed], seeds: Sequence[Seed]) -> BySeed:
    """Return, for each seed, the combination minus the part that is best in the mean of the other seeds."""
    gains = {}
    for seed in seeds:
        others = [other for other in seeds if other != seed]
        better = max(parts, key=lambda part: mean([part[other] for other in others]))
        gains[seed] = whole[seed] - better[seed]
    return gains


def no_sum_in_paper() -> str:
    """Return the gains of the printed combinations over the better of their parts: the median and the best.

    It is the median because one printed value is a misprint.
    """
    rows = published.printed("neurips_tableC4_combinations")
    values = {
        (row["objective"], row["added_regularizer"], row["regularizer_value"]): float(
            row["holdout_top1_percent"]
        )
        for row in rows
    }
    gains = []
    for (base, added, strength), value in values.items():
        parts = [values.get((base, "none", "")), values.get(("softmax", added, strength))]
        alone = [part for part in parts if part is not None]
        if base != "softmax" and added != "none" and len(alone) == len(parts):
            gains.append(value - max(alone))
    middle, best = signed(median(gains), 1), signed(max(gains), 1)
    return f"{middle} points in the median of {len(gains)} combinations, {best} in the best, three runs each"
