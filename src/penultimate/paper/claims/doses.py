"""The rules on objectives at several strengths, for the studies `sweep` and `sweep_smallest`.

They were written on 2026-11-26, before any network of these studies was trained, from pretraining rows alone.
In them

- a family is an objective whose strength is varied (an arm of the study), with softmax as its strength zero
  where it has one. A strength counts if every seed has it;
- a price is a slope of transfer on class separation, in points for each .1 of R²: a fall is a negative one.
  Slopes are those of least squares within each seed; means over seeds are tested by t, with one degree of
  freedom fewer than seeds, never over networks;
- a study with fewer strengths is judged by those that it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims.effects import Effect, Verdict, all_of, corrected, decide, of_mean
from penultimate.paper.claims.evidence import ACCURACY, LINEAR, SEPARATION, Evidence, Quantity
from penultimate.paper.claims.margins import (
    EQUAL,
    LEAST_FAMILIES,
    LEAST_PRICE,
    LEAST_RANGE,
    LEAST_RUNS,
    LEVEL,
    ONE_PLACE,
    ONE_SIDED,
    PER,
    SPAN,
)
from penultimate.paper.claims.rules import ranked
from penultimate.paper.claims.trials import Judged, decided, runs_each, span, too_few_runs, verdict_on
from penultimate.results.rows import both
from penultimate.results.text import counted, fixed, listed, p_value, signed
from penultimate.statistics import Anova, equivalence, holm, least_squares, two_way_anova

if TYPE_CHECKING:
    from penultimate.paper.claims.evidence import Frame, Runs
    from penultimate.paper.claims.rules import Rule

FAMILIES = (
    "label_smoothing",
    "final_layer_l2",
    "logit_penalty",
    "sigmoid",
    "logit_norm",
    "cosine_softmax",
    "squared_error",
)
"""The arms of the families that are judged. Dropout's is not: R² moves by .05 for four points of accuracy."""
WITHOUT_A_LINE = ("squared_error",)
"""The families that are left out where families are compared at one R², which these never reach."""


@dataclass(frozen=True)
class PairOfStrengths:
    """Two strengths of a family whose accuracy on the search's holdout was the same, in per cent."""

    family: str
    weak: str
    strong: str
    holdout: tuple[float, float]


PAIRS = (
    PairOfStrengths("logit_penalty", "softmax", "logit_penalty(beta=0.0024)", (77.0, 77.0)),
    PairOfStrengths(
        "label_smoothing", "label_smoothing(alpha=0.1)", "label_smoothing(alpha=0.4)", (77.5, 77.35)
    ),
    PairOfStrengths(
        "logit_norm", "logit_norm(temperature=0.028)", "logit_norm(temperature=0.08)", (76.9, 76.7)
    ),
    PairOfStrengths(
        "squared_error",
        "squared_error(kappa=9, scale=1.28, target=1.88)",
        "squared_error(kappa=9, scale=1.28, target=7.5)",
        (73.4, 73.6),
    ),
)
"""The pairs of equal accuracy, fixed by the searches' holdout."""
WINDOW: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "label_smoothing": ("softmax", *(f"label_smoothing(alpha={alpha})" for alpha in (0.1, 0.2, 0.4))),
        "final_layer_l2": (
            "softmax",
            *(f"final_layer_l2(lambda_final={weight})" for weight in (0.000128, 0.0008)),
        ),
        "logit_penalty": ("softmax", *(f"logit_penalty(beta={beta})" for beta in (0.0006, 0.0024, 0.0047))),
        "sigmoid": ("sigmoid", *(f"logit_penalty(beta={beta}) + sigmoid" for beta in (0.0003, 0.0006))),
        "logit_norm": tuple(f"logit_norm(temperature={tau})" for tau in (0.028, 0.04, 0.057, 0.08)),
        "cosine_softmax": tuple(f"cosine_softmax(scale=1, temperature={tau})" for tau in (0.035, 0.05)),
    }
)
"""The strengths whose accuracy on the search's holdout is at most a point below softmax's 77.0 %; of the
sigmoid with a logit penalty, which was not searched, those that the grid expected at about 77 %."""


