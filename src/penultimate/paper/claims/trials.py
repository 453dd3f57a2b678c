"""What a rule tests, and the one template that turns effects with intervals into a verdict and words.

A rule yields effects, each with a unit and, where there are several, a name. Here they are decided, corrected
for their number, and worded: the numbers in a line, and the reason in one of four sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from penultimate.paper.claims.aspects import Aspect, is_ratio, unit_of
from penultimate.paper.claims.criteria import CRITERIA, Criteria
from penultimate.paper.claims.effects import Effect, Verdict, all_of, each, needed_units, negated
from penultimate.report.base import MISSING, Missing
from penultimate.report.text import counted, fixed, listed, p_value, signed

COPIES = "No spread at all between runs: they are copies of each other, and count as one."
SENTENCES = {
    "shown": "Beyond chance{p}, and estimated at {least}{names}.",
    "small": "Beyond chance{p}, but {least} is neither shown nor excluded{names}.",
    "excluded": "Excluded{p}: {least}{names}.",
    "open": "Neither shown nor excluded{p}: {least}{names}.",
}
"""The reasons for a verdict, by what became of an effect; {least} is the smallest effect that counts."""


@dataclass(frozen=True)
class Assessment:
    """What a study, or the paper, says about a claim: its numbers in a line, the verdict, and the reason.

    `judged` is false if too little was measured for the rule to be applied, which leaves the claim undecided
    too. `missing` says what has to be measured if nothing was.
    """

    ours: str
    verdict: Verdict
    reason: str
    judged: bool = True
    missing: Missing | None = None


@dataclass(frozen=True)
class EffectUnit:
    """The unit of an effect: words around its number, and its decimals."""

    text: str
    digits: int = 2
    has_sign: bool = True

    def of(self, value: float) -> str:
        """Return a value with its unit.

        >>> EffectUnit("{} points of linear transfer").of(0.234), EffectUnit("ρ = {}").of(-0.5)
        ('+0.23 points of linear transfer', 'ρ = −0.50')
        """
        return self.text.format((signed if self.has_sign else fixed)(value, self.digits))

    def either_way(self, margin: float) -> str:
        """Return words for an effect that counts, up or down.

        >>> RHO.either_way(0.5)
        'ρ = ±0.50 or beyond'
        """
        return f"{self.text.format(f'±{fixed(margin, self.digits)}')} or beyond"


RHO = EffectUnit("ρ = {}")


def unit(aspect: Aspect) -> EffectUnit:
    """Return the unit of a difference in an aspect."""
    return EffectUnit(f"{{}} {unit_of(aspect)}", 3 if is_ratio(aspect) else 2)


@dataclass(frozen=True)
class Trial:
    """One effect that a rule tests, signed so that the claim says that it is positive, or denies it.

    name    what the effect is of, if a rule has several
    denied  whether the claim says that there is no such effect
    sign    -1 if the number is shown with the other sign, `offset` what is added to it then
    runs    the number of runs, objectives or temperatures behind it, which are those of `over`
    note    words beside p, and `level` words beside the interval
    times   for how many comparisons p is corrected already
    least   words for the smallest effect that counts, if they do not follow from the margin
    """

    effect: Effect
    unit: EffectUnit
    name: str = ""
    denied: bool = False
    sign: int = 1
    offset: float = 0.0
    runs: int = 0
    over: str = "seed"
    note: str = ""
    least: str = ""
    level: str = ""
    times: int = 1

    def shown(self, value: float) -> float:
        return self.offset + self.sign * value

    @property
    def text(self) -> str:
        """The name, the estimate with its unit, and its interval, if there is one."""
        size = self.unit.of(self.shown(self.effect.estimate))
        low, high = sorted((self.shown(self.effect.low), self.shown(self.effect.high)))
        if self.is_tested and low < high:
            size += f" ({range_text(low, high, self.unit.digits)}{self.level})"
        return f"{self.name}, {size}" if self.name else size

    @property
    def is_tested(self) -> bool:
        """Whether the effect has an interval, or is of printed means, which have none."""
        return math.isfinite(self.effect.low)

    @property
    def least_text(self) -> str:
        """Words for the smallest effect that counts."""
        beyond = "more" if self.sign > 0 else "less"
        return self.least or f"{self.unit.of(self.shown(self.effect.margin))} or {beyond}"

    @property
    def favour(self) -> float:
        """How far the estimate lies on the claim's side of the smallest effect that counts."""
        surplus = self.effect.estimate - self.effect.margin
        return -surplus if self.denied else surplus

    def became(self, verdict: Verdict, criteria: Criteria) -> str:
        """Return which of the sentences holds of the effect, by the verdict on its part of the claim."""
        if verdict != "undecided":
            return "shown" if (verdict == "holds") != self.denied else "excluded"
        beyond = self.effect.low > 0 and self.effect.p_for <= criteria.one_sided
        return "small" if beyond else "open"

    def cannot_exclude(self, criteria: Criteria) -> bool:
        """Return whether the interval is too wide to exclude an effect that counts, wherever it lay."""
        if self.over == "objective":
            z = NormalDist().inv_cdf(1 - criteria.one_sided)
            return math.tanh(z / math.sqrt(self.runs - 3)) >= self.effect.margin
        return (self.effect.high - self.effect.low) / 2 >= self.effect.margin

    def p_text(self, became: str) -> str:
        p = self.effect.p if became != "excluded" else min(1.0, 2 * self.effect.p_against)
        return f" ({p_value(p)}{f', {self.note}' if self.note else ''})"


