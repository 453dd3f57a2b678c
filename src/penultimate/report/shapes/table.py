"""Tables of runs, with objectives as rows and quantities as columns, and the paper's printed tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from penultimate.objectives.presets import PRESETS
from penultimate.report.base import Cell, Column, ExhibitTable, Missing, TableRow
from penultimate.report.marks import bold_notes
from penultimate.report.measurements import ByRun, Measurements, mean_of
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import official_accuracy, short_title
from penultimate.report.shapes.cells import MEAN_PER_CLASS, published_cell, run_cell
from penultimate.report.shapes.numbers import best_of, printed_rows
from penultimate.report.spec import Piece
from penultimate.report.text import plain

PER_CLASS_NOTE = f"{MEAN_PER_CLASS} mean per-class accuracy; all others top-1."


def noun_of(over: str) -> str:
    """Return the noun for a row or mark: an objective, or a temperature if an arm of a sweep is named."""
    return "temperature" if over else "objective"


@dataclass(frozen=True)
class RunColumn:
    """A column of a table of runs: its quantity and values, and the objectives that are best and beaten."""

    quantity: Quantity
    runs: ByRun
    best: frozenset[str] = frozenset()
    beaten: frozenset[str] = frozenset()

    @property
    def head(self) -> Column:
        shown = self.quantity
        return Column(shown.key, shown.label, shown.group, shown.unit)

    @property
    def is_absent(self) -> bool:
        """Whether the column is left out."""
        return self.quantity.optional and not self.runs

    def cell(self, spec: str) -> Cell:
        shown = self.quantity
        marks = {"best": spec in self.best, "beaten": spec in self.beaten}
        return run_cell(self.runs.get(spec), shown.digits, shown.scale, shows_error=shown.with_error, **marks)


def run_column(quantity: Quantity, runs: ByRun) -> RunColumn:
    """Return a column, with the objectives that no other beats if its quantity asks for them."""
    return RunColumn(quantity, runs, *(best_of(runs, quantity.best) if quantity.best else ()))


def run_table(
    measurements: Measurements,
    name: str,
    title: str,
    columns: Sequence[RunColumn],
    needs: Sequence[RunColumn] | None = None,
    over: str = "",
    notes: tuple[str, ...] = (),
    beside: str = "",
) -> ExhibitTable | None:
    """Return a table of rows that have a value in one of the columns `needs` (by default, in any), or None.

    The rows are the objectives of the main arm, of the arm `beside` it and of the arms of columns, or the
    temperatures of the arm `over`.
    """
    needed = columns if needs is None else needs
    rows = tuple(
        TableRow(label, tuple(column.cell(spec) for column in columns), slug)
        for label, spec, slug in _rows(
            measurements, over, [beside, *(column.quantity.arm for column in columns)]
        )
        if any(spec in column.runs for column in needed)
    )
    heads = tuple(column.head for column in columns)
    corner = noun_of(over).capitalize()
    return ExhibitTable(name, title, corner, heads, rows, notes=notes) if rows else None


def _rows(measurements: Measurements, over: str, arms: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the label, the spec and the slug of the mark of each row."""
    if over:
        sweep = measurements.in_arm(over).temperatures
        return [(f"τ = {temperature:g}", objective.spec, "") for temperature, objective in sweep]
    objectives = [
        objective for arm in dict.fromkeys(("", *arms)) for objective in measurements.in_arm(arm).objectives
    ]
    return list(dict.fromkeys((objective.label, objective.spec, objective.slug) for objective in objectives))


@dataclass(frozen=True)
class TableOfRuns:
    """The means over runs of some quantities, with a row per objective (or temperature of the sweep).

    columns   the quantities; one that names an arm shows the networks of that arm only
    missing   the name of the gap if there is no table
    needs     the keys of the columns without which there is no table and no row; by default, any will do
    without   the note if nothing measured an optional column
    over      the arm of a sweep over temperatures that has the rows
    beside    an arm whose objectives have rows below those of the main one
    """

    name: str
    title: str
    columns: tuple[Quantity, ...]
    missing: str
    needs: tuple[str, ...] = ()
    without: str = ""
    notes: tuple[str, ...] = ()
    over: str = ""
    beside: str = ""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms whose networks have a row."""
        return tuple(dict.fromkeys((self.over, *filter(None, [self.beside]))))

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(dict.fromkeys(of_arm for column in self.columns for of_arm in column.of_arms(self.arms)))

    def build(self, measurements: Measurements) -> Piece:
        by_key = {shown.key: _expanded(measurements, shown, self.arms) for shown in self.columns}
        absent = [column for of in by_key.values() for column in of if column.is_absent]
        columns = [column for of in by_key.values() for column in of if not column.is_absent]
        needs = [column for key in self.needs or by_key for column in by_key[key]]
        title = self.title.format_map(measurements.words)
        table = run_table(measurements, self.name, title, columns, needs, self.over, self.notes, self.beside)
        if table is None:
            return Piece(missing=(Missing(self.missing),))
        by_target = any(shown.target == TARGETS for shown in self.quantities)
        notes = [PER_CLASS_NOTE] if by_target and _any_per_class(measurements) else []
        notes += bold_notes(measurements) if any(shown.best for shown in self.quantities) else ()
        return Piece((table,), notes=(*notes, *([self.without] if absent else ())))


def _expanded(measurements: Measurements, quantity: Quantity, arms: tuple[str, ...]) -> list[RunColumn]:
    """Return a quantity's columns: one, or one per target and their mean, or one per value of a setting."""
    of_arms = quantity.of_arms(arms)
    words = {**measurements.words, "target": "{target}", quantity.setting: f"{{{quantity.setting}}}"}
    shown = replace(quantity, label=quantity.label.format_map(words), group=quantity.group.format_map(words))
    if quantity.target == TARGETS:
        per_target = {
            target: _joined([measurements.on_target(of_arm, target) for of_arm in of_arms])
            for target in measurements.targets
        }
        return columns_of_targets(shown, per_target)
    if quantity.is_of_several:
        by_value = [measurements.by_setting(of_arm) for of_arm in of_arms]
        return [
            run_column(
                replace(shown, label=shown.label.format_map(told), key=shown.key.format_map(told)),
                _joined([runs.get(value, {}) for runs in by_value]),
            )
            for value in dict.fromkeys(value for runs in by_value for value in runs)
            for told in [{quantity.setting: value[0]}]
        ]
    return [run_column(shown, _joined([measurements.values(of_arm) for of_arm in of_arms]))]