@dataclass(frozen=True)
class Curve:
    """A family's class separation and transfer [seed, spec] at every strength that each of its seeds has.

    `left_out` are the strengths that some seed lacks, because they diverged or were not measured.
    """

    family: str
    separation: Frame
    transfer: Frame
    left_out: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of the family."""
        return PRESETS[self.family].label

    @property
    def seeds(self) -> list[int]:
        """Its seeds."""
        return [*self.separation.index]

    @property
    def ends(self) -> tuple[float, float]:
        """The mean R² of the strengths that separate least and most."""
        means = self.separation.mean()
        return (float(means.min()), float(means.max())) if len(means) else (0.0, 0.0)

    def among(self, specs: Collection[str]) -> Curve:
        """Return the curve with some of its strengths only."""
        kept = [spec for spec in self.separation if spec in specs]
        left_out = tuple(spec for spec in self.left_out if spec in specs)
        return Curve(self.family, self.separation[kept], self.transfer[kept], left_out)

    def prices(self) -> Runs:
        """Return the slope of transfer within each seed, in points for each .1 of R²."""
        return self._of_lines(lambda line: PER * line.slope)

    def heights(self, separation: float) -> Runs:
        """Return the transfer on the line of each seed at one class separation."""
        return self._of_lines(lambda line: line.height(separation))

    def _of_lines(self, number: Callable[..., float]) -> Runs:
        import pandas as pd

        lines = {
            seed: least_squares(self.separation.loc[seed], self.transfer.loc[seed]) for seed in self.seeds
        }
        return pd.Series({seed: number(line) for seed, line in lines.items() if line}, dtype=float)


def in_family(of: Evidence, family: str, quantity: Quantity) -> Frame:
    """Return a quantity of a family's strengths [seed, spec], from the weakest to the strongest."""
    frame = of.at(family).frame(quantity)
    specs = {each.slug: each.spec for each in of.study.objectives(family)}
    frame = frame.rename(columns=specs)
    return frame[[spec for spec in strengths(of, family) if spec in frame]]


def strengths(of: Evidence, family: str) -> list[str]:
    """Return the objectives of a family as the study lists them, from the weakest to the strongest."""
    grids = of.study.grids(family)
    return list(dict.fromkeys(str(spec) for grid in grids for spec in grid.get("objectives", ())))


def curve_of(of: Evidence, family: str, quantity: Quantity = LINEAR) -> Curve | None:
    """Return the curve of a family, or None if the study has no networks of it."""
    x, y = both(in_family(of, family, SEPARATION), in_family(of, family, quantity))
    if x.empty:
        return None
    x, y = (side.dropna(how="all") for side in (x, y))
    whole = [spec for spec in x if x[spec].notna().all()]
    left_out = tuple(spec for spec in strengths(of, family) if spec not in whole)
    return Curve(family, x[whole], y[whole], left_out)


def curves(of: Evidence, quantity: Quantity = LINEAR, families: Sequence[str] = FAMILIES) -> list[Curve]:
    """Return the curves of those families that the study has."""
    found = [curve_of(of, family, quantity) for family in families]
    return [curve for curve in found if curve is not None]


def price(prices: Runs) -> Effect | None:
    """Return the effect that transfer falls by the prices of seeds, or None if it has no interval."""
    return of_mean(-prices, LEAST_PRICE) if len(prices) >= LEAST_RUNS else None


def prices(by_family: Mapping[str, Runs]) -> dict[str, Effect]:
    """Return the price of each family that can be tested, with p corrected for their number (Holm)."""
    effects = {family: price(by_seed) for family, by_seed in by_family.items()}
    return corrected({family: effect for family, effect in effects.items() if effect is not None})


def price_text(effect: Effect) -> str:
    """Return a price with its interval, where a fall is negative.

    >>> price_text(Effect(1.2, 0.8, 1.6, 0.5, p_for=0.001, p_against=0.99))
    '−1.20 (−1.60 to −0.80)'
    """
    return f"{signed(-effect.estimate, 2)} ({span(-effect.high, -effect.low, 2)})"


Judge: TypeAlias = Callable[[Evidence, Sequence[Curve], Quantity], Judged]


def on_strengths(judge: Judge, quantity: Quantity = LINEAR, families: Sequence[str] = FAMILIES) -> Rule:
    """Make a rule on the curves of families, of which the paper has none."""

    def rule(of: Evidence) -> Judged | None:
        found = [] if of.is_printed else curves(of, quantity, families)
        return judge(of, found, quantity) if found else None

    return rule


def _judged(
    verdict: Verdict, numbers: str, why: str, effects: Mapping[str, Effect], judged: bool = True
) -> Judged:
    return Judged(verdict if judged else "undecided", numbers, why, judged, tuple(effects.items()))


