"""What an exhibit is made from and made of: frozen data, drawn elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from penultimate.records.archive import KeptStudy
    from penultimate.records.table import Table

Source: TypeAlias = Literal["ours", "published"]
"""Whose numbers: measured here, or printed in the paper. One table and one panel holds one kind only."""

MISSING = "–"
UNBEATEN = "no other in the column is better beyond chance"
"""What bold says of a value, and a star in a terminal."""


@dataclass(frozen=True)
class StudyResults:
    """Everything a report reads.

    `description` is the study as JSON, `table` its rows, `sheet` a PNG of its images, `provenance` any
    JSON that says where the rows come from; its `diverged` names the steps that ended as NaN, and why.
    `arrays(step, metric)` reads what a row points to: densities, spectra. `today` describes the study as it
    is now, where these are the results of a run that is kept: they hold what `description` asks for.
    """

    description: Mapping[str, Any]
    table: Table
    sheet: bytes | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    arrays: Callable[[str, str], Mapping[str, Any]] | None = None
    today: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, kept: KeptStudy, today: Mapping[str, Any] | None = None) -> StudyResults:
        """Return what a kept study holds, beside the description of the study as it is `today`."""
        provenance = {**kept.provenance, "rows_sha256": kept.digest}
        return cls(kept.description, kept.table, None, provenance, kept.arrays, today or {})

    @property
    def is_joined(self) -> bool:
        """Whether it was run in parts that were joined: these count their networks."""
        return "networks" in self.provenance


@dataclass(frozen=True)
class Column:
    """A column of numbers or words; `group` is the heading it shares with its neighbours."""

    key: str
    label: str
    group: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Cell:
    """One entry: the text that is shown, and the unrounded number behind it in the column's unit.

    `best` marks a value than which no other in its column is better beyond chance, `of_runs` a mean over the
    `count` runs of an objective.
    """

    text: str
    value: float | None = None
    error: float | None = None
    count: int | None = None
    best: bool = False
    detail: str = ""
    of_runs: bool = False


@dataclass(frozen=True)
class TableRow:
    """A row with its heading; `objective` is the slug that gives it its mark, or empty."""

    label: str
    cells: tuple[Cell, ...]
    objective: str = ""


@dataclass(frozen=True)
class ExhibitTable:
    """A table of one source; one that is `folded` waits on the page to be opened."""

    name: str
    title: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    source: Source = "ours"
    notes: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Point:
    """A mark: a single run (faint where a mean is drawn too) or a mean with its standard errors."""

    x: float
    y: float
    objective: str
    label: str
    detail: str = ""
    x_error: float | None = None
    y_error: float | None = None
    faint: bool = False


@dataclass(frozen=True)
class Curve:
    """A line through (x, y); `dashed` and `faint` set it back behind the others."""

    points: tuple[tuple[float, float], ...]
    objective: str
    label: str
    dashed: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Raster:
    """A map of numbers: a cell for each row and column, from the top left; None where there is no number.

    `low` and `high` are the ends of the scale of colours. Rows and columns are named by words, or, where
    slugs are given, by the marks of objectives. `is_scale`: it explains the colours of others, and no cell of
    it is a measurement.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    row_marks: tuple[str, ...] = ()
    column_marks: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    is_scale: bool = False


@dataclass(frozen=True)
class Bar:
    """A length upwards that a panel draws, so that panels of different scales can be compared."""

    length: float
    label: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes; several make a figure. Directly labelled where `labelled`; a map where `raster`.

    Not `numbered`: what lies upwards is in an order, and has no numbers. `y_unit` is the unit upwards, where
    the label does not end with it.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    points: tuple[Point, ...] = ()
    curves: tuple[Curve, ...] = ()
    labelled: bool = True
    source: Source = "ours"
    finding: str = ""
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    size: tuple[float, float] = (420, 340)
    raster: Raster | None = None
    numbered: bool = True
    y_unit: str = ""
    bar: Bar | None = None


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with a description for those who cannot see them."""

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    legend: bool = False


@dataclass(frozen=True)
class Pictures:
    """Small PNGs of images of one class that were taken for another; `count` of how many, and in per cent."""

    truth: str
    taken_for: str
    count: str
    share: str
    images: tuple[bytes, ...]


@dataclass(frozen=True)
class Gallery:
    """What one network confuses on one task, the most frequent first."""

    name: str
    title: str
    label: str
    objective: str
    groups: tuple[Pictures, ...]


@dataclass(frozen=True)
class Missing:
    """What an exhibit lacks because nothing measured it, and the command that measures it.

    >>> print(Missing("kNN transfer").run_by("quickstart"))
    kNN transfer: not measured: run `penultimate run quickstart`
    """

    what: str
    command: str = ""
    why: str = ""

    def run_by(self, study: str) -> Missing:
        """Return the same, measured by a study of this package."""
        return replace(self, command=f"penultimate run {study}")

    def __str__(self) -> str:
        return f"{self.what}: not measured: {self.why}{' ' if self.why else ''}run `{self.command}`"


@dataclass(frozen=True)
class Built:
    """What an exhibit came to: one table or figure of the paper, regenerated from a study's rows.

    `missing` says what was not measured (the notes say it too). One that is not `wanted` holds nothing, for
    the study asks for nothing of the kind: the page leaves it out. `unfinished` says how far a study has come
    that is not finished, `short` is what contents call it, `finding` the note that says what came out,
    `paper_says` the one that says what the paper says.
    """

    name: str
    title: str
    caption: str
    tables: tuple[ExhibitTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    limited: bool = False
    wanted: bool = True
    missing: tuple[Missing, ...] = ()
    unfinished: str = ""
    short: str = ""
    finding: str = ""
    paper_says: str = ""
    galleries: tuple[Gallery, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Whether it shows anything of this study, and not the paper's numbers alone."""
        of_tables = {table.source for table in self.tables}
        return "ours" in of_tables | {panel.source for figure in self.figures for panel in figure.panels}

    @property
    def number(self) -> str:
        """The paper's name for it, such as "Table E.1"."""
        return number_of(self.name)

    def titled(self, title: str) -> str:
        """Return a title of it, behind the paper's name for it if the paper has one.

        >>> Built("figure5", "", "").titled("A title"), Built("claims", "", "").titled("A title")
        ('Figure 5. A title', 'A title')
        """
        return title if self.number == self.name else f"{self.number}. {title}"


def number_of(name: str) -> str:
    """Return the paper's name for an exhibit.

    >>> [number_of(name) for name in ("tableE1", "figure5", "iclr_figure5")]
    ['Table E.1', 'Figure 5', 'ICLR Figure 5']
    """
    parts = re.fullmatch(r"(iclr_)?(table|figure)([A-Z]?)(\d+)", name)
    if parts is None:
        return name
    version, kind, letter, digits = parts.groups(default="")
    return f"{version[:4].upper()} {kind.capitalize()} {letter}{'.' if letter else ''}{digits}".strip()
