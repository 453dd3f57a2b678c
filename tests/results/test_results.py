"""Exhibits of a planted run: readers, tables, marks, gaps, escapes, figures, and the page."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penultimate.errors import RequestError
from penultimate.registry import forget
from penultimate.results.exhibit import Exhibit, Part, Shown, exhibit, show
from penultimate.results.figure import Axis, Figure, heat, lines, scatter
from penultimate.results.means import table_of_means, task_columns
from penultimate.results.page import Answer, Page, Section, render_page
from penultimate.results.rows import MEAN, Run, epochs, joined, seeds, transfer
from penultimate.results.table import Column, table_of_rows
from tests.results.planted import LABELS, row, rows, run

TOP1 = Column("top1_percent", "Top-1", "Glyphs", better="high")
AXES = Axis("Accuracy, %"), Axis("Transfer, %", unit="%")


def accuracy(run: Run) -> Iterator[Part]:
    """Accuracy on {source}."""
    top1 = seeds(run, "top1", scale=100)
    yield table_of_means(run, "accuracy", "Accuracy", {TOP1: top1} | task_columns(transfer(run, "linear")))
    panel = scatter(run, "accuracy-ours", "Ours", top1, transfer(run, "linear")[MEAN], AXES)
    yield Figure("accuracy", "Accuracy and transfer", (panel,)) if panel else None


ACCURACY = Exhibit("accuracy", "Who is right?", accuracy, "1", page="planted")


def shown(of: Run | None = None) -> Shown:
    return ACCURACY(of or run())


def test_readers_return_seeds_by_objectives() -> None:
    top1 = seeds(run(), "top1", scale=100)
    assert list(top1) == ["softmax", "sigmoid"]
    assert top1.loc[2].round(6).to_dict() == {"softmax": 72.0, "sigmoid": 77.2}
    tasks = transfer(run(), "linear")
    assert list(tasks) == ["digits", "maths", MEAN]
    assert tasks[MEAN].equals(tasks["digits"])
    assert seeds(run(), "nll").empty


def test_two_values_of_one_quantity_are_an_error_and_one_value_twice_is_none() -> None:
    again = row("softmax", 0, "top1", 0.7)
    assert seeds(run([*rows(), again]), "top1").equals(seeds(run(), "top1"))
    with pytest.raises(RequestError, match="two values of one quantity: top1 of 'softmax', seed 0"):
        seeds(run([*rows(), {**again, "value": 0.1}]), "top1")


def test_diverged_networks_and_what_is_no_number_are_left_out() -> None:
    cells = [
        *rows(),
        row("softmax", 3, "top1", math.nan, status="diverged"),
        row("softmax", 4, "top1", math.inf),
    ]
    found = shown(run(cells))
    assert found.tables[0].to_pandas()["top1_percent_n"].tolist() == [3, 3]
    assert "Diverged, and left out of every mean: Softmax, seed 3." in found.notes


def test_a_table_has_means_errors_counts_and_the_mark_of_the_exception() -> None:
    table = shown().tables[0]
    frame = table.to_pandas()
    assert list(frame)[:4] == ["Objective", "top1_percent", "top1_percent_se", "top1_percent_n"]
    assert frame["top1_percent"].tolist() == pytest.approx([71.0, 76.1])
    assert list(frame["source"]) == ["ours", "ours"]
    # Of eight cells one is beaten, so the beaten is marked and not the seven others.
    assert list(table.marked_columns()) == ["worse top1_percent", ""]
    assert table.runs == "n = 3"
    assert "71.0▾" in table.text()


def test_few_seeds_mark_nothing() -> None:
    two = [cells for cells in rows() if cells["seed"] < 2]
    found = shown(run(two))
    assert [*found.tables[0].marked_columns()] == ["", ""]
    assert found.notes[0].startswith("Nothing is bold")


def test_what_is_not_measured_is_a_dash_and_is_said_once() -> None:
    cells = [cells for cells in rows() if (cells["objective"], cells["target"]) != ("sigmoid", "maths")]
    found = shown(run(cells))
    assert found.tables[0].to_pandas()["maths_percent"].tolist()[1] == "–"
    assert [note for note in found.notes if "ot measured" in note] == [
        "– not measured: `penultimate run full`."
    ]
    nothing = shown(run([row("softmax", 0, "nll", 1.0)]))
    assert not nothing.is_measured
    assert nothing.notes == ["Not measured: `penultimate run full`."]


def test_a_limited_run_is_refused_and_an_unfinished_one_is_named() -> None:
    with pytest.raises(RequestError, match="limited run"):
        shown(run(limited=True))
    assert ACCURACY(run(limited=True), allow_limited=True).text().startswith("LIMITED RUN")
    steps = {"command": "penultimate run planted", "steps": {"train": [1, 3]}}
    assert shown(replace(run(), provenance=steps)).text().startswith("UNFINISHED, 1 of 3 steps")


def test_of_several_studies_the_first_that_measured_it_is_shown() -> None:
    empty = run([row("softmax", 0, "nll", 1.0)], name="empty")
    both = joined([empty, run()])
    assert {*both.frame["study"]} == {"empty", "planted"}
    found = ACCURACY(both)
    assert found.tables[0].to_pandas()["top1_percent"].tolist() == pytest.approx([71.0, 76.1])
    assert "The numbers are those of `planted`." in found.notes
    with pytest.raises(RequestError, match="named twice"):
        joined([run(), run()])


HOSTILE = "<script>alert(1)</script> =cmd() & 50 % \\input{x}"


def test_hostile_names_are_harmless_in_every_output() -> None:
    found = shown(run(labels={**LABELS, "softmax": HOSTILE, "sigmoid": "=cmd()"}))
    html = found._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    table = found.tables[0]
    assert r"\textless{}script\textgreater{}" in table.latex()
    assert r"\input" not in table.latex()
    cells = [line[0] for line in csv.reader(io.StringIO(table.csv()))]
    assert cells[2] == "'=cmd()"
    assert HOSTILE.split()[0] in table.text(200)


def test_words_and_folded_tables() -> None:
    columns = [Column("verdict", "Verdict"), Column("p", "p", digits=3)]
    cells: list[tuple[str, list[object]]] = [("It holds", ["holds", 0.01]), ("It may", ["undecided", None])]
    table = table_of_rows("claims", "Claim by claim", columns, cells, corner="Claim")
    assert table is not None
    assert Shown("claims", "Claims", "", (table,)).verdicts() == [
        "holds          It holds",
        "undecided      It may",
    ]
    assert table.without("may") is not None
    assert table.without("nothing") is None
    assert re.search('class="[^"]*words" *>holds</td>', table.html())
    assert "0.010" in table.text()


def test_figures_give_their_points_and_drawings() -> None:
    found = shown()
    points = found.to_pandas()["accuracy_points"]
    assert len(points) == 8  # three runs and a mean for either objective
    assert points["x"].tolist()[-2:] == pytest.approx([71.0, 76.1])
    svg = found.svg()["accuracy-ours.svg"]
    assert "Softmax" in svg
    assert "var(" not in svg
    assert "<title>Softmax: seed 0: 70.0, 51.0 %" in svg or "<title>Softmax: seed 0: 70.0, 50.0 %" in svg


def test_lines_are_means_over_the_epochs_that_all_runs_have() -> None:
    cells = [
        row("softmax", seed, "top1", 0.5 + 0.1 * epoch + 0.02 * seed, split="holdout", epoch=epoch)
        for seed in (0, 1)
        for epoch in (1, 2, 3)
        if (seed, epoch) != (1, 3)
    ]
    of = run(cells)
    panel = lines(of, "lines", "Holdout", epochs(of, "top1", "holdout", scale=100), Axis("Accuracy, %"))
    assert panel is not None
    assert [x for x, _ in panel.curves[0].points] == [1.0, 2.0]
    assert panel.points[0].y == pytest.approx(71.0)


def test_cells_of_maps_are_points() -> None:
    import pandas as pd

    panel = heat("map", "A map", pd.DataFrame([[1.0, math.nan]], ["a"], ["x", "y"]))
    assert [(record[1], record[2], record[3], record[-1]) for record in panel.records()] == [
        ("a and x", 1, 1, 1.0),
        ("a and y", 2, 1, None),
    ]


def test_an_exhibit_of_a_plugin_is_one_function() -> None:
    def remembered(run: Run) -> Iterator[Part]:
        """Training accuracy."""
        yield table_of_means(run, "remembered", "Remembered", {TOP1: seeds(run, "top1", scale=100)})

    exhibit("remembered", "What is remembered")(remembered)
    try:
        assert show("remembered", run()).tables[0].labels == ["Softmax", "Sigmoid"]
    finally:
        forget("exhibit", "remembered")


def test_the_log_names_the_rows_that_an_exhibit_read() -> None:
    log: list[object] = []
    shown(replace(run(), log=log))
    assert len(log) > 2


def page(of: Run, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setattr("penultimate.results.page.exhibits_of", lambda page: [ACCURACY])
    answer = Answer("Sigmoid<b> is ahead.", ("One.", "Two."), ("accuracy-ours",))
    return render_page(
        of, "report", Page("planted", lambda run: answer, {"1": Section("First", "Who?", "Part")})
    )


def test_the_page_answers_first_and_holds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    files = page(run(), monkeypatch)
    html = files[""].decode()
    assert html.index("Sigmoid&lt;b&gt; is ahead.") < html.index("One.") < html.index('id="accuracy"')
    assert 'class="tag ours">measured here' in html
    assert {"accuracy.csv", "accuracy.tex", "accuracy-ours.svg", "accuracy_points.csv", "results.csv"} < {
        *files
    }
    assert html.count("<script>") == 1
    assert files == page(run(), monkeypatch)