def _left_out(found: Sequence[Curve]) -> str:
    from penultimate.objectives.presets import resolve

    names = dict.fromkeys(resolve(spec).detailed_label for curve in found for spec in curve.left_out)
    return f" Left out, since not every seed has them: {', '.join(names)}." if names else ""


def in_every_family(within: Mapping[str, Sequence[str]] | None = None) -> Judge:
    """Return what judges if transfer falls in every family, over all strengths or those of a window."""

    def judge(of: Evidence, found: Sequence[Curve], quantity: Quantity) -> Judged:
        wanted = FAMILIES if within is None else tuple(within)
        kept = [curve if within is None else curve.among(within[curve.family]) for curve in found]
        effects = prices({curve.family: curve.prices() for curve in kept})
        counts = [len(curve.seeds) for curve in kept]
        if not effects:
            return _judged("undecided", runs_each(counts), too_few_runs(counts), {}, False)
        said = "; ".join(f"{PRESETS[name].label} {price_text(effect)}" for name, effect in effects.items())
        verdicts, words = decided(effects), []
        for verdict, what in _FALLS.items():
            names = [PRESETS[name].label for name in verdicts if verdicts[name] == verdict]
            words += [f"{what}: {listed(names)}."] if names else []
        absent = [PRESETS[name].label for name in wanted if name not in verdicts]
        words += [f"Not judged, with fewer than two strengths here: {listed(absent)}."] if absent else []
        verdict = all_of(verdicts.values())
        numbers = f"Points for each .1 of R²: {said}; {runs_each(counts)}"
        is_judged = not (verdict == "holds" and absent)
        return _judged(verdict, numbers, " ".join(words) + _left_out(kept), effects, is_judged)

    return judge


_FALLS: dict[Verdict, str] = {
    "holds": "A fall that counts is shown (corrected)",
    "does not hold": "A fall that counts is ruled out (corrected)",
    "undecided": "Open",
}


def overall_prices(found: Sequence[Curve]) -> tuple[Effect, Effect] | None:
    """Return the mean price of the families by t over seeds and by t over families, if both can be tested."""
    import pandas as pd

    table = pd.DataFrame({curve.family: curve.prices() for curve in found}).dropna(axis=1, how="all").dropna()
    if min(table.shape) < LEAST_RUNS:
        return None
    effects = of_mean(-table.mean(axis=1), LEAST_PRICE), of_mean(-table.mean(), LEAST_PRICE)
    return None if effects[0] is None or effects[1] is None else (effects[0], effects[1])


def overall(of: Evidence, found: Sequence[Curve], quantity: Quantity) -> Judged:
    """Judge the mean price of the families, by t over seeds and by t over families, which must agree."""
    counts = [len(curve.seeds) for curve in found]
    numbers = f"{counted(len(found), 'family', 'families')}, {runs_each(counts)}"
    effects = overall_prices(found)
    if effects is None:
        return _judged("undecided", numbers, too_few_runs(counts), {}, False)
    over = dict(zip(("seeds", "families"), effects, strict=True))
    verdicts = decided(over)
    told = ", ".join(f"over {name} {price_text(effect)}" for name, effect in over.items())
    why = "; ".join(f"over {name}: {verdicts[name]} ({p_value(effect.p)})" for name, effect in over.items())
    verdict = verdicts["seeds"] if len({*verdicts.values()}) == 1 else "undecided"
    numbers = f"Points for each .1 of R²: {told}; {numbers}"
    return _judged(verdict, numbers, f"{why[0].upper()}{why[1:]}.{_left_out(found)}", over)


@dataclass(frozen=True)
class JudgedPair:
    """A pair of strengths: what the strong one has more than the weak one, by seed, and its prices.

    `apart` is the p of their equal accuracy. `why_not` says why the pair does not count; empty if it does.
    """

    pair: PairOfStrengths
    separation: Runs | None = None
    transfer: Runs | None = None
    accuracy: Runs | None = None
    apart: float | None = None
    prices: Runs | None = None
    why_not: str = ""


