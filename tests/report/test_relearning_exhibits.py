"""Temperature and relearning: exactly the rows' numbers, the paper's digit for digit, nothing empty."""

from __future__ import annotations

import dataclasses
import random

import pytest

from penultimate import published
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.report.exhibits import figure6, iclr_figure5, table1, table3, table4
from penultimate.report.exhibits.base import Exhibit, ExhibitTable, Panel, StudyResults
from penultimate.report.figures import draw_panel
from penultimate.report.palette import marks
from penultimate.report.tables import points_csv, render_exhibit_text, to_csv, to_latex
from penultimate.table import Row, Table
from tests.oracles import claims as oracle
from tests.report.planted import NINE, TARGETS, TEMPERATURES, as_in_the_paper, planted, swept

BUILDERS = {"table4": table4.build, "figure6": figure6.build, "iclr_figure5": iclr_figure5.build}


def mean(results: StudyResults, text: str, **columns: str) -> float:
    """The mean of an objective's rows, read one by one."""
    spec = resolve(text).canonical
    found = [
        row.value
        for row in results.table
        if row.objective == spec and all(getattr(row, key) == value for key, value in columns.items())
    ]
    return sum(found) / len(found)


def table_of(made: Exhibit, name: str) -> ExhibitTable:
    return next(table for table in made.tables if table.name == name)


def cells(table: ExhibitTable, key: str) -> dict[str, float | None]:
    index = [column.key for column in table.columns].index(key)
    return {row.objective or row.label: row.cells[index].value for row in table.rows}


def panel_of(made: Exhibit, name: str) -> Panel:
    return next(panel for figure in made.figures for panel in figure.panels if panel.name == name)


@pytest.fixture(scope="module")
def results() -> StudyResults:
    """Nine objectives and a sweep, with noise; the sweep's heads are relearned too."""
    truth = as_in_the_paper()
    for place, text in enumerate(swept()):
        truth[text] |= {"relearned_5": 50.0 + place, "relearned_40": 60.0 + place}
    return planted(truth, seeds=(0, 1, 2), noise=0.4)


def without_heads(results: StudyResults) -> StudyResults:
    kept = Table(row for row in results.table if row.metric != figure6.METRIC)
    return dataclasses.replace(results, table=kept)


@pytest.mark.parametrize("name", BUILDERS)
def test_every_exhibit_is_printed_saved_and_refused_when_limited(name: str, results: StudyResults) -> None:
    build = BUILDERS[name]
    shown = without_heads(results) if name == "table4" else results
    made = build(shown, False)
    assert made == build(shown, False)
    assert made.name == name
    assert render_exhibit_text(made)
    for table in made.tables:
        assert len(to_csv(table).splitlines()) == len(table.rows) + 1
        assert r"\toprule" in to_latex(table)
    for figure in made.figures:
        assert len({panel.source for panel in figure.panels}) == 2
        assert points_csv(made)
    small = planted(as_in_the_paper(), limited=True)
    small = without_heads(small) if name == "table4" else small
    with pytest.raises(RequestError, match="limited run"):
        build(small, False)
    assert build(small, True).limited


@pytest.mark.parametrize("name", BUILDERS)
def test_what_was_not_measured_is_said_and_the_papers_part_stays(name: str) -> None:
    made = BUILDERS[name](planted({"softmax": {"accuracy": 77.0}}), False)
    assert any("not measured: run `penultimate run glyphs`" in note for note in made.notes)
    sources = {table.source for table in made.tables}
    sources |= {panel.source for figure in made.figures for panel in figure.panels}
    assert sources == {"published"}


# Table 4.