@dataclass(frozen=True)
class Trials:
    """The effects that a rule tests, in groups, of which `needed` must agree with the claim.

    A group agrees if all its effects do; if `any_of`, one that is not as denied is enough. Most rules have a
    single group. `lead` and `extent` are words before and after the numbers, `noun` names an effect and
    `of_groups` a group. `absent` are names that a claim about all lacks, `refusal` says why nothing can be
    judged, `missing` what was not measured, and `remark` follows the reason. Without `numbers`, `lead` has
    them.
    """

    groups: Mapping[str, Sequence[Trial]]
    needed: int = 1
    any_of: bool = False
    lead: str = ""
    extent: str = ""
    noun: str = "alternative"
    of_groups: str = "task"
    absent: tuple[str, ...] = ()
    refusal: str = ""
    missing: Missing | None = None
    remark: str = ""
    numbers: bool = True

    @property
    def every(self) -> list[Trial]:
        """The effects of all groups."""
        return [trial for group in self.groups.values() for trial in group]

    @property
    def text(self) -> str:
        """The numbers in a line: all effects if they are few, or the one least in the claim's favour."""
        named = list({trial.name: trial for trial in reversed(self.every)}.values())[::-1]
        if len(self.groups) > 1 or not self.numbers:
            named = []
        elif len(named) > 3:
            worst = min(self.every, key=lambda trial: trial.favour)
            which = "most" if self.any_of else "least"
            return _joined(self.lead, f"{which} in its favour: {worst.text}", self.extent)
        return _joined(self.lead, "; ".join(trial.text for trial in named), self.extent)


def _joined(lead: str, numbers: str, extent: str) -> str:
    start = "; ".join(filter(None, (lead, numbers)))
    return ", ".join(filter(None, (start, extent))) or MISSING


def one(trial: Trial, extent: str = "", lead: str = "", refusal: str = "") -> Trials:
    """Return the trials of a rule that tests a single effect."""
    return Trials({"": (trial,)}, lead=lead, extent=extent, refusal=refusal)


def refused(text: str, why: str) -> Trials:
    """Return trials of which none can be judged, for a reason."""
    return Trials({}, lead=text, refusal=why)


def not_judged(ours: str, reason: str) -> Assessment:
    """Return the assessment for the case that a rule cannot be applied."""
    return Assessment(ours, "undecided", reason, judged=False)


