"""What an exhibit is made from and made of: frozen data, drawn elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penultimate.lazy import found

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.records.archive import KeptStudy
    from penultimate.records.table import Table
    from penultimate.results.rows import Run

Source: TypeAlias = Literal["ours", "published"]
"""The origin of numbers: measured here, or printed in the paper. A table or panel holds one kind only."""

MISSING = "–"
UNBEATEN = "no other in the column is better beyond chance"
"""The meaning of bold on a page, and of a star in a terminal."""
WORSE = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
"""The mark of a value that is worse than another beyond chance, in tables where most values are not."""


@dataclass(frozen=True)
class StudyResults:
    """Everything a report reads.

    `description` is the study as JSON, `table` its rows, `sheet` a PNG of its images, and `provenance` any
    JSON that says where the rows come from; its `diverged` names the steps that ended as NaN, with reasons.
    `arrays(step, metric)` reads the arrays that a row points to, such as densities and spectra. For a run
    that is kept, `description` is the study as it was run, and `today` the study as it is now. The results of
    several studies (`report.several`) hold those of each as their `parts`.
    """

    description: Mapping[str, Any]
    table: Table
    sheet: bytes | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    arrays: Callable[[str, str], Mapping[str, Any]] | None = None
    today: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[StudyResults, ...] = ()

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description.get("name", ""))

    @classmethod
    def of(cls, kept: KeptStudy, today: Mapping[str, Any] | None = None) -> StudyResults:
        """Return the results of a kept study, with the description of the study as it is `today`."""
        provenance = {**kept.provenance, "rows_sha256": kept.digest}
        return cls(kept.description, kept.table, None, provenance, kept.arrays, today or {})

    @classmethod
    def of_run(cls, run: Run) -> StudyResults:
        """Return the results of a run of the room `results`."""
        from penultimate.records.table import Table

        return cls(run.description, Table.of_frame(run.frame), run.sheet, run.provenance, run.arrays)

    def run(self) -> Run:
        """Return the results as a run of the room `results`."""
        from penultimate.results.rows import Run

        return Run(self.table.frame(), self.description, self.provenance, self.arrays, self.sheet)

    @property
    def is_joined(self) -> bool:
        """Whether the study was run in parts that were joined. Only such a run counts its networks."""
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

    `best` marks a value that no other in its column beats beyond chance, `beaten` one that another does beat
    so, and `of_runs` a mean over the `count` runs of an objective. A value that cannot be tested is neither.
    """

    text: str
    value: float | None = None
    error: float | None = None
    count: int | None = None
    best: bool = False
    detail: str = ""
    of_runs: bool = False
    beaten: bool = False


@dataclass(frozen=True)
class TableRow:
    """A row with its heading; `objective` is the slug that gives it its mark, or empty.

    The reader opens the rows that are `folded` on the page, below the others.
    """

    label: str
    cells: tuple[Cell, ...]
    objective: str = ""
    folded: bool = False


@dataclass(frozen=True)
class ExhibitTable:
    """A table of one source. If it is `folded`, the reader opens it on the page.

    `open_rows` are the rows that the page shows, and `folded_rows` those that the reader opens under
    `folded_title`. A table whose rows are all to be folded is shown whole. If `marks_worse`, the cells that
    are beaten are marked in place of the best, because most are unbeaten (`report.marks`).
    """

    name: str
    title: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    source: Source = "ours"
    notes: tuple[str, ...] = ()
    folded: bool = False
    folded_title: str = ""
    marks_worse: bool = False

    def is_bold(self, cell: Cell) -> bool:
        """Return whether a cell of the table is set in bold."""
        return cell.best and not self.marks_worse

    def is_worse(self, cell: Cell) -> bool:
        """Return whether a cell of the table is marked as worse than another in its column."""
        return cell.beaten and self.marks_worse

    def to_pandas(self) -> pd.DataFrame:
        """Return the unrounded numbers, with standard errors and counts."""
        return found("penultimate.report.tables:to_frame")(self)

    @property
    def open_rows(self) -> tuple[TableRow, ...]:
        """The rows that the page shows."""
        return tuple(row for row in self.rows if not row.folded) or self.rows

    @property
    def folded_rows(self) -> tuple[TableRow, ...]:
        """The rows that the reader opens."""
        return tuple(row for row in self.rows if row.folded) if self.open_rows is not self.rows else ()


