"""The ranking of networks on each task, and what stands behind it: comparisons, ranks, baselines, labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.standings import PROBES, Board, boards, groups_of, with_interval
from penultimate.evaluation.warnings import (
    TITLES,
    beside_baselines,
    caution_notes,
    missing_numbers,
    shortfalls,
)
from penultimate.measures.baselines import MOST, NAMES
from penultimate.results.exhibit import Part
from penultimate.results.means import PER_CLASS, task_label
from penultimate.results.rows import Run, arrays_of
from penultimate.results.table import MISSING, Cell, Column, Mark, Table, table_of_rows
from penultimate.results.text import as_name, p_value, plain, signed
from penultimate.statistics.comparison import LEVEL
from penultimate.statistics.paired import Answers, Pair, intervals
from penultimate.statistics.ranks import (
    DRAWS,
    POWER,
    detectable_difference,
    letter,
    rank_intervals,
    tie_groups,
)

if TYPE_CHECKING:
    from penultimate.statistics.areas import ComparedAreas

PAIRED = (
    "Beyond chance: by paired tests on the same images (two-sided level 0.05, corrected for all pairs of the"
    " column by Holm). Places follow from the same tests of the first column."
)
DELONG = (
    "AUC: how often an image that shows the label has a higher score than one that does not, with DeLong's"
    " 95 % interval. Beyond chance: DeLong's test for the same images, two-sided, corrected for all pairs of"
    " a column (Holm). The mean allows for labels that occur together."
)
COMPARED = {"linear": "comparisons", "knn": "comparisons_knn", "tuned": "comparisons_tuned"}
"""The table of paired comparisons of each probe."""
DIFFERENCE = {"points": "Points", "p": "p"}


@shows("ranking", "Which network serves which task best", section="tasks")
def ranking(run: Run) -> Iterator[Part]:
    """Accuracy on each task's test images of a classifier on the frozen features (and, where it was asked
    for, after fine-tuning), with 95 % intervals. The place is by the mean over tasks, with equal weight for
    each: the range of places that the paired comparisons leave open."""
    for probe, title in PROBES.items():
        if found := boards(run, probe):
            order = _networks_of(found)
            columns = [
                Column(f"{board.key}_percent", task_label(board.key), f"{title}, %") for board in found
            ]
            rows = [
                (
                    run.labels()[network],
                    [
                        found[0].place(network) if network in found[0].standings.index else MISSING,
                        *(_accuracy(board, network) for board in found),
                    ],
                )
                for network in order
            ]
            yield table_of_rows(
                f"ranking_{probe}",
                f"{title}: test accuracy, with 95 % intervals",
                [Column("place", "Place"), *columns],
                rows,
                corner="Network",
                slugs=tuple(order),
                test=PAIRED,
            )
    if any(task_label(task).endswith(PER_CLASS) for task in run.targets):
        yield f"{PER_CLASS} mean of the classes' accuracies; all others are shares of the images."
    yield from caution_notes(run)
    yield from missing_numbers(run, of_tasks=True)


def _networks_of(found: Sequence[Board]) -> list[str]:
    """Return the networks of boards in their order."""
    return list(dict.fromkeys(network for board in found for network in board.standings.index))


def _accuracy(board: Board, network: str) -> Cell:
    if network not in board.standings.index:
        return Cell()
    row = board.standings.loc[network]
    mark: Mark = "" if len(board.standings) < 2 else "best" if row["first"] == 1 else "worse"
    return Cell(100 * row.accuracy, with_interval(row.accuracy, row.low, row.high), mark)


@shows("comparisons", "Who is ahead of whom, on the same images", section="tasks")
def comparisons(run: Run) -> Iterator[Part]:
    """By how many points one network is ahead of another. Both classified the same test images, so only
    images on which exactly one is wrong count (McNemar's exact test; where images have different weights,
    flips of signs). p is two-sided and corrected for all pairs of a column (Holm). Bold: a difference
    beyond chance."""
    labels = run.labels()
    for probe, name in COMPARED.items():
        found = boards(run, probe)
        pairs = found[0].pairs if found else {}
        rows = [
            (
                f"{labels[one]} – {labels[other]}",
                [cell for board in found for cell in difference_cells(*board.difference(one, other))],
            )
            for one, other in sorted(pairs, key=lambda pair: -pairs[pair].difference)
        ]
        columns = [
            Column(f"{board.key}_{key}", label, board.title)
            for board in found
            for key, label in DIFFERENCE.items()
        ]
        title = f"{PROBES[probe]}: the first network's accuracy less the second's, on the same test images"
        yield table_of_rows(name, title, columns, rows, corner="Networks", own_marks=True)


def difference_cells(difference: float | None, p: float, is_told_apart: bool) -> list[Cell]:
    """Return the cells of a difference in points, bold beyond chance, and of its p; None is no difference."""
    if difference is None:
        return [Cell(), Cell()]
    points = Cell(100 * difference, signed(100 * difference, 1), "best" if is_told_apart else "")
    return [points, Cell(p, p_value(p).removeprefix("p = ").removeprefix("p "))]


@shows("ranks", "Which ranks are real", section="tasks")
def ranks(run: Run) -> Iterator[Part]:
    """How far each network's rank would move on other test images of the same kind, and on other tasks;
    which networks form a tie group, in which no two can be told apart; and the smallest difference that these
    test images would have shown with a power of 80 %."""
    found = [board for board in boards(run) if len(board.standings) > 1]
    if not found:
        return
    columns, by_board = list[Column](), [_rank_cells(board) for board in found]
    for board in found:
        kinds = {"images": "Rank, other images", "tasks": "and other tasks", "group": "Tie group"}
        kinds = {key: label for key, label in kinds.items() if key != "tasks" or not board.task}
        columns += [Column(f"{board.key}_{key}", label, board.title) for key, label in kinds.items()]
    order = _networks_of(found)
    rows = []
    for network in order:
        of_boards = zip(found, by_board, strict=True)
        cells = [of.get(network, [None] * (3 - bool(board.task))) for board, of in of_boards]
        rows.append((run.labels()[network], [*itertools.chain(*cells)]))
    title = "Ranks by the linear probe's accuracy, with 95 % intervals of the paired bootstrap"
    yield table_of_rows("ranks", title, columns, rows, corner="Network", slugs=tuple(order))
    yield _power(found)
    if grouped := [board.title for board in found if board.task and board.answers[0].groups is not None]:
        yield f"Of {', '.join(grouped)} whole groups of images are drawn."
    yield (
        f"Rank intervals: percentiles of {DRAWS:,} draws with replacement of the test images (and of the"
        " tasks first). A tie counts half a place. Tie groups: Piepho's compact letter display. Detectable"
        f" differences: at the level {LEVEL:g} divided by the number of pairs, Holm's strictest step"
        " (Connor, 1987)."
    )


def _rank_cells(board: Board) -> dict[str, list[Any]]:
    """Return each network's ranks on other images (and tasks), and the letters of its tie groups."""
    order = list(board.standings.index)
    made = [rank_intervals(board.answers, over_tasks=kind) for kind in (False, True)[: 2 - bool(board.task)]]
    pairs = [
        Pair(order.index(one), order.index(other), pair.difference, pair.p)
        for (one, other), pair in board.pairs.items()
    ]
    cells: dict[str, list[Any]] = {}
    for at, network in enumerate(order):
        own = enumerate(tie_groups(pairs, len(order)))
        letters = " ".join(letter(number) for number, group in own if at in group)
        found = [Cell(of[at].rank, f"{of[at].rank:g} [{of[at].low}, {of[at].high}]") for of in made]
        cells[network] = [*found, letters]
    return cells