def _joined(runs_of_arms: Sequence[ByRun]) -> ByRun:
    """Return the runs of several arms; an objective in two of them counts for the first."""
    return {spec: runs for of_arm in reversed(runs_of_arms) for spec, runs in of_arm.items()}


def columns_of_targets(quantity: Quantity, per_target: Mapping[str, ByRun]) -> list[RunColumn]:
    """Return a column for each target and their mean; "{target}" in the quantity's key names them."""
    columns = [
        run_column(replace(quantity, label=_heading(target), key=quantity.key.format(target=target)), runs)
        for target, runs in per_target.items()
    ]
    mean = replace(quantity, label="Mean", key=quantity.key.format(target="mean"))
    return [*columns, run_column(mean, mean_of([column.runs for column in columns]))]


def _heading(target: str) -> str:
    return short_title(target) + (MEAN_PER_CLASS if official_accuracy(target) == "mean_per_class" else "")


def _any_per_class(measurements: Measurements) -> bool:
    return any(official_accuracy(target) == "mean_per_class" for target in measurements.targets)


PrintedRow: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Printed:
    """A column of a printed table: the values of `key`, digit for digit.

    with_error  whether the printed standard errors stand beside them, if the paper has any
    table       the printed table that holds them, if it is another one
    where       {column: text} of the rows that hold them, if the paper has several rows per objective
    read        makes a cell of a row if the cell is not a printed number
    """

    key: str
    label: str
    group: str = ""
    unit: str = ""
    with_error: bool = True
    table: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[PrintedRow], Cell] | None = None

    @property
    def head(self) -> Column:
        """The heading of the column, and its key in a CSV file, which no other column has."""
        key = re.sub(r"\W+", "_", "_".join((*self.where.values(), self.key)))
        return Column(key, self.label, self.group, self.unit)

    def is_in(self, row: PrintedRow) -> bool:
        """Return whether a printed row holds the column's values."""
        return all(row[name] == text for name, text in self.where.items())

    def cell(self, row: PrintedRow) -> Cell:
        if self.read is not None:
            return self.read(row)
        if self.table:
            row = next(other for other in printed_rows(self.table) if other["objective"] == row["objective"])
        errors = (f"{self.key}_se", f"{self.key.rpartition('_')[0]}_se")
        error = next((row[name] for name in errors if name in row), "")
        return published_cell(row[self.key], error if self.with_error else "")


def as_printed(quantities: Sequence[Quantity]) -> tuple[Printed, ...]:
    """Return the paper's columns for quantities whose keys are the names of these columns."""
    return tuple(Printed(shown.key, shown.label, shown.group, shown.unit) for shown in quantities)


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper with a row per objective (or temperature), from its printed numbers `source`."""

    name: str
    source: str
    title: str
    columns: tuple[Printed, ...]
    notes: tuple[str, ...] = ()
    over: str = ""
    quantities: tuple[Quantity, ...] = ()

    def build(self, measurements: Measurements) -> Piece:
        together = any(column.where for column in self.columns)
        rows = tuple(
            TableRow(
                printed_label(held[0]),
                tuple(_cell_among(column, held) for column in self.columns),
                held[0].get("objective", ""),
            )
            for held in self._held(together)
        )
        heads = tuple(column.head for column in self.columns)
        name = f"{self.name}_published"
        corner = noun_of(self.over).capitalize()
        table = ExhibitTable(name, self.title, corner, heads, rows, "published", self.notes)
        by_target = any(MEAN_PER_CLASS in column.label for column in self.columns)
        return Piece((table,), notes=(PER_CLASS_NOTE,) if by_target else ())

    def _held(self, together: bool) -> Collection[list[PrintedRow]]:
        """Return the printed rows behind each row: one, or if `together`, all of one objective."""
        shown = [
            row for row in printed_rows(self.source) if any(column.is_in(row) for column in self.columns)
        ]
        if not together:
            return [[row] for row in shown]
        by_label: dict[str, list[PrintedRow]] = {}
        for row in shown:
            by_label.setdefault(printed_label(row), []).append(row)
        return by_label.values()


def _cell_among(column: Printed, rows: Sequence[PrintedRow]) -> Cell:
    return next((column.cell(row) for row in rows if column.is_in(row)), published_cell(""))


def printed_label(row: PrintedRow) -> str:
    """Return the label of a printed row: an objective, or a temperature of cosine softmax."""
    if "objective" not in row:
        return f"τ = {row['temperature']}"
    name = row["objective"]
    return PRESETS[name].label if name in PRESETS else plain(name)
