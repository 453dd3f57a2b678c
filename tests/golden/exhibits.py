"""What every exhibit of every kept run shows, as plain data: `python -m tests.golden.exhibits` freezes it,
and with the names of exhibits prints what these show otherwise.

Each kept run has a file of tables: `EXHIBIT/TABLE` has the columns of that table's CSV and the marks of each
row, `EXHIBIT/EXHIBIT_points` what its figures draw. Claims are judged apart, by key: `claims` has the
verdicts, `claims/effects` the effects that these rest on, each signed so that its claim says it is positive.
Sentences are left out. The numbers that the paper prints are the same for every run and stand with one.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import penultimate as pu
from penultimate.paper.claims.judging import judge
from penultimate.paper.claims.numbers import Numbers
from penultimate.paper.claims.stated import CLAIMS
from penultimate.paper.claims.verdicts import Judged
from penultimate.records.references import references
from penultimate.registry import names
from penultimate.results.rows import read_reference
from penultimate.results.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.results.rows import Run

Tables: TypeAlias = dict[str, list[list[object]]]
"""Tables by name: a list of columns, then a list for each row."""
FOLDER = Path(__file__).parent / "exhibits_frozen"
WITH_PRINTED = "evidence"
"""The kept run with which the paper's printed numbers are frozen."""
SENTENCES = {"reason", "relation", "licence", "detail", "x_label", "y_label"}
"""Columns of prose."""
VERDICTS = ("claim", "verdict", "on the paper's numbers")
EFFECTS = ("claim", "effect", "estimate", "low", "high", "margin", "p_for", "p_against")


def freeze(run: str) -> Tables:
    """Return the numbers, marks and verdicts of a kept run."""
    return claims(read_reference(run)) | exhibits(run, names("exhibit"))


def exhibits(run: str, chosen: Iterable[str]) -> Tables:
    """Return the numbers and marks of some exhibits of a kept run."""
    tables: Tables = {}
    results = read_reference(run)
    for exhibit in chosen:
        built = pu.exhibit(exhibit, results)
        drawn = {table.name: table for table in built.tables}
        for name, frame in built.to_pandas().items():
            if run != WITH_PRINTED:
                frame = frame[frame["source"] == "ours"]
            if len(frame) and "verdict" not in frame:
                tables[f"{exhibit}/{name}"] = rows(frame, drawn.get(name))
    return tables


def rows(frame: pd.DataFrame, table: Table | None) -> list[list[object]]:
    """Return the columns and rows of a table with their marks, or those of points (without a table)."""
    frame = frame.drop(columns=[*SENTENCES & {*frame}])
    if table is None:
        frame = frame.drop(columns="source").dropna(axis="columns", how="all")
    lines = [[plain(cell) for cell in line] for line in frame.astype(object).to_numpy().tolist()]
    if table is None:
        return [list(frame), *without_repeats(lines)]
    return [
        [*frame, "marks"],
        *([*line, mark] for line, mark in zip(lines, table.marked_columns(), strict=True)),
    ]


def plain(cell: object) -> object:
    """Return a cell as JSON has it: nothing for NaN, and infinity in words."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    return cell


def without_repeats(lines: Sequence[list[object]]) -> Iterator[list[object]]:
    """Yield points without the names of their panel and line (the first two cells) if these are as above."""
    for above, line in zip([[], *lines], lines, strict=False):
        yield ["", "", *line[2:]] if line[:2] == above[:2] else line


def claims(run: Run) -> Tables:
    """Return the verdicts on all claims that a run can be asked, and the effects behind each."""
    verdicts, found = [list[object](VERDICTS)], [list[object](EFFECTS)]
    for judged in judge(run, CLAIMS):
        verdicts.append([judged.claim.key, in_a_word(judged.ours), in_a_word(judged.printed)])
        own = judged.claim.rule(Numbers(run))  # without the draws of a run that repeats this one
        for number, effect in enumerate(own.effects if own else (), 1):
            numbers = [plain(getattr(effect, field)) for field in EFFECTS[2:]]
            named = str(number) if judged.claim.key.startswith("dose") else effect.name
            found.append([judged.claim.key, named, *numbers])
    return {"claims": verdicts, "claims/effects": found}


def in_a_word(found: Judged | None) -> str:
    return "" if found is None else found.verdict if found.judged else "not judged"


def differences(frozen: Mapping[str, Sequence[Sequence[object]]], now: Tables) -> Iterator[str]:
    """Yield a line for each table, row and cell that is not as it was frozen."""
    for name in sorted({*frozen, *now}):
        if name not in frozen or name not in now:
            yield f"{name}: {'gone' if name in frozen else 'new'}"
            continue
        (columns, *before), (columns_now, *after) = frozen[name], now[name]
        if columns != columns_now:
            changed = sorted({*map(str, columns)} ^ {*map(str, columns_now)})
            yield f"{name}: other columns: {', '.join(changed) or 'their order'}"
            continue
        if len(before) != len(after):
            yield f"{name}: {len(after)} rows, were {len(before)}"
            continue
        for number, lines in enumerate(zip(before, after, strict=True), 1):
            for column, was, cell in zip(columns, *lines, strict=True):
                if not alike(was, cell):
                    yield f"{name}, row {number} ({lines[0][0]}), {column}: {cell!r}, was {was!r}"


def alike(was: object, now: object) -> bool:
    """Return whether two cells are equal: texts exactly, numbers but for what another BLAS may change."""
    if isinstance(was, int | float) and isinstance(now, int | float):
        return math.isclose(was, now, rel_tol=1e-9, abs_tol=1e-12)
    return was == now


def read(run: str) -> Tables:
    """Return what was frozen of a kept run."""
    frozen: Tables = json.loads((FOLDER / f"{run}.json").read_text(encoding="utf-8"))
    return frozen


def write(run: str, tables: Tables) -> None:
    """Write the tables of a kept run as JSON, with one line for each row."""
    as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    blocks = (as_json(name) + ":[\n" + ",\n".join(map(as_json, tables[name])) for name in sorted(tables))
    text = "{\n" + "\n],\n".join(blocks) + "\n]\n}\n"
    (FOLDER / f"{run}.json").write_text(text, encoding="utf-8", newline="\n")


def compare(chosen: Sequence[str]) -> None:
    """Print what some exhibits show otherwise than was frozen, of all kept runs."""
    for run in references():
        frozen = {name: of for name, of in read(run).items() if name.partition("/")[0] in chosen}
        judged = claims(read_reference(run)) if "claims" in chosen else {}
        lines = list(differences(frozen, judged | exhibits(run, chosen)))
        print(f"{run}: {len(frozen)} tables, {len(lines)} differences", *lines[:20], sep="\n  ")


if __name__ == "__main__":
    if sys.argv[1:]:
        compare(sys.argv[1:])
    else:
        for each in references():
            write(each, freeze(each))
