"""The result in one sentence, made from the rows of a study and compared with the paper's numbers.

A finding has one of five shapes, and an exhibit names the numbers in it:

    beside_baseline  how many objectives are above the paper's baseline, and how many below
    ends             the lowest and the highest of them
    apart            how far apart these two are, under one condition and another
    changes          how much a number gains from one condition to another
    goes_with        how objectives rank by one number and by another

Each is true for any outcome. A mean over fewer runs than a test needs is called a direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from penultimate.report.measurements import Measurements
from penultimate.report.shapes.asked import Asked, ShownNumber, with_error
from penultimate.report.shapes.numbers import error_of, rank_correlation, summarise, without_two
from penultimate.report.shapes.table import noun_of
from penultimate.report.spec import OURS
from penultimate.report.text import counted, fixed, in_words, listed, p_value
from penultimate.statistics.comparison import LEAST_RUNS, LEVEL, bold
from penultimate.statistics.summary import MeanWithError

Sentence: TypeAlias = Callable[[Measurements], str]
"""A function that puts a study's rows into a sentence; it returns an empty string without numbers."""
SAME = 1e-12
"""The relative difference below which means are equal."""


def beside_baseline(*asked: Asked) -> Sentence:
    """Return a finding on how many objectives are above and below the paper's baseline, or on the ends."""

    def say(measurements: Measurements) -> str:
        baseline = measurements.networks.baseline
        clauses: list[str] = []
        seen: list[ShownNumber] = []
        for one in asked:
            ours = one.ours(measurements)
            base, others = _apart_from(baseline, ours)
            seen += ours
            if base is None or not others:
                clauses += [_ends(one, ours)] if ours else []
                continue
            of_paper, printed = _apart_from(baseline, one.theirs())
            paper = f" – in the paper {_above_and_below(of_paper, printed)}" if of_paper and printed else ""
            clauses.append(f"in {one.words} {_above_and_below(base, others, one.amount(base))}{paper}")
        return _sentence(clauses, seen)

    return say


def ends(*asked: Asked) -> Sentence:
    """Return a finding on the lowest and the highest value, with their objectives."""

    def say(measurements: Measurements) -> str:
        found = [(one, ours) for one in asked if (ours := one.ours(measurements))]
        return _sentence([_ends(one, ours) for one, ours in found], [e for _, ours in found for e in ours])

    return say


def apart(*asked: Asked) -> Sentence:
    """Return a finding on the gap between lowest and highest mean, for objectives that have all numbers."""

    def say(measurements: Measurements) -> str:
        found = [(one, ours) for one in asked if (ours := one.ours(measurements))]
        kept = _shared_entries([ours for _, ours in found])
        if not kept or len(kept[0]) < 2:
            return _sentence([_ends(one, ours) for one, ours in found], _flattened(ours for _, ours in found))
        unit = "points" if asked[0].quantity.unit == "%" else asked[0].quantity.unit
        above = [f"{unit} above the lowest".strip(), *[""] * len(found)]
        told = listed(
            [
                f"{' '.join(filter(None, (_spread(one, entries), what)))} in {one.words}"
                for (one, _), entries, what in zip(found, kept, above, strict=False)
            ]
        )
        printed = _shared_entries([one.theirs() for one, _ in found])
        paper = ""
        if printed and len(printed[0]) > 1:
            spreads = [_spread(one, of) for (one, _), of in zip(found, printed, strict=True)]
            paper = f"; in the paper {listed(spreads)}"
        errors = [error for entry in _flattened(kept) if (error := error_of(entry.summary)) is not None]
        digits = asked[0].quantity.digits + 1
        noise = f", standard errors up to {fixed(max(errors), digits)}" if errors else ""
        count = counted(len(kept[0]), "objective")
        clause = f"the highest mean is {told} (of {count}{noise}){paper}"
        return _sentence([clause], _flattened(kept))

    return say


