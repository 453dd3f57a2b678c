"""Which ranks are real: rank intervals, tie groups, and the differences that could have been found."""

from __future__ import annotations

from penultimate.evaluation.boards import Board, answers_on, boards_of, tasks_of
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, listed
from penultimate.statistics.comparison import LEVEL
from penultimate.statistics.ranks import (
    DRAWS,
    POWER,
    RankInterval,
    detectable_difference,
    letter,
    rank_intervals,
    tie_groups,
)

FEW_TASKS = 5
"""The number of tasks below which drawing tasks with replacement says little."""


def _ranks(measurements: Measurements) -> Piece:
    """Return a row for each network (its ranks and groups), and one for each board (its test's power)."""
    boards = [board for board in boards_of(tasks_of(measurements)) if len(board.standings) > 1]
    if not boards:
        alone = bool(tasks_of(measurements))
        return Piece(notes=("There is only one network, so there are no ranks.",), wanted=alone)
    of_tasks = boards[0].name == ""
    columns, found = [], []
    for board in boards:
        group = board.title if board.name else "Mean of the tasks"
        kinds = [("images", "Rank, other images", False)]
        kinds += [("tasks", "and other tasks", True)] if not board.name else []
        for kind, label, over_tasks in kinds:
            columns.append(Column(f"{board.name or 'mean'}_{kind}", label, group))
            found.append(
                {network: _interval(each) for network, each in _intervals(board, over_tasks).items()}
            )
        columns.append(Column(f"{board.name or 'mean'}_group", "Tie group", group))
        found.append({network: Cell(text) for network, text in letters(board).items()})
    order = dict.fromkeys(standing.network for board in boards for standing in board.standings)
    rows = tuple(
        TableRow(network.label, tuple(of.get(network, Cell(MISSING)) for of in found), network.slug)
        for network in order
    )
    title = "Ranks by the linear probe's accuracy, with 95 % intervals of the paired bootstrap"
    few = (
        f"With only {counted(len(boards[0].tasks), 'task')} to draw from, how ranks would change on other"
        " tasks is uncertain."
    )
    notes = [few] if of_tasks and len(boards[0].tasks) < FEW_TASKS else []
    grouped = [task.title for task in boards[0].tasks if task.answers.groups is not None]
    notes += [f"Of {listed(grouped)} whole groups of images are drawn."] if grouped else []
    ranks = ExhibitTable("ranks", title, "Network", tuple(columns), rows)
    return Piece((ranks, _power(boards)), notes=tuple(notes), method=METHOD)


def _intervals(board: Board, over_tasks: bool) -> dict[StudyObjective, RankInterval]:
    networks = [standing.network for standing in board.standings]
    made = rank_intervals([answers_on(task, networks) for task in board.tasks], over_tasks=over_tasks)
    return dict(zip(networks, made, strict=True))


def _interval(found: RankInterval) -> Cell:
    text = f"{found.rank:g} [{found.low}, {found.high}]"
    return Cell(text, found.rank, detail=f"first in {100 * found.first:.0f} % of the draws")


def letters(board: Board) -> dict[StudyObjective, str]:
    """Return the letters of each network's tie groups, those of the best networks first."""
    networks = [standing.network for standing in board.standings]
    groups = tie_groups(
        (
            type(pair)(networks.index(one), networks.index(other), pair.difference, pair.p)
            for one, other, pair in board.pairs
        ),
        len(networks),
    )
    return {
        network: " ".join(letter(number) for number, group in enumerate(groups) if place in group)
        for place, network in enumerate(networks)
    }


def _power(boards: list[Board]) -> ExhibitTable:
    """Return the smallest difference that the tests of each board would probably have found."""
    rows = []
    for board in boards:
        networks = [standing.network for standing in board.standings]
        answers = [answers_on(task, networks) for task in board.tasks]
        level = LEVEL / len(board.pairs)
        found = sorted(
            detectable_difference(answers, networks.index(one), networks.index(other), level=level)
            for one, other, _ in board.pairs
        )
        known = [each for each in found if each == each]
        level_pairs = sum(not pair.is_told_apart for _, _, pair in board.pairs)
        ends = [known[0], known[len(known) // 2], known[-1]] if known else []
        cells = [
            Cell(f"{sum(task.examples for task in board.tasks):,}"),
            Cell(f"{level_pairs} of {len(board.pairs)}"),
            *(Cell(fixed(100 * each, 1), 100 * each) for each in ends),
            *[Cell(MISSING, detail="the networks answer too few images differently")] * (3 - len(ends)),
        ]
        rows.append(TableRow(board.title if board.name else "Mean of the tasks", tuple(cells)))
    group = f"Difference found with {POWER:.0%} power, points".replace("%", " %")
    columns = (
        Column("images", "Test images"),
        Column("level", "Pairs not told apart"),
        Column("least", "Least", group),
        Column("median", "Median pair", group),
        Column("most", "Most", group),
    )
    return ExhibitTable(
        "ranks_power", "What these test images could have shown", "Task", columns, tuple(rows)
    )


METHOD = (
    f"Rank intervals: percentiles of {DRAWS:,} draws with replacement of the test images, the same ones for"
    " all networks; where accuracy is a mean over classes, within each class; and, for other tasks, of the"
    " tasks first. A tie counts half a place. Tie groups: the largest sets of networks of which no two are"
    " told apart by the paired tests (Piepho's compact letter display). Ranks that overlap may still belong"
    " to networks that the tests tell apart.",
    "The detectable difference follows from the images that exactly one network of a pair gets right, at"
    f" the level {LEVEL:g} divided by the number of pairs, which is Holm's first and strictest step (Connor,"
    " 1987). A smaller difference may be real, but these images are too few to show it.",
)
RANKS = Exhibit(
    name="ranks",
    title="Which ranks are real",
    caption="How far each network's rank would move on other test images of the same kind, and on other"
    " tasks; which networks form a tie group, in which no two can be told apart; and the smallest"
    " difference that these test images would have shown with a power of 80 %.",
    parts=(Bespoke(_ranks),),
    place=12,
    measured_by=EVALUATE,
    summary="Rank intervals, tie groups and detectable differences of networks of your own",
    short="Which ranks are real",
)