def test_table4_is_the_sweep_by_rising_temperature(results: StudyResults) -> None:
    table = table_of(table4.build(without_heads(results)), "table4")
    assert [row.label for row in table.rows] == [f"τ = {t:g}" for t in TEMPERATURES]
    for text, t in zip(swept(), TEMPERATURES, strict=True):
        label = f"τ = {t:g}"
        top1 = 100 * mean(results, text, metric="top1", target="glyphs")
        assert cells(table, "top1_percent")[label] == pytest.approx(top1)
        separation = mean(results, text, metric="class_separation")
        assert cells(table, "class_separation_r2")[label] == pytest.approx(separation)
        transfer = [
            100 * mean(results, text, metric=f"linear_{accuracy}", target=target)
            for target, accuracy in zip(TARGETS, ("top1", "mean_per_class"), strict=True)
        ]
        assert cells(table, "newfaces_percent")[label] == pytest.approx(transfer[1])
        assert cells(table, "mean_percent")[label] == pytest.approx(sum(transfer) / 2)


def test_a_tuned_cosine_softmax_is_no_part_of_the_sweep(results: StudyResults) -> None:
    """The nine have cosine softmax at temperature 0.05 and scale 1, the sweep at 0.05 and scale 0.05."""
    table = table_of(table4.build(without_heads(results)), "table4")
    alone = 100 * mean(results, "cosine_softmax", metric="top1", target="glyphs")
    assert cells(table, "top1_percent")["τ = 0.05"] != pytest.approx(alone, abs=1)
    assert len(table.rows) == len(TEMPERATURES)


def test_table4_prints_the_papers_digits() -> None:
    table = table_of(table4.build(planted({"softmax": {"accuracy": 77.0}})), "table4_published")
    keys = [column.key for column in table.columns]
    for row, printed in zip(table.rows, published.printed("table4"), strict=True):
        assert row.label == f"τ = {printed['temperature']}"
        for key in set(keys) - {"mean_percent"}:
            assert row.cells[keys.index(key)].text == printed[key]


# Figure 6.


def test_figure6_sets_the_relearned_heads_beside_the_original(results: StudyResults) -> None:
    made = figure6.build(results)
    table = table_of(made, "figure6")
    keys = [column.key for column in table.columns]
    assert keys == ["class_separation_r2", "top1_percent", "relearned_5_percent", "relearned_40_percent"]
    for name in NINE:
        if name == "cosine_softmax":
            continue
        own = 100 * mean(results, name, metric="top1", target="glyphs")
        assert cells(table, "top1_percent")[name] == pytest.approx(own)
        for shots in (5, 40):
            heads = 100 * mean(results, name, metric="relearn_top1", layer=f"{shots} per class")
            assert cells(table, f"relearned_{shots}_percent")[name] == pytest.approx(heads)
            panel = panel_of(made, f"figure6-{shots}")
            drawn = {point.faint: point for point in panel.points if point.objective == name}
            assert (drawn[True].y, drawn[False].y) == pytest.approx((own, heads))
            assert drawn[True].x == drawn[False].x == pytest.approx(mean(results, name, split="train"))
            (line,) = [curve for curve in panel.curves if curve.objective == name]
            assert line.points == ((drawn[True].x, drawn[True].y), (drawn[False].x, drawn[False].y))


def test_figure6_tells_both_correlations(results: StudyResults) -> None:
    panel = panel_of(figure6.build(results), "figure6-5")
    heads = [point for point in panel.points if not point.faint]
    own = {point.objective: point.y for point in panel.points if point.faint}
    x = [point.x for point in heads]
    relearned = oracle.rho(x, [point.y for point in heads])
    gap = oracle.rho(x, [point.y - own[point.objective] for point in heads])
    told = panel.finding.replace("\N{MINUS SIGN}", "-")
    assert f"Relearned: Spearman ρ = {relearned:.2f}," in told
    assert f"Relearned less original: ρ = {gap:.2f}," in told


def test_figure6_compares_objectives_not_temperatures(results: StudyResults) -> None:
    panel = panel_of(figure6.build(results), "figure6-5")
    assert sum(not point.faint for point in panel.points) == len(NINE)


