"""Images of several labels: the area under the ROC curve of each label, with paired tests of the networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.exhibits.order import difference_cells
from penultimate.evaluation.standings import groups_of, with_interval
from penultimate.results.exhibit import Part
from penultimate.results.rows import Run, arrays_of
from penultimate.results.table import Cell, Column, Mark, table_of_cells
from penultimate.results.text import as_name, plain

if TYPE_CHECKING:
    from penultimate.statistics.areas import ComparedAreas

DELONG = (
    "AUC: how often an image that shows the label has a higher score than one that does not, with DeLong's"
    " 95 % interval. Beyond chance: DeLong's test for the same images, two-sided, corrected for all pairs of"
    " a column (Holm). The mean allows for labels that occur together."
)


@shows("labels", "Each label by itself", section="labels")
def labels(run: Run) -> Iterator[Part]:
    """Images of several labels: a logistic regression for each label on the frozen features, scored by the
    area under its ROC curve on the test images."""
    names = run.labels()
    for task in run.several_labels:
        networks, found = _compared(run, task)
        heads = {at: plain(name) for at, name in enumerate(found)}
        title, group = card(task).title, "Area under the ROC curve, %"
        yield table_of_cells(
            as_name("labels", task),
            f"{title}: each label by itself",
            [Column(as_name("auc", str(at)), head, group) for at, head in heads.items()],
            [
                (names[slug], [_area(areas, at) for areas in found.values()])
                for at, slug in enumerate(networks)
            ],
            corner="Network",
            slugs=tuple(networks),
            test=DELONG,
        )
        yield table_of_cells(
            as_name("labels_compared", task),
            f"{title}: the first network's area less the second's, on the same test images",
            [
                Column(as_name(kind, str(at)), label, head)
                for at, head in heads.items()
                for kind, label in (("points", "Points"), ("p", "p"))
            ],
            [
                (
                    f"{names[networks[one]]} – {names[networks[other]]}",
                    [cell for areas in found.values() for cell in _difference(areas, one, other)],
                )
                for one, other in itertools.combinations(range(len(networks)), 2)
            ],
            corner="Networks",
            own_marks=True,
        )


def _compared(run: Run, task: str) -> tuple[list[str], dict[str, ComparedAreas]]:
    """Return the networks with scores of a task's test images, and their areas for the mean and each label.

    Labels that not every network has, and networks that were shown other images, are left out.
    """
    import numpy as np

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
    return difference_cells(
        (pair.difference if pair.one == one else -pair.difference, pair.p, pair.is_told_apart)
    )
