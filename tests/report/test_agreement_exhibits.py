"""Figures C.4 to C.7: tables and tree hold the rows of pairs, of two networks and of two ensembles."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from penultimate.errors import RequestError
from penultimate.paper.page import PAGE
from penultimate.paper.remarks import OF_DRAWS, OF_ONE_DRAW
from penultimate.records.table import Row
from penultimate.report import exhibit
from penultimate.report.base import StudyResults
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.measurements import admit
from penultimate.report.page.page import _shared_notes as shared_notes
from penultimate.report.spec import all_exhibits, assemble
from penultimate.report.tables import points_csv, to_csv, to_latex
from penultimate.report.terminal import render_exhibit_text
from penultimate.report.text import in_words
from tests.oracles.agreement import average_linkage
from tests.oracles.report import mean_of
from tests.report.reading import (
    cell,
    described,
    glyphs,
    labels_of,
    objectives_of,
    only,
    panels,
    part_of,
    table_of,
    with_rows,
)

NAMES = ("figureC4", "figureC5", "figureC6", "figureC7")
WAYS = ("same_when_both_wrong", "same", "both_right_or_wrong")
SAME_MISTAKE = "agreement_same_when_both_wrong"


def pairs_of(results: StudyResults, metric: str, setting: str | None = None) -> list[Row]:
    """The rows of two networks, or of two ensembles, of the architecture that is shown."""
    return [
        row
        for row in results.table
        if (row.metric, row.setting, row.backbone) == (metric, setting, "glyphnet") and row.objective_b
    ]


def of_two(rows: list[Row], first: str, second: str) -> list[float]:
    """The values of two objectives' pairs, those of one seed left out."""
    specs = {objectives_of(glyphs())[slug] for slug in (first, second)}
    return [
        row.value
        for row in rows
        if {row.objective, row.objective_b} == specs and (row.seed is None or row.seed != row.seed_b)
    ]


