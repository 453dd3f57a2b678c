"""The ranking of networks on each task, and the paired comparisons behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penultimate.errors import as_sentence
from penultimate.evaluation.boards import PROBES, Board, ProbedTask, boards_of, tasks_of
from penultimate.evaluation.cautions import cautions
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import SOURCE, TARGETS, Quantity
from penultimate.report.shapes.cells import MEAN_PER_CLASS
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, listed, p_value, plain, signed
from penultimate.report.text import percent as in_percent
from penultimate.statistics.comparison import LEVEL

BOLD_NOTE = (
    "Bold: no other network in the column is better beyond chance, by paired tests on the same images"
    f" (two-sided level {LEVEL:g}, corrected for all pairs of the column by Holm). Places follow from the"
    " same tests of the first column: a network's best place is the next after all networks that are better"
    " beyond chance, its worst the last before all that are worse beyond chance."
)
ACCURACIES = tuple(
    Quantity(metric, target=target, optional=True)
    for metric in ("linear_{accuracy}", "knn_{accuracy}", "given_fine_tuned_{accuracy}")
    for target in (TARGETS, SOURCE)
)
"""The accuracies of its networks; the first task is often also the source."""
UNDER_PROBES = ("data", "extract", "probed")
"""The steps that a network's number on a task needs, besides loading the network."""
COMPARED = {"linear": "comparisons", "knn": "comparisons_knn", "tuned": "comparisons_tuned"}
"""The table of paired comparisons of each probe."""


def _ranking(measurements: Measurements) -> Piece:
    """Return a table for each probe: networks as rows, the mean and the tasks as columns."""
    tasks = tasks_of(measurements)
    tables = [table for probe in PROBES if (table := _table(tasks_of(measurements, probe), probe))]
    lacking = _lacking(measurements, tasks)
    per_class = [task.title for task in tasks if task.answers.per_class]
    cells = (cell for table in tables for row in table.rows for cell in row.cells)
    notes = [BOLD_NOTE] if any(cell.best or cell.beaten for cell in cells) else []
    notes += map(str, cautions(measurements))
    notes += _unread(measurements)
    if per_class:
        notes.append(
            f"{MEAN_PER_CLASS} mean of the classes' accuracies; all others are shares of the images."
        )
    return Piece(tuple(tables), notes=(*notes, *lacking))


def _table(tasks: tuple[ProbedTask, ...], probe: str) -> ExhibitTable | None:
    boards = boards_of(tasks)
    if not boards:
        return None
    order = dict.fromkeys(standing.network for board in boards for standing in board.standings)
    columns = [
        Column(
            f"{board.name or 'mean'}_percent",
            (board.title if board.name else "Mean") + (MEAN_PER_CLASS if _is_per_class(board) else ""),
            PROBES[probe] + ", %",
            "%",
        )
        for board in boards
    ]
    rows = tuple(
        TableRow(
            network.label,
            (_place(boards[0], network), *(accuracy_cell(board, network) for board in boards)),
            network.slug,
        )
        for network in order
    )
    place = Column("place", "Place")
    title = f"{PROBES[probe]}: test accuracy, with 95 % intervals"
    return ExhibitTable(f"ranking_{probe}", title, "Network", (place, *columns), rows)


def _is_per_class(board: Board) -> bool:
    return bool(board.name) and board.tasks[0].answers.per_class


def _place(board: Board, network: StudyObjective) -> Cell:
    found = next((each for each in board.standings if each.network == network), None)
    return (
        Cell(MISSING)
        if found is None
        else Cell(found.place, detail="the places that the paired tests leave open")
    )


def accuracy_cell(board: Board, network: StudyObjective) -> Cell:
    """Return a network's accuracy on a board with its interval, bold if no other is better beyond chance."""
    found = next((each for each in board.standings if each.network == network), None)
    if found is None:
        return Cell(MISSING, detail="not measured")
    value = found.interval
    best = found.is_unbeaten and len(board.standings) > 1
    text = f"{in_percent(value.value)} [{in_percent(value.low)}, {in_percent(value.high)}]"
    beaten = not found.is_unbeaten
    return Cell(text, 100 * value.value, best=best, detail="95 % interval over test images", beaten=beaten)


def _unread(measurements: Measurements) -> list[str]:
    """Return a sentence for each split that lacks images."""
    left_out = measurements.results.provenance.get("left_out", {})
    return [
        f"Left out of {plain(split)}, for all networks: {counted(len(images), 'image')} that cannot be read;"
        " penultimate data check names them."
        for split, images in left_out.items()
    ]