def _power(found: Sequence[Board]) -> Table | None:
    """Return the smallest difference that the tests of each board would probably have found."""
    rows = []
    for board in found:
        order, level = list(board.standings.index), LEVEL / len(board.pairs)
        every = [
            detectable_difference(board.answers, order.index(one), order.index(other), level=level)
            for one, other in board.pairs
        ]
        known = sorted(100 * each for each in every if each == each)
        ends = [known[0], known[len(known) // 2], known[-1]] if known else [None] * 3
        same = sum(not pair.is_told_apart for pair in board.pairs.values())
        rows.append((board.title, [f"{board.images:,}", f"{same} of {len(board.pairs)}", *ends]))
    group = f"Difference found with {100 * POWER:.0f} % power, points"
    heads = {"least": "Least", "median": "Median pair", "most": "Most"}
    columns = [Column("images", "Test images"), Column("level", "Pairs not told apart")]
    columns += [Column(key, label, group) for key, label in heads.items()]
    title = "What these test images could have shown"
    return table_of_rows("ranks_power", title, columns, rows, corner="Task")


@shows("baselines", "Baselines without a network", section="tasks")
def baselines(run: Run) -> Iterator[Part]:
    """Linear probes on features that need no training, on the same test images. A network that does worse
    than one of them was probably shown wrongly prepared images, or lost its weights."""
    found = {task: made for task in run.targets if (made := beside_baselines(run, task))}
    if not found:
        yield "Not measured (`--no-baselines`), or no task has images of one label each."
        return
    answers = [of_all for _, of_all in found.values()]
    rows = [("Always one class", [Cell(100 * of_all.chance()) for of_all in answers])]
    rows += [
        (title, [_interval(of_all, row) for of_all in answers]) for row, title in enumerate(TITLES.values())
    ]
    for title, choose in (("The weakest network", min), ("The best network", max)):
        accuracies = [of_all.accuracies().tolist()[len(NAMES) :] for of_all in answers]
        places = [len(NAMES) + values.index(choose(values)) for values in accuracies]
        rows.append((title, [_interval(of_all, at) for of_all, at in zip(answers, places, strict=True)]))
    columns = [Column(f"{task}_percent", card(task).title, "Linear probe, %") for task in found]
    yield table_of_rows("baselines", "Test accuracy, with 95 % intervals", columns, rows, corner="Features")
    below = [
        f"{run.labels()[each.network]} on {card(each.task).title}: {each.text}." for each in shortfalls(run)
    ]
    yield from below or ["No network is worse than a baseline, beyond chance."]
    yield (
        "Baselines: linear probes on standardised features: the colours of 8 x 8 cells; mean, deviation and"
        f" histogram of the colours; 32 random filters, rectified and pooled. Of a split at most {MOST:,}"
        " images are used."
    )


def _interval(of_all: Answers, row: int) -> Cell:
    found = intervals([of_all.of([row])])[0]
    return Cell(100 * found.value, with_interval(found.value, found.low, found.high))


@shows("labels", "Each label by itself", section="labels")
def labels(run: Run) -> Iterator[Part]:
    """Images of several labels: a logistic regression for each label on the frozen features, scored by the
    area under its ROC curve on the test images."""
    names = run.labels()
    for task in run.several_labels:
        networks, found = _compared(run, task)
        heads = {str(at): plain(name) for at, name in enumerate(found)}
        rows = [(names[slug], [_area(of, at) for of in found.values()]) for at, slug in enumerate(networks)]
        columns = [
            Column(as_name("auc", at), head, "Area under the ROC curve, %") for at, head in heads.items()
        ]
        yield table_of_rows(
            as_name("labels", task),
            f"{card(task).title}: each label by itself",
            columns,
            rows,
            corner="Network",
            slugs=tuple(networks),
            test=DELONG,
        )
        columns = [
            Column(as_name(kind, at), label, head)
            for at, head in heads.items()
            for kind, label in DIFFERENCE.items()
        ]
        rows = [
            (
                f"{names[networks[one]]} – {names[networks[other]]}",
                [cell for areas in found.values() for cell in _difference(areas, one, other)],
            )
            for one, other in itertools.combinations(range(len(networks)), 2)
        ]
        title = f"{card(task).title}: the first network's area less the second's, on the same test images"
        name = as_name("labels_compared", task)
        yield table_of_rows(name, title, columns, rows, corner="Networks", own_marks=True)


def _compared(run: Run, task: str) -> tuple[list[str], dict[str, ComparedAreas]]:
    """Return the networks with scores of a task's test images, and their areas for the mean and each label.

    Labels that not every network has, and networks that were shown other images, are left out.
    """
    from penultimate.statistics.areas import compare_areas

    names_of = ("ids", "names", "labels", "scores")
    policies = run.rows("multilabel_scores", target=task)["setting"].dropna().unique()
    found = [arrays_of(run, "multilabel_scores", names_of, setting=how, target=task) for how in policies[:1]]
    held = {slug: each for of in found for slug, _, each in of}
    if not held:
        return [], {}
    first = next(iter(held.values()))
    ids = np.sort(first["ids"])
    held = {slug: arrays for slug, arrays in held.items() if np.array_equal(np.sort(arrays["ids"]), ids)}
    names = [name for name in map(str, first["names"]) if all(name in of["names"] for of in held.values())]
    truth = _columns(first, "labels", names)
    scores = [_columns(arrays, "scores", names) for arrays in held.values()]
    known = groups_of(run, task)
    groups = None if known is None else np.array([known[each] for each in ids.tolist()])
    areas = {"Mean of the labels": compare_areas(scores, truth, groups)} if len(names) > 1 else {}
    for at, name in enumerate(names):
        areas[name] = compare_areas([each[:, at] for each in scores], truth[:, at], groups)
    return list(held), areas


def _columns(arrays: Mapping[str, Any], what: str, names: list[str]) -> Any:
    """Return the labels or the scores of some labels, in the order of the images' ids."""
    places = [[*map(str, arrays["names"])].index(name) for name in names]
    return arrays[what][:, places][arrays["ids"].argsort()]


def _area(areas: ComparedAreas, at: int) -> Cell:
    area, is_beaten = areas.areas[at], any(pair.other == at and pair.is_told_apart for pair in areas.pairs)
    mark: Mark = "" if len(areas.areas) < 2 else "worse" if is_beaten else "best"
    return Cell(100 * area.value, with_interval(area.value, area.low, area.high), mark)


def _difference(areas: ComparedAreas, one: int, other: int) -> list[Cell]:
    pair = next(each for each in areas.pairs if {each.one, each.other} == {one, other})
    ahead = pair.difference if pair.one == one else -pair.difference
    return difference_cells(ahead, pair.p, pair.is_told_apart)
