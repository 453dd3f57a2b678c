"""Feature files compared on the same examples: for each column of labels intervals, tests and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penultimate.banks.files import ForeignBank, LabelColumn, read_bank
from penultimate.data.readers.split_names import part_of
from penultimate.data.readers.splitting import crossing, drawn_by_group
from penultimate.errors import RequestError, unknown
from penultimate.metrics import UndefinedError
from penultimate.probes.linear import LinearProbe
from penultimate.probes.multilabel import MultiLabelProbe
from penultimate.probes.validation import split_off
from penultimate.statistics.areas import ComparedAreas, compare_areas
from penultimate.statistics.paired import AccuracyInterval, Answers, Pair, compared, intervals, places
from penultimate.statistics.ranks import letter, tie_groups

TESTED = 0.2
"""The share of the examples that are tested on, if nothing says which."""
PRESENT = frozenset((("0", "1"), ("False", "True"), ("false", "true")))
"""The two classes of a column that says whether a label is present, which is scored by its AUC."""
MEAN = "the mean of {} labels"
BY_GROUP = "Intervals and tests are of whole groups by '{}', whose examples are not independent."


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

    `pairs` name banks by their index in `names`; `measure` is "accuracy" or "AUC". `note` says which groups
    the split parts.
    """

    column: str
    measure: str
    trained: int
    tested: int
    names: tuple[str, ...] = ()
    standings: tuple[BankStanding, ...] = ()
    pairs: tuple[Pair, ...] = ()
    undefined: str = ""
    note: str = ""


def compare_banks(
    banks: Mapping[str, ForeignBank],
    columns: Sequence[str] = (),
    *,
    tests: Mapping[str, ForeignBank] | None = None,
    split: str = "",
    group: str = "",
    seed: int = 0,
) -> list[ColumnComparison]:
    """Return the comparison of banks of the same examples for each column of labels that they share.

    A linear probe on each bank answers the same test examples: those of `tests` (banks of the same names), or
    those that the column `split` calls test, or a stratified fifth. A column of 0 and 1 is scored by its AUC
    (DeLong's intervals and tests), and several of them by their mean too; any other by accuracy (Clopper and
    Pearson's intervals, McNemar's test). p is corrected for all pairs of a column (Holm).

    All columns are tested on the same examples; without a split these are drawn within the first column's
    classes. Examples of one value in the column `group` stay together in that draw, and intervals and tests
    are of whole groups (see `statistics.paired`).
    Rows are matched by ids where all banks have them. Otherwise banks must be of the same length, with the
    same labels. Raise RequestError for banks whose examples are not the same, and for unknown columns.

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
    if tests is not None and tests.keys() != banks.keys():
        raise RequestError("each bank has a file of its test examples, in the order of the banks")
    banks = _same_examples(banks)
    tests = None if tests is None else _same_examples(tests)
    first = next(iter(banks.values()))
    shared = [name for name in first.columns if all(name in bank.columns for bank in banks.values())]
    for name in (*columns, *filter(None, (split, group))):
        if name not in shared:
            raise unknown("column of labels", name, shared)
    asked = [name for name in columns or shared if name not in (split, group)]
    if not asked:
        raise RequestError("no column of labels is left to compare the banks by")
    train, test = _divided(banks, tests, split, asked, seed, group)
    groups = _classes(group, next(iter(test.values()))) if group else None
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    found = [
        _by_accuracy(name, train, test, seed, codes) for name in asked if not _is_mark(first.columns[name])
    ]
    marked = [name for name in asked if _is_mark(first.columns[name])]
    found += _by_areas(marked, train, test, seed, codes)
    if groups is None:
        return found
    leak = crossing(_classes(group, next(iter(train.values()))), groups, f"'{group}'", "example")
    return [replace(each, note=leak) for each in found]


def _is_mark(column: LabelColumn) -> bool:
    return column.classes in PRESENT


def _divided(
    banks: Mapping[str, ForeignBank],
    tests: Mapping[str, ForeignBank] | None,
    split: str,
    asked: Sequence[str],
    seed: int,
    group: str,
) -> tuple[Mapping[str, ForeignBank], Mapping[str, ForeignBank]]:
    """Return the banks to learn from, and those of the test examples."""
    if tests is not None:
        return banks, tests
    first = next(iter(banks.values()))
    if group and not split:
        of = first.columns[asked[0]]
        names = _classes(group, first)
        tested = drawn_by_group(names, of.codes, by=f"'{group}'", seed=seed, share=TESTED)
    elif not split:
        tested = split_off(first.columns[asked[0]].codes, TESTED, seed)
    else:
        of = first.columns[split]
        parts = [part_of(name) or name.strip().lower() for name in of.classes]
        if "test" not in parts or len(parts) < 2:
            raise RequestError(
                f"the column '{split}' says what is tested on by 'test' among other names; it holds"
                f" {', '.join(of.classes[:6])}"
            )
        tested = of.codes == parts.index("test")
    return tuple({name: _rows(bank, rows) for name, bank in banks.items()} for rows in (~tested, tested))  # type: ignore[return-value]


def _rows(bank: ForeignBank, rows: npt.NDArray[Any]) -> ForeignBank:
    columns = {name: LabelColumn(of.codes[rows], of.classes) for name, of in bank.columns.items()}
    return replace(bank, features=bank.features[rows], labels=bank.labels[rows], ids=None, columns=columns)


def _classes(name: str, bank: ForeignBank) -> npt.NDArray[np.str_]:
    """Return the name of each example's class: files number their classes by themselves."""
    of = bank.columns[name]
    return np.array(of.classes)[of.codes]


