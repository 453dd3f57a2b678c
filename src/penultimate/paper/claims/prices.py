"""Verdicts on the price of class separation: of families, overall, at equal accuracy; and is it one price?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.criteria import DOSES, Criteria
from penultimate.paper.claims.doses import FAMILIES, PAIRS, WINDOW, WITHOUT_A_LINE, PairOfStrengths
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    all_of,
    common_seeds,
    contrast,
    corrected,
    decide,
)
from penultimate.paper.claims.evidence import Evidence, StudyEvidence
from penultimate.paper.claims.rankings import ranked
from penultimate.paper.claims.rules import Dose, Ranked
from penultimate.paper.claims.strengths import (
    PER,
    DoseCurve,
    dose_curves,
    in_family,
    left_out_text,
    price_effect,
    price_text,
)
from penultimate.paper.claims.trials import (
    Assessment,
    Trials,
    assess,
    not_enough_runs,
    not_judged,
    runs_each,
    unmeasured,
)
from penultimate.report.base import MISSING
from penultimate.report.measurements import Seed
from penultimate.report.text import counted, fixed, listed, p_value, signed
from penultimate.statistics import Anova, equivalence, holm, mean, summarise, two_way_anova

WHAT = "objectives at several strengths"
COMMAND = "penultimate run sweep_smallest"


def judge_dose(evidence: Evidence, rule: Dose) -> Assessment | Trials:
    """Judge a claim about strengths, of which the paper varies none but the temperature."""
    criteria = evidence.criteria
    if not isinstance(evidence, StudyEvidence):
        return evidence.lacking("separation", WHAT)
    match rule.test:
        case "reading":
            return reading(evidence, rule.aspect, criteria)
        case "pairs":
            return judge_pairs(evidence, rule.aspect, criteria)
        case "slopes":
            return judge_prices(evidence, rule.aspect, criteria)
        case "window":
            return judge_prices(evidence, rule.aspect, criteria, WINDOW)
        case "overall":
            return overall(evidence, rule.aspect, criteria)
        case "one line":
            return judge_one_line(evidence, rule.aspect, criteria)
        case "strengths":
            of_paper = in_family(evidence, PAPERS_STRENGTHS)
            if not of_paper.values(rule.aspect):
                return unmeasured(
                    "objectives at the strengths that the paper prints", "penultimate run sweep"
                )
            return assess(ranked(of_paper, Ranked("separation", rule.aspect, -1)), criteria)


def price_effects(prices: Mapping[str, BySeed], criteria: Criteria) -> dict[str, Effect]:
    """Return the price of each family that can be tested, with p corrected for their number (Holm)."""
    effects = {family: price_effect(by_seed, criteria) for family, by_seed in prices.items()}
    tested = {family: effect for family, effect in effects.items() if effect is not None}
    both = corrected(corrected(list(tested.values()), "p_for"), "p_against")
    return dict(zip(tested, both, strict=True))


def rising(found: Sequence[DoseCurve], criteria: Criteria) -> list[str]:
    """Return the families in which transfer rises with class separation beyond chance (Holm)."""
    effects = {curve.family: price_effect(curve.prices(), criteria) for curve in found}
    p_values = holm([1.0 if effect is None else 1 - effect.p_for for effect in effects.values()])
    return [family for family, p in zip(effects, p_values, strict=True) if p <= criteria.one_sided]


def judge_prices(
    evidence: StudyEvidence,
    aspect: Aspect,
    criteria: Criteria,
    within: Mapping[str, tuple[str, ...]] | None = None,
) -> Assessment:
    """Judge whether transfer falls in every family, over all strengths or over those `within` a window."""
    wanted = FAMILIES if within is None else tuple(within)
    found = dose_curves(evidence, aspect, wanted)
    if not found:
        return unmeasured(WHAT, COMMAND)
    if within is not None:
        found = [curve.among(within[curve.family]) for curve in found]
    effects = price_effects({curve.family: curve.prices() for curve in found}, criteria)
    counts = runs_each([len(curve.seeds) for curve in found])
    if not effects:
        return not_judged(counts, not_enough_runs([len(curve.seeds) for curve in found], criteria))
    said = "; ".join(f"{PRESETS[family].label} {price_text(effect)}" for family, effect in effects.items())
    ours = f"Points for each .1 of R²: {said}; {counts}"
    verdicts = {family: decide(effect, criteria) for family, effect in effects.items()}
    absent = [family for family in wanted if family not in verdicts]
    why = " ".join(
        _WORDS[verdict].format(
            listed(_labels_of_families(family for family in verdicts if verdicts[family] == verdict))
        )
        for verdict in ("holds", "does not hold", "undecided")
        if verdict in verdicts.values()
    )
    why += left_out_text(found)
    if absent:
        why += f" Not judged, with fewer than two strengths here: {listed(_labels_of_families(absent))}."
    verdict = all_of(verdicts.values())
    if verdict == "holds" and absent:
        return not_judged(ours, why)
    return Assessment(ours, verdict, why)


_WORDS: dict[Verdict, str] = {
    "holds": "A fall that counts, beyond chance (corrected): {}.",
    "does not hold": "Excluded (corrected), a fall that counts: {}.",
    "undecided": "Open: {}.",
}


def _labels_of_families(families: Iterable[str]) -> list[str]:
    return [PRESETS[family].label for family in families]


def overall_effects(
    evidence: StudyEvidence, aspect: Aspect, criteria: Criteria
) -> tuple[Effect, Effect] | None:
    """Return the mean price of the families by t over seeds and by t over families, if both can be tested."""
    prices = {curve.family: curve.prices() for curve in dose_curves(evidence, aspect)}
    prices = {family: by_seed for family, by_seed in prices.items() if by_seed}
    seeds = common_seeds(prices.values()) if prices else []
    if min(len(seeds), len(prices)) < criteria.least_runs.value:
        return None
    over_seeds = price_effect(
        {seed: mean(by_seed[seed] for by_seed in prices.values()) for seed in seeds}, criteria
    )
    over_families = contrast(
        [summarise([-mean(by_seed[seed] for seed in seeds) for by_seed in prices.values()])],
        [1],
        DOSES.least_price.value,
        criteria,
    )
    return None if over_seeds is None or over_families is None else (over_seeds, over_families)


def overall(evidence: StudyEvidence, aspect: Aspect, criteria: Criteria) -> Assessment:
    """Judge the mean price of the families, by t over seeds and by t over families, which must agree."""
    found = dose_curves(evidence, aspect)
    if not found:
        return unmeasured(WHAT, COMMAND)
    counts = [len(curve.seeds) for curve in found]
    ours = f"{counted(len(found), 'family', 'families')}, {runs_each(counts)}"
    effects = overall_effects(evidence, aspect, criteria)
    if effects is None:
        return not_judged(ours, not_enough_runs(counts, criteria))
    over_seeds, over_families = effects
    verdicts = [decide(effect, criteria) for effect in effects]
    ours = (
        f"Points for each .1 of R²: over seeds {price_text(over_seeds)}, over families"
        f" {price_text(over_families)}; {ours}"
    )
    why = (
        f"Over seeds: {verdicts[0]} ({p_value(over_seeds.p)}); over families: {verdicts[1]}"
        f" ({p_value(over_families.p)})."
    )
    same = verdicts[0] if verdicts[0] == verdicts[1] else "undecided"
    return Assessment(ours, same, why + left_out_text(found))


@dataclass(frozen=True)
class JudgedPair:
    """A pair of strengths: what the strong one has more than the weak one, in means, and its prices by seed.

    `why_not` says why the pair does not count; it is empty if it does.
    """

    pair: PairOfStrengths
    separation: float = math.nan
    transfer: float = math.nan
    accuracy: float = math.nan
    apart: float | None = None
    prices: BySeed = dataclasses.field(default_factory=dict)
    why_not: str = ""


def judged_pair(
    evidence: StudyEvidence, pair: PairOfStrengths, aspect: Aspect, criteria: Criteria
) -> JudgedPair:
    """Return a pair with its differences, and whether it counts: equal accuracy, and R² that rises."""
    of_arm = in_family(evidence, pair.family)
    columns = [of_arm.values(name) for name in ("separation", aspect, "accuracy")]
    sides = [[column.get(spec, {}) for column in columns] for spec in (pair.weak, pair.strong)]
    for spec, side in zip((pair.weak, pair.strong), sides, strict=True):
        if not all(side):
            return JudgedPair(pair, why_not=f"no network of {spec}")
    seeds = common_seeds([column for side in sides for column in side])
    if len(seeds) < criteria.least_runs.value:
        return JudgedPair(pair, why_not=f"{counted(len(seeds), 'common seed')}")
    rises, gains, accuracies = (
        {seed: strong[seed] - weak[seed] for seed in seeds} for weak, strong in zip(*sides, strict=True)
    )
    apart = equivalence(accuracies.values(), DOSES.equal.value)
    by = mean(rises.values())
    why_not = ""
    if min(rises.values()) <= 0:
        why_not = "R² does not rise in every seed"
    elif apart is None or apart > criteria.level.value:
        why_not = f"equal accuracy is not shown ({p_value(1.0 if apart is None else apart)})"
    prices: dict[Seed, float] = {seed: PER * gain / by for seed, gain in gains.items()} if by > 0 else {}
    return JudgedPair(pair, by, mean(gains.values()), mean(accuracies.values()), apart, prices, why_not)


def judged_pairs(evidence: StudyEvidence, aspect: Aspect, criteria: Criteria) -> list[JudgedPair]:
    """Return every pair of strengths that was fixed beforehand."""
    return [judged_pair(evidence, pair, aspect, criteria) for pair in PAIRS]


def mean_of_pairs(counting: Sequence[JudgedPair], criteria: Criteria) -> Effect | None:
    """Return the mean price of pairs within seeds, or None if no pair can be tested."""
    if not counting:
        return None
    seeds = common_seeds(one.prices for one in counting)
    return price_effect({seed: mean(one.prices[seed] for one in counting) for seed in seeds}, criteria)


def judge_pairs(evidence: StudyEvidence, aspect: Aspect, criteria: Criteria) -> Assessment:
    """Judge the mean price of those pairs that are equally accurate and whose R² rises."""
    if not dose_curves(evidence, aspect):
        return unmeasured(WHAT, COMMAND)
    every = judged_pairs(evidence, aspect, criteria)
    counting = [one for one in every if not one.why_not]
    others = "".join(
        f" Not judged: {PRESETS[one.pair.family].label}, {one.why_not}." for one in every if one.why_not
    )
    effect = mean_of_pairs(counting, criteria)
    if effect is None:
        return not_judged(MISSING, f"No pair of strengths counts.{others}")
    single = price_effects({one.pair.family: one.prices for one in counting}, criteria)
    said = "; ".join(
        f"{PRESETS[one.pair.family].label} {signed(one.transfer, 2)} points at {signed(one.separation, 3)} of"
        f" R² and {signed(one.accuracy, 2)} of accuracy"
        + (f" ({p_value(single[one.pair.family].p)})" if one.pair.family in single else "")
        for one in counting
    )
    count = counted(len(counting), "pair")
    ours = f"{price_text(effect)} points for each .1 of R², the mean of {count}: {said}"
    verdict = decide(effect, criteria)
    why = _OF_PAIRS[verdict].format(p_value(effect.p), fixed(DOSES.least_price.value, 1))
    return Assessment(ours, verdict, why + others)


_OF_PAIRS: dict[Verdict, str] = {
    "holds": "A fall beyond chance ({0}), by an estimated {1} points or more for each .1 of R².",
    "does not hold": "Excluded: a fall of {1} points or more for each .1 of R².",
    "undecided": "A fall of {1} points or more for each .1 of R² is neither shown nor excluded ({0}).",
}


def judge_one_line(evidence: StudyEvidence, aspect: Aspect, criteria: Criteria) -> Assessment:
    """Judge whether families share a line: their transfer at one R², and their slopes."""
    found = [
        curve
        for curve in dose_curves(evidence, aspect)
        if curve.family not in WITHOUT_A_LINE and len(curve.separation) > 1
    ]
    if not found:
        return unmeasured(WHAT, COMMAND)
    at = DOSES.one_place.value
    read = [curve for curve in found if curve.reaches(at)]
    seeds = [curve.seeds for curve in found]
    counts = f"{counted(len(read), 'family', 'families')}, {runs_each([len(each) for each in seeds])}"
    beyond = [curve.label for curve in found if curve not in read]
    note = f" Not read at R² = {fixed(at, 2)}, which it does not reach: {listed(beyond)}." if beyond else ""
    note += left_out_text(found)
    if min(map(len, seeds)) < criteria.least_runs.value or len({*seeds}) > 1:
        return not_judged(counts, not_enough_runs([len(each) for each in seeds], criteria))
    if len(read) < 2:
        return not_judged(counts, f"Fewer than two families reach R² = {fixed(at, 2)}.{note}")
    sides = {
        f"transfer at R² = {fixed(at, 2)}": {curve.family: curve.heights(at) for curve in read},
        "price for each .1 of R²": {curve.family: curve.prices() for curve in found},
    }
    tests = {name: _families_differ(columns) for name, columns in sides.items()}
    p_values = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    ranges = {name: _range(columns) for name, columns in sides.items()}
    ours = "; ".join(
        f"{name}: {fixed(ranges[name], 2)} points apart, F({test.degrees_of_freedom},"
        f" {test.error_degrees_of_freedom}) = {fixed(test.f, 1)}, {p_value(p_values[name])} corrected"
        for name, test in tests.items()
    )
    ours = f"{ours[0].upper()}{ours[1:]}; {counts}"
    least = DOSES.least_range.value
    differ = [name for name in tests if p_values[name] <= criteria.level.value and ranges[name] >= least]
    if differ:
        return Assessment(
            ours,
            "does not hold",
            f"Families differ beyond chance, by {fixed(least, 1)} points or more: {listed(differ)}.{note}",
        )
    if all(_all_near(columns, least, criteria) for columns in sides.values()):
        return Assessment(
            ours, "holds", f"Every two families are shown to be within {fixed(least, 1)} points.{note}"
        )
    return Assessment(
        ours, "undecided", f"A range of {fixed(least, 1)} points is neither shown nor excluded.{note}"
    )


def _families_differ(columns: Mapping[str, BySeed]) -> Anova:
    """Return the analysis of variance of families, with seeds as blocks and one value in every cell."""
    return two_way_anova(
        {family: {str(seed): [value] for seed, value in runs.items()} for family, runs in columns.items()}
    )


def _range(columns: Mapping[str, BySeed]) -> float:
    means = [mean(runs.values()) for runs in columns.values()]
    return max(means) - min(means)


def _all_near(columns: Mapping[str, BySeed], margin: float, criteria: Criteria) -> bool:
    """Return whether every two families are shown to be within the margin (two one-sided tests)."""
    for one, other in itertools.combinations(columns.values(), 2):
        p = equivalence([one[seed] - other[seed] for seed in common_seeds((one, other))], margin)
        if p is None or p > criteria.level.value:
            return False
    return True


def speaking(evidence: StudyEvidence, aspect: Aspect) -> list[str]:
    """Return the families whose strengths in the window span enough of R² to say something."""
    found = [curve.among(WINDOW[curve.family]) for curve in dose_curves(evidence, aspect, tuple(WINDOW))]
    return [curve.family for curve in found if curve.span >= DOSES.span.value]


def reading(evidence: StudyEvidence, aspect: Aspect, criteria: Criteria) -> Assessment:
    """Judge the paper's reading: by what refutes it, by whether the study is silent, and by pairs."""
    found = dose_curves(evidence, aspect)
    if not found:
        return unmeasured(WHAT, COMMAND)
    pairs, line = judge_pairs(evidence, aspect, criteria), judge_one_line(evidence, aspect, criteria)
    upwards = rising(found, criteria)
    refuted = [
        *(["at equal accuracy a fall that counts is excluded"] if pairs.verdict == "does not hold" else []),
        *([f"transfer rises with R² in {listed(_labels_of_families(upwards))}"] if upwards else []),
        *(["the families do not share a line"] if line.verdict == "does not hold" else []),
    ]
    loud = speaking(evidence, aspect)
    least, span = int(DOSES.least_families.value), fixed(DOSES.span.value, 2)
    spans = (
        f"{counted(len(loud), 'family', 'families')} of the {least} needed span {span} of R² in the window"
    )
    silent = len(loud) < least
    ours = f"{pairs.ours if pairs.judged else 'No pair of strengths counts'}; {spans}"
    if refuted:
        also = f" It would be silent otherwise: {spans}." if silent else ""
        return Assessment(ours, "does not hold", f"Refuted: {'; '.join(refuted)}.{also}")
    few = [len(curve.seeds) for curve in found]
    if min(few) < criteria.least_runs.value:
        return not_judged(ours, not_enough_runs(few, criteria))
    if silent:
        return not_judged(ours, f"Silent: {spans}.")
    if pairs.verdict == "holds":
        return Assessment(ours, "holds", f"Confirmed at equal accuracy, and not refuted. {pairs.reason}")
    return Assessment(ours, "undecided", f"Open at equal accuracy, and not refuted. {pairs.reason}")
