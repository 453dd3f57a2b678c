"""The rules on objectives at several strengths, written before any network of `sweep` was trained.

A family is an objective whose strength is varied (an arm of the study), with softmax as its strength zero
where it has one; a strength counts if every seed of its family has it. A price is a slope of transfer on
class separation within a seed, in points for each .1 of R²; means over seeds are tested by t.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims import filed
from penultimate.paper.claims.effects import Effect, Runs, Unit, corrected, of_mean, span
from penultimate.paper.claims.filed import FAMILIES, LEAST_RUNS, LEVEL, ONE_PLACE, PAIRS, PER, WINDOW, Pair
from penultimate.paper.claims.numbers import ACCURACY, KNN, LINEAR, SEPARATION, TRAIN, Numbers
from penultimate.paper.claims.rules import Rule, ranked
from penultimate.paper.claims.verdicts import Judged, Verdict, all_of, decide, judge_all, not_judged, too_few
from penultimate.results.text import counted, fixed, listed, p_value, signed
from penultimate.statistics import StraightLine, equivalence, holm, least_squares

if TYPE_CHECKING:
    from penultimate.paper.claims.numbers import Frame

MEASURES = {"separation": SEPARATION, "accuracy": ACCURACY, "train": TRAIN, "linear": LINEAR, "knn": KNN}
STRENGTH = ["family", "strength"]
PRICE = Unit("{} points for each .1 of R²")


def planned(of: Numbers, family: str) -> list[str]:
    """Return the objectives of a family as the study lists them, from the weakest to the strongest."""
    grids = of.study.grids(family)
    return list(dict.fromkeys(str(spec) for grid in grids for spec in grid.get("objectives", ())))


def strengths(of: Numbers, families: Sequence[str] = FAMILIES) -> Frame:
    """Return every strength that has R² and transfer as a frame [(family, strength, seed), measure]."""
    found: dict[tuple[str, str], dict[str, pd.Series]] = {}
    for family in families if of.run is not None else ():
        specs = {each.slug: each.spec for each in of.study.objectives(family)}
        frames = {
            key: of.at(family).frame(quantity).rename(columns=specs) for key, quantity in MEASURES.items()
        }
        for spec in planned(of, family):
            if all(spec in frames[key] for key in ("separation", "linear")):
                found[family, spec] = {key: frame[spec] for key, frame in frames.items() if spec in frame}
    return framed(found)


def framed(found: Mapping[tuple[str, str], Mapping[str, pd.Series]]) -> Frame:
    """Return the values by seed of strengths as one frame."""
    frames = {key: pd.DataFrame(of, columns=[*MEASURES], dtype=float) for key, of in found.items()}
    return pd.concat(frames, names=[*STRENGTH, "seed"]) if frames else pd.DataFrame(columns=[*MEASURES])


def complete(found: Frame, needs: Sequence[str] = ("separation", "linear")) -> Frame:
    """Return the strengths that every seed of their family has.

    A mean over fewer draws of the images would bend a curve.
    """
    there = found.dropna(subset=[*needs])
    if there.empty:
        return there
    seeds = pd.Series(there.index.get_level_values("seed"), there.index)
    own = seeds.groupby(level=STRENGTH).transform("nunique")
    return there[own == seeds.groupby(level="family").transform("nunique")]


def in_window(found: Frame) -> Frame:
    """Return the strengths that cost less than a point of accuracy."""
    return found[[key[1] in WINDOW.get(key[0], ()) for key in found.index]]


def lines(found: Frame, measure: str = "linear") -> dict[str, dict[int, StraightLine]]:
    """Return the line of transfer on class separation within each seed of each family."""
    result: dict[str, dict[int, StraightLine]] = {}
    whole = complete(found, ("separation", measure))
    for (family, seed), of in whole.groupby(level=["family", "seed"], sort=False) if len(whole) else ():
        line = least_squares(of["separation"], of[measure])
        if line:
            result.setdefault(family, {})[seed] = line
    return result


def prices(found: Frame, measure: str = "linear") -> dict[str, Runs]:
    """Return the slope of transfer within each seed, in points for each .1 of R²."""
    by_family = lines(found, measure)
    return {family: {seed: PER * of[seed].slope for seed in of} for family, of in by_family.items()}


def price(values: Runs) -> Effect | None:
    """Return the effect that transfer falls by the prices of seeds, or None if it has no interval."""
    effect = of_mean([-value for value in values.values()], filed.LEAST_PRICE)
    return effect if effect.tested else None


def price_text(effect: Effect) -> str:
    """Return a price with its interval, where a fall is negative.

    >>> price_text(Effect(1.2, 0.8, 1.6, 0.5, p_for=0.001, p_against=0.99))
    '−1.20 (−1.60 to −0.80)'
    """
    return f"{signed(-effect.estimate, 2)} ({span(-effect.high, -effect.low, 2)})"


def label_of(family: str) -> str:
    """Return the name of a family for readers."""
    return PRESETS[family].label


def _seeds(found: Frame) -> list[int]:
    """Return the number of seeds of each family."""
    seeds = found.dropna(subset=["separation", "linear"]).index.droplevel("strength").unique()
    return [*seeds.to_frame(index=False).groupby("family", sort=False)["seed"].nunique()] or [0]


def every_family_falls(measure: str = "linear", window: bool = False) -> Rule:
    """Make the rule that transfer falls with class separation in every family, by a price that counts."""

    def rule(of: Numbers) -> Judged | None:
        wanted = [*WINDOW] if window else [*FAMILIES]
        found = strengths(of, wanted)
        if found.empty:
            return None
        known = {
            family: effect
            for family, of_seeds in prices(in_window(found) if window else found, measure).items()
            if (effect := price(of_seeds))
        }
        effects = corrected(known)
        if not effects:
            return not_judged("", too_few(_seeds(found), LEAST_RUNS, "run"))
        verdicts = {family: decide(effect) for family, effect in effects.items()}
        said = "; ".join(f"{label_of(name)} {price_text(effect)}" for name, effect in effects.items())
        words: dict[Verdict, str] = {"holds": "Shown", "does not hold": "Ruled out", "undecided": "Open"}
        reasons = [
            f"{word} for {listed([label_of(name) for name in verdicts if verdicts[name] == verdict])}."
            for verdict, word in words.items()
            if verdict in verdicts.values()
        ]
        absent = [label_of(family) for family in wanted if family not in verdicts]
        reasons += [f"Not judged, with fewer than two strengths here: {listed(absent)}."] if absent else []
        verdict, numbers, why = (
            all_of(verdicts.values()),
            f"Points for each .1 of R²: {said}",
            " ".join(reasons),
        )
        if verdict == "holds" and absent:
            return not_judged(numbers, why, [*effects.values()])
        return Judged(verdict, numbers, why, True, tuple(effects.values()))

    return rule


def overall_prices(found: Frame) -> dict[str, Effect] | None:
    """Return the mean price of the families by t over seeds and over families, if both can be tested."""
    table = pd.DataFrame(prices(found)).dropna(axis=1, how="all").dropna()
    if min(table.shape) < LEAST_RUNS:
        return None
    means = {"seeds": table.mean(axis=1), "families": table.mean()}
    effects = {over: price(dict(enumerate(values))) for over, values in means.items()}
    return {over: effect for over, effect in effects.items() if effect} if all(effects.values()) else None


def overall(of: Numbers) -> Judged | None:
    """Judge that the mean price of the families is a fall, by t over seeds and by t over families."""
    found = strengths(of)
    if found.empty:
        return None
    effects = overall_prices(found)
    if effects is None:
        return not_judged("", too_few(_seeds(found), LEAST_RUNS, "run"))
    verdicts = {over: decide(effect) for over, effect in effects.items()}
    told = ", ".join(f"over {over} {price_text(effect)}" for over, effect in effects.items())
    why = "; ".join(f"over {over}: {verdicts[over]} ({effect.as_p()})" for over, effect in effects.items())
    verdict = verdicts["seeds"] if len({*verdicts.values()}) == 1 else "undecided"
    return Judged(verdict, f"Points for each .1 of R²: {told}", f"{why}.", True, tuple(effects.values()))


class ComparedPair(NamedTuple):
    """What the strong one of a pair has more than the weak one, by seed, and why the pair does not count."""

    pair: Pair
    more: Frame
    why_not: str = ""


def compared_pair(found: Frame, pair: Pair, measure: str = "linear") -> ComparedPair:
    """Return whether a pair counts: equal accuracy, and R² that rises."""
    sides, empty = [], pd.DataFrame()
    for spec in (pair.weak, pair.strong):
        sides.append(found[[key[:2] == (pair.family, spec) for key in found.index]].droplevel(STRENGTH))
        if sides[-1].empty:
            return ComparedPair(pair, empty, f"no network of {spec}")
    more = (sides[1] - sides[0])[["separation", measure, "accuracy"]].dropna()
    if len(more) < LEAST_RUNS:
        return ComparedPair(pair, empty, counted(len(more), "common seed"))
    apart = equivalence(more["accuracy"], filed.EQUAL)
    why_not = ""
    if more["separation"].min() <= 0:
        why_not = "R² does not rise in every seed"
    elif apart is None or apart > LEVEL:
        why_not = f"equal accuracy is not shown ({p_value(1.0 if apart is None else apart)})"
    return ComparedPair(pair, more, why_not)


def price_of_pairs(pairs: Sequence[ComparedPair], measure: str = "linear") -> Effect | None:
    """Return the mean price within seeds of the pairs that count, or None if none can be tested."""
    found = [PER * one.more[measure] / one.more["separation"].mean() for one in pairs if not one.why_not]
    return price(pd.concat(found, axis=1, join="inner").mean(axis=1).to_dict()) if found else None


def pairs_fall(measure: str = "linear") -> Rule:
    """Make the rule that of two strengths of equal accuracy the one of larger R² transfers worse."""

    def rule(of: Numbers) -> Judged | None:
        found = strengths(of)
        return _of_pairs(found, measure) if len(found) else None

    return rule


def _of_pairs(found: Frame, measure: str) -> Judged:
    every = [compared_pair(found, pair, measure) for pair in PAIRS]
    others = "".join(
        f" Not judged: {label_of(one.pair.family)}, {one.why_not}." for one in every if one.why_not
    )
    effect = price_of_pairs(every, measure)
    if effect is None:
        return not_judged("", f"No pair of strengths counts.{others}")
    counting = [(one.pair.family, one.more.mean()) for one in every if not one.why_not]
    said = "; ".join(
        f"{label_of(family)} {signed(more[measure], 2)} points at {signed(more['separation'], 3)} of R²"
        for family, more in counting
    )
    lead = f"The mean of {counted(len(counting), 'pair')}: {said}"
    judged = judge_all([replace(effect, unit=PRICE, sign=-1)], lead=lead)
    return replace(judged, reason=f"{judged.reason}{others}")


def one_line(of: Numbers) -> Judged | None:
    """Judge that families share a line: their transfer at one R², and their slopes.

    By an analysis of variance (families x seeds, with their interaction as error), corrected for two tests.
    """
    found = strengths(of)
    return _of_line(found) if len(found) else None


def _of_line(found: Frame) -> Judged:
    found = found[[key[0] not in filed.WITHOUT_A_LINE for key in found.index]]
    by_family = {family: of for family, of in lines(found).items() if of}
    ends = _ends(found)
    read = [family for family in by_family if ends[family][0] <= ONE_PLACE <= ends[family][1]]
    seeds = [{*of} for of in by_family.values()]
    if not seeds or min(map(len, seeds)) < LEAST_RUNS or any(of != seeds[0] for of in seeds):
        return not_judged("", too_few([len(of) for of in seeds], LEAST_RUNS, "run"))
    place = f"R² = {fixed(ONE_PLACE, 2)}"
    if len(read) < 2:
        return not_judged("", f"Fewer than two families reach {place}.")
    sides = {
        f"transfer at {place}": [[line.height(ONE_PLACE) for line in by_family[f].values()] for f in read],
        "price for each .1 of R²": [[PER * line.slope for line in of.values()] for of in by_family.values()],
    }
    tables = {name: np.array(rows) for name, rows in sides.items()}
    tests = {name: families_differ(table) for name, table in tables.items()}
    p_values = dict(zip(tests, holm([p for *_, p in tests.values()]), strict=True))
    ranges = {name: float(np.ptp(table.mean(1))) for name, table in tables.items()}
    numbers = "; ".join(
        f"{name}: {fixed(ranges[name], 2)} points apart, F({between}, {error}) = {fixed(f, 1)},"
        f" {p_value(p_values[name])} corrected"
        for name, (f, between, error, _) in tests.items()
    )
    numbers = f"{numbers[0].upper()}{numbers[1:]}"
    points = f"{filed.LEAST_RANGE:g} points"
    differ = [name for name in tests if p_values[name] <= LEVEL and ranges[name] >= filed.LEAST_RANGE]
    if differ:
        return Judged("does not hold", numbers, f"Families differ by {points} or more: {listed(differ)}.")
    if all(_all_near(table) for table in tables.values()):
        return Judged("holds", numbers, f"Every two families are shown to be within {points}.")
    return Judged("undecided", numbers, f"A range of {points} is neither shown nor ruled out.")


def _ends(found: Frame) -> Mapping[str, tuple[float, float]]:
    """Return the mean R² of the strengths of each family that separate least and most."""
    means = complete(found)["separation"].groupby(level=STRENGTH).mean().groupby(level="family")
    return {str(family): (float(of.min()), float(of.max())) for family, of in means}


def families_differ(table: np.ndarray) -> tuple[float, int, int, float]:
    """Return F, its degrees of freedom and p for the rows of a table [families seeds]; seeds are blocks."""
    from scipy.special import fdtrc

    families, seeds = table.shape
    rows, blocks = table.mean(1, keepdims=True), table.mean(0, keepdims=True)
    between, error = families - 1, (families - 1) * (seeds - 1)
    rest = ((table - rows - blocks + table.mean()) ** 2).sum() / error
    f = float(seeds * ((rows - table.mean()) ** 2).sum() / between / rest) if rest else float("inf")
    return f, between, error, float(fdtrc(between, error, f))


def _all_near(table: np.ndarray) -> bool:
    """Return whether every two rows are shown to be within the margin (two one-sided tests)."""
    tests = [equivalence(one - other, filed.LEAST_RANGE) for one, other in itertools.combinations(table, 2)]
    return all(p is not None and p <= LEVEL for p in tests)


def reading(of: Numbers) -> Judged | None:
    """Judge the paper's reading, by what refutes it, by whether the study is silent, and by pairs."""
    found = strengths(of)
    if found.empty:
        return None
    pairs, line, by_family = _of_pairs(found, "linear"), _of_line(found), prices(found)
    rises = {family: price(of_seeds) for family, of_seeds in by_family.items()}
    p_values = holm([1.0 if effect is None else 1 - effect.p_for for effect in rises.values()])
    upwards = [label_of(family) for family, p in zip(rises, p_values, strict=True) if p <= filed.ONE_SIDED]
    refuted = [
        *(["at equal accuracy a fall that counts is ruled out"] if pairs.verdict == "does not hold" else []),
        *([f"transfer rises with R² in {listed(upwards)}"] if upwards else []),
        *(["the families lie on different lines"] if line.verdict == "does not hold" else []),
    ]
    loud = sum(high - low >= filed.SPAN for low, high in _ends(in_window(found)).values())
    spans = (
        f"{counted(loud, 'family', 'families')} of the {filed.LEAST_FAMILIES} needed span"
        f" {fixed(filed.SPAN, 2)} of R² at comparable accuracy"
    )
    numbers = f"{pairs.numbers if pairs.judged else 'No pair of strengths counts'}; {spans}"
    if refuted:
        return Judged("does not hold", numbers, f"Rejected: {'; '.join(refuted)}.", True, pairs.effects)
    if min(_seeds(found)) < LEAST_RUNS:
        return not_judged(numbers, too_few(_seeds(found), LEAST_RUNS, "run"), pairs.effects)
    if loud < filed.LEAST_FAMILIES:
        return not_judged(numbers, f"Silent: {spans}.", pairs.effects)
    verdict: Verdict = "holds" if pairs.verdict == "holds" else "undecided"
    word = "Confirmed" if verdict == "holds" else "Open"
    return Judged(
        verdict, numbers, f"{word} at equal accuracy, and not rejected. {pairs.reason}", True, pairs.effects
    )


def at_papers_strengths(of: Numbers) -> Judged | None:
    """Judge that R² and transfer rank the objectives oppositely at the strengths that the paper prints."""
    return None if of.is_printed else ranked(SEPARATION, LINEAR, -1)(of.at(PAPERS_STRENGTHS))
