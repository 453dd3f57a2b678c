"""Rows and tables: columns by value, files that come back byte for byte, frames and CSV that hold them."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate import RequestError
from penultimate.records.archive import read_kept
from penultimate.records.table import (
    COLUMNS,
    INTEGERS,
    TEXTS,
    Row,
    Table,
    encode_rows,
    frame_of,
    read_cells,
    read_rows,
    setting_text,
)

texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
any_rows = st.builds(
    Row,
    **dict.fromkeys(set(TEXTS) - {"metric", "status"}, st.none() | texts),
    **dict.fromkeys(INTEGERS, st.none() | st.integers(-(2**40), 2**40)),
    metric=texts,
    value=st.floats() | st.none(),
    status=st.sampled_from(["done", "diverged", "limited"]),
)


def grid() -> list[Row]:
    return [
        Row(
            objective=objective,
            seed=seed,
            metric="top1",
            split=split,
            epoch=epoch,
            value=seed + len(objective) / 100,
        )
        for objective in ("softmax", "sigmoid", "cosine_softmax")
        for seed in (0, 1)
        for split, epoch in (("test", None), ("train", 1), ("train", 2))
    ]


def of_frame(rows: list[Row]) -> Table:
    """The same rows as a table that is read from a frame, as those of a study are."""
    return Table.of_frame(frame_of(dataclasses.asdict(row) for row in rows))


@given(rows=st.lists(any_rows, max_size=4))
@settings(max_examples=50)
def test_files_give_back_equal_rows_and_equal_bytes(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_bytes(encode_rows(rows))
    assert read_rows(path) == rows
    assert list(Table.of_frame(frame_of(read_cells(path)))) == rows
    assert encode_rows(read_rows(path)) == path.read_bytes() == encode_rows(of_frame(rows))
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_file_is_lines_of_json_in_one_order_of_columns(tmp_path: Path) -> None:
    row = Row(
        value=0.1 + 0.2, metric="top1", step="s", seed=np.int64(3), unit="fraction", objective="softmax"
    )
    gone = dataclasses.replace(row, value=None, status="diverged")
    endless = dataclasses.replace(row, value=-math.inf)
    (tmp_path / "rows.jsonl").write_bytes(encode_rows([row, gone, endless]))
    begun = '{"step":"s","objective":"softmax","seed":3,"metric":"top1","value":'
    assert (tmp_path / "rows.jsonl").read_text() == (
        f'{begun}0.30000000000000004,"unit":"fraction","status":"done"}}\n'
        f'{begun}null,"unit":"fraction","status":"diverged"}}\n'
        f'{begun}"-inf","unit":"fraction","status":"done"}}\n'
    )


def test_a_condition_is_one_text_that_is_read_back() -> None:
    written = setting_text({"severity": 3, "corruption": "fog", "share": 0.5})
    assert written == "corruption=fog, severity=3, share=0.5"
    row = Row(metric="corruption_error", value=0.5, setting=written)
    assert row.settings == {"corruption": "fog", "severity": "3", "share": "0.5"}
    assert (setting_text({}), Row(metric="top1", value=1.0).settings) == (None, {})
    with pytest.raises(RequestError, match="hold neither '=' nor ','"):
        setting_text({"a": "b, c"})


@pytest.mark.parametrize("table_of", [Table, of_frame])
@given(rows=st.lists(any_rows, max_size=12), data=st.data())
@settings(max_examples=50)
def test_a_table_finds_what_a_search_of_its_rows_finds(
    table_of: type[Table], rows: list[Row], data: st.DataObject
) -> None:
    table = table_of(rows)
    names = data.draw(st.lists(st.sampled_from((*TEXTS, *INTEGERS)), min_size=1, max_size=3, unique=True))
    of_rows = {name: st.sampled_from([getattr(row, name) for row in rows] or [None]) for name in names}
    wanted = {name: data.draw(st.lists(of_rows[name], max_size=2)) for name in names}
    found = [row for row in rows if all(getattr(row, name) in wanted[name] for name in names)]
    assert list(table.where(**wanted)) == found
    assert table.column(names[0]) == tuple(getattr(row, names[0]) for row in rows)
    np.testing.assert_array_equal(table.values(), [row.value for row in rows])


@pytest.mark.parametrize("table_of", [Table, of_frame])
def test_parts_of_parts_are_read_by_column(table_of: type[Table]) -> None:
    table = table_of(grid())
    assert len(table) == 18
    final = table.where(epoch=None)
    assert final.where(objective="softmax").column("seed") == (0, 1)
    assert len(table.where(split=("test", "train"), seed=[1])) == 9
    assert len(table.where(epoch=(None, 2))) == 12
    assert len(table.where(objective="dropout")) == len(table.where(objective=())) == 0
    assert final.where(objective="sigmoid").values().tolist() == [0.07, 1.07]
    none = table_of([])
    assert (len(none), list(none), none.values().tolist()) == (0, [], [])
    assert tuple(none.to_pandas().columns) == COLUMNS


@pytest.mark.parametrize("table_of", [Table, of_frame])
def test_a_frame_has_the_columns_of_rows_and_what_is_missing_is_missing(table_of: type[Table]) -> None:
    frame = table_of([*grid(), Row(metric="top1", value=None)]).where(epoch=None).to_pandas()
    assert tuple(frame.columns) == COLUMNS
    assert (str(frame["seed"].dtype), str(frame["value"].dtype)) == ("Int64", "float64")
    last = frame.iloc[-1]
    assert last[["objective", "seed", "value", "setting"]].isna().all()
    means = frame.groupby("objective")["value"].mean()
    assert means.to_dict() == pytest.approx({"softmax": 0.57, "sigmoid": 0.57, "cosine_softmax": 0.64})
    frame["objective"] += "!"  # texts are texts, to which a notebook may do anything


def test_a_quantity_that_was_renamed_is_read_under_its_name(tmp_path: Path) -> None:
    """In a step's rows and in a kept run; a plug-in's metric of the former name stays its own."""
    cells = {"metric": "sparsity", "value": 0.25, "layer": "block1"}
    lines = [json.dumps({"step": step, **cells}) for step in ("layers.s0.0f3c", "sparsity.s0.0f3c")]
    (tmp_path / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    read = read_rows(tmp_path / "rows.jsonl")
    assert [(row.metric, row.value) for row in read] == [("nonzero_share", 0.25), ("sparsity", 0.25)]
    table = read_kept(Path(__file__).parents[1] / "kept" / "glyphs").table
    assert len(table.where(metric="sparsity")) == 0
    shares = table.where(metric="nonzero_share", objective="softmax", layer="block1", seed=0)
    assert shares.values().tolist() == pytest.approx([0.42903578])
