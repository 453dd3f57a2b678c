"""The verdict on effects and its words: one decision and one template for all claims.

With e the estimate, m the smallest effect that counts and a the one-sided level,

    holds          e >= m, and "no effect, or the opposite one" is rejected at a
    does not hold  "an effect of m or more" is rejected at a
    undecided      otherwise
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penultimate.paper.claims.effects import Effect
from penultimate.paper.claims.filed import LEAST_RUNS, ONE_SIDED
from penultimate.results.text import counted, in_words, listed
from penultimate.statistics import holm

Verdict: TypeAlias = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True)
class Judged:
    """What a run, or the paper, says of a claim: the verdict, the numbers in a line, and the reason.

    `judged` is false if too little was measured for the rule to be applied, which leaves the claim undecided
    too. `effects` are those that the verdict rests on.
    """

    verdict: Verdict
    numbers: str
    reason: str
    judged: bool = True
    effects: tuple[Effect, ...] = ()


def decide(effect: Effect) -> Verdict:
    """Return the verdict on an effect.

    >>> decide(Effect(estimate=0.9, low=0.7, high=1.1, margin=0.2, p_for=1e-6, p_against=1.0))
    'holds'
    >>> decide(Effect(estimate=0.0, low=-0.1, high=0.1, margin=0.2, p_for=0.5, p_against=0.001))
    'does not hold'
    >>> decide(Effect(estimate=0.9, low=-0.5, high=2.3, margin=0.2, p_for=0.1, p_against=0.8))
    'undecided'
    """
    if effect.estimate >= effect.margin and effect.low > 0 and effect.p_for <= ONE_SIDED:
        return "holds"
    if effect.high < effect.margin and effect.p_against <= ONE_SIDED:
        return "does not hold"
    return "undecided"


def negated(verdict: Verdict) -> Verdict:
    """Return the verdict on the contrary claim."""
    opposite: dict[Verdict, Verdict] = {"holds": "does not hold", "does not hold": "holds"}
    return opposite.get(verdict, "undecided")


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on "each of these claims": holds if all do, fails if one does not.

    >>> all_of(["holds", "undecided"]), all_of(["undecided", "does not hold"])
    ('undecided', 'does not hold')
    """
    met = {*verdicts}
    if "does not hold" in met:
        return "does not hold"
    return "holds" if met == {"holds"} else "undecided"


def each(effects: Sequence[Effect], times_for: int = 1, times_against: int = 1) -> list[Verdict]:
    """Return the verdict on each effect, if the claim is that all exist but those that it denies.

    For the claim, each effect is tested by itself; against it, they are corrected for their number (Holm). If
    the claim itself is one of several, p values for it and against it are first multiplied by two factors.
    """
    against = holm([one.p_for if one.denied else one.p_against for one in effects])
    verdicts: list[Verdict] = []
    for one, p in zip(effects, against, strict=True):
        if one.denied:
            turned = replace(one, p_for=p * times_against, p_against=one.p_against * times_for)
            verdicts.append(negated(decide(turned)))
        else:
            verdicts.append(decide(replace(one, p_for=one.p_for * times_for, p_against=p * times_against)))
    return verdicts


def not_judged(numbers: str, reason: str, effects: Sequence[Effect] = ()) -> Judged:
    """Return that a claim cannot be judged, for a reason."""
    return Judged("undecided", numbers or "–", reason, False, tuple(effects))