@dataclass(frozen=True)
class Change:
    """A number before and after, and the words of the sentence up to "changes by"."""

    words: str
    before: Asked
    after: Asked


def changes(*pairs: Change) -> Sentence:
    """Return a finding on a number's mean gain between conditions, over the objectives that have both."""

    def say(measurements: Measurements) -> str:
        clauses: list[str] = []
        seen: list[ShownNumber] = []
        for pair in pairs:
            gains = _gains(pair.before.ours(measurements), pair.after.ours(measurements))
            if not gains:
                continue
            seen += gains
            shown = pair.after.quantity
            unit = "points" if shown.unit == "%" else shown.unit
            mean = _mean_of(gains)
            of = gains[0].label if len(gains) == 1 else f"the mean of {counted(len(gains), 'objective')}"
            size = with_error(mean, shown, unit, signed=True)
            clause = f"{pair.words} changes by {size} in {of} ({_gains_and_losses(gains)}"
            printed = _gains(pair.before.theirs(), pair.after.theirs())
            if printed:
                size = with_error(_mean_of(printed), shown, "", signed=True)
                clause += f"; in the paper by {size}, {_gains_and_losses(printed)}"
            clauses.append(f"{clause})")
        return _sentence(clauses, seen)

    return say


def goes_with(x: Asked, *others: Asked) -> Sentence:
    """Return a finding on how the ranks of objectives by one number correlate with those by others."""

    def say(measurements: Measurements) -> str:
        clauses: list[str] = []
        seen: list[ShownNumber] = []
        for y in others:
            pairs = _pairs(x.ours(measurements), y.ours(measurements))
            if not pairs:
                continue
            seen += _flattened(pairs)
            found = rank_correlation(*_means(pairs))
            if found is None:
                few = f"too few different values of {counted(len(pairs), noun_of(x.over))} to rank"
                clauses.append(f"the {x.words} and the {y.words}: {few}")
                continue
            size = f"ρ = {fixed(found.rho, 2)}, {p_value(found.p)}, {counted(found.n, noun_of(x.over))}"
            size += without_two(*_means(pairs))
            in_paper = rank_correlation(*_means(_pairs(x.theirs(), y.theirs())))
            if in_paper:
                size += f"; in the paper ρ = {fixed(in_paper.rho, 2)}, {p_value(in_paper.p)}"
            if found.p < LEVEL:
                way = "higher" if found.rho > 0 else "lower"
                lead = "and " if clauses else f"the higher the {x.words}, "
                clauses.append(f"{lead}the {way} the {y.words} ({size})")
            else:
                clauses.append(
                    f"the {x.words} and the {y.words} show no rank correlation beyond chance ({size})"
                )
        return _sentence(clauses, seen)

    return say


def correlations(x: Asked, ours: Mapping[str, Asked], theirs: Mapping[str, Asked], noun: str) -> Sentence:
    """Return a finding on the lowest and highest rank correlation of one number with several others."""

    def say(measurements: Measurements) -> str:
        pairs = {name: _pairs(x.ours(measurements), y.ours(measurements)) for name, y in ours.items()}
        if not any(pairs.values()):
            return ""
        told = _correlation_range(pairs, noun) or "undefined: too few different values to rank"
        printed = _correlation_range(
            {name: _pairs(x.theirs(), y.theirs()) for name, y in theirs.items()}, noun
        )
        paper = f"; in the paper {printed}" if printed else ""
        clause = f"the rank correlation of {x.words} and transfer is {told}{paper}"
        return _sentence([clause], [entry for of in pairs.values() for entry in _flattened(of)])

    return say