def test_the_papers_relearned_heads_are_those_of_its_iclr_version() -> None:
    made = figure6.build(planted({"softmax": {"accuracy": 77.0}}))
    printed = {row["objective"]: row[figure6.RELEARNED] for row in published.printed("iclr_table3_linear")}
    table = table_of(made, "figure6_published")
    index = [column.key for column in table.columns].index(figure6.RELEARNED)
    assert {row.objective: row.cells[index].text for row in table.rows} == printed
    panel = panel_of(made, "figure6-published")
    assert {point.objective: point.y for point in panel.points if not point.faint} == {
        name: float(text) for name, text in printed.items()
    }


def test_only_finished_heads_of_the_first_architecture_count(results: StudyResults) -> None:
    rows = list(results.table)
    stray = next(row for row in rows if row.metric == figure6.METRIC)
    strays = [
        dataclasses.replace(stray, seed=9, value=0.01, status="diverged"),
        dataclasses.replace(stray, seed=9, value=0.01, split="train"),
        dataclasses.replace(stray, seed=9, value=0.01, layer="all"),
        dataclasses.replace(stray, seed=9, value=0.01, layer=None),
        Row(metric="top1", value=0.5, objective=stray.objective, backbone="other", seed=9, source="glyphs"),
        dataclasses.replace(stray, seed=9, value=0.01, backbone="other"),
    ]
    random.Random(0).shuffle(rows)
    more = dataclasses.replace(results, table=Table([*rows, *strays]))
    expected = table_of(figure6.build(results), "figure6")
    assert cells(table_of(figure6.build(more), "figure6"), "relearned_5_percent") == pytest.approx(
        cells(expected, "relearned_5_percent")
    )


# I's figure 5.


def test_iclr_figure5_is_drawn_at_the_judged_number_of_images(results: StudyResults) -> None:
    made = iclr_figure5.build(results)
    assert [panel.name for panel in made.figures[0].panels] == [
        "iclr_figure5-ours",
        "iclr_figure5-objective-published",
        "iclr_figure5-temperature",
        "iclr_figure5-temperature-published",
    ]
    assert any("five images of each class" in note for note in made.notes)
    points = panel_of(made, "iclr_figure5-ours").points
    ours = {point.objective: point for point in points}
    assert sorted(point.objective for point in points) == sorted(NINE)
    heads = 100 * mean(results, "sigmoid", metric="relearn_top1", layer="5 per class")
    transfer = 50 * (
        mean(results, "sigmoid", metric="linear_top1")
        + mean(results, "sigmoid", metric="linear_mean_per_class")
    )
    assert (ours["sigmoid"].x, ours["sigmoid"].y) == pytest.approx((heads, transfer))
    sweep = panel_of(made, "iclr_figure5-temperature").points
    assert [point.label for point in sweep] == [f"τ = {t:g}" for t in TEMPERATURES]


def test_iclr_figure5_shows_the_papers_two_tables() -> None:
    made = iclr_figure5.build(planted({"softmax": {"accuracy": 77.0}}))
    objectives = panel_of(made, "iclr_figure5-objective-published").points
    assert [point.label for point in objectives] == [preset.label for preset in PRESETS.values()]
    assert (objectives[0].x, objectives[0].y) == pytest.approx((71.1, 75.95))
    temperatures = panel_of(made, "iclr_figure5-temperature-published").points
    assert [point.x for point in temperatures] == [67.0, 70.8, 74.3, 75.7, 76.4, 76.6, 76.8, 77.0]


def test_every_panel_can_be_drawn(results: StudyResults) -> None:
    known = marks([*NINE, *(one["slug"] for one in results.description["objectives"])])
    for name in ("figure6", "iclr_figure5"):
        for figure in BUILDERS[name](results, False).figures:
            for panel in figure.panels:
                assert "<svg" in draw_panel(panel, known).styled(panel.name, page=False)


def test_a_sweep_stands_in_its_own_table_and_not_among_the_nine() -> None:
    results = planted(as_in_the_paper())
    for build in (table1.build, table3.build):
        made = build(results)
        assert len(made.tables[0].rows) == len(NINE)
        assert "Cosine softmax at six further temperatures" in " ".join(made.notes)
    assert len(table4.build(results).tables[0].rows) == len(TEMPERATURES)