def judged_pair(of: Evidence, pair: PairOfStrengths, quantity: Quantity = LINEAR) -> JudgedPair:
    """Return a pair with its differences, and whether it counts: equal accuracy, and R² that rises."""
    import pandas as pd

    frames = [in_family(of, pair.family, each) for each in (SEPARATION, quantity, ACCURACY)]
    for spec in (pair.weak, pair.strong):
        if not all(spec in frame for frame in frames):
            return JudgedPair(pair, why_not=f"no network of {spec}")
    gains = [(frame[pair.strong] - frame[pair.weak]).dropna() for frame in frames]
    table = pd.concat(gains, axis=1, join="inner", keys=["separation", "transfer", "accuracy"])
    if len(table) < LEAST_RUNS:
        return JudgedPair(pair, why_not=f"{counted(len(table), 'common seed')}")
    apart, by = equivalence(table["accuracy"], EQUAL), float(table["separation"].mean())
    why_not = ""
    if table["separation"].min() <= 0:
        why_not = "R² does not rise in every seed"
    elif apart is None or apart > LEVEL:
        why_not = f"equal accuracy is not shown ({p_value(1.0 if apart is None else apart)})"
    found = PER * table["transfer"] / by if by > 0 else None
    return JudgedPair(pair, table["separation"], table["transfer"], table["accuracy"], apart, found, why_not)


def mean_of_pairs(pairs: Sequence[JudgedPair]) -> Effect | None:
    """Return the mean price within seeds of the pairs that count, or None if none can be tested."""
    import pandas as pd

    counting = [one.prices for one in pairs if not one.why_not and one.prices is not None]
    return price(pd.concat(counting, axis=1, join="inner").mean(axis=1)) if counting else None


def at_equal_accuracy(of: Evidence, found: Sequence[Curve], quantity: Quantity) -> Judged:
    """Judge the mean price of those pairs that are equally accurate and whose R² rises."""
    every = [judged_pair(of, pair, quantity) for pair in PAIRS]
    counting = [one for one in every if not one.why_not]
    others = "".join(
        f" Not judged: {PRESETS[one.pair.family].label}, {one.why_not}." for one in every if one.why_not
    )
    effect = mean_of_pairs(every)
    if effect is None:
        return _judged("undecided", "–", f"No pair of strengths counts.{others}", {}, False)
    said = "; ".join(
        f"{PRESETS[one.pair.family].label} {signed(float(one.transfer.mean()), 2)} points at"
        f" {signed(float(one.separation.mean()), 3)} of R² and"
        f" {signed(float(one.accuracy.mean()), 2)} of accuracy"
        for one in counting
        if one.transfer is not None and one.separation is not None and one.accuracy is not None
    )
    pairs = counted(len(counting), "pair")
    numbers = f"{price_text(effect)} points for each .1 of R², the mean of {pairs}: {said}"
    verdict = decide(effect)
    what = {"holds": "is shown", "does not hold": "is ruled out"}.get(
        verdict, "is neither shown nor ruled out"
    )
    why = f"A fall of {LEAST_PRICE:g} points or more for each .1 of R² {what} ({p_value(effect.p)}).{others}"
    return _judged(verdict, numbers, why, {"mean": effect})


def on_one_line(of: Evidence, found: Sequence[Curve], quantity: Quantity) -> Judged:
    """Judge whether families share a line: their transfer at one R², and their slopes.

    By an analysis of variance (families x seeds, with their interaction as error), corrected for two tests.
    """
    found = [each for each in found if each.family not in WITHOUT_A_LINE and each.separation.shape[1] > 1]
    read = [curve for curve in found if curve.ends[0] <= ONE_PLACE <= curve.ends[1]]
    seeds = [curve.seeds for curve in found]
    runs = [len(of_curve) for of_curve in seeds] or [0]
    counts = f"{counted(len(read), 'family', 'families')}, {runs_each(runs)}"
    beyond = [curve.label for curve in found if curve not in read]
    note = f" Not read at R² = {fixed(ONE_PLACE, 2)}, which it does not reach: {listed(beyond)}." * bool(
        beyond
    )
    note += _left_out(found)
    if min(runs) < LEAST_RUNS or any(of_curve != seeds[0] for of_curve in seeds):
        return _judged("undecided", counts, too_few_runs(runs), {}, False)
    if len(read) < 2:
        why = f"Fewer than two families reach R² = {fixed(ONE_PLACE, 2)}.{note}"
        return _judged("undecided", counts, why, {}, False)
    sides = {
        f"transfer at R² = {fixed(ONE_PLACE, 2)}": {curve.family: curve.heights(ONE_PLACE) for curve in read},
        "price for each .1 of R²": {curve.family: curve.prices() for curve in found},
    }
    tests = {name: _families_differ(columns) for name, columns in sides.items()}
    p_values = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    ranges = {name: _range(columns) for name, columns in sides.items()}
    numbers = "; ".join(
        f"{name}: {fixed(ranges[name], 2)} points apart, F({test.degrees_of_freedom},"
        f" {test.error_degrees_of_freedom}) = {fixed(test.f, 1)}, {p_value(p_values[name])} corrected"
        for name, test in tests.items()
    )
    numbers = f"{numbers[0].upper()}{numbers[1:]}; {counts}"
    differ = [name for name in tests if p_values[name] <= LEVEL and ranges[name] >= LEAST_RANGE]
    points = f"{LEAST_RANGE:g} points"
    if differ:
        why = f"The families differ beyond chance, by {points} or more: {listed(differ)}.{note}"
        return _judged("does not hold", numbers, why, {})
    if all(_all_near(columns) for columns in sides.values()):
        return _judged("holds", numbers, f"Every two families are shown to be within {points}.{note}", {})
    return _judged("undecided", numbers, f"A range of {points} is neither shown nor ruled out.{note}", {})


