"""From runs to cells: means, standard errors, bold; and the paper's printed values as cells of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Exhibit,
    ExhibitTable,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.measurements import MEASURED_BY, Measurements, Runs
from penultimate.report.exhibits.numbers import error_of, published_rows, summarise
from penultimate.report.text import counted, fixed

DATASET_TITLES = {
    "food": "Food",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "birdsnap": "Birdsnap",
    "sun397": "SUN397",
    "cars": "Cars",
    "pets": "Pets",
    "flowers": "Flowers",
}
"""The paper's transfer data sets, in its order."""


def run_cell(
    runs: Mapping[int, float] | None,
    digits: int,
    scale: float = 1,
    best: bool = False,
    shows_error: bool = False,
) -> Cell:
    """The mean over runs {seed: value}, times `scale`; its standard error behind it, or beside it."""
    if not runs:
        return Cell(MISSING, detail="not measured")
    summary = summarise([scale * value for value in runs.values()])
    text = fixed(summary.mean, digits)
    detail = f"mean of {counted(summary.n, 'run')}"
    error = error_of(summary)
    if error is not None:
        shown = fixed(error, digits + 1)
        detail += f", standard error {shown}"
        text = f"{text} ± {shown}" if shows_error else text
    return Cell(text, summary.mean, error, summary.n, best, detail)


def run_rows(
    measurements: Measurements, columns: Sequence[Callable[[str], Cell]], shown: Sequence[Runs]
) -> tuple[TableRow, ...]:
    """A row for every objective that has a value in any of the `shown` runs."""
    return tuple(
        TableRow(objective.label, tuple(column(objective.spec) for column in columns), objective.slug)
        for objective in measurements.objectives
        if any(objective.spec in runs for runs in shown)
    )


def published_cell(printed: str, error: str = "", scale: float = 1) -> Cell:
    """A printed value, digit for digit."""
    if not printed:
        return Cell(MISSING, detail="not reported")
    text = f"{printed} ± {error}" if error else printed
    return Cell(text, scale * float(printed), scale * float(error) if error else None, detail="as printed")


def printed(key: str, error_key: str = "") -> Callable[[Mapping[str, str]], Cell]:
    """The cell of a printed row that holds its value `key`, with its printed standard error if any."""
    return lambda row: published_cell(row[key], row[error_key] if error_key else "")


def published_table(
    name: str,
    source: str,
    title: str,
    columns: Sequence[tuple[Column, Callable[[Mapping[str, str]], Cell]]],
    notes: tuple[str, ...] = (),
) -> ExhibitTable:
    """A table of the paper, one row an objective, from the CSV `source`."""
    rows = tuple(
        TableRow(
            PRESETS[printed["objective"]].label,
            tuple(cell(printed) for _, cell in columns),
            printed["objective"],
        )
        for printed in published_rows(source)
    )
    heads = tuple(column for column, _ in columns)
    return ExhibitTable(f"{name}_published", title, "Objective", heads, rows, "published", notes)


def beside_the_paper(
    measurements: Measurements,
    ours: ExhibitTable | None,
    published: ExhibitTable,
    what: str,
    words: tuple[str, str, str],
) -> Exhibit:
    """Our table, or that `what` was not measured, before the paper's; `words`: name, title, caption."""
    notes = (bold_note(measurements) if ours else not_measured(what), *measurements.notes())
    tables = (ours, published) if ours else (published,)
    return Exhibit(*words, tables, notes=notes, limited=measurements.limited)


def not_measured(what: str, name: str = MEASURED_BY) -> str:
    """The sentence that stands where nothing was measured.

    >>> not_measured("kNN transfer")
    'kNN transfer: not measured: run `penultimate run quickstart`'
    """
    return f"{what}: not measured: run `penultimate run {name}`"


def bold_note(measurements: Measurements) -> str:
    """What bold means in this study."""
    if len(measurements.seeds) < 2:
        return "Bold: the best of its column. With one seed nothing can be tested, so only the best is bold."
    return (
        "Bold: not significantly worse than the best of its column (t-test, p < 0.05; two-way analysis of"
        " variance for the mean)."
    )


def seeds_phrase(results: StudyResults, measurements: Measurements, with_sweep: bool = False) -> str:
    """How many runs stand behind a mean of the compared objectives, and of those of a sweep."""
    sweep = [one for _, one in measurements.temperature_sweep] if with_sweep else []
    counts = measurements.run_counts((*measurements.compared, *sweep))
    least, most = (min(counts), max(counts)) if counts else (len(results.description.get("seeds", ())),) * 2
    return f"{counted(most, 'run') if least == most else f'{least} to {most} runs'} per objective"