def _correlation_range(pairs: Mapping[str, Sequence[tuple[ShownNumber, ShownNumber]]], noun: str) -> str:
    """Return the lowest and highest of several rank correlations, and how many are beyond chance."""
    found = {name: one for name, of in pairs.items() if (one := rank_correlation(*_means(of)))}
    if not found:
        return ""
    sure = sum(one.p < LEVEL for one in found.values())
    beyond = f"by itself beyond chance on {in_words(sure, 'none')} of {counted(len(found), noun)}"
    low, high = (pick(found, key=lambda name: found[name].rho) for pick in (min, max))
    if len(found) == 1:
        return f"{fixed(found[low].rho, 2)} ({low}, the only {noun}), {p_value(found[low].p)}"
    return f"{fixed(found[low].rho, 2)} ({low}) to {fixed(found[high].rho, 2)} ({high}), {beyond}"


def either(*findings: Sentence) -> Sentence:
    """Return the first finding that has a sentence."""
    return lambda measurements: next((said for one in findings if (said := one(measurements))), "")


def direction(counts: Iterable[int]) -> str:
    """Return a warning if there are too few runs to estimate their variation by chance, or an empty string.

    >>> direction([1, 1]), direction([3, 5])
    ('one run each: a direction, no more', '')
    """
    low, high = min(counts := list(counts), default=LEAST_RUNS), max(counts, default=0)
    if low >= LEAST_RUNS:
        return ""
    runs = f"{counted(low, 'run')} each" if low == high else f"{low} to {high} runs each"
    return f"{runs}: a direction, no more"


def _sentence(clauses: Sequence[str], seen: Iterable[ShownNumber]) -> str:
    if not clauses:
        return ""
    few = direction(len(entry.runs) for entry in seen)
    return f"{OURS}: {'; '.join(clauses)}{f' ({few})' if few else ''}."


def _ends(one: Asked, ours: Sequence[ShownNumber]) -> str:
    printed = one.theirs()
    paper = f", in the paper {_from_to(one, printed)}" if len(printed) > 1 else ""
    told = _from_to(one, ours)
    return f"{one.words} {'runs' if told.startswith('from') else 'is'} {told}{paper}"


def _from_to(one: Asked, entries: Sequence[ShownNumber]) -> str:
    """Return the lowest and the highest, and name every objective that shares either place."""
    if len(entries) == 1:
        return f"{one.amount(entries[0])} ({entries[0].label}, alone)"
    if all(_same(entry.mean, entries[0].mean) for entry in entries):
        return f"{one.amount(entries[0])} for all {counted(len(entries), noun_of(one.over))}"
    told = []
    for pick in (min, max):
        end = pick(entries, key=lambda entry: entry.mean)
        alike = [entry for entry in entries if _same(entry.mean, end.mean)]
        names = (
            listed([entry.label for entry in alike])
            if len(alike) < 4
            else counted(len(alike), noun_of(one.over))
        )
        told.append(f"{one.amount(end)} ({names})")
    return f"from {told[0]} to {told[1]}"


def _apart_from(
    baseline: str, entries: Sequence[ShownNumber]
) -> tuple[ShownNumber | None, list[ShownNumber]]:
    """Return the baseline (the first, if there are several), and all entries that are not the baseline."""
    base = next((entry for entry in entries if entry.slug == baseline), None)
    return base, [entry for entry in entries if entry.slug != baseline]


def _above_and_below(base: ShownNumber, others: Sequence[ShownNumber], amount: str = "") -> str:
    """Return how many are above, below and level, and for how many a test shows it beyond chance."""
    level = [entry for entry in others if _same(entry.mean, base.mean)]
    sides = {
        "above": [entry for entry in others if entry not in level and entry.mean > base.mean],
        "below": [entry for entry in others if entry not in level and entry.mean < base.mean],
        "level with": level,
    }
    told: list[str] = []
    for side, of_side in sides.items():
        if of_side:
            count = in_words(len(of_side))
            if len(of_side) == len(others) > 1:
                count = "both" if count == "two" else f"all {count}"
            noun = f" {'other' if len(of_side) == 1 else 'others'}" if amount and not told else ""
            verb = "" if told else " is" if len(of_side) == 1 else " are"
            what = f"{base.label}'s {amount}" if amount and not told else "it"
            told.append(f"{count}{noun}{verb} {side} {what}{_beyond_chance(base, others, of_side, side)}")
    return listed(told)