def test_tables_of_networks_hold_the_means_over_pairs_of_different_seeds() -> None:
    built = exhibit("figureC5", glyphs())
    assert [table.name for table in built.tables] == [f"figureC5-{way}" for way in WAYS]
    for table, way in zip(built.tables, WAYS, strict=True):
        rows = pairs_of(glyphs(), f"agreement_{way}")
        for first, second in (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax")):
            pairs = of_two(rows, first, second)
            assert len(pairs) == (10 if first == second else 20)
            assert cell(table, first, f"{second}_percent")[0] == pytest.approx(100 * mean_of(pairs))
    most = max(pairs_of(glyphs(), "agreement_same"), key=lambda row: row.value)
    names = {spec: labels_of(glyphs())[slug] for slug, spec in objectives_of(glyphs()).items()}
    for spec, seed in ((most.objective, most.seed), (most.objective_b, most.seed_b)):
        assert f"{names[str(spec)]}, seed {seed}" in built.notes[0]
    assert f"differ on {100 * (1 - most.value):.1f} %" in built.notes[0]


def test_figure_c4_tells_own_pairs_from_others_and_repeats_no_table_of_c5() -> None:
    built = exhibit("figureC4", glyphs())
    (table,) = built.tables
    rows, slugs = pairs_of(glyphs(), SAME_MISTAKE), list(objectives_of(glyphs()))
    apart = 0
    for row in table.rows:
        shares = {slug: of_two(rows, row.objective, slug) for slug in slugs}
        own = shares.pop(row.objective)
        nearest = max(shares, key=lambda slug: mean_of(shares[slug]))
        every = [share for of_other in shares.values() for share in of_other]
        for place, expected in enumerate((own, every, shares[nearest])):
            assert row.cells[place].value == pytest.approx(100 * mean_of(expected))
            assert row.cells[place].count == len(expected)
        assert row.cells[3].text == labels_of(glyphs())[nearest]
        apart += mean_of(own) > mean_of(shares[nearest])
    assert built.notes[0].startswith(f"Ours: for {in_words(apart)} of nine objectives")
    assert not {to_csv(table)} & {to_csv(table) for table in exhibit("figureC5", glyphs()).tables}


@pytest.mark.parametrize("seeds", [(0, 1), (0, 1, 2, 3, 4)])
def test_every_leaf_of_the_tree_has_room_for_its_mark(seeds: tuple[int, ...]) -> None:
    panel = panels(exhibit("figureC4", part_of(glyphs(), seeds=seeds)))["figureC4-tree"]
    assert [point.y for point in panel.points] == list(range(1, 9 * len(seeds) + 1))
    assert panel.y_limits is not None
    low, high = panel.y_limits
    assert low < 1
    assert high > 9 * len(seeds)
    assert (panel.size[1] - 64) / (high - low) > 12  # the height of a mark


def test_the_places_of_leaves_have_no_numbers_and_what_they_are_joined_at_has() -> None:
    panel = panels(exhibit("figureC4", part_of(glyphs(), seeds=(0,))))["figureC4-tree"]
    drawn = draw_panel(panel, marks(list(objectives_of(glyphs())))).raw
    assert ("xtick_1" in drawn, "ytick_1" in drawn) == (True, False)


def test_two_seeds_show_a_direction() -> None:
    few, whole = (exhibit("figureC4", part_of(glyphs(), seeds=seeds)) for seeds in ((0, 1), (0, 1, 2)))
    assert few.finding.endswith("(two runs each: a direction, no more).")
    assert "direction" not in whole.finding


def test_the_tree_is_average_linkage_and_its_leaves_are_the_networks() -> None:
    panel = panels(exhibit("figureC4", glyphs()))["figureC4-tree"]
    rows = pairs_of(glyphs(), SAME_MISTAKE)
    networks = [(spec, seed) for spec in objectives_of(glyphs()).values() for seed in range(5)]
    shares = {
        frozenset({(row.objective, row.seed), (row.objective_b, row.seed_b)}): row.value for row in rows
    }
    similarity = [[shares.get(frozenset({a, b}), 1.0) for b in networks] for a in networks]
    distances = [100 * distance for _, distance in average_linkage(similarity)]
    upright = [curve.points[0][0] for curve in panel.curves if curve.points[0][0] == curve.points[1][0]]
    assert sorted(upright) == pytest.approx(sorted(distances))
    leaves = [(point.objective, point.detail.partition(",")[0]) for point in panel.points]
    assert sorted(leaves) == sorted(
        (slug, f"seed {seed}") for slug, seed in itertools.product(objectives_of(glyphs()), range(5))
    )
    for curve in panel.curves:
        assert curve.faint == (" and " in curve.label)


def test_without_a_number_for_every_pair_there_is_no_tree() -> None:
    gone = pairs_of(glyphs(), SAME_MISTAKE)[0]
    built = exhibit("figureC4", only(glyphs(), lambda row: row != gone))
    assert built.figures == ()
    assert built.notes[0].startswith("No tree is drawn")


def test_one_seed_leaves_the_diagonal_open_and_says_why() -> None:
    one_seed = part_of(glyphs(), seeds=[0])
    for table in exhibit("figureC5", one_seed).tables:
        cells = table.rows[0].cells
        assert (cells[0].value, cells[0].detail) == (None, "needs two seeds")
        assert cells[1].value is not None
    assert len(panels(exhibit("figureC4", one_seed))["figureC4-tree"].points) == 9


def test_tables_of_ensembles_hold_their_rows() -> None:
    built = exhibit("figureC6", glyphs())
    for table, way in zip(built.tables, WAYS, strict=True):
        rows = pairs_of(glyphs(), f"agreement_{way}", "models=5")
        (value,) = of_two(rows, "dropout", "logit_norm")
        assert cell(table, "dropout", "logit_norm_percent")[0] == pytest.approx(100 * value)
        assert cell(table, "softmax", "softmax_percent")[0] is None
    assert "an ensemble of its networks (five models each) predicts" in built.caption


def test_mixtures_are_compared_with_pure_ensembles_of_their_size() -> None:
    built = exhibit("figureC7", glyphs())
    (table,) = built.tables
    assert table.title == "Top-1 accuracy of ensembles of four models, %"
    rows = pairs_of(glyphs(), "ensemble_top1", "models=4")
    for first, second in (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax")):
        (value,) = of_two(rows, first, second)
        assert cell(table, first, f"{second}_percent")[0] == pytest.approx(100 * value)
    best = [
        max(row.value for row in rows if (row.objective == row.objective_b) == pure) for pure in (False, True)
    ]
    assert f" has a test accuracy of {100 * best[0]:.1f} %, the best of a single one" in built.finding
    assert built.finding.endswith(f") {100 * best[1]:.1f} %.")
    larger = [
        dataclasses.replace(row, setting="models=8") for row in rows if row.objective == row.objective_b
    ]
    assert exhibit("figureC7", with_rows(glyphs(), larger)).tables == built.tables


def test_two_values_of_one_pair_are_refused() -> None:
    row = pairs_of(glyphs(), "agreement_same")[0]
    turned = dataclasses.replace(
        row,
        objective=row.objective_b,
        seed=row.seed_b,
        objective_b=row.objective,
        seed_b=row.seed,
        value=0.123,
    )
    with pytest.raises(RequestError, match="two values of agreement_same of one pair"):
        exhibit("figureC5", with_rows(glyphs(), [turned]))


def test_a_network_that_was_not_trained_here_is_a_pair_with_every_other() -> None:
    """Such networks have no seed; nor have ensembles, whose rows have a setting."""
    block = {"given": {"ours": "timm:resnet18"}, "classifies": True, "measure": None}
    networks = [*glyphs().description["networks"], block]
    listed = [*glyphs().description["objectives"], {"slug": "ours", "label": "ours", "spec": "ours"}]
    rows = [
        dataclasses.replace(row, objective_b="ours", seed_b=None, value=0.25)
        for row in glyphs().table
        if row.metric.startswith("agreement") and row.objective_b == row.objective and row.seed_b == 4
    ]
    results = with_rows(described(glyphs(), networks=networks, objectives=listed), rows)
    table = table_of(exhibit("figureC5", results), "figureC5-same")
    assert cell(table, "softmax", "ours_percent")[0] == 25
    assert cell(table, "ours", "ours_percent")[0] is None
    assert exhibit("figureC6", results).tables == exhibit("figureC6", glyphs()).tables
    assert exhibit("figureC4", results).figures == ()  # not every pair has a number


@pytest.mark.parametrize("name", NAMES)
def test_exhibits_are_printed_saved_drawn_and_refused_when_limited(name: str) -> None:
    built = exhibit(name, glyphs())
    assert built.missing == ()
    assert built.number in render_exhibit_text(built)
    for table in built.tables:
        assert len(to_csv(table).splitlines()) == len(table.rows) + 1 == 9 + 1
        assert r"\toprule" in to_latex(table)
    for panel in panels(built).values():
        assert points_csv(built)
        assert "<svg" in draw_panel(panel, marks(list(objectives_of(glyphs())))).styled(panel.name)
    rows = [dataclasses.replace(row, status="limited") for row in glyphs().table if row.objective_b]
    with pytest.raises(RequestError, match="limited run"):
        exhibit(name, with_rows(only(glyphs(), lambda row: row.objective_b is None), rows))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_measured_is_said_and_never_drawn_empty(name: str) -> None:
    built = exhibit(name, only(glyphs(), lambda row: row.objective_b is None))
    assert built.tables == built.figures == ()
    assert len(built.missing) == (3 if name == "figureC5" else 1)
    study = "glyphs" if name in ("figureC6", "figureC7") else "nine"
    assert all(gap.command == f"penultimate run {study}" for gap in built.missing)
    assert built.notes[: len(built.missing)] == tuple(map(str, built.missing))


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_that_is_left_out_is_said(name: str) -> None:
    built = exhibit(name, glyphs())
    assert not any("τ" in row.label for table in built.tables for row in table.rows)
    assert built.notes[-1] == "Cosine softmax at five further temperatures is compared in Table 4, not here."


def of_one_draw(results: StudyResults) -> StudyResults:
    """The study with an arm of one draw, in which every share is a tenth of what it is in the main one."""
    first = results.description["networks"][0]
    arm = {**first, "arm": "one draw", "draws": 0, "measure": ["agreement"]}
    rows = [
        dataclasses.replace(row, arm="one draw", value=row.value / 10)
        for row in results.table
        if row.metric.startswith(("agreement", "ensemble"))
    ]
    return with_rows(described(results, networks=[*results.description["networks"], arm]), rows)


@pytest.mark.parametrize("name", NAMES)
def test_networks_that_saw_one_draw_are_shown_where_the_study_has_them(name: str) -> None:
    main, both = exhibit(name, glyphs()), exhibit(name, of_one_draw(glyphs()))
    assert any("another seed is another draw of the images" in note for note in main.notes)
    assert any("all networks saw one draw of the images" in note for note in both.notes)
    for table, other in zip(main.tables, both.tables, strict=True):
        if table.source != "ours":
            continue
        values = [cell.value for row in table.rows for cell in row.cells if cell.value is not None]
        tenths = [cell.value for row in other.rows for cell in row.cells if cell.value is not None]
        assert values
        assert tenths == pytest.approx([value / 10 for value in values])


def test_the_page_says_of_which_exhibits_a_seed_is_no_draw() -> None:
    measurements = admit(of_one_draw(glyphs()))
    built = [assemble(one, measurements) for one in all_exhibits()]
    assert {one.name for one in built if OF_ONE_DRAW in one.notes} == {*NAMES}
    assert {one.name for one in built if OF_DRAWS in one.notes} > {"table1", "table3", "figure5"}
    assert OF_DRAWS in shared_notes(built, PAGE.rivals)
    assert OF_ONE_DRAW not in shared_notes(built, PAGE.rivals)
    assert OF_ONE_DRAW in shared_notes([one for one in built if one.name in NAMES], PAGE.rivals)


def test_an_arm_of_one_draw_that_is_not_measured_yet_is_named_as_missing() -> None:
    results = of_one_draw(glyphs())
    unmeasured = only(results, lambda row: row.arm != "one draw")
    built = exhibit("figureC5", unmeasured)
    assert built.missing
    assert not [table for table in built.tables if table.source == "ours"]


def test_why_of_an_exhibit_of_one_draw_knows_the_rows_of_that_arm() -> None:
    from penultimate.paper.exhibits.agreement import FIGURE_C5

    rows = [row for row in of_one_draw(glyphs()).table if row.metric == "agreement_same"]
    pairs = [row for row in rows if row.setting is None and row.backbone == "glyphnet"]
    assert {row.arm for row in pairs} == {None, "one draw"}
    assert all(FIGURE_C5.shows(row, "glyphnet") for row in pairs)
