"""Feature files compared on the same examples: for each column of labels intervals, tests and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penultimate.banks.files import ForeignBank, read_bank
from penultimate.banks.organisation import tested_rows
from penultimate.errors import RequestError, unknown
from penultimate.metrics import UndefinedError
from penultimate.probes.linear import LinearProbe
from penultimate.probes.multilabel import MultiLabelProbe
from penultimate.statistics.areas import ComparedAreas, compare_areas
from penultimate.statistics.paired import AccuracyInterval, Answers, Pair, compared, intervals, places
from penultimate.statistics.ranks import letter, tie_groups

Groups = npt.NDArray[np.int64] | None
PRESENT = frozenset((("0", "1"), ("False", "True"), ("false", "true")))
"""The two classes of a column that says whether a label is present, which is scored by its AUC."""
MEAN = "the mean of {} labels"
EXPLANATION = (
    "Intervals are of 95 %, over test examples. Places and tie groups (a, b, ...) follow from paired",
    "tests on the same examples (McNemar's of accuracies, DeLong's of AUCs), two-sided, corrected for",
    "all pairs of a column by Holm. The linear probe's strength is chosen on a fifth of the training",
    "examples.",
)


@dataclass(frozen=True)
class BankStanding:
    """A bank's accuracy or AUC with its interval, its possible places by the tests, and its tie groups."""

    name: str
    interval: AccuracyInterval
    best_place: int
    worst_place: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class ColumnComparison:
    """The banks, best first, and their paired comparisons for one column of labels, or why there are none.

    `pairs` name banks by their index in `names`; `measure` is "accuracy" or "AUC".
    """

    column: str
    measure: str
    trained: int
    tested: int
    names: tuple[str, ...] = ()
    standings: tuple[BankStanding, ...] = ()
    pairs: tuple[Pair, ...] = ()
    undefined: str = ""


def compare_banks(
    banks: Mapping[str, ForeignBank], *, group: str = "", seed: int = 0
) -> list[ColumnComparison]:
    """Return the comparison of banks of the same examples for each column of labels that they share.

    A linear probe on each bank answers the same test examples, a fifth, stratified by the first column. A
    column of 0 and 1 is scored by its AUC (DeLong's intervals and tests), and several of them by their mean
    too; any other by accuracy (Clopper and Pearson's intervals, McNemar's test). p is corrected for all pairs
    of a column (Holm). Examples of one value in the column `group` stay together in that draw, and intervals
    and tests are of whole groups (see `statistics.paired`).

    Rows are matched by ids where all banks have them. Otherwise banks must be of the same length, with the
    same labels. Raise RequestError for banks whose examples are not the same, and for unknown columns.

    >>> from penultimate.banks.files import LabelColumn
    >>> labels = np.arange(300) % 3
    >>> noise = np.random.default_rng(0).normal(size=(300, 4))
    >>> of = {"class": LabelColumn(labels, ("a", "b", "c"))}
    >>> make = lambda size: ForeignBank(noise + size * np.eye(3, 4)[labels], labels, columns=of)
    >>> (found,) = compare_banks({"weak": make(1), "strong": make(5)})
    >>> [(each.name, each.best_place) for each in found.standings]
    [('strong', 1), ('weak', 2)]
    """
    if len(banks) < 2:
        raise RequestError(f"two banks or more are compared, not {len(banks)}")
    banks = _same_examples(banks)
    first = next(iter(banks.values()))
    shared = [name for name in first.columns if all(name in bank.columns for bank in banks.values())]
    if group and group not in shared:
        raise unknown("column of labels", group, shared)
    names = [name for name in shared if name != group]
    if not names:
        raise RequestError("no column of labels is left to compare the banks by")
    tested = tested_rows(first.columns[names[0]].codes, seed, first.columns[group].names if group else None)
    groups = np.unique(first.columns[group].codes[tested], return_inverse=True)[1] if group else None
    marks = [name for name in names if first.columns[name].classes in PRESENT]
    found = [_by_accuracy(name, banks, tested, seed, groups) for name in names if name not in marks]
    return found + _by_areas(marks, banks, tested, seed, groups)


def comparison_lines(files: Mapping[str, Path | str], *, group: str = "") -> list[str]:
    """Return the output of the command: for each column of labels a ranking, and every pair of banks."""
    banks = {name: read_bank(path) for name, path in files.items()}
    lines = [line for found in compare_banks(banks, group=group) for line in (*_lines(found), "")]
    if group:
        lines.append(
            f"Intervals and tests are of whole groups by '{group}', whose examples are not independent."
        )
    return [*lines, *EXPLANATION]


def _by_accuracy(
    name: str, banks: Mapping[str, ForeignBank], tested: npt.NDArray[np.bool_], seed: int, groups: Groups
) -> ColumnComparison:
    labels = next(iter(banks.values())).columns[name].names
    sizes = int((~tested).sum()), int(tested.sum())
    try:
        probes = [
            LinearProbe(seed=seed).fit(bank.features[~tested], labels[~tested]) for bank in banks.values()
        ]
    except UndefinedError as error:
        return ColumnComparison(name, "accuracy", *sizes, undefined=str(error))
    right = [
        probe.predict(bank.features[tested]) == labels[tested]
        for probe, bank in zip(probes, banks.values(), strict=True)
    ]
    answers = Answers(np.stack(right), np.unique(labels[tested], return_inverse=True)[1], groups=groups)
    return _ranked(name, "accuracy", sizes, [*banks], intervals([answers]), compared([answers]))


