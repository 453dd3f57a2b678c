"""Table C.2: the numbers of the rows, the mean corruption error against the right reference, gaps said."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.data.catalog import card
from penultimate.data.corruptions import BENCHMARK
from penultimate.data.readers.entries import ENTRIES
from penultimate.records.table import Table
from penultimate.report import StudyResults, exhibit
from penultimate.report.base import Built, ExhibitTable
from penultimate.report.text import in_words
from tests.oracles import robustness as oracle
from tests.oracles.report import mean_of, standard_error_of
from tests.report.planted import NINE
from tests.report.reading import column_of, described, glyphs, only, spec_of, table_of, with_rows

SEEDS = (0, 1, 2, 3, 4)
SETS = ("glyphs_v2", "glyphs_a", "glyphs_r", "glyphs_sketch")


@pytest.fixture(scope="module")
def results() -> StudyResults:
    """Of the reference run, what table C.2 reads, and nothing of the sweep."""
    return only(
        glyphs(),
        lambda row: (
            row.metric in ("top1", "corruption_error")
            and (row.epoch, row.arm, row.backbone) == (None, None, "glyphnet")
        ),
    )


def errors(results: StudyResults, slug: str, seed: int) -> dict[str, list[float]]:
    spec = spec_of(results, slug)
    own = results.table.where(metric="corruption_error", objective=spec, seed=seed)
    return {
        name: [own.where(setting=f"corruption={name}, severity={k}").values()[0] for k in range(1, 6)]
        for name in BENCHMARK
    }


def mce(results: StudyResults, slug: str, seed: int) -> float:
    return 100 * float(
        oracle.mean_corruption_error(errors(results, slug, seed), errors(results, "softmax", seed))
    )


def said(built: Built) -> str:
    return " ".join(built.notes)


def keys(table: ExhibitTable) -> list[str]:
    return [column.key for column in table.columns]


def test_the_mean_corruption_error_is_taken_seed_by_seed(results: StudyResults) -> None:
    column = column_of(table_of(exhibit("tableC2", results), "tableC2"), "mce")
    assert list(column) == list(NINE)
    assert (column["softmax"].text, column["softmax"].value, column["softmax"].error) == ("100", 100.0, None)
    for slug in ("label_smoothing", "cosine_softmax", "squared_error"):
        own = [mce(results, slug, seed) for seed in SEEDS]
        assert column[slug].value == pytest.approx(mean_of(own))
        assert column[slug].error == pytest.approx(standard_error_of(own))


def test_errors_by_corruption_are_means_of_severities(results: StudyResults) -> None:
    table = table_of(exhibit("tableC2", results), "tableC2_corruptions")
    assert keys(table) == [f"{name}_error_percent" for name in BENCHMARK]
    for slug in ("sigmoid", "dropout"):
        by_seed = [errors(results, slug, seed) for seed in SEEDS]
        for name in ("fog", "jpeg_compression"):
            own = [mean_of(of_seed[name]) for of_seed in by_seed]
            assert column_of(table, f"{name}_error_percent")[slug].value == pytest.approx(100 * mean_of(own))


def test_the_lowest_error_is_best_among_the_objectives_shown(results: StudyResults) -> None:
    """Networks of the sweep, which are not shown, take no bold from those that are."""
    whole = exhibit("tableC2", glyphs())
    assert whole.tables == exhibit("tableC2", results).tables
    for column in table_of(whole, "tableC2_corruptions").columns:
        cells = column_of(table_of(whole, "tableC2_corruptions"), column.key)
        lowest = min(cells.values(), key=lambda cell: cell.value or 0)
        assert lowest.best


def test_the_finding_counts_objectives_below_softmax(results: StudyResults) -> None:
    built = exhibit("tableC2", results)
    values = [
        cell.value or 0 for slug, cell in column_of(built.tables[0], "mce").items() if slug != "softmax"
    ]
    above, below = (in_words(sum((value - 100) * side > 0 for value in values)) for side in (1, -1))
    assert built.finding.startswith(
        f"Ours: in mCE (lower is better) {above} others are above Softmax's 100.0 (one beyond chance) and"
        f" {below} below it ("
    )
    assert built.finding.endswith(" – in the paper all eight are below it.")


def test_the_caption_says_what_stands_in_for_imagenets_sets(results: StudyResults) -> None:
    caption = exhibit("tableC2", results).caption
    assert caption.startswith(
        "Top-1 accuracy of the networks, as they are, in the place of ImageNet's sets. -V2: "
    )
    assert "-A: what a network outside the study gets wrong" in caption
    alone = exhibit("tableC2", described(results, source="digits")).caption
    assert alone.startswith(f"{card('digits').title} has no shifted test sets. mCE, ")


def test_on_the_published_sets_the_reference_is_alexnet_and_no_stand_in_is_spoken_of(
    results: StudyResults,
) -> None:
    renamed = Table(
        dataclasses.replace(
            row,
            step=row.step.replace("robustness", "published_robustness", 1),
            source="imagenet",
            target=(row.target or "").replace("glyphs", "imagenet") or None,
        )
        for row in results.table
    )
    moved = dataclasses.replace(results, table=renamed)
    cards = [ENTRIES["imagenet"].card.described()]
    built = exhibit("tableC2", described(moved, source="imagenet", targets=[], cards=cards))
    column = column_of(table_of(built, "tableC2"), "mce")
    assert list(column) == list(NINE)
    for slug in ("softmax", "squared_error"):
        own = [
            100 * mean_of([mean_of(of_corruption) / ALEXNET[name] for name, of_corruption in found.items()])
            for found in (errors(results, slug, seed) for seed in SEEDS)
        ]
        assert column[slug].value == pytest.approx(mean_of(own))
        assert column[slug].error == pytest.approx(standard_error_of(own))
    assert built.missing == ()
    assert "on the published ImageNet-V2, -A, -R and -Sketch" in built.caption
    assert "The reference is AlexNet on the published ImageNet-C, as in the paper." in built.caption
    assert not any(word in built.caption for word in ("place of", "procedural", "outside the study"))


ALEXNET = dict(
    zip(
        BENCHMARK,
        (
            *(0.886428, 0.894468, 0.922640, 0.819880, 0.826268, 0.785948, 0.798360, 0.866816),
            *(0.826572, 0.819324, 0.564592, 0.853204, 0.646056, 0.717840, 0.606500),
        ),
        strict=True,
    )
)
"""AlexNet's errors as the benchmark gives them, in the order of its table."""


