"""The study `smoke` gives the rows that it gave when they were frozen."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.golden.smoke import KIND, ROWS, kind, rows


def words(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each step without their numbers.

    On another kind of machine the networks are others, and so is each number behind them, at times by more
    than half: no tolerance fits. (Measurements of given networks are alike everywhere: `test_store`.) Bins of
    a reliability diagram are left out altogether, since the numbers decide which are empty.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, text.splitlines()):
        if not row["step"].startswith("calibration."):
            found.setdefault(row["step"], []).append({name: row[name] for name in row if name != "value"})
    return found


def test_the_rows_are_those_that_were_frozen(finished_smoke: Path) -> None:
    before, now = ROWS.read_text("utf-8"), rows(finished_smoke / "runs")
    if now == before:
        return
    assert words(now) == words(before)
    if kind() == json.loads(KIND.read_text("utf-8")):
        lines = {*before.splitlines()}
        others = [json.loads(line) for line in now.splitlines() if line not in lines]
        counted = Counter(f"{row['step'].partition('.')[0]} {row['metric']}" for row in others)
        raise AssertionError(f"{len(others)} rows are others: {counted}; the first is {others[:1]}")