def unmeasured(what: str, command: str) -> Assessment:
    """Return the assessment for the case that nothing was measured."""
    return assess(Trials({}, missing=Missing(f"{what[0].upper()}{what[1:]}", command)), CRITERIA)


def assess(trials: Trials, criteria: Criteria, exact: bool = False) -> Assessment:
    """Return the verdict of a rule on its trials; if `exact`, the means of single runs can be judged too."""
    if trials.missing is not None:
        return Assessment(MISSING, "undecided", str(trials.missing), False, trials.missing)
    least = 0 if exact else criteria.least_runs.value
    tested = {
        name: [trial for trial in group if trial.is_tested and trial.runs >= least]
        for name, group in trials.groups.items()
    }
    if not trials.refusal and not any(tested.values()):
        counts = [trial.runs for trial in trials.every]
        few = min(counts, default=0) < least
        return not_judged(trials.text, not_enough_runs(counts, criteria) if few else COPIES)
    if trials.refusal:
        return not_judged(trials.text, trials.refusal)
    return _decided(trials, tested, criteria)


def _decided(trials: Trials, tested: Mapping[str, Sequence[Trial]], criteria: Criteria) -> Assessment:
    total, needed = len(tested), trials.needed if len(tested) > 1 else 1
    each_trial = {
        name: _verdicts(group, criteria, total - needed + 1, needed, trials.any_of)
        for name, group in tested.items()
    }
    of_groups: list[Verdict] = []
    for found in each_trial.values():
        whole = all_of(found)
        of_groups.append(negated(whole) if trials.any_of else whole)
    verdict: Verdict = "undecided"
    if of_groups.count("holds") >= needed:
        verdict = "holds"
    elif of_groups.count("does not hold") > total - needed:
        verdict = "does not hold"
    left = {trial.name for trial in trials.every} - {
        trial.name for group in tested.values() for trial in group
    }
    absent = [*trials.absent, *(trial.name for trial in trials.every if trial.name in left)]
    if verdict == "holds" and absent and not trials.any_of:
        why = f"It holds for all but {listed(list(dict.fromkeys(absent)))}: too few runs, or none."
        return not_judged(trials.text, why)
    if total > 1:
        against = total - needed + 1
        why = (
            f"{of_groups.count('holds')} of {total} {trials.of_groups}s bear it out beyond chance,"
            f" {of_groups.count('does not hold')} contradict it (corrected); it takes {needed}, or {against}"
            " against it."
        )
    else:
        ((group, found),) = zip(tested.values(), each_trial.values(), strict=True)
        own = negated(verdict) if trials.any_of else verdict
        why = _reason(
            [(t, one) for t, one in zip(group, found, strict=True) if one == own],
            len(group),
            trials,
            criteria,
        )
    if verdict == "undecided":
        why += _what_would_decide(tested, needed, trials.any_of, criteria)
    return Assessment(trials.text, verdict, f"{why}{_limits(tested, criteria)}{trials.remark}")


def _verdicts(
    group: Sequence[Trial], criteria: Criteria, times_for: int, times_against: int, any_of: bool
) -> list[Verdict]:
    """Return the verdict on each effect of a group, corrected for the number of effects and of groups."""
    if any_of:
        times_for, times_against = times_against, times_for
    effects = {str(place): trial.effect for place, trial in enumerate(group)}
    denied = [str(place) for place, trial in enumerate(group) if trial.denied]
    return list(each(effects, denied, criteria, times_for, times_against).values())


