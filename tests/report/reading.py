"""A kept run as a test's data, parts of it, and exhibits read cell by cell."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.records.archive import read_kept
from penultimate.records.table import Row, Table
from penultimate.report.base import Built, Cell, ExhibitTable, Panel, StudyResults

Arrays = Mapping[str, np.ndarray]
TEMPERATURES = {
    f"τ = {t}": f"cosine_softmax(scale={t}, temperature={t})" for t in (0.02, 0.03, 0.04, 0.05, 0.08)
}
"""The rows of the sweep, by how they are labelled: what stands there."""


@functools.cache
def glyphs() -> StudyResults:
    """A run of an earlier world: nine objectives, five temperatures, five seeds; what its steps wrote."""
    return StudyResults.of(read_kept(Path(__file__).parents[1] / "kept" / "glyphs"))


def described(results: StudyResults, **changes: Any) -> StudyResults:
    """The same rows under another description."""
    return dataclasses.replace(results, description={**results.description, **changes})


def only(results: StudyResults, keep: Callable[[Row], bool]) -> StudyResults:
    """The study without the rows that are not wanted."""
    return dataclasses.replace(results, table=Table(row for row in results.table if keep(row)))


def with_rows(results: StudyResults, rows: Iterable[Row]) -> StudyResults:
    """The study with further rows."""
    return dataclasses.replace(results, table=Table([*results.table, *rows]))


def shuffled(results: StudyResults) -> StudyResults:
    """The same rows in another order."""
    rows = list(results.table)
    order = np.random.default_rng(0).permutation(len(results.table))
    return dataclasses.replace(results, table=Table(rows[place] for place in order))


def part_of(results: StudyResults, objectives: Sequence[str] = (), seeds: Sequence[int] = ()) -> StudyResults:
    """What a smaller study would have left: some objectives (by slug) of the main arm, some seeds."""
    specs = {entry["slug"]: entry["spec"] for entry in results.description["objectives"]}
    wanted = [specs[slug] for slug in objectives]
    blocks = [
        {
            **block,
            "objectives": [spec for spec in block["objectives"] if spec in wanted or not wanted],
            "seeds": [seed for seed in block["seeds"] if seed in seeds or not seeds],
        }
        for block in results.description["networks"]
        if not (wanted and block["arm"])
    ]

    def keep(row: Row) -> bool:
        of_objectives = {row.objective, row.objective_b} - {None}
        of_seeds = {row.seed, row.seed_b} - {None}
        is_ensemble = "models" in row.settings
        return (
            (not wanted or (of_objectives <= {*wanted} and not row.arm))
            and (not seeds or (of_seeds <= {*seeds} and not is_ensemble))
        )  # fmt: skip

    def arrays(step: str, metric: str) -> Arrays:
        assert results.arrays is not None
        whole = results.arrays(step, metric)
        if metric != "layer_cka":
            return whole
        kept = np.array(
            [
                (spec == "" or not wanted or spec in wanted) and (seed < 0 or not seeds or seed in seeds)
                for spec, seed in zip(whole["objectives"].tolist(), whole["seeds"].tolist(), strict=True)
            ]
        )
        return {
            name: values[np.ix_(kept, kept)]
            if values.ndim == 2
            else values[kept]
            if len(values) == len(kept)
            else values
            for name, values in whole.items()
        }

    listed = [entry for entry in results.description["objectives"] if entry["spec"] in wanted or not wanted]
    narrowed = only(described(results, networks=blocks, objectives=listed), keep)
    return dataclasses.replace(narrowed, arrays=arrays)


def without_second(results: StudyResults) -> StudyResults:
    """The study without its second architecture."""
    blocks = results.description["networks"]
    first = blocks[0]["backbones"][0]
    kept = [block for block in blocks if first in block["backbones"]]
    return only(described(results, networks=kept), lambda row: row.backbone in (None, first))


def objectives_of(results: StudyResults) -> dict[str, str]:
    """The objectives of the main arm, {slug: spec}, as the study lists them."""
    main = results.description["networks"][0]["objectives"]
    return {
        entry["slug"]: entry["spec"] for entry in results.description["objectives"] if entry["spec"] in main
    }


def labels_of(results: StudyResults) -> dict[str, str]:
    """What the objectives are called, {slug: label}."""
    return {entry["slug"]: entry["label"] for entry in results.description["objectives"]}


def values(results: StudyResults, **columns: Any) -> list[float]:
    """The values, by seed, of the rows of the main arm and architecture that have these columns.

    Unless asked otherwise: final ones of single networks, on the source, of no layer and under no condition.
    """
    first = results.description["networks"][0]["backbones"][0]
    usual = dict.fromkeys(("arm", "epoch", "objective_b", "layer", "setting"))
    rows = results.table.where(**{**usual, "target": "glyphs", "backbone": first, **columns})
    return [row.value for row in sorted(rows, key=lambda row: (row.seed or 0, row.seed_b or 0))]


def table_of(built: Built, name: str) -> ExhibitTable:
    """A table of an exhibit."""
    return next(table for table in built.tables if table.name == name)


def panels(built: Built) -> dict[str, Panel]:
    """The panels of an exhibit, by name."""
    return {panel.name: panel for figure in built.figures for panel in figure.panels}


def cell(table: ExhibitTable, objective: str, key: str) -> tuple[float | None, float | None]:
    """A cell's value and standard error."""
    place = [column.key for column in table.columns].index(key)
    found = next(row.cells[place] for row in table.rows if row.objective == objective)
    return found.value, found.error


def column_of(table: ExhibitTable, key: str) -> dict[str, Cell]:
    """The cells of a column, by the short names of objectives or the labels of rows."""
    index = [column.key for column in table.columns].index(key)
    return {row.objective or row.label: row.cells[index] for row in table.rows}


def runs_of(results: StudyResults, shown: str, **columns: Any) -> list[float]:
    """The final values of what a row or mark shows: an objective's, or a temperature's in the sweep."""
    spec = spec_of(results, shown)
    of_sweep = spec in TEMPERATURES.values()
    arm = "temperature" if of_sweep else None
    return values(results, **{"objective": spec, "split": "test", "arm": arm, **columns})


def spec_of(results: StudyResults, shown: str) -> str:
    """The spec of a row: of its temperature, or of its objective's short name."""
    if shown in TEMPERATURES:
        return TEMPERATURES[shown]
    return next(one["spec"] for one in results.description["objectives"] if one["slug"] == shown)
