"""The list of exhibits: which study measures each, and how much of it the studies of a store have done.

The answer is immediate because it needs only the list of finished steps, and the rows of the first and the
last step of each kind, which show what steps of that kind hold. No number is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate.data.catalog import remember
from penultimate.records.reading import StudyFolder, study_folders
from penultimate.records.table import ROWS, Row, read_cells
from penultimate.report.networks import StudyNetworks
from penultimate.report.quantity import Quantity
from penultimate.report.spec import EVALUATE, PORTRAIT, Exhibit, all_exhibits

ANY_STUDY = "any study"
"""The state of an exhibit that is made from a study's settings alone."""
NOT_MEASURED = "not measured"
ON_ITS_PAGE = "on its page"
"""The state of an exhibit of the user's own networks and data, which any evaluation measures."""
SORTING = ("metric", "target", "split", "setting", "backbone")
"""The columns by which exhibits distinguish rows, and whether these name a layer and an epoch."""


@dataclass(frozen=True)
class Coverage:
    """The progress of a study with an exhibit: the finished steps among those that hold its numbers.

    If it `lacks`, the study has no step for some of the quantities.
    """

    study: str
    done: int
    total: int
    lacks: bool
    limited: bool

    @property
    def is_whole(self) -> bool:
        """Whether every number of the exhibit that can be measured has been measured."""
        return self.done == self.total > 0 and not self.lacks

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The key by which coverages are compared: the greatest is the best."""
        return self.is_whole and not self.limited, self.is_whole, self.done

    def __str__(self) -> str:
        study = f"{self.study}, limited" if self.limited else self.study
        if self.is_whole:
            return f"measured ({study})"
        if not self.done:
            return NOT_MEASURED
        steps = f": {self.done} of {self.total} steps" if self.done < self.total else ""
        return f"partly ({study}{steps})"


@dataclass(frozen=True)
class Steps:
    """The steps of one kind in one arm of a study, with a `sample` of the rows that they left."""

    kind: str
    arm: str
    done: int
    total: int
    sample: tuple[Row, ...] = field(repr=False, default=())

    def hold(self, quantity: Quantity, exhibit: Exhibit, backbone: str) -> bool:
        """Return whether these steps yield a quantity, by their rows or else by their declaration."""
        if self.done:
            return any(exhibit.covers(quantity, row) and exhibit.is_of(row, backbone) for row in self.sample)
        return self.arm in exhibit.arms_of(quantity) and quantity.is_yielded_by(self.kind)


def states(root: Path | str) -> dict[str, str]:
    """Return the state of each exhibit in a store, in words.

    >>> set(states("no-such-folder").values()) == {"not measured", "any study", "on its page"}
    True
    """
    folders = [folder for folder in study_folders(root) if not folder.is_search]
    stores = [(folder, _steps(folder)) for folder in folders]
    return {exhibit.name: _state(exhibit, stores) for exhibit in all_exhibits()}


def lines(root: Path | str) -> list[str]:
    """Return the lines of `penultimate list exhibits`: name, study, state and summary of each exhibit."""
    known = states(root)
    table = [("exhibit", "measured by", f"in {root}", "")]
    for exhibit in all_exhibits():
        table.append((exhibit.name, exhibit.study, known[exhibit.name], exhibit.summary))
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    return [
        "  ".join(
            (*(f"{cell:<{width}}" for cell, width in zip(row[:3], widths, strict=True)), row[3])
        ).rstrip()
        for row in table
    ]


def _state(exhibit: Exhibit, studies: Iterable[tuple[StudyFolder, list[Steps]]]) -> str:
    if exhibit.measured_by in (EVALUATE, PORTRAIT):
        return ON_ITS_PAGE
    if not exhibit.quantities:
        return ANY_STUDY
    found = [
        _coverage(exhibit, folder, steps)
        for folder, steps in studies
        if exhibit.shows_given or not StudyNetworks(folder.description).are_given
    ]
    return str(max(found, key=lambda coverage: coverage.rank)) if found else NOT_MEASURED


def _coverage(exhibit: Exhibit, folder: StudyFolder, steps: list[Steps]) -> Coverage:
    """Count the steps that hold any of the quantities; another split may replace one that no step holds."""
    backbone = next(iter(folder.backbones), "")
    holders: dict[tuple[str, str], Steps] = {}
    held: dict[tuple[str, ...], bool] = {}
    for quantity in exhibit.quantities:
        holding = [of for of in steps if of.hold(quantity, exhibit, backbone)]
        holders.update({(of.kind, of.arm): of for of in holding})
        if quantity.optional:
            continue
        what = (quantity.metric, quantity.target, quantity.arm, quantity.setting, quantity.over)
        held[what] = held.get(what, False) or bool(holding)
    done, total = sum(of.done for of in holders.values()), sum(of.total for of in holders.values())
    return Coverage(folder.name, done, total, not all(held.values()), bool(folder.description["limited"]))


def _steps(folder: StudyFolder) -> list[Steps]:
    """Return a study's steps by kind and arm."""
    for kept in folder.description.get("cards", ()):
        remember(kept)
    place = folder.store.root / "steps"
    present = {path.name for path in place.iterdir()} if place.is_dir() else set()
    groups: dict[tuple[str, str], list[str]] = {}
    left_out = frozenset(folder.description.get("left_out", ()))
    for step_id in (each for each in folder.description["steps"] if each not in left_out):
        for arm in folder.arms(step_id):
            groups.setdefault((step_id.partition(".")[0], arm), []).append(step_id)
    by_kind = []
    for (kind, arm), ids in groups.items():
        done = [step_id for step_id in ids if step_id in present]
        ends = dict.fromkeys((*done[:1], *done[-1:]))
        sample = tuple(row for step_id in ends for row in _rows(folder.file(step_id, ROWS), arm))
        by_kind.append(Steps(kind, arm, len(done), len(ids), sample))
    return by_kind


def _rows(file: Path, arm: str) -> list[Row]:
    """Return one row of each sort that a step has left, with this arm as its arm."""
    sorts: dict[tuple[object, ...], dict[str, Any]] = {}
    for cells in read_cells(file):
        sorts["epoch" in cells, "layer" in cells, *map(cells.get, SORTING)] = cells
    return [Row(**{**cells, "value": math.nan, "arm": arm or None}) for cells in sorts.values()]