def _by_accuracy(
    name: str,
    train: Mapping[str, ForeignBank],
    test: Mapping[str, ForeignBank],
    seed: int,
    groups: npt.NDArray[np.int64] | None,
) -> ColumnComparison:
    first, other = next(iter(train.values())), next(iter(test.values()))
    sizes = (len(first), len(other))
    learnt, asked = _classes(name, first), _classes(name, other)
    right = []
    for each, bank in train.items():
        try:
            probe = LinearProbe(seed=seed).fit(bank.features, learnt)
        except UndefinedError as error:
            return ColumnComparison(name, "accuracy", *sizes, undefined=str(error))
        right.append(probe.predict(test[each].features) == asked)
    answers = Answers(np.stack(right), np.unique(asked, return_inverse=True)[1], groups=groups)
    return _standings(name, "accuracy", sizes, [*train], intervals([answers]), compared([answers]))


def _by_areas(
    names: Sequence[str],
    train: Mapping[str, ForeignBank],
    test: Mapping[str, ForeignBank],
    seed: int,
    groups: npt.NDArray[np.int64] | None,
) -> list[ColumnComparison]:
    """Return the comparisons of the AUCs of each label, and of their mean if there are several."""
    first, other = next(iter(train.values())), next(iter(test.values()))
    sizes = (len(first), len(other))
    found, kept = [], {}
    for name in names:
        learnt, asked = (_present(name, bank) for bank in (first, other))
        try:
            scores = [
                MultiLabelProbe(seed=seed, names=(name,))
                .fit(bank.features, learnt[:, None])
                .decision_function(test[each].features)[:, 0]
                for each, bank in train.items()
            ]
            areas = compare_areas(scores, asked, groups)
        except UndefinedError as error:
            found.append(ColumnComparison(name, "AUC", *sizes, undefined=str(error)))
            continue
        kept[name] = (scores, asked)
        found.append(_of_areas(name, sizes, [*train], areas))
    if len(kept) > 1:
        scores = [np.stack([of[at] for of, _ in kept.values()], 1) for at in range(len(train))]
        whole = compare_areas(scores, np.stack([asked for _, asked in kept.values()], 1), groups)
        found.append(_of_areas(MEAN.format(len(kept)), sizes, [*train], whole))
    return found


