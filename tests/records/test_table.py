"""Rows and tables: columns by value, files that come back byte for byte, cells that no spreadsheet runs."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.reading import glyphs

from penultimate import RequestError
from penultimate.errors import DamagedFileError
from penultimate.records.table import COLUMNS, Row, Table, read_rows, setting_text, write_rows

texts = st.none() | st.text(max_size=20)
integers = st.none() | st.integers(-(2**40), 2**40)
any_rows = st.builds(
    Row,
    **dict.fromkeys(
        [
            "step",
            "objective",
            "backbone",
            "arm",
            "source",
            "target",
            "setting",
            "split",
            "layer",
            "objective_b",
            "layer_b",
            "unit",
        ],
        texts,
    ),
    **dict.fromkeys(["seed", "draw", "epoch", "seed_b"], integers),
    metric=st.text(min_size=1, max_size=20),
    value=st.floats() | st.none(),
    status=st.sampled_from(["done", "diverged", "limited"]),
)


def grid() -> Table:
    rows = []
    for objective in ("softmax", "sigmoid", "cosine_softmax"):
        for seed in (0, 1):
            for target in ("digits", "maths"):
                value = len(objective) / 100 + seed / 10 + len(target)
                facts = {"objective": objective, "seed": seed, "target": target, "metric": "linear_top1"}
                rows.append(Row(**facts, value=value, split="test", unit="fraction"))
            rows += [
                Row(objective=objective, seed=seed, metric="top1", value=0.1 * e, epoch=e, split="train")
                for e in (1, 2)
            ]
    return Table(rows)


@given(rows=st.lists(any_rows, max_size=4))
@settings(max_examples=50)
def test_files_give_back_equal_rows_and_equal_bytes(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder / "a.jsonl", rows)
    back = read_rows(folder / "a.jsonl")
    assert back == rows
    assert Table(back) == Table(rows)
    write_rows(folder / "b.jsonl", back)
    assert (folder / "a.jsonl").read_bytes() == (folder / "b.jsonl").read_bytes()
    for line in (folder / "a.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@given(rows=st.lists(any_rows, max_size=4))
@settings(max_examples=50)
def test_csv_reads_back_and_holds_no_formula(rows: list[Row]) -> None:
    header, *lines = list(csv.reader(io.StringIO(Table(rows).to_csv(), newline="")))
    assert tuple(header) == COLUMNS
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        for name, cell in zip(COLUMNS, line, strict=True):
            held = getattr(row, name)
            if name == "value":
                assert cell == "" if math.isnan(held) else float(cell) == held
            elif isinstance(held, int):
                assert int(cell) == held
            else:
                plain = (held or "").replace("\r", "\n")
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\n"))
                assert cell.removeprefix("'" if cell != plain else "") == plain


def test_a_file_is_lines_of_json_in_one_order_of_columns(tmp_path: Path) -> None:
    row = Row(
        value=0.1 + 0.2, metric="top1", step="s", seed=np.int64(3), unit="fraction", objective="softmax"
    )
    gone = dataclasses.replace(row, value=None, status="diverged")
    write_rows(tmp_path / "rows.jsonl", [row, gone])
    assert (tmp_path / "rows.jsonl").read_text() == (
        '{"step":"s","objective":"softmax","seed":3,"metric":"top1","value":0.30000000000000004,'
        '"unit":"fraction","status":"done"}\n'
        '{"step":"s","objective":"softmax","seed":3,"metric":"top1","value":null,"unit":"fraction","status":"diverged"}\n'
    )
    written = Table([row]).to_csv().splitlines()[1]
    assert written == "s,softmax,,,3,,,,,,,,,,,top1,0.30000000000000004,fraction,done"
    hostile = Table([Row(objective="=HYPERLINK(1)", target="-x", metric="@m", value=-1.5)])
    assert hostile.to_csv().splitlines()[1] == ",'=HYPERLINK(1),,,,,,'-x,,,,,,,,'@m,-1.5,,done"


def test_a_condition_is_one_text_that_is_read_back() -> None:
    written = setting_text({"severity": 3, "corruption": "fog", "share": 0.5})
    assert written == "corruption=fog, severity=3, share=0.5"
    row = Row(metric="corruption_error", value=0.5, setting=written)
    assert row.settings == {"corruption": "fog", "severity": "3", "share": "0.5"}
    assert (setting_text({}), Row(metric="top1", value=1.0).settings) == (None, {})
    for values in ({"a=b": 1}, {"a": "b=c"}, {"a": "b, c"}, {"a": (1, 2)}):
        with pytest.raises(RequestError, match="hold neither '=' nor ','"):
            setting_text(values)  # type: ignore[arg-type]


@given(rows=st.lists(any_rows, max_size=12), data=st.data())
@settings(max_examples=50)
def test_a_table_finds_what_a_search_of_its_rows_finds(rows: list[Row], data: st.DataObject) -> None:
    table = Table(rows)
    names = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    of_rows = {name: st.sampled_from([getattr(row, name) for row in rows] or [None]) for name in names}
    wanted = {name: data.draw(st.lists(of_rows[name], max_size=2)) for name in names}
    found = [row for row in rows if all(getattr(row, name) in wanted[name] for name in names)]
    assert list(table.where(**wanted)) == found
    groups: dict[object, list[Row]] = {}
    for row in rows:
        cells = tuple(getattr(row, name) for name in names)
        groups.setdefault(cells if len(names) > 1 else cells[0], []).append(row)
    assert {key: list(of_key) for key, of_key in table.by(*names).items()} == groups
    assert table.column(names[0]) == tuple(getattr(row, names[0]) for row in rows)


def test_where_and_by() -> None:
    table = grid()
    assert len(table) == 24
    chosen = table.where(objective="softmax", metric="linear_top1")
    assert chosen.column("seed") == (0, 0, 1, 1)
    assert chosen.values().dtype == np.float64
    assert chosen.values().tolist() == [row.value for row in chosen]
    assert len(table.where(epoch=None)) == 12
    assert len(table.where(epoch=None, target=("digits", "maths"), seed=[1])) == 6
    assert len(table.where(target={"digits", None})) == 18
    assert len(table.where(target=())) == len(table.where(objective="dropout")) == 0
    assert list(table.where(target=("maths", "digits"))) == [row for row in table if row.target]
    assert table.where() is table
    groups = table.by("objective")
    assert list(groups) == ["softmax", "sigmoid", "cosine_softmax"]
    assert sum(map(len, groups.values())) == 24
    assert list(groups["sigmoid"].by("seed", "epoch"))[:3] == [(0, None), (0, 1), (0, 2)]
    assert table.where(objective="sigmoid", seed=0, target="maths").only().value == pytest.approx(5.07)
    assert repr(table) == "Table(24 rows: linear_top1, top1)"


@given(seed=st.integers(0, 1000))
@settings(max_examples=50)
def test_where_equals_a_plain_filter(seed: int) -> None:
    table, choice = grid(), random.Random(seed)
    wanted = {
        name: choice.choice(table.column(name))
        for name in choice.sample(["objective", "seed", "target", "epoch"], 3)
    }
    expected = [row for row in table if all(getattr(row, name) == value for name, value in wanted.items())]
    assert list(table.where(**wanted)) == expected


def test_tables_are_values() -> None:
    table = grid()
    rows = list(table)
    random.Random(0).shuffle(rows)
    assert Table(rows) != table
    assert hash(Table(list(table))) == hash(table)
    assert len(table + Table([table[0]])) == 25
    assert len(table) == 24
    with pytest.raises(dataclasses.FrozenInstanceError):
        table[0].value = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        table.rows = ()  # type: ignore[attr-defined]
    nan = Row(metric="top1", value=float("nan"))
    assert nan == Row(metric="top1", value=None)
    assert Table([nan]) == Table([Row(metric="top1", value=None)])


def test_pandas() -> None:
    frame = (grid() + Table([Row(metric="top1", value=None)])).to_pandas()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 25
    assert str(frame["seed"].dtype) == "Int64"
    assert frame["seed"].isna().sum() == 1
    means = frame[frame.metric == "linear_top1"].groupby("objective")["value"].mean()
    expected = {
        name: rows.values().mean()
        for name, rows in grid().where(metric="linear_top1").by("objective").items()
    }
    assert means.to_dict() == pytest.approx(expected)


def test_a_hundred_thousand_rows_are_read_by_column_quickly() -> None:
    rows = [
        Row(
            objective=f"o{i % 9}", seed=i % 5, target=f"t{i % 8}", metric=f"m{i % 100}", value=i, epoch=i % 20
        )
        for i in range(100_000)
    ]
    table = Table(rows)
    table.where(metric="m7", objective="o1")
    start = time.perf_counter()
    for i in range(100):
        found = table.where(metric=f"m{i}", objective=f"o{i % 9}", target=f"t{i % 8}")
        assert all(row.metric == f"m{i}" for row in found)
    assert time.perf_counter() - start < 5  # a scan of every row for every question takes minutes


def test_bad_rows_and_questions_are_named() -> None:
    for call, message in [
        (lambda: Row(metric="", value=1.0), "needs the name of its metric"),
        (lambda: Row(metric="top1", value="high"), "value is a number or None; got 'high'"),
        (lambda: Row(metric="top1", value=True), "value is a number"),
        (lambda: Row(metric="top1", value=1.0, seed=0.5), "seed is a whole number or None; got 0.5"),
        (lambda: Row(metric="top1", value=1.0, epoch=True), "epoch is a whole number"),
        (lambda: Row(metric="top1", value=1.0, target=3), "target is text or None; got 3"),
        (lambda: Row(metric="top1", value=1.0, status="diverge"), "Did you mean 'diverged'"),
        (lambda: grid().where(objectiv="softmax"), "no column 'objectiv'. Did you mean 'objective'"),
        (lambda: grid().column("accuracy"), "no column 'accuracy'"),
        (lambda: grid().by("seed", "kind"), "no column 'kind'"),
        (lambda: grid().by(), "wants a column"),
        (
            lambda: grid().where(objective="softmax", metric="top1", seed=0).only(),
            "there are 2, which differ in epoch",
        ),
        (lambda: Table().only(), "there are 0"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"metric":"top1","value":1.0}\n{"metric":"top1","val', "ends inside line 2"),
        (b'{"metric":"top1","value":1.0}\nnot json\n', "line 2 is not a row"),
        (b'{"metric":"top1"}\n', "line 1 is not a row .* 'value'"),
        (b'{"metric":"top1","value":1.0,"colour":"red"}\n', "line 1 .*colour"),
        (b'{"metric":"top1","value":"0.5"}\n', "line 1 .*'0.5'"),
        (b'{"metric":"top1","value":[1]}\n', "line 1"),
        (b"[1]\n", "line 1"),
        (b"\xff\xfe\n", "is not text"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=message) as error:
        read_rows(path)
    assert "rows.jsonl" in str(error.value)


def test_a_missing_file_is_a_wrong_request_and_an_empty_one_has_no_rows(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no rows at"):
        read_rows(tmp_path / "rows.jsonl")
    write_rows(tmp_path / "rows.jsonl", [])
    assert read_rows(tmp_path / "rows.jsonl") == []
    assert len(Table().values()) == 0


def test_a_quantity_that_was_renamed_is_read_under_its_name(tmp_path: Path) -> None:
    """What a step left before the renaming; a plug-in's metric of the former name stays its own."""
    cells = {"metric": "sparsity", "value": 0.25, "layer": "block1"}
    lines = [json.dumps({"step": step, **cells}) for step in ("layers.s0.0f3c", "sparsity.s0.0f3c")]
    (tmp_path / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    read = read_rows(tmp_path / "rows.jsonl")
    assert [(row.metric, row.value) for row in read] == [("nonzero_share", 0.25), ("sparsity", 0.25)]


def test_a_kept_run_is_read_under_the_names_of_today() -> None:
    table = glyphs().table
    assert len(table.where(metric="sparsity")) == 0
    shares = table.where(metric="nonzero_share", objective="softmax", layer="block1", seed=0)
    assert shares.values().tolist() == pytest.approx([0.42903578])
