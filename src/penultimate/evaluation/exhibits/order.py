"""The ranking of networks on each task, and what stands behind it: comparisons, ranks and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.standings import PROBES, Board, boards, with_interval
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
from penultimate.results.rows import Run
from penultimate.results.table import MISSING, Cell, Column, Mark, Table, table_of_cells
from penultimate.results.text import counted, listed, p_value, signed
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

PAIRED = (
    "Beyond chance: by paired tests on the same images (two-sided level 0.05, corrected for all pairs of the"
    " column by Holm). Places follow from the same tests of the first column."
)
COMPARED = {"linear": "comparisons", "knn": "comparisons_knn", "tuned": "comparisons_tuned"}
"""The table of paired comparisons of each probe."""
FEW_TASKS = 5
"""The number of tasks below which drawing tasks with replacement says little."""


@shows("ranking", "Which network serves which task best", section="tasks")
def ranking(run: Run) -> Iterator[Part]:
    """Accuracy on each task's test images of a classifier on the frozen features (and, where it was asked
    for, after fine-tuning), with 95 % intervals. The place is by the mean over tasks, with equal weight for
    each: the range of places that the paired comparisons leave open."""
    for probe, title in PROBES.items():
        if found := boards(run, probe):
            yield _ranking(run, f"ranking_{probe}", title, found)
    if any(label.endswith(PER_CLASS) for label in map(task_label, run.targets)):
        yield f"{PER_CLASS} mean of the classes' accuracies; all others are shares of the images."
    yield from caution_notes(run)
    yield from missing_numbers(run, of_tasks=True)


def _ranking(run: Run, name: str, title: str, found: list[Board]) -> Table | None:
    """Return a table of networks with a column for each board."""
    order = list(dict.fromkeys(network for board in found for network in board.standings.index))
    columns = [Column(f"{board.key}_percent", task_label(board.key), f"{title}, %") for board in found]
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
    heading = f"{title}: test accuracy, with 95 % intervals"
    columns = [Column("place", "Place"), *columns]
    return table_of_cells(name, heading, columns, rows, corner="Network", slugs=tuple(order), test=PAIRED)


def _accuracy(board: Board, network: str) -> Cell | None:
    if network not in board.standings.index:
        return None
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
                [
                    cell
                    for board in found
                    for cell in difference_cells(board.difference(one, other) or (None, None, False))
                ],
            )
            for one, other in sorted(pairs, key=lambda pair: -pairs[pair].difference)
        ]
        title = f"{PROBES[probe]}: the first network's accuracy less the second's, on the same test images"
        columns = [
            Column(f"{board.key}_{key}", label, board.title)
            for board in found
            for key, label in (("points", "Points"), ("p", "p"))
        ]
        yield table_of_cells(name, title, columns, rows, corner="Networks", own_marks=True)


def difference_cells(found: tuple[float | None, float | None, bool]) -> list[Cell]:
    """Return the cells of a difference in points, bold beyond chance, and of its p."""
    difference, p, is_told_apart = found
    if difference is None or p is None:
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
    columns, by_board = list[Column](), [(board, _rank_cells(board)) for board in found]
    for board in found:
        heads = {"images": "Rank, other images", "tasks": "and other tasks", "group": "Tie group"}
        kinds = [key for key in heads if key != "tasks" or not board.task]
        columns += [Column(f"{board.key}_{key}", heads[key], board.title) for key in kinds]
    order = list(dict.fromkeys(network for board in found for network in board.standings.index))
    rows = [
        (
            run.labels()[network],
            [cell for board, of in by_board for cell in of.get(network, [None] * (3 - bool(board.task)))],
        )
        for network in order
    ]
    title = "Ranks by the linear probe's accuracy, with 95 % intervals of the paired bootstrap"
    yield table_of_cells("ranks", title, columns, rows, corner="Network", slugs=tuple(order))
    yield _power(found)
    if not found[0].task and len(found[0].answers) < FEW_TASKS:
        tasks = counted(len(found[0].answers), "task")
        yield f"With only {tasks} to draw from, how ranks would change on other tasks is uncertain."
    if grouped := [board.title for board in found if board.task and board.answers[0].groups is not None]:
        yield f"Of {listed(grouped)} whole groups of images are drawn."
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
    groups = tie_groups(pairs, len(order))
    letters = [
        " ".join(letter(number) for number, group in enumerate(groups) if place in group)
        for place in range(len(order))
    ]
    return {
        network: [
            *(Cell(of[at].rank, f"{of[at].rank:g} [{of[at].low}, {of[at].high}]") for of in made),
            letters[at],
        ]
        for at, network in enumerate(order)
    }


def _power(found: list[Board]) -> Table | None:
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
    columns = [Column("images", "Test images"), Column("level", "Pairs not told apart")]
    heads = {"least": "Least", "median": "Median pair", "most": "Most"}
    columns += [Column(key, label, group) for key, label in heads.items()]
    return table_of_cells(
        "ranks_power", "What these test images could have shown", columns, rows, corner="Task"
    )


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
    yield table_of_cells("baselines", "Test accuracy, with 95 % intervals", columns, rows, corner="Features")
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
