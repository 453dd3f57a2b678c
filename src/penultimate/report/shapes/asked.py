"""A number in findings: its values here, the paper's printed values, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penultimate.objectives.presets import PRESETS
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import Reader, error_of, printed_rows, read_printed, summarise
from penultimate.report.shapes.table import printed_label
from penultimate.report.text import fixed
from penultimate.statistics.summary import MeanWithError


@dataclass(frozen=True)
class ShownNumber:
    """A number of one objective, as it is shown: its value in each run, or only the mean for the paper."""

    label: str
    slug: str
    runs: Mapping[Seed, float]

    @property
    def summary(self) -> MeanWithError:
        return summarise(list(self.runs.values()))

    @property
    def mean(self) -> float:
        return self.summary.mean


@dataclass(frozen=True)
class Asked:
    """A number that every objective has, or every temperature of the sweep.

    words     its name within a sentence ("test accuracy")
    quantity  the quantity of its values, unless `read` finds them, and how they are shown
    printed   the paper's table, and the column of it or what reads its rows
    where     {column: text} of the rows that hold it, if the paper has several per objective
    over      the arm of the sweep over temperatures that it belongs to; by default, it belongs to objectives
    """

    words: str
    quantity: Quantity
    printed: tuple[str, str | Reader] | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Measurements], ByRun] | None = None
    over: str = ""

    def ours(self, measurements: Measurements) -> tuple[ShownNumber, ...]:
        """Return the measured entries in the order of the study."""
        quantity = self.quantity.of_arm(self.over) if self.over else self.quantity
        of_arm = measurements.in_arm(quantity.arm)
        values = self.read(measurements) if self.read else measurements.values(quantity)
        labels = {spec.spec: f"τ = {heat:g}" for heat, spec in of_arm.temperatures}
        if not self.over:
            labels = {each.spec: each.label for each in of_arm.objectives}
        return tuple(
            ShownNumber(
                labels[spec],
                of_arm.objective(spec).slug,
                {seed: quantity.scale * value for seed, value in runs.items()},
            )
            for spec, runs in values.items()
            if spec in labels and runs
        )

    def theirs(self) -> tuple[ShownNumber, ...]:
        """Return the entries that the paper prints, if any."""
        if self.printed is None:
            return ()
        table, column = self.printed
        return tuple(
            ShownNumber(
                printed_label(row),
                row.get("objective", ""),
                {None: read_printed(row, column)},
            )
            for row in printed_rows(table)
            if ("objective" not in row or row["objective"] in PRESETS)
            and all(row[name] == text for name, text in self.where.items())
            and (callable(column) or row[column])
        )

    def amount(self, entry: ShownNumber) -> str:
        """Return a mean with its standard error, if it has one, and its unit."""
        return with_error(entry.summary, self.quantity, self.quantity.unit)


def already(runs: ByRun) -> Callable[[Measurements], ByRun]:
    """Return a reader of runs that are known already."""
    return lambda _: runs


def at_epochs(share: float, *quantities: Quantity) -> Callable[[Measurements], ByRun]:
    """Return a reader of the first quantity measured over epochs, at a share of those epochs."""

    def read(measurements: Measurements) -> ByRun:
        for quantity in quantities:
            courses = {
                each.spec: measurements.in_arm(quantity.arm).course(each, quantity)
                for each in measurements.in_arm(quantity.arm).objectives
            }
            found = {
                spec: {
                    seed: run[round(share * (len(run) - 1))][1] for seed, run in runs.items() if len(run) > 1
                }
                for spec, runs in courses.items()
            }
            if any(found.values()):
                return {spec: runs for spec, runs in found.items() if runs}
        return {}

    return read


def with_error(found: MeanWithError, shown: Quantity, unit: str, signed: bool = False) -> str:
    text = fixed(found.mean, shown.digits)
    if signed and found.mean > 0 and text.strip("0."):
        text = f"+{text}"
    error = error_of(found)
    beside = "" if not error else f" ± {fixed(error, shown.digits + 1)}"
    return f"{text}{beside} {unit}".rstrip()