def _by_areas(
    names: Sequence[str],
    banks: Mapping[str, ForeignBank],
    tested: npt.NDArray[np.bool_],
    seed: int,
    groups: Groups,
) -> list[ColumnComparison]:
    """Return the comparisons of the AUCs of each label, and of their mean if there are several."""
    first = next(iter(banks.values()))
    sizes = int((~tested).sum()), int(tested.sum())
    found, scored = [], []
    for name in names:
        present = first.columns[name].codes[:, None]
        try:
            scores = [
                MultiLabelProbe(seed=seed, names=(name,))
                .fit(bank.features[~tested], present[~tested])
                .decision_function(bank.features[tested])
                for bank in banks.values()
            ]
            areas = compare_areas([one[:, 0] for one in scores], present[tested, 0], groups)
        except UndefinedError as error:
            found.append(ColumnComparison(name, "AUC", *sizes, undefined=str(error)))
            continue
        scored.append((scores, present[tested]))
        found.append(_by_area(name, sizes, [*banks], areas))
    if len(scored) > 1:
        joined = [np.concatenate([scores[at] for scores, _ in scored], 1) for at in range(len(banks))]
        areas = compare_areas(joined, np.concatenate([present for _, present in scored], 1), groups)
        found.append(_by_area(MEAN.format(len(scored)), sizes, [*banks], areas))
    return found


def _by_area(
    name: str, sizes: tuple[int, int], banks: Sequence[str], found: ComparedAreas
) -> ColumnComparison:
    values = [AccuracyInterval(area.value, area.low, area.high) for area in found.areas]
    return _ranked(name, "AUC", sizes, banks, values, found.pairs)


def _ranked(
    name: str,
    measure: str,
    sizes: tuple[int, int],
    banks: Sequence[str],
    values: Sequence[AccuracyInterval],
    pairs: Sequence[Pair],
) -> ColumnComparison:
    order = sorted(range(len(banks)), key=lambda at: -values[at].value)
    ends = places(pairs, len(banks))
    ranked = [replace(pair, one=order.index(pair.one), other=order.index(pair.other)) for pair in pairs]
    groups = tie_groups(ranked, len(banks))
    standings = tuple(
        BankStanding(
            banks[at],
            values[at],
            *ends[at],
            tuple(number for number, members in enumerate(groups) if rank in members),
        )
        for rank, at in enumerate(order)
    )
    return ColumnComparison(name, measure, *sizes, tuple(banks), standings, tuple(pairs))


def _lines(found: ColumnComparison) -> list[str]:
    head = f"{found.column}: {found.measure} on {found.tested:,} examples, learnt from {found.trained:,}"
    if found.undefined:
        return [head, f"  not compared: {found.undefined}"]
    width = max(map(len, found.names))
    lines = [head]
    for each in found.standings:
        place = f"{each.best_place}" + (f"–{each.worst_place}" if each.worst_place != each.best_place else "")
        ends = (each.interval.value, each.interval.low, each.interval.high)
        value, low, high = (f"{100 * end:.1f}" for end in ends)
        letters = " ".join(letter(group) for group in each.groups)
        lines.append(f"  {place:<5} {each.name:<{width}}  {value} [{low}, {high}]  {letters}")
    for pair in sorted(found.pairs, key=lambda pair: -pair.difference):
        both = f"{found.names[pair.one]} – {found.names[pair.other]}"
        p = "p < 0.001" if pair.p < 0.001 else f"p = {pair.p:.2g}"
        lines.append(f"  {both}: {100 * pair.difference:+.1f} points, {p}")
    return lines


def _same_examples(banks: Mapping[str, ForeignBank]) -> dict[str, ForeignBank]:
    """Return banks in the order of the first, by ids; raise RequestError if their examples differ."""
    (reference, first), *others = banks.items()
    with_ids = all(bank.ids is not None for bank in banks.values())
    matched = {reference: first}
    for other, bank in others:
        if len(bank) != len(first):
            raise RequestError(
                f"'{reference}' has {len(first):,} examples and '{other}' {len(bank):,}; the same are needed"
            )
        rows = np.arange(len(bank))
        if bank.ids is not None and first.ids is not None and with_ids:
            rows = np.argsort(bank.ids)[np.argsort(np.argsort(first.ids))]
            if not np.array_equal(bank.ids[rows], first.ids):
                raise RequestError(
                    f"'{reference}' and '{other}' have other ids: they are not of the same examples"
                )
        matched[other] = bank.at(rows)
        for name in matched[other].columns.keys() & first.columns.keys():
            if not np.array_equal(matched[other].columns[name].names, first.columns[name].names):
                raise RequestError(
                    f"'{reference}' and '{other}' have other labels in the column '{name}', so their rows are"
                    " not the same examples in the same order; a column of ids (read_bank(..., ids=NAME))"
                    " matches rows in any order"
                )
    return matched
