"""Features of several networks joined, beside each of them alone."""

from __future__ import annotations

from penultimate.evaluation.boards import Board, Predicted, arrays_of, boards_of, predictions_of, task_of
from penultimate.evaluation.exhibits.ranking import accuracy_cell, table_of_differences
from penultimate.report.base import Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece

ACCURACIES = (Quantity("joined_{accuracy}", target=TARGETS, optional=True),)
JOINED = "joined: "
"""The beginning of the spec under which joined networks are compared; no network has such a spec."""
METHOD = (
    "Joined: the features of each network are centred by their mean over the training images and scaled by"
    " one number to equal variance, so that the probe's penalty treats all networks alike. The probe is that"
    " of the ranking. Comparisons are paired tests on the same images, corrected for all pairs of this"
    " table's column (Holm).",
)


def boards_of_joins(measurements: Measurements) -> list[Board]:
    """Return the boards of the networks that are joined, each alone and together."""
    tasks = []
    for target in measurements.targets:
        alone = predictions_of(measurements, target, "linear")
        by_spec = {network.spec: network for network in alone}
        shown: dict[StudyObjective, Predicted] = {}
        for row in measurements.rows("joined_predictions", "test", target):
            arrays = arrays_of(measurements, row)
            parts = (
                [by_spec[name] for name in map(str, arrays["networks"]) if name in by_spec] if arrays else []
            )
            if len(parts) < 2:
                continue
            shown |= {network: alone[network] for network in parts}
            label = " + ".join(network.label for network in parts)
            spec = f"{JOINED}{row.setting}"
            shown[StudyObjective(spec, label, spec)] = (arrays["ids"], arrays["labels"], arrays["linear"])
        if task := task_of(measurements, target, shown):
            tasks.append(task)
    return boards_of(tuple(tasks))


def _joined(measurements: Measurements) -> Piece:
    """Return the accuracies of networks alone and together, and what joining adds to each of them."""
    boards = boards_of_joins(measurements)
    if not boards:
        return Piece(wanted=False)
    networks = dict.fromkeys(standing.network for board in boards for standing in board.standings)
    order = sorted(networks, key=lambda network: not network.spec.startswith(JOINED))
    columns = tuple(
        Column(
            f"{board.name or 'mean'}_percent", board.title if board.name else "Mean", "Linear probe, %", "%"
        )
        for board in boards
    )
    rows = tuple(
        TableRow(network.label, tuple(accuracy_cell(board, network) for board in boards), network.slug)
        for network in order
    )
    accuracies = ExhibitTable("joined", "Test accuracy, with 95 % intervals", "Features", columns, rows)
    pairs = [
        (one, other)
        for place, one in enumerate(order)
        if one.spec.startswith(JOINED)
        for other in order[place + 1 :]
    ]
    title = "The joined features' accuracy less that of others, on the same test images"
    gained = table_of_differences("joined_gains", title, "Features", boards, pairs)
    return Piece((accuracies, gained), method=METHOD)


JOINED_FEATURES = Exhibit(
    name="joined",
    title="What networks know together",
    caption="A linear probe on the features of several networks side by side, beside each of them alone. A"
    " gain means that one network's features hold what the other's lack, or that more features help.",
    parts=(Bespoke(_joined, ACCURACIES),),
    place=12,
    measured_by=EVALUATE,
    summary="Features of networks of your own joined, beside each alone (--join a+b)",
    short="Joined features",
)