def _present(name: str, bank: ForeignBank) -> npt.NDArray[np.int64]:
    return np.isin(_classes(name, bank), ("1", "True", "true")).astype(np.int64)


def _of_areas(
    name: str, sizes: tuple[int, int], banks: Sequence[str], found: ComparedAreas
) -> ColumnComparison:
    values = [AccuracyInterval(area.value, area.low, area.high) for area in found.areas]
    return _standings(name, "AUC", sizes, banks, values, found.pairs)


def _standings(
    name: str,
    measure: str,
    sizes: tuple[int, int],
    banks: Sequence[str],
    values: Sequence[AccuracyInterval],
    pairs: Sequence[Pair],
) -> ColumnComparison:
    order = sorted(range(len(banks)), key=lambda at: -values[at].value)
    ends = places(pairs, len(banks))
    place = {at: number for number, at in enumerate(order)}
    groups = tie_groups(
        [replace(pair, one=place[pair.one], other=place[pair.other]) for pair in pairs], len(banks)
    )
    standings = tuple(
        BankStanding(
            banks[at],
            values[at],
            *ends[at],
            tuple(number for number, group in enumerate(groups) if place[at] in group),
        )
        for at in order
    )
    return ColumnComparison(name, measure, *sizes, tuple(banks), standings, tuple(pairs))


def comparison_lines(files: Mapping[str, Path | str], *, group: str = "") -> list[str]:
    """Return the output of the command: for each column of labels a ranking, and every pair of banks."""
    banks = {name: read_bank(path) for name, path in files.items()}
    lines: list[str] = []
    leak = ""
    for found in compare_banks(banks, group=group):
        lines += [*_lines(found), ""]
        leak = found.note
    return [
        *lines,
        *([f"Caution: {leak}.", ""] if leak else []),
        *([BY_GROUP.format(group)] if group else []),
        "Intervals are of 95 %, over test examples. Places and tie groups (a, b, ...) follow from paired",
        "tests on the same examples (McNemar's of accuracies, DeLong's of AUCs), two-sided, corrected for",
        "all pairs of a column by Holm. The linear probe's strength is chosen on a fifth of the training",
        "examples.",
    ]


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
        lines.append(f"  {both}: {100 * pair.difference:+.1f} points, {_p(pair.p)}")
    return lines


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _same_examples(banks: Mapping[str, ForeignBank]) -> dict[str, ForeignBank]:
    """Return banks in the order of the first, by ids; raise RequestError if their examples differ."""
    (name, first), *others = banks.items()
    with_ids = all(bank.ids is not None for bank in banks.values())
    matched = {name: first}
    for other, bank in others:
        if len(bank) != len(first):
            raise RequestError(
                f"'{name}' has {len(first):,} examples and '{other}' {len(bank):,}; the same are needed"
            )
        rows = np.arange(len(bank))
        if with_ids:
            rows = np.argsort(bank.ids)[np.argsort(np.argsort(first.ids))]  # type: ignore[arg-type]
            if not np.array_equal(bank.ids[rows], first.ids):  # type: ignore[index,arg-type]
                raise RequestError(
                    f"'{name}' and '{other}' have other ids: they are not of the same examples"
                )
        columns = {key: LabelColumn(of.codes[rows], of.classes) for key, of in bank.columns.items()}
        for key in columns.keys() & first.columns.keys():
            own, known = columns[key], first.columns[key]
            if own.classes != known.classes or not np.array_equal(own.codes, known.codes):
                raise RequestError(
                    f"'{name}' and '{other}' have other labels in the column '{key}', so that their rows are"
                    " not the same examples in the same order; a column of ids (read_bank(...,"
                    " ids=NAME)) matches rows in any order"
                )
        matched[other] = replace(
            bank, features=bank.features[rows], labels=bank.labels[rows], ids=None, columns=columns
        )
    return matched
