"""Combinations of objectives, and whether they are better than their parts (section C.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pandas as pd

from penultimate import specs
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.paper.arms import COMBINATIONS
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import printed
from penultimate.results.rows import Run, epochs
from penultimate.results.table import Column, Table, table_of_rows
from penultimate.results.text import plain

Place: TypeAlias = tuple[str, str]
"""A column and a row: the base of an objective, and its additions ("" for none)."""

BASES = ("label_smoothing", "sigmoid", "cosine_softmax")
"""Terms with a column of their own, besides softmax; if an objective has two of them, the first counts."""
NOTHING = "Nothing"


@exhibit("tableC4", "Do objectives that help alone help more together?", section="C.4")
def tableC4(run: Run) -> Iterator[Part]:
    """Columns: an objective. Rows: a second one added to it. Cells: the highest accuracy on holdout images
    during training, in per cent, means over runs. In the paper the best combination, cosine softmax
    with dropout (ρ = 0.95), has 80.7 %; the best single objectives have 80.6 %."""
    yield combined(run)
    if run.frame["arm"].eq(COMBINATIONS).any() and not of_one_recipe(run):
        yield "The main runs have another recipe, so their single objectives are not shown here."
    yield combined_in_paper()


def combined(run: Run) -> Table | None:
    """Return our combinations, and those single objectives of the main arm that are parts of one."""
    runs = {place: of for spec, of in best_epochs(run, COMBINATIONS).items() if (place := place_of(spec))}
    if all(is_single(place) for place in runs):
        return None
    parts = {part for place in runs for part in place} | {"", "softmax"}
    singles = {
        place: of
        for spec, of in (best_epochs(run) if of_one_recipe(run) else {}).items()
        if (place := place_of(spec)) and {*place} <= parts
    }
    runs = same_seeds({**singles, **runs})
    bases = sorted({base for base, _ in runs}, key=in_papers_order)
    additions = sorted({added for _, added in runs}, key=in_papers_order)
    labels = [label_of(added) if added else NOTHING for added in additions]
    cells = {
        what: pd.DataFrame(
            {
                base: [read(runs.get((base, added), pd.Series(dtype=float))) for added in additions]
                for base in bases
            },
            labels,
        )
        for what, read in {"values": pd.Series.mean, "errors": pd.Series.sem, "counts": count_of}.items()
    }
    columns = tuple(Column(base, label_of(base), "Objective") for base in bases)
    return Table("tableC4", f"Holdout accuracy on {run.title}, %", columns, **cells, corner="Added")


def same_seeds(runs: Mapping[Place, pd.Series]) -> dict[Place, pd.Series]:
    """Return only the runs of those seeds that every objective has."""
    seeds = [{seed for _, seed in of.index} for of in runs.values()]
    shared = set.intersection(*seeds)
    return {place: of[[seed in shared for _, seed in of.index]] for place, of in runs.items()}


def count_of(runs: pd.Series) -> int | None:
    """Return the number of runs, None if there are none."""
    return len(runs) or None


def best_epochs(run: Run, arm: str = "") -> dict[str, pd.Series]:
    """Return the highest holdout accuracy in per cent of each run, by the spec of its objective."""
    best = epochs(run, "top1", "holdout", scale=100, arm=arm).max()
    specs_of = {each.slug: each.spec for each in run.objectives(arm)}
    return {specs_of[slug]: of.dropna() for slug, of in best.groupby(level="objective") if slug in specs_of}


def of_one_recipe(run: Run) -> bool:
    """Return whether the main arm has the combinations' recipe, so that its objectives are their parts."""
    recipes = [[block.get("recipe") for block in run.grids(arm)][:1] for arm in ("", COMBINATIONS)]
    return recipes[0] == recipes[1]


def place_of(spec: str) -> Place | None:
    """Return the column and the row of an objective, its base and its additions; None for a given network.

    >>> place_of("dropout(keep=0.8) + sigmoid()"), place_of("cosine_softmax(scale=1, temperature=0.05)")
    (('sigmoid', 'dropout(keep=0.8)'), ('cosine_softmax(scale=1, temperature=0.05)', ''))
    """
    try:
        terms = list(specs.parse_sum(spec))
    except RequestError:
        return None
    base = next((term for name in BASES for term in terms if term.name == name), None)
    added = [str(term) for term in terms if term is not base and term.name != "softmax"]
    return str(base or "softmax"), " + ".join(added)


def is_single(place: Place) -> bool:
    """Return whether a place is that of one objective rather than of several combined."""
    base, added = place
    return not added or (base == "softmax" and " + " not in added)


def label_of(spec: str) -> str:
    """Return the label of an objective with its hyperparameters."""
    try:
        return plain(resolve(spec).detailed_label)
    except RequestError:
        return plain(spec)


def in_papers_order(spec: str) -> tuple[int, str]:
    """Return a sort key: first the empty spec, then the order of the paper's tables, then values."""
    name = spec.partition("(")[0]
    return -1 if not spec else [*PRESETS].index(name) if name in PRESETS else len(PRESETS), spec


def combined_in_paper() -> Table | None:
    """Return the paper's table, with columns and rows in the paper's order."""
    rows = printed("neurips_tableC4_combinations", numbers=False).reset_index()
    cells: dict[Place, Mapping[str, str]] = {}
    for row in rows.to_dict("records"):
        added = with_value(row["added_regularizer"], row["regularizer_value"])
        cells[row["objective"], added] = row
    bases = list(dict.fromkeys(base for base, _ in cells))
    additions = list(dict.fromkeys(added for _, added in cells))
    values = [
        [cells[base, added]["holdout_top1_percent"] if (base, added) in cells else None for base in bases]
        for added in additions
    ]
    columns = [
        Column(base, with_value(base, cells[base, NOTHING]["objective_hyperparameter_value"]), "Objective")
        for base in bases
    ]
    keys = [column.key for column in columns]
    numbers = [[None if cell is None else float(cell) for cell in line] for line in values]
    return table_of_rows(
        "tableC4_published",
        "The paper's Table C.4: ResNet-50, ImageNet, holdout accuracy, %",
        columns,
        list(zip(additions, numbers, strict=True)),
        texts=pd.DataFrame(values, additions, keys, dtype=object),
        corner="Added",
        source="published",
        notes=("75.3 is 5 points below its neighbours, a run that failed or a misprint.",),
    )


def with_value(name: str, value: str) -> str:
    """Return an objective of the paper's table in words, with the value of its hyperparameter."""
    if name == "none":
        return NOTHING
    preset = PRESETS[name]
    return f"{preset.label} ({preset.hyperparameters[0].symbol} = {value})" if value else preset.label