def judge_groups(
    groups: Mapping[str, Sequence[Effect]],
    needed: int = 1,
    *,
    any_of: bool = False,
    lead: str = "",
    noun: str = "task",
    absent: Sequence[str] = (),
    why_not: str = "",
) -> Judged:
    """Return the verdict on groups of effects, of which `needed` must agree with the claim.

    A group agrees if all its effects do; with `any_of`, one that is not as denied is enough. `lead` stands
    before the numbers, `noun` names a group, `absent` are names that a claim about all lacks, and `why_not`
    says why nothing can be judged.
    """
    effects = [
        replace(one, name=f"{name}/{one.name}".strip("/")) for name, group in groups.items() for one in group
    ]
    every = [one for group in groups.values() for one in group]
    numbers = _numbers(every, lead, is_one=len(groups) == 1, any_of=any_of)
    tested = {name: [one for one in group if one.tested] for name, group in groups.items()}
    if why_not or not any(tested.values()):
        return not_judged(numbers, why_not or too_few([one.n for one in every], LEAST_RUNS, "run"), effects)
    total = len(groups)
    needed = needed if total > 1 else 1
    times = (needed, total - needed + 1) if any_of else (total - needed + 1, needed)
    found = {name: each(group, *times) for name, group in tested.items()}
    of_groups = [negated(all_of(of)) if any_of else all_of(of) for of in found.values()]
    verdict: Verdict = "undecided"
    if of_groups.count("holds") >= needed:
        verdict = "holds"
    elif of_groups.count("does not hold") > total - needed:
        verdict = "does not hold"
    known = {one.name for group in tested.values() for one in group}
    lacking = list(dict.fromkeys([*absent, *(one.name for one in every if one.name not in known)]))
    if verdict == "holds" and lacking and not any_of:
        return not_judged(numbers, f"It holds for all but {listed(lacking)}: too few runs, or none.", effects)
    if total > 1:
        counts = [of_groups.count(each) for each in ("holds", "does not hold")]
        reason = (
            f"Of {counted(total, noun)} {counts[0]} bear it out beyond chance and {counts[1]} contradict it;"
            f" it takes {needed}, or {total - needed + 1} against it."
        )
    else:
        name = next(iter(groups))
        reason = _reason(tested[name], found[name])
    return Judged(verdict, numbers, reason, True, tuple(effects))


def judge_all(
    effects: Sequence[Effect],
    *,
    any_of: bool = False,
    lead: str = "",
    absent: Sequence[str] = (),
    why_not: str = "",
) -> Judged:
    """Return the verdict on the claim that all of these effects exist, but those that it denies."""
    return judge_groups({"": effects}, any_of=any_of, lead=lead, absent=absent, why_not=why_not)


def _numbers(effects: Sequence[Effect], lead: str, is_one: bool, any_of: bool) -> str:
    """Return the numbers in a line: all effects if they are few, or the one least in the claim's favour."""
    shown = [one for one in {one.name: one for one in reversed(effects)}.values() if one.unit][::-1]
    texts = [one.text for one in shown] if is_one else []
    if len(texts) > 3:
        worst = min(effects, key=lambda one: (one.margin - one.estimate) * (1 if one.denied else -1))
        texts = [f"{'most' if any_of else 'least'} in its favour: {worst.text}"]
    counts = sorted({one.n for one in effects if one.n > 1})
    n = f"n = {counts[0]}{f' to {counts[-1]}' if counts[1:] else ''}" if counts else ""
    return "; ".join(filter(None, (lead, *texts, n))) or "–"


def _reason(effects: Sequence[Effect], verdicts: Sequence[Verdict]) -> str:
    """Return which effects are shown, which are ruled out and which are open, with p if there is one."""
    least = next((f"From {one.counts_from}: " for one in effects if one.unit and one.margin), "")
    found: dict[str, list[Effect]] = {"shown": [], "ruled out": [], "open": []}
    for one, verdict in zip(effects, verdicts, strict=True):
        is_there = (verdict == "holds") != one.denied
        found["open" if verdict == "undecided" else "shown" if is_there else "ruled out"].append(one)
    if len(effects) == 1:
        word = next(word for word, of in found.items() if of)
        reason = f"{least}{word} ({effects[0].as_p(against=word == 'ruled out')})."
    else:
        names = {
            word: listed(list(dict.fromkeys(one.name for one in of))) for word, of in found.items() if of
        }
        reason = f"{least}{'; '.join(f'{word} for {of}' for word, of in names.items())}."
    return f"{reason[0].upper()}{reason[1:]}"


def too_few(counts: Iterable[int], enough: int, noun: str) -> str:
    """Return the reason why so many runs, tasks or objectives are too few; many runs may be equal ones.

    >>> too_few([5], 6, "objective"), too_few([1, 2], 3, "run")
    ('Too few: five objectives; six are needed.', 'Too few: 1 to 2 runs; three are needed.')
    """
    low, high = min(known := [*counts] or [0]), max(known)
    if low >= enough:
        return "All runs are copies of each other, and count as one."
    there = counted(low, noun) if low == high else f"{low} to {high} {noun}s"
    return f"Too few: {there}; {in_words(enough)} are needed."