def _lacking(measurements: Measurements, tasks: tuple[ProbedTask, ...]) -> list[str]:
    """Return sentences on networks without a number on a task, with the reasons if they are known."""
    said = []
    by_name = {task.name: task for task in tasks}
    for target in measurements.targets:
        task = by_name.get(target)
        there = {each.spec for each in task.networks} if task else set()
        by_reason: dict[str, list[str]] = {}
        for each in measurements.objectives:
            if each.spec not in there:
                by_reason.setdefault(_why(measurements, target, each.spec), []).append(each.label)
        for why, labels in by_reason.items():
            said.append(as_sentence(f"No number of {listed(labels)} on {target}{why}"))
    return said


def _why(measurements: Measurements, target: str, network: str) -> str:
    """Return why a network has no number on a target, after a colon, or an empty string if unknown."""
    provenance = measurements.results.provenance
    of = {"network": network, "target": target}
    reasons = {
        plain(why).rstrip(".")
        for step, why in provenance.get("undefined", {}).items()
        if step.startswith("probed.") and provenance.get("undefined_of", {}).get(step) == of
    }
    for step, failure in provenance.get("failed", {}).items():
        kind = step.partition(".")[0]
        of_target = kind == "given" or (kind in UNDER_PROBES and failure["target"] == target)
        if of_target and failure["network"] in (None, network):
            reasons.add(plain(failure["why"]).rstrip("."))
    return f": {'; '.join(sorted(reasons))}" if reasons else ""


def _pairs(measurements: Measurements) -> Piece:
    """Return a row for each pair of networks: the lead of the better one, over all tasks and on each."""
    tables = [table for probe in COMPARED if (table := _compared(measurements, probe))]
    if tables:
        return Piece(tuple(tables))
    alone = bool(tasks_of(measurements))
    return Piece(notes=("There is only one network, so nothing is compared.",), wanted=alone)


def _compared(measurements: Measurements, probe: str) -> ExhibitTable | None:
    boards = boards_of(tasks_of(measurements, probe))
    if not boards or not boards[0].pairs:
        return None
    pairs = [pair[:2] for pair in sorted(boards[0].pairs, key=lambda entry: -entry[2].difference)]
    title = f"{PROBES[probe]}: the first network's accuracy less the second's, on the same test images"
    return table_of_differences(COMPARED[probe], title, "Networks", boards, pairs)


def table_of_differences(
    name: str,
    title: str,
    names: str,
    boards: Sequence[Board],
    pairs: Iterable[tuple[StudyObjective, StudyObjective]],
) -> ExhibitTable:
    """Return a table of paired differences: one row for each pair, with points and p on each board."""
    columns = tuple(
        column
        for board in boards
        for group in [board.title if board.name else "Mean of the tasks"]
        for column in (
            Column(f"{board.name or 'mean'}_points", "Points", group),
            Column(f"{board.name or 'mean'}_p", "p", group),
        )
    )
    rows = tuple(
        TableRow(
            f"{one.label} – {other.label}",
            tuple(cell for board in boards for cell in difference_cells(board, one, other)),
        )
        for one, other in pairs
    )
    return ExhibitTable(name, title, names, columns, rows)


def difference_cells(board: Board, one: StudyObjective, other: StudyObjective) -> tuple[Cell, Cell]:
    """Return by how many points one network is ahead of another on a board, and the corrected p."""
    for first, second, pair in board.pairs:
        if {first, second} == {one, other}:
            points = pair.difference if first == one else -pair.difference
            return (
                Cell(signed(100 * points, 1), 100 * points, best=pair.is_told_apart),
                Cell(p_value(pair.p).removeprefix("p = ").removeprefix("p "), pair.p),
            )
    return Cell(MISSING), Cell(MISSING)


RANKING = Exhibit(
    name="ranking",
    title="Which network serves which task best",
    caption="Accuracy on each task's test images of a classifier on the frozen features (and, where it was"
    " asked for, after fine-tuning), with 95 % intervals that hold for few images too. The place is by the"
    " mean over tasks, with equal weight for each: the range of places that the paired comparisons leave"
    " open.",
    parts=(Bespoke(_ranking, ACCURACIES),),
    place=11,
    measured_by=EVALUATE,
    summary="Networks of your own ranked on each task, with intervals",
    short="The ranking",
)
COMPARISONS = Exhibit(
    name="comparisons",
    title="Who is ahead of whom, on the same images",
    caption="By how many points one network is ahead of another. Both classified the same test images, so"
    " only images on which exactly one is wrong count (McNemar's exact test; where images have different"
    " weights, flips of signs). p is two-sided and corrected for all pairs of a column (Holm). Bold: a"
    " difference beyond chance.",
    parts=(Bespoke(_pairs),),
    place=12,
    measured_by=EVALUATE,
    summary="Every two networks of your own, compared on the same test images",
    short="Paired comparisons",
)
