"""Combinations of objectives, and whether they are better than their parts (section C.4 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.paper.arms import COMBINATIONS
from penultimate.paper.combined import HOLDOUT, SINGLE, best_epochs, of_one_recipe, terms_of
from penultimate.report.base import Cell, Column, ExhibitTable, Missing, TableRow
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.shapes.cells import published_cell, run_cell
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import average, printed_rows
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed, plain

Place: TypeAlias = tuple[str, str]
"""A column and a row: the base of an objective, and its additions ("" for none)."""
Runs: TypeAlias = Mapping[Seed, float]

BASES = ("label_smoothing", "sigmoid", "cosine_softmax")
"""Terms with a column of their own, besides softmax; if an objective has two of them, the first counts."""
NOTHING = "Nothing"


def _parts(spec: str) -> Place | None:
    """Return the column and the row of an objective, its base and its additions; None for a given network.

    >>> _parts("dropout(keep=0.8) + sigmoid()"), _parts("cosine_softmax(scale=1, temperature=0.05)")
    (('sigmoid', 'dropout(keep=0.8)'), ('cosine_softmax(scale=1, temperature=0.05)', ''))
    """
    terms = terms_of(spec)
    if not terms:
        return None
    base = next((term for name in BASES for term in terms if term.name == name), None)
    added = [str(term) for term in terms if term is not base and term.name != "softmax"]
    return str(base or "softmax"), " + ".join(added)


def _label(spec: str) -> str:
    try:
        return plain(resolve(spec).detailed_label)
    except RequestError:
        return plain(spec)


def _combined(measurements: Measurements) -> Piece:
    """Return our table, with a column for each base and a row for each addition, and the paper's."""
    table = _ours(measurements)
    missing = () if table else (Missing("Combinations of objectives"),)
    return Piece(tables=(*((table,) if table else ()), _in_paper()), missing=missing)


def _is_single(place: Place) -> bool:
    base, added = place
    return not added or (base == "softmax" and " + " not in added)


def _runs(measurements: Measurements) -> dict[Place, Runs]:
    """Return the combinations by their place, with those single objectives of the main arm that are parts."""
    combined = best_epochs(measurements, COMBINATIONS)
    runs = {place: found for spec, found in combined.items() if (place := _parts(spec))}
    parts = {part for place in runs for part in place} | {"", "softmax"}
    main = best_epochs(measurements) if runs and of_one_recipe(measurements) else {}
    singles = {place: found for spec, found in main.items() if (place := _parts(spec)) and {*place} <= parts}
    return {**singles, **runs}


def _ours(measurements: Measurements) -> ExhibitTable | None:
    runs = _runs(measurements)
    if all(_is_single(place) for place in runs):
        return None
    notes = ["The highest accuracy on the holdout images during training, the mean over runs."]
    if not of_one_recipe(measurements):
        notes.append("The main runs have another recipe, so their single objectives are not shown here.")
    bases = sorted({base for base, _ in runs}, key=_paper_order)
    return ExhibitTable(
        "tableC4",
        f"Holdout accuracy on {measurements.title}, %",
        "Added",
        tuple(Column(base, _label(base), "Objective", "%") for base in bases),
        tuple(
            TableRow(
                _label(added) if added else NOTHING,
                tuple(run_cell(runs.get((base, added)), 1, HOLDOUT.scale) for base in bases),
            )
            for added in sorted({added for _, added in runs}, key=_paper_order)
        ),
        notes=tuple(notes),
    )


def _paper_order(spec: str) -> tuple[int, str]:
    """Return a sort key: first the empty spec, then the order of the paper's tables, then values."""
    name = spec.partition("(")[0]
    return -1 if not spec else [*PRESETS].index(name) if name in PRESETS else len(PRESETS), spec


def _in_paper() -> ExhibitTable:
    """Return the paper's table, with columns and rows in the paper's order."""
    printed = {(row["objective"], _added(row)): row for row in printed_rows("neurips_tableC4_combinations")}
    bases = list(dict.fromkeys(base for base, _ in printed))
    return ExhibitTable(
        "tableC4_published",
        "The paper's Table C.4: ResNet-50, ImageNet, holdout accuracy, %",
        "Added",
        tuple(Column(base, _in_words(base, printed[base, NOTHING]), "Objective", "%") for base in bases),
        tuple(
            TableRow(added, tuple(_cell(printed.get((base, added))) for base in bases))
            for added in dict.fromkeys(added for _, added in printed)
        ),
        "published",
        ("75.3 is 5 points below its neighbours, a run that failed or a misprint.",),
    )


def _cell(row: Mapping[str, str] | None) -> Cell:
    return published_cell(row["holdout_top1_percent"] if row else "")


def _added(row: Mapping[str, str]) -> str:
    """Return the addition of a printed row, in words."""
    name = row["added_regularizer"]
    return NOTHING if name == "none" else _with_value(name, row["regularizer_value"])


def _in_words(name: str, row: Mapping[str, str]) -> str:
    return _with_value(name, row["objective_hyperparameter_value"])


def _with_value(name: str, value: str) -> str:
    preset = PRESETS[name]
    return f"{preset.label} ({preset.hyperparameters[0].symbol} = {value})" if value else preset.label


def _best_of_each(measurements: Measurements) -> str:
    """Return a sentence on the best combination, beside the best single objective."""
    means = {place: HOLDOUT.scale * average([*runs.values()]) for place, runs in _runs(measurements).items()}
    singles, combined = (
        {place: mean for place, mean in means.items() if _is_single(place) == single}
        for single in (True, False)
    )
    if not singles or not combined:
        return ""
    few = direction(map(len, _runs(measurements).values()))
    best, best_combined = (max(one, key=lambda place: one[place]) for one in (singles, combined))
    return (
        f"{OURS}: the best single objective ({_name(best)}) has {fixed(singles[best], 1)} % on the holdout"
        f" images, the best combination ({_name(best_combined)}) {fixed(combined[best_combined], 1)} %, the"
        f" mean of all combinations {fixed(average([*combined.values()]), 1)} %{f' ({few})' if few else ''}."
    )


def _name(place: Place) -> str:
    return _label(" + ".join(filter(None, place)))


TABLE_C4 = Exhibit(
    name="tableC4",
    title="Do objectives that help alone help more together?",
    caption="Columns: an objective. Rows: a second one added to it. Cells: the highest accuracy on holdout"
    " images during training, in per cent.",
    parts=(Bespoke(_combined, (HOLDOUT, SINGLE)),),
    findings=(_best_of_each,),
    paper_says="In the paper the best combination, cosine softmax with dropout (ρ = 0.95), has 80.7 %; the"
    " best single objectives have 80.6 %.",
    section="C.4",
    of_same_runs=True,
    measured_by="full",
    summary="Combinations of objectives",
    short="Combinations",
)