def _reason(decisive: Sequence[tuple[Trial, Verdict]], total: int, trials: Trials, criteria: Criteria) -> str:
    """Return the sentences on the effects that decided, those of one kind and size together."""
    sets: dict[tuple[str, str], list[Trial]] = {}
    for trial, verdict in decisive:
        sets.setdefault((trial.became(verdict, criteria), trial.least_text), []).append(trial)
    said = []
    for (became, least), of_set in sets.items():
        names = list(dict.fromkeys(trial.name for trial in of_set if trial.name))
        every = {trial.name for trial in trials.every}
        all_named = len(names) > 2 and {*names} == every
        which = f"each of {counted(len(names), trials.noun)}" if all_named else listed(names)
        p = (
            of_set[0].p_text(became)
            if total == 1
            else " (corrected)"
            if _is_corrected(of_set[0], became)
            else ""
        )
        said.append(SENTENCES[became].format(p=p, least=least, names=f" for {which}" if names else ""))
    return " ".join(said)


def _is_corrected(trial: Trial, became: str) -> bool:
    """Return whether a result contradicts the claim, and so was corrected for the number of effects."""
    return became == ("shown" if trial.denied else "excluded")


def _limits(tested: Mapping[str, Sequence[Trial]], criteria: Criteria) -> str:
    """Return a sentence if these data are too few to show the claim, whatever their estimates were.

    That is so of a claim that there is no difference either way, if an interval is wider than the margins.
    """
    for group in tested.values():
        denied = [trial for trial in group if trial.denied]
        for trial in denied:
            both = [other for other in denied if other.name == trial.name and other.sign != trial.sign]
            if both and trial.cannot_exclude(criteria):
                return " These data can refute the claim, not show it: their interval is too wide for that."
    return ""


def _what_would_decide(
    tested: Mapping[str, Sequence[Trial]], needed: int, any_of: bool, criteria: Criteria
) -> str:
    """Return a sentence on the number of runs or objectives that would decide, with the estimates as here."""
    group_needs, over, total = [], "seed", len(tested)
    needed = needed if total > 1 else 1
    for group in tested.values():
        needs = []
        for trial in group:
            times = total - needed + 1 if (trial.favour >= 0) != any_of else needed * len(group)
            units = needed_units(trial.effect, trial.runs, trial.over, criteria, times * trial.times)
            if units is None:
                return ""
            over = trial.over
            needs.append((trial.favour >= 0, units))
        against = [units for agrees, units in needs if not agrees]
        first = (False, min(against)) if against else (True, max((units for _, units in needs), default=0))
        group_needs.append((first[0] != any_of, first[1]))  # one that is not as denied is enough
    for agrees, enough in ((True, needed), (False, total - needed + 1)):
        counts = sorted(count for side, count in group_needs if side is agrees)
        if len(counts) >= enough:
            count = max(counts[enough - 1], 1)
            return f" With the same estimates about {count:,} {over}s would decide it."
    return ""


def not_enough_runs(counts: Iterable[int], criteria: Criteria) -> str:
    """Return the reason why these runs are too few to decide anything.

    >>> from penultimate.paper.claims.criteria import CRITERIA
    >>> not_enough_runs([1, 1], CRITERIA)
    'One run each: too few to know how far runs differ by chance; three runs each are needed.'
    """
    runs = runs_each(counts)
    least = counted(int(criteria.least_runs.value), "run")
    few = f"{runs[0].upper()}{runs[1:]}: too few to know how far runs differ by chance"
    return f"{few}; {least} each are needed."


def too_few(count: int, enough: int, noun: str) -> str:
    """Return the reason why these objectives or temperatures are too few to decide anything."""
    return f"Too few: {counted(count, noun)}; {counted(enough, noun)} or more are needed."


def runs_each(counts: Iterable[int]) -> str:
    """Return the number of runs behind each mean, in words.

    >>> runs_each([5, 5]), runs_each([3, 5])
    ('five runs each', '3 to 5 runs each')
    """
    low, high = min(counts := list(counts)), max(counts)
    return f"{counted(low, 'run')} each" if low == high else f"{low} to {high} runs each"


def range_text(low: float, high: float, digits: int) -> str:
    """Return the ends of an interval.

    >>> range_text(-0.987, -0.675, 2)
    '−0.99 to −0.68'
    """
    return f"{fixed(low, digits)} to {fixed(high, digits)}"