def _beyond_chance(
    base: ShownNumber, others: Sequence[ShownNumber], of_side: Sequence[ShownNumber], side: str
) -> str:
    """Return for how many it is beyond chance (p corrected for all comparisons with it), if testable."""
    if side not in ("above", "below"):
        return ""
    column = {str(place): entry.runs for place, entry in enumerate([base, *others])}
    tested = bold(column, higher_is_better=side == "above").p_values["0"]
    if not tested:
        return ""
    here = {str(place) for place, entry in enumerate(others, 1) if entry in of_side}
    sure = sum(p <= LEVEL for name, p in tested.items() if name in here)
    count = "" if sure == len(of_side) else f"{in_words(sure, 'none')} "
    return f" ({count}beyond chance)"


def _shared_entries(columns: Sequence[Sequence[ShownNumber]]) -> list[list[ShownNumber]]:
    """Return each column with only the objectives that all columns share, or nothing if they share none."""
    if not columns:
        return []
    shared = set.intersection(*({entry.label for entry in column} for column in columns))
    return [[entry for entry in column if entry.label in shared] for column in columns] if shared else []


def _flattened(columns: Iterable[Sequence[ShownNumber]]) -> list[ShownNumber]:
    return [entry for column in columns for entry in column]


def _spread(one: Asked, entries: Sequence[ShownNumber]) -> str:
    means = [entry.mean for entry in entries]
    return fixed(max(means) - min(means), one.quantity.digits)


def _gains(before: Sequence[ShownNumber], after: Sequence[ShownNumber]) -> list[ShownNumber]:
    """Return each objective's gain, within the seeds that both conditions have."""
    start = {entry.label: entry for entry in before}
    gains = []
    for entry in after:
        if entry.label in start:
            runs = start[entry.label].runs
            shared = {seed: value - runs[seed] for seed, value in entry.runs.items() if seed in runs}
            gains += [replace(entry, runs=shared)] if shared else []
    return gains


def _mean_of(gains: Sequence[ShownNumber]) -> MeanWithError:
    """Return the mean gain over objectives, for each seed that all have, or of their means without any."""
    shared = set.intersection(*(set(entry.runs) for entry in gains))
    if not shared:
        return summarise([math.fsum(entry.mean for entry in gains) / len(gains)])
    return summarise([math.fsum(entry.runs[seed] for entry in gains) / len(gains) for seed in shared])


def _gains_and_losses(gains: Sequence[ShownNumber]) -> str:
    up, down = sum(entry.mean > 0 for entry in gains), sum(entry.mean < 0 for entry in gains)
    told = [
        f"{word} for {'all' if count == len(gains) > 1 else in_words(count)}"
        for word, count in (("up", up), ("down", down), ("unchanged", len(gains) - up - down))
        if count
    ]
    return ", ".join(told)


def _pairs(x: Sequence[ShownNumber], y: Sequence[ShownNumber]) -> list[tuple[ShownNumber, ShownNumber]]:
    """Return both numbers of each objective, for the runs that have both."""
    by_label = {entry.label: entry for entry in y}
    pairs = []
    for entry in x:
        other = by_label.get(entry.label)
        seeds = [seed for seed in entry.runs if other and seed in other.runs]
        if other and seeds:
            pairs.append(
                tuple(replace(one, runs={seed: one.runs[seed] for seed in seeds}) for one in (entry, other))
            )
    return [(first, second) for first, second in pairs]


def _means(pairs: Sequence[tuple[ShownNumber, ShownNumber]]) -> tuple[list[float], list[float]]:
    return [first.mean for first, _ in pairs], [second.mean for _, second in pairs]


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME, abs_tol=0.0) or one == other
