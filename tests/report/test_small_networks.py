"""The ICLR version's table 1: two more architectures of an arm, never the first one, beside the paper's."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.paper import published
from penultimate.report import StudyResults, exhibit
from tests.oracles.report import spearman_rho
from tests.report.reading import cell, described, glyphs, only, table_of, with_rows

ARM, SMALL = "cosine decay", ("glyphmobile", "glyphwide")


def with_small(shares: tuple[float, float] = (0.5, 0.25), seeds: tuple[int, ...] = (0, 1, 2)) -> StudyResults:
    """The reference run, and two architectures whose accuracies are these shares of the first one's."""
    results = glyphs()
    first = [
        row
        for row in results.table.where(metric="top1", split="test", target="glyphs", arm=None, layer=None)
        if row.backbone == "glyphnet" and row.epoch is None and row.seed in seeds and not row.setting
    ]
    rows = [
        dataclasses.replace(row, backbone=backbone, arm=ARM, value=share * row.value, step="accuracy.x")
        for backbone, share in zip(SMALL, shares, strict=True)
        for row in first
    ]
    main = results.description["networks"][0]
    recipe = {**main["recipe"], "schedule": "cosine", "final_fraction": 0.0, "averaging_window": 0.0}
    block = {**main, "backbones": [*SMALL], "arm": ARM, "seeds": [0, 1, 2], "recipe": recipe}
    grids = [*results.description["networks"], block]
    return with_rows(described(results, networks=grids), rows)


def test_each_architecture_has_a_column_of_its_own() -> None:
    built = exhibit("iclr_table1", with_small())
    shown = table_of(built, "iclr_table1")
    assert [column.group for column in shown.columns] == [*SMALL]
    assert len(shown.rows) == 9
    whole = only(glyphs(), lambda row: row.seed in (0, 1, 2, None))
    first = table_of(exhibit("table1", whole), "table1_linear")
    for row in shown.rows:
        mean, error = cell(first, row.objective, "top1_percent")
        assert mean is not None
        assert error is not None
        assert cell(shown, row.objective, "glyphmobile_top1_percent") == pytest.approx((mean / 2, error / 2))
        assert cell(shown, row.objective, "glyphwide_top1_percent") == pytest.approx((mean / 4, error / 4))
    assert not built.missing


def test_it_says_whether_they_rank_alike() -> None:
    alike = exhibit("iclr_table1", with_small()).finding
    higher = "the higher the test accuracy of glyphmobile, the {} the test accuracy of glyphwide (ρ = {}"
    assert alike.startswith(f"Ours: {higher.format('higher', '1.00')}")
    shown = table_of(exhibit("iclr_table1", with_small((0.5, -1.0))), "iclr_table1")
    columns = [[row.cells[place].value or 0.0 for row in shown.rows] for place in (0, 1)]
    assert spearman_rho(*columns) == pytest.approx(-1)
    turned = exhibit("iclr_table1", with_small((0.5, -1.0))).finding
    assert turned.startswith(f"Ours: {higher.format('lower', '−1.00')}")


def test_a_run_far_from_its_siblings_is_named_and_moves_no_median() -> None:
    """Of softmax's three runs in one architecture one started late: ten points lower."""
    whole = with_small((1.0, 0.9))
    assert not any(note.startswith("More than 5 points") for note in exhibit("iclr_table1", whole).notes)
    late = {
        row: dataclasses.replace(row, value=row.value - 0.1)
        for row in whole.table
        if (row.backbone, row.objective, row.seed, row.metric) == ("glyphwide", "softmax", 1, "top1")
    }
    ((row, moved),) = late.items()
    results = with_rows(only(whole, lambda one: one != row), [moved])
    (note,) = (one for one in exhibit("iclr_table1", results).notes if one.startswith("More than 5 points"))
    shown = f"{100 * moved.value:.1f}"
    assert note == (
        f"More than 5 points from the median of its objective: Softmax seed 1, {shown} % (glyphwide). By"
        " medians ρ = 1.00, p < 0.0001."
    )


def test_a_run_far_off_of_an_objective_that_the_main_arm_does_not_have_is_named_too() -> None:
    whole = with_small((1.0, 0.9))
    of_arm = [
        {
            **block,
            "objectives": [spec for spec in block["objectives"] if spec != "softmax" or block["arm"] == ARM],
        }
        for block in whole.description["networks"]
    ]
    rows = [
        dataclasses.replace(row, value=row.value - 0.1)
        if (row.backbone, row.objective, row.seed, row.metric) == ("glyphwide", "softmax", 1, "top1")
        else row
        for row in whole.table
        if row.objective != "softmax" or row.arm == ARM
    ]
    results = with_rows(only(described(whole, networks=of_arm), lambda _: False), rows)
    notes = exhibit("iclr_table1", results).notes
    assert any("median of its objective: Softmax seed 1, " in note for note in notes)


def test_how_the_arm_was_trained_is_read_from_its_recipe() -> None:
    built = exhibit("iclr_table1", with_small())
    notes = built.notes
    assert (
        "Trained here for 28 epochs, learning rate 0.6, cosine schedule down to 0 % of it, no averaging of"
        " the weights; three runs each." in notes
    )
    assert not any(note.startswith("Means over") for note in notes)
    fewer = exhibit("iclr_table1", with_small(seeds=(0, 1))).notes
    assert any(note.endswith("the weights; two runs each.") for note in fewer)
    assert "Means over two of the study's three runs of each objective." in fewer


def test_how_many_objectives_share_a_learning_rate_is_said() -> None:
    """Eight of nine have one learning rate, which therefore is none "of their own"."""
    whole = with_small()
    *grids, small = whole.description["networks"]
    specs = [one["spec"] for one in whole.description["objectives"]][:9]
    slow = {**small, "objectives": specs[:1], "recipe": {**small["recipe"], "learning_rate": 0.3}}
    changed = described(whole, networks=[*grids, {**small, "objectives": specs[1:]}, slow])
    built = exhibit("iclr_table1", changed)
    assert any(
        "learning rates from 0.3 to 0.6 (eight of nine objectives with 0.6), cosine" in one
        for one in built.notes
    )
    assert not any("of its own" in note for note in built.notes)


def test_the_printed_table_is_the_papers_digit_for_digit() -> None:
    table = table_of(exhibit("iclr_table1", glyphs()), "iclr_table1_published")
    for row, printed in zip(table.rows, published.printed("iclr_table1_accuracy"), strict=True):
        assert row.objective == printed["objective"]
        for column, shown in zip(table.columns, row.cells, strict=True):
            error = printed[column.key.replace("_percent", "_se")]
            assert shown.text == f"{printed[column.key]} ± {error}"


def test_a_study_without_the_arm_says_what_measures_it() -> None:
    built = exhibit("iclr_table1", glyphs())
    assert [table.source for table in built.tables] == ["published"]
    assert [gap.command for gap in built.missing] == ["penultimate run full"]