def _families_differ(columns: Mapping[str, Runs]) -> Anova:
    """Return the analysis of variance of families, with seeds as blocks and one value in every cell."""
    return two_way_anova(
        {
            family: {str(seed): [float(value)] for seed, value in runs.items()}
            for family, runs in columns.items()
        }
    )


def _range(columns: Mapping[str, Runs]) -> float:
    means = [float(runs.mean()) for runs in columns.values()]
    return max(means) - min(means)


def _all_near(columns: Mapping[str, Runs]) -> bool:
    """Return whether every two families are shown to be within the margin (two one-sided tests)."""
    tests = [
        equivalence((one - other).dropna(), LEAST_RANGE)
        for one, other in itertools.combinations(columns.values(), 2)
    ]
    return all(p is not None and p <= LEVEL for p in tests)


def reading(of: Evidence, found: Sequence[Curve], quantity: Quantity) -> Judged:
    """Judge the paper's reading: by what refutes it, by whether the study is silent, and by pairs."""
    pairs, line = at_equal_accuracy(of, found, quantity), on_one_line(of, found, quantity)
    rises = [price(curve.prices()) for curve in found]
    p_values = holm([1.0 if effect is None else 1 - effect.p_for for effect in rises])
    upwards = [curve.label for curve, p in zip(found, p_values, strict=True) if p <= ONE_SIDED]
    refuted = [
        *(["at equal accuracy a fall that counts is ruled out"] if pairs.verdict == "does not hold" else []),
        *([f"transfer rises with R² in {listed(upwards)}"] if upwards else []),
        *(["the families lie on different lines"] if line.verdict == "does not hold" else []),
    ]
    in_window = [curve.among(WINDOW[curve.family]) for curve in found if curve.family in WINDOW]
    loud = sum(curve.ends[1] - curve.ends[0] >= SPAN for curve in in_window)
    families = counted(loud, "family", "families")
    spans = f"{families} of the {LEAST_FAMILIES} needed span {fixed(SPAN, 2)} of R² at comparable accuracy"
    numbers = f"{pairs.numbers if pairs.judged else 'No pair of strengths counts'}; {spans}"
    few = [len(curve.seeds) for curve in found]
    effects = dict(pairs.effects)
    if refuted:
        return _judged("does not hold", numbers, f"Rejected: {'; '.join(refuted)}.", effects)
    if min(few) < LEAST_RUNS:
        return _judged("undecided", numbers, too_few_runs(few), effects, False)
    if loud < LEAST_FAMILIES:
        return _judged("undecided", numbers, f"Silent: {spans}.", effects, False)
    verdict: Verdict = "holds" if pairs.verdict == "holds" else "undecided"
    word = "Confirmed" if verdict == "holds" else "Open"
    return _judged(verdict, numbers, f"{word} at equal accuracy, and not rejected. {pairs.reason}", effects)


def at_papers_strengths(of: Evidence) -> Judged | None:
    """Judge the main claim at the strengths that the paper prints."""
    found = None if of.is_printed else ranked(SEPARATION, LINEAR, -1)(of.at(PAPERS_STRENGTHS))
    return verdict_on(found) if found is not None and not isinstance(found, Judged) else None
