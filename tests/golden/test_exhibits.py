"""The kept runs still say what they said: every number, mark and verdict of every exhibit."""

from __future__ import annotations

import pytest
from tests.golden.exhibits import FOLDER, Tables, differences, freeze, read

from penultimate.records.references import references

LONG = {"full", "glyphs"}
SHOWN = 10
"""The most lines that a failure prints."""


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=[pytest.mark.long] if run in LONG else []) for run in references()]
)
def test_exhibits_show_what_was_frozen(run: str) -> None:
    found = list(differences(read(run), freeze(run)))
    more = [f"and {len(found) - SHOWN + 1} more"] if len(found) > SHOWN else []
    if found:
        pytest.fail("\n".join(found[: SHOWN - len(more)] + more), pytrace=False)


def test_every_file_is_of_a_kept_run() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {*references()}


def test_a_difference_names_its_exhibit_row_and_column() -> None:
    head: list[object] = ["Objective", "top1", "marks"]
    frozen: Tables = {"table1/a": [head, ["Softmax", 77.25, "bold top1"]], "claims": [["claim"], ["thesis"]]}
    for cell, mark, said in (
        (77.25 * (1 + 1e-12), "bold top1", []),
        (77.25 * (1 + 1e-8), "bold top1", ["table1/a, row 1 (Softmax), top1: 77.2500007725, was 77.25"]),
        (77.25, "", ["table1/a, row 1 (Softmax), marks: '', was 'bold top1'"]),
        (None, "bold top1", ["table1/a, row 1 (Softmax), top1: None, was 77.25"]),
    ):
        assert list(differences(frozen, {**frozen, "table1/a": [head, ["Softmax", cell, mark]]})) == said
    assert list(differences(frozen, {"claims": [["claim"]], "new": []})) == [
        "claims: 0 rows, were 1",
        "new: new",
        "table1/a: gone",
    ]
    assert [*differences(frozen, {**frozen, "claims": [["key"]]})] == ["claims: other columns: claim, key"]
