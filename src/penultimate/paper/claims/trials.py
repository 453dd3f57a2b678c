"""What a rule tests, and the one template that turns it into a verdict and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penultimate.paper.claims.effects import Effect, Verdict, all_of, decide, each, negated
from penultimate.paper.claims.margins import LEAST_RUNS, ONE_SIDED
from penultimate.results.text import counted, fixed, listed, p_value, signed

COPIES = "All runs are copies of each other, and count as one."
WORDS = {
    "shown": "is shown",
    "excluded": "is ruled out",
    "small": "is neither shown nor ruled out, though the effect is beyond chance",
    "open": "is neither shown nor ruled out",
}


@dataclass(frozen=True)
class Unit:
    """The unit of an effect: words around its number, and its decimals.

    >>> Unit("{} points of linear transfer").of(0.234), Unit("ρ = {}").of(-0.5)
    ('+0.23 points of linear transfer', 'ρ = −0.50')
    """

    text: str
    digits: int = 2
    has_sign: bool = True

    def of(self, value: float) -> str:
        """Return a value with its unit."""
        return self.text.format((signed if self.has_sign else fixed)(value, self.digits))


RHO, MEAN_RHO = Unit("ρ = {}"), Unit("mean ρ = {}")


@dataclass(frozen=True)
class Trial:
    """One effect that a rule tests, signed so that the claim says that it is positive, or denies it.

    `sign` is -1 if the number is shown with the other sign, and `offset` is added to it then; `runs` are the
    seeds or objectives behind it, and `least` are words for what counts, if they do not follow from the
    margin.
    """

    effect: Effect
    unit: Unit
    name: str = ""
    denied: bool = False
    sign: int = 1
    runs: int = 0
    least: str = ""
    offset: float = 0.0

    @property
    def is_tested(self) -> bool:
        """Whether the effect has an interval, or is of printed means, which have none."""
        return math.isfinite(self.effect.low)

    @property
    def text(self) -> str:
        """The name, the estimate with its unit, and its interval, if there is one."""
        size = self.unit.of(self._shown(self.effect.estimate))
        ends = self._shown(self.effect.low), self._shown(self.effect.high)
        if self.is_tested and ends[0] != ends[1]:
            size += f" ({span(*ends, self.unit.digits)})"
        return f"{self.name}, {size}" if self.name else size

    def _shown(self, value: float) -> float:
        return self.offset + self.sign * value

    @property
    def favour(self) -> float:
        """How far the estimate lies on the claim's side of the smallest effect that counts."""
        surplus = self.effect.estimate - self.effect.margin
        return -surplus if self.denied else surplus

    def became(self, verdict: Verdict) -> str:
        """Return what is said of an effect that counts (a key of WORDS)."""
        if verdict != "undecided":
            return "shown" if (verdict == "holds") != self.denied else "excluded"
        return "small" if self.effect.low > 0 and self.effect.p_for <= ONE_SIDED else "open"

    @property
    def what_counts(self) -> str:
        """Words for an effect that counts."""
        beyond = "more" if self.sign > 0 else "less"
        return self.least or f"{self.unit.of(self._shown(self.effect.margin))} or {beyond}"


@dataclass(frozen=True)
class Trials:
    """The effects that a rule tests, in groups, of which `needed` must agree with the claim.

    A group agrees if all its effects do; with `any_of`, one that is not as denied is enough. `lead` stands
    before the numbers, and `of_groups` names a group. `absent` are names that a claim about
    all lacks, and `refusal` says why nothing can be judged. Without `tells`, the lead has the numbers.
    """

    groups: Mapping[str, Sequence[Trial]]
    needed: int = 1
    any_of: bool = False
    lead: str = ""
    of_groups: str = "task"
    absent: Sequence[str] = ()
    refusal: str = ""
    remark: str = ""
    tells: bool = True

    @property
    def every(self) -> list[Trial]:
        """The effects of all groups."""
        return [trial for group in self.groups.values() for trial in group]


@dataclass(frozen=True)
class Judged:
    """What a run, or the paper, says of a claim: the verdict, the numbers in a line, and the reason.

    `judged` is false if too little was measured for the rule to be applied, which leaves the claim undecided
    too. `effects` are those that the verdict rests on, by name.
    """

    verdict: Verdict
    numbers: str
    reason: str
    judged: bool = True
    effects: tuple[tuple[str, Effect], ...] = ()


def alone(trial: Trial, lead: str = "", refusal: str = "") -> Trials:
    """Return the trials of a rule that tests a single effect."""
    return Trials({"": (trial,)}, lead=lead, refusal=refusal)


def refused(numbers: str, why: str) -> Trials:
    """Return trials of which none can be judged, for a reason."""
    return Trials({}, lead=numbers, refusal=why)