@dataclass(frozen=True)
class Point:
    """A mark: a single run (faint where a mean is drawn too) or a mean with its standard errors.

    `y_span` are the ends of an interval that is drawn instead of errors, if it is not as long on both sides.
    With a `shade`, from 0 to 1, a third number fills it, and its objective has the edge.
    """

    x: float
    y: float
    objective: str
    label: str
    detail: str = ""
    x_error: float | None = None
    y_error: float | None = None
    faint: bool = False
    shade: float | None = None
    y_span: tuple[float, float] | None = None


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

    `low` and `high` are the ends of the colour scale. Rows and columns are named by words or, if slugs are
    given, by the marks of objectives. If `is_scale`, the map explains the colours of other maps, and none of
    its cells is a measurement.
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
    """A vertical scale bar that lets readers compare panels of different scales."""

    length: float
    label: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes; several make a figure.

    If `labelled`, the marks have labels beside them; with a `raster`, the panel is a map.
    `outline` is the drawing in lines of text, for a terminal, where marks
    do not say what it shows. If not `numbered`, the vertical axis has an order but no numbers; if `x_log`,
    the horizontal one is logarithmic. `y_unit` is the unit of the vertical axis if its label does not end
    with it.
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
    outline: tuple[str, ...] = ()
    x_log: bool = False


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
    """Small PNGs of images of one class that were classified as another, with their count and percentage."""

    truth: str
    taken_for: str
    count: str
    share: str
    images: tuple[bytes, ...]


@dataclass(frozen=True)
class Gallery:
    """The confusions of one network on one task, the most frequent first."""

    name: str
    title: str
    label: str
    objective: str
    groups: tuple[Pictures, ...]


@dataclass(frozen=True)
class Missing:
    """A quantity that an exhibit lacks because nothing measured it, and the command that measures it.

    >>> print(Missing("kNN transfer").run_by("nine"))
    kNN transfer: not measured: run `penultimate run nine`
    """

    what: str
    command: str = ""
    why: str = ""

    def run_by(self, study: str) -> Missing:
        """Return the same gap with the command that runs a study of this package."""
        return replace(self, command=f"penultimate run {study}")

    def __str__(self) -> str:
        return f"{self.what}: not measured: {self.why}{' ' if self.why else ''}run `{self.command}`"


@dataclass(frozen=True)
class Built:
    """A finished exhibit: one table or figure of the paper, regenerated from a study's rows.

    `missing` lists what was not measured (so do the notes). If it is not `wanted`, the study asks for nothing
    of the kind, and the page leaves it out. `unfinished` is the progress of an unfinished study, `short` the
    title in the page's contents, `finding` the note with the result here, and `paper_says` the note with the
    paper's statement.
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

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Return each table by its name, and the marks of figures as NAME_points."""
        frames: dict[str, pd.DataFrame] = found("penultimate.report.tables:to_frames")(self)
        return frames

    def __repr__(self) -> str:
        held = ", ".join([*(table.name for table in self.tables), *(figure.name for figure in self.figures)])
        return f"{type(self).__name__}({self.titled(self.title)!r}: {held or 'nothing measured'})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the finding, the figures and the tables."""
        shown: str = found("penultimate.report.inline:exhibit_html")(self)
        return shown

    @property
    def is_measured(self) -> bool:
        """Whether the exhibit shows any number of this study, rather than the paper's numbers alone."""
        of_tables = {table.source for table in self.tables}
        return "ours" in of_tables | {panel.source for figure in self.figures for panel in figure.panels}

    @property
    def number(self) -> str:
        """The paper's name for the exhibit, such as "Table E.1"."""
        return number_of(self.name)

    def titled(self, title: str) -> str:
        """Return a title, preceded by the paper's name for the exhibit if there is one.

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