def test_what_was_not_measured_is_said(results: StudyResults) -> None:
    bare = exhibit("tableC2", only(results, lambda row: row.split == "train"))
    assert [table.source for table in bare.tables] == ["published"]
    assert [gap.what for gap in bare.missing] == ["Corrupted images", "Shifted test sets"]
    no_errors = exhibit("tableC2", only(results, lambda row: row.metric != "corruption_error"))
    assert [table.name for table in no_errors.tables] == ["tableC2", "tableC2_published"]
    assert keys(no_errors.tables[0]) == [f"{name}_percent" for name in ("test", "v2", "a", "r", "sketch")]
    no_sets = exhibit("tableC2", only(results, lambda row: row.target not in SETS))
    assert keys(no_sets.tables[0]) == ["test_percent", "mce"]
    assert [gap.what for gap in no_sets.missing] == ["Shifted test sets"]


def test_without_softmax_there_is_no_mean_corruption_error(results: StudyResults) -> None:
    built = exhibit(
        "tableC2", only(results, lambda row: (row.objective, row.metric) != ("softmax", "corruption_error"))
    )
    assert "No mCE: its reference is the study's softmax network" in said(built)
    assert "mce" not in keys(built.tables[0])
    assert "softmax" not in [row.objective for row in built.tables[1].rows]
    assert not any("nan" in cell.text for table in built.tables for row in table.rows for cell in row.cells)


def test_a_seed_without_softmax_is_left_out_and_named(results: StudyResults) -> None:
    gone = only(
        results, lambda row: (row.objective, row.seed, row.metric) != ("softmax", 1, "corruption_error")
    )
    built = exhibit("tableC2", gone)
    assert "mCE without seed 1, of which there is no softmax network" in said(built)
    own = [mce(gone, "sigmoid", seed) for seed in SEEDS if seed != 1]
    assert column_of(built.tables[0], "mce")["sigmoid"].value == pytest.approx(mean_of(own))


def test_a_network_without_a_seed_is_named_as_such(results: StudyResults) -> None:
    given = [
        dataclasses.replace(row, objective="theirs", seed=None, draw=None)
        for row in results.table.where(metric="corruption_error", objective="softmax", seed=0)
    ]
    told = said(exhibit("tableC2", with_rows(results, given)))
    assert "mCE without networks that were not trained here, of which there is no softmax network" in told


def test_a_flawless_reference_is_said_and_a_torn_run_left_out(results: StudyResults) -> None:
    flawless = Table(
        dataclasses.replace(row, value=0.0)
        if row.objective == "softmax" and row.settings.get("corruption") == "fog"
        else row
        for row in results.table
    )
    built = exhibit("tableC2", dataclasses.replace(results, table=flawless))
    assert "No mCE: fog: the reference makes no error" in said(built)
    snow = "corruption=snow, severity=4"
    torn = only(results, lambda row: (row.objective, row.setting) != ("sigmoid", snow))
    assert "sigmoid" not in [row.objective for row in exhibit("tableC2", torn).tables[1].rows]


@pytest.mark.parametrize(
    "columns", [{"status": "diverged"}, {"backbone": "glyphplain"}, {"arm": "temperature"}]
)
def test_diverged_runs_and_those_of_other_grids_are_left_out(
    columns: dict[str, str], results: StudyResults
) -> None:
    spoilt = [dataclasses.replace(row, value=0.0, **columns) for row in results.table]  # type: ignore[arg-type]
    assert exhibit("tableC2", with_rows(results, spoilt)).tables == exhibit("tableC2", results).tables
