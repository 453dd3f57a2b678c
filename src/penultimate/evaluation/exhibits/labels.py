"""Images of several labels: the area under the ROC curve of each label, with paired tests of the networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import card
from penultimate.evaluation.boards import arrays_of, groups_of
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import as_name, p_value, plain, signed
from penultimate.report.text import percent as in_percent

if TYPE_CHECKING:
    import numpy.typing as npt

    from penultimate.statistics.areas import ComparedAreas

MEAN = "Mean of the labels"
METHOD = (
    "AUC: how often an image that shows the label has a higher score than one that does not; exact, with"
    " DeLong's 95 % interval. Differences: DeLong's test for the same images, two-sided,"
    " corrected for all pairs of a column (Holm). The interval of the mean allows for labels that occur"
    " together.",
)


def _labels(measurements: Measurements) -> Piece:
    """Return for each task a table of areas and one of the pairs of networks."""
    tables = []
    for target in measurements.several_labels:
        networks, found = _compared(measurements, target)
        if networks:
            tables += _tables(target, networks, found)
    return Piece(tuple(tables), method=METHOD if tables else (), wanted=bool(tables))


def _compared(
    measurements: Measurements, target: str
) -> tuple[tuple[StudyObjective, ...], dict[str, ComparedAreas]]:
    """Return the networks with scores of a task's test images, and their areas for each label and the mean.

    Labels that not every network has, and images of other networks, are left out.
    """
    import numpy as np

    from penultimate.statistics.areas import compare_areas

    rows = {str(row.objective): row for row in measurements.rows("multilabel_scores", "test", target)}
    of = {
        each: arrays_of(measurements, rows[each.spec])
        for each in measurements.objectives
        if each.spec in rows
    }
    of = {network: arrays for network, arrays in of.items() if arrays}
    if not of:
        return (), {}
    first = next(iter(of.values()))
    ids, names = np.sort(first["ids"]), [*map(str, first["names"])]
    of = {network: arrays for network, arrays in of.items() if np.array_equal(np.sort(arrays["ids"]), ids)}
    names = [name for name in names if all(name in arrays["names"] for arrays in of.values())]
    if not names:
        return (), {}
    truth = np.stack([_column(first, "labels", name) for name in names], 1)
    scores = [np.stack([_column(arrays, "scores", name) for name in names], 1) for arrays in of.values()]
    known = groups_of(measurements, target)
    groups = None if known is None else np.array([known[each] for each in ids.tolist()])
    found = {
        name: compare_areas([each[:, at] for each in scores], truth[:, at], groups)
        for at, name in enumerate(names)
    }
    if len(names) > 1:
        found = {MEAN: compare_areas(scores, truth, groups), **found}
    return (*of,), found


def _column(arrays: Mapping[str, Any], what: str, name: str) -> npt.NDArray[Any]:
    """Return the labels or the scores of a label, in the order of the images' ids."""
    import numpy as np

    column: npt.NDArray[Any] = arrays[what][:, [*map(str, arrays["names"])].index(name)]
    return column[np.argsort(arrays["ids"])]


def _tables(
    target: str, networks: tuple[StudyObjective, ...], found: dict[str, ComparedAreas]
) -> list[ExhibitTable]:
    title = card(target).title
    heads = {name: plain(name) for name in found}
    columns = tuple(
        Column(as_name("auc", str(at)), head, "Area under the ROC curve, %", "%")
        for at, head in enumerate(heads.values())
    )
    beaten = {
        name: {pair.other for pair in areas.pairs if pair.is_told_apart and pair.difference > 0}
        for name, areas in found.items()
    }
    rows = tuple(
        TableRow(
            network.label,
            tuple(
                Cell(
                    f"{in_percent(area.value)} [{in_percent(area.low)}, {in_percent(area.high)}]",
                    100 * area.value,
                    best=at not in beaten[name] and len(networks) > 1,
                    detail="95 % interval over test images",
                    beaten=at in beaten[name],
                )
                for name, areas in found.items()
                for area in [areas.areas[at]]
            ),
            network.slug,
        )
        for at, network in enumerate(networks)
    )
    made = [
        ExhibitTable(as_name("labels", target), f"{title}: each label by itself", "Network", columns, rows)
    ]
    pairs = [(one, other) for one in range(len(networks)) for other in range(one + 1, len(networks))]
    if not pairs:
        return made
    of_pairs = tuple(
        Column(as_name(kind, str(at)), label, head)
        for at, head in enumerate(heads.values())
        for kind, label in (("points", "Points"), ("p", "p"))
    )
    compared = tuple(
        TableRow(
            f"{networks[one].label} – {networks[other].label}",
            tuple(cell for areas in found.values() for cell in _difference(areas, one, other)),
        )
        for one, other in pairs
    )
    name = as_name("labels_compared", target)
    told = f"{title}: the first network's area less the second's, on the same test images"
    return [*made, ExhibitTable(name, told, "Networks", of_pairs, compared)]


def _difference(areas: ComparedAreas, one: int, other: int) -> tuple[Cell, Cell]:
    pair = next(each for each in areas.pairs if {each.one, each.other} == {one, other})
    points = 100 * (pair.difference if pair.one == one else -pair.difference)
    p = p_value(pair.p).removeprefix("p = ").removeprefix("p ")
    return Cell(signed(points, 1), points, best=pair.is_told_apart), Cell(p, pair.p)


LABELS = Exhibit(
    name="labels",
    title="Each label by itself",
    caption="Images of several labels: a logistic regression for each label on the frozen features, scored by"
    " the area under its ROC curve on the test images.",
    parts=(Bespoke(_labels, (Quantity("multilabel_auc", optional=True),)),),
    place=13,
    measured_by=EVALUATE,
    summary="Networks of your own on images of several labels: AUCs with paired tests",
    short="Each label",
)