def verdict_on(trials: Trials, printed: bool = False) -> Judged:
    """Return the verdict of a rule on its trials; printed means are judged without an interval."""
    least = 0 if printed else LEAST_RUNS
    tested = {
        name: [trial for trial in group if trial.is_tested and trial.runs >= least]
        for name, group in trials.groups.items()
    }
    effects = tuple(
        (f"{name}/{trial.name}".strip("/"), trial.effect)
        for name, group in trials.groups.items()
        for trial in group
    )
    open_ = Judged("undecided", _numbers(trials), trials.refusal, False, effects)
    if trials.refusal:
        return open_
    if not any(tested.values()):
        runs = [trial.runs for trial in trials.every]
        return replace(open_, reason=too_few_runs(runs) if min(runs, default=0) < least else COPIES)
    total, needed = len(tested), trials.needed if len(tested) > 1 else 1
    found = {name: _each(group, total, needed, trials.any_of) for name, group in tested.items()}
    of_groups = [negated(all_of(of)) if trials.any_of else all_of(of) for of in found.values()]
    verdict: Verdict = "undecided"
    if of_groups.count("holds") >= needed:
        verdict = "holds"
    elif of_groups.count("does not hold") > total - needed:
        verdict = "does not hold"
    left = {trial.name for trial in trials.every} - {each.name for of in tested.values() for each in of}
    absent = list(dict.fromkeys([*trials.absent, *(each.name for each in trials.every if each.name in left)]))
    if verdict == "holds" and absent and not trials.any_of:
        return replace(open_, reason=f"It holds for all but {listed(absent)}: too few runs, or none.")
    if total > 1:
        agree, against = of_groups.count("holds"), of_groups.count("does not hold")
        reason = (
            f"Of {counted(total, trials.of_groups)} {agree} bear it out beyond chance and {against}"
            f" contradict it; it takes {needed}, or {total - needed + 1} against it."
        )
    else:
        ((group, verdicts),) = zip(tested.values(), found.values(), strict=True)
        own = negated(verdict) if trials.any_of else verdict
        reason = _reason(
            [trial for trial, one in zip(group, verdicts, strict=True) if one == own], own, group
        )
    return replace(open_, verdict=verdict, judged=True, reason=f"{reason}{trials.remark}")


def _each(group: Sequence[Trial], total: int, needed: int, any_of: bool) -> list[Verdict]:
    """Return the verdict on each effect of a group, corrected for the number of effects and of groups."""
    times = (needed, total - needed + 1) if any_of else (total - needed + 1, needed)
    denied = [place for place, trial in enumerate(group) if trial.denied]
    return each([trial.effect for trial in group], denied, *times)


def _numbers(trials: Trials) -> str:
    """Return the numbers in a line: all effects if they are few, or the one least in the claim's favour."""
    named = list({trial.name: trial for trial in reversed(trials.every)}.values())[::-1]
    shown = "" if len(trials.groups) > 1 or not trials.tells else "; ".join(trial.text for trial in named)
    if shown and len(named) > 3:
        worst = min(trials.every, key=lambda trial: trial.favour)
        shown = f"{'most' if trials.any_of else 'least'} in its favour: {worst.text}"
    runs = (
        dict.fromkeys((min(counts), max(counts))) if (counts := [each.runs for each in trials.every]) else ()
    )
    n = f"n = {' to '.join(map(str, runs))}" if {*runs} - {0, 1} else ""
    return "; ".join(filter(None, (trials.lead, shown, n))) or "–"


def _reason(decisive: Sequence[Trial], verdict: Verdict, group: Sequence[Trial]) -> str:
    """Return the sentences on the effects that decided, those of one kind and size together."""
    sets: dict[tuple[str, str], list[Trial]] = {}
    for trial in decisive:
        sets.setdefault((trial.became(verdict), trial.what_counts), []).append(trial)
    said = []
    for (became, counts), of_set in sets.items():
        names = list(dict.fromkeys(trial.name for trial in of_set if trial.name))
        whom = f" for {listed(names)}" if names and {*names} != {each.name for each in group} else ""
        p = p_of(of_set[0].effect, became) if len(group) == 1 else ""
        said.append(f"{counts[0].upper()}{counts[1:]} {WORDS[became]}{p}{whom}.")
    return " ".join(said)


def p_of(effect: Effect, became: str) -> str:
    """Return p in brackets: that of the claimed effect, or of one that counts if it is ruled out."""
    return f" ({p_value(effect.p if became != 'excluded' else min(1.0, 2 * effect.p_against))})"


def decided(effects: Mapping[str, Effect]) -> dict[str, Verdict]:
    """Return the verdict on each effect."""
    return {name: decide(effect) for name, effect in effects.items()}


def too_few_runs(counts: Iterable[int]) -> str:
    """Return the reason why these runs are too few to decide anything.

    >>> too_few_runs([1, 1])
    'One run each: too few to know how far runs differ by chance; three runs each are needed.'
    """
    runs = runs_each(counts)
    few = f"{runs[0].upper()}{runs[1:]}: too few to know how far runs differ by chance"
    return f"{few}; {counted(LEAST_RUNS, 'run')} each are needed."


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


def span(one: float, other: float, digits: int) -> str:
    """Return the ends of an interval, the lower one first.

    >>> span(-0.675, -0.987, 2)
    '−0.99 to −0.68'
    """
    low, high = sorted((one, other))
    return f"{fixed(low, digits)} to {fixed(high, digits)}"
