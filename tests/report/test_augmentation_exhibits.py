"""Tables C.4, C.5, C.6 and E.3 of `full` in small, cell by cell; the paper's beside them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from penultimate.paper.published import printed
from penultimate.report import exhibit, read_study
from penultimate.report.base import Built, StudyResults
from tests.report.reading import described, glyphs, only, table_of
from tests.report.synthetic import study as without_arms

pytestmark = pytest.mark.long
NAMES = ("tableC4", "tableC5", "tableC6", "tableE3")


@pytest.fixture(scope="module")
def results(finished_miniature: Path) -> StudyResults:
    return read_study(finished_miniature, "miniature")


def built(name: str, results: StudyResults) -> Built:
    return exhibit(name, results, allow_limited=True)


def measured(results: StudyResults, metric: str, split: str, arm: str, objective: str) -> list[float]:
    """The final values of an objective of an arm: the main architecture, and the seed that all arms have."""
    (backbone,) = results.description["networks"][0]["backbones"]
    return [
        row.value
        for row in results.table
        if (row.metric, row.split, row.arm or "", row.objective) == (metric, split, arm, objective)
        and row.backbone == backbone
        and row.epoch is None
        and row.seed == 0
        and row.target == "glyphs_smoke"
    ]


@pytest.mark.parametrize(
    ("name", "groups", "columns"),
    [
        ("tableC5", {"standard": "", "autoaugment": "autoaugment", "mixup": "mixup"}, ("top1", "top5")),
        ("tableC6", {"long": "long", "long_mixup": "long mixup"}, ("top1", "top5")),
        ("tableE3", {"standard": "", "autoaugment": "autoaugment"}, ("top1", "class_separation")),
    ],
)
def test_every_cell_is_the_mean_of_the_runs_of_its_arm(
    results: StudyResults, name: str, groups: dict[str, str], columns: tuple[str, ...]
) -> None:
    made = built(name, results)
    table = table_of(made, name)
    assert not made.missing
    specs = {one["slug"]: one["spec"] for one in results.description["objectives"]}
    shown = 0
    for row in table.rows:
        for place, (group, arm) in enumerate(groups.items()):
            for offset, metric in enumerate(columns):
                column = table.columns[place * len(columns) + offset]
                assert column.key.startswith(f"{group}_{metric}")
                of_ratio = metric == "class_separation"
                split, scale = ("train", 1) if of_ratio else ("test", 100)
                expected = measured(results, metric, split, arm, specs[row.objective])
                cell = row.cells[place * len(columns) + offset]
                assert cell.count == (len(expected) or None)
                if expected:
                    assert cell.value == pytest.approx(scale * fmean(expected))
                    shown += 1
    assert shown >= 6
    assert len(table.rows) == (4 if name != "tableC6" else len({"softmax", "sigmoid", "cosine_softmax"}))


def test_the_arms_were_trained_otherwise(results: StudyResults) -> None:
    """Each arm's networks are its own: the same seed under another augmentation is another network."""
    values = {
        arm: measured(results, "class_separation", "train", arm, "sigmoid")
        for arm in ("", "autoaugment", "mixup", "long", "long mixup")
    }
    assert all(values.values())
    assert len({runs[0] for runs in values.values()}) == 5


def test_the_printed_tables_are_the_papers_digit_for_digit(results: StudyResults) -> None:
    for name, source, count in (
        ("tableC4", "neurips_tableC4_combinations", 58),
        ("tableC5", "neurips_tableC5_augmentation", 12),
        ("tableC6", "neurips_tableC6_sota", 6),
        ("tableE3", "neurips_tableE3_autoaugment_separation", 8),
    ):
        table = table_of(built(name, results), f"{name}_published")
        assert table.source == "published"
        value = "holdout_top1_percent" if name == "tableC4" else "top1"
        ours = [
            cell.text.split(" ± ")[0]
            for row in table.rows
            for column, cell in zip(table.columns, row.cells, strict=True)
            if cell.value is not None and (name == "tableC4" or "top1" in column.key)
        ]
        theirs = [
            next(text for key, text in row.items() if value in key)
            for row in printed(source)
            if row.get("source") != "other_paper"
        ]
        assert len(theirs) == count
        assert sorted(ours) == sorted(theirs)
    cosine = table_of(built("tableC5", results), "tableC5_published").rows[-1]
    assert [cell.text for cell in cosine.cells[:4]] == [
        "77.9 ± 0.02",
        "93.86 ± 0.01",
        "78.3 ± 0.02",
        "94.12 ± 0.04",
    ]


def test_what_the_paper_quotes_is_quoted(results: StudyResults) -> None:
    (note,) = table_of(built("tableC6", results), "tableC6_published").notes
    for row in printed("neurips_tableC6_sota"):
        if row["source"] == "other_paper":
            for key in ("epochs", "top1_percent", "top5_percent"):
                assert row[key] in note


def test_combinations_stand_where_their_parts_meet(results: StudyResults) -> None:
    table = table_of(built("tableC4", results), "tableC4")
    cells = {
        (column.label, row.label): cell
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    }
    best: dict[tuple[str, str], dict[int | None, float]] = {}
    for row in results.table:
        if (row.metric, row.split) == ("top1", "holdout") and row.epoch is not None:
            runs = best.setdefault((row.arm or "", str(row.objective)), {})
            runs[row.seed] = max(row.value, runs.get(row.seed, 0.0))
    dropped = next(runs for (_, spec), runs in best.items() if "dropout" in spec and "sigmoid" in spec)
    assert cells["Sigmoid", "Dropout (ρ = 0.9813)"].value == pytest.approx(100 * fmean(dropped.values()))
    alone = next(runs for (arm, spec), runs in best.items() if not arm and spec.startswith("logit_penalty"))
    penalty = next(label for _, label in cells if label.startswith("Logit penalty"))
    assert [*alone] == [0, 1]  # of the combinations only the first was trained
    assert cells["Softmax", penalty].value == pytest.approx(100 * alone[0])
    assert cells["Softmax", penalty].count == 1
    assert table.rows[0].label == "Nothing"
    filled = [place for place, cell in cells.items() if cell.value is not None]
    assert len(filled) == 2 + 4  # two combinations; softmax, sigmoid, dropout and the logit penalty alone


def test_what_augmentation_and_long_training_change_is_said_beside_the_paper(results: StudyResults) -> None:
    """Table E.3's sentence is of the differences within seeds, in points and in R²."""
    (backbone,) = results.description["networks"][0]["backbones"]
    for metric, split, scale, digits, unit in (
        ("top1", "test", 100, 1, " points"),
        ("class_separation", "train", 1, 3, ""),
    ):
        before, after = (
            {
                (row.objective, row.seed): scale * row.value
                for row in results.table
                if (row.metric, row.split, row.arm, row.backbone) == (metric, split, arm, backbone)
                and row.epoch is None
                and row.target == row.source
            }
            for arm in (None, "autoaugment")
        )
        gains = [after[run] - before[run] for run in after]
        size = f"{fmean(gains):+.{digits}f}".replace("-", "\N{MINUS SIGN}")
        size = size if size.strip("+\N{MINUS SIGN}0.") else f"{0:.{digits}f}"
        assert (
            f"changes by {size}{unit} in the mean of four objectives (" in built("tableE3", results).finding
        )
    assert "in the paper by +" in built("tableE3", results).finding
    assert " points above the lowest in test accuracy under the standard" in built("tableC5", results).finding
    long = built("tableC6", results)
    assert long.finding.startswith("Ours: after long training with AutoAugment test accuracy changes by ")
    assert any(note.startswith("Here long training is") for note in long.notes)


def test_the_best_single_and_the_best_combination_are_named(results: StudyResults) -> None:
    said = built("tableC4", results).finding
    table = table_of(built("tableC4", results), "tableC4")
    best = max(cell.value or 0 for row in table.rows for cell in row.cells)
    assert f"{best:.1f} %" in said


def test_single_objectives_of_another_recipe_are_not_compared(results: StudyResults) -> None:
    blocks = [
        {**block, "recipe": {**block["recipe"], "epochs": 99}} if not block["arm"] else block
        for block in results.description["networks"]
    ]
    table = table_of(built("tableC4", described(results, networks=blocks)), "tableC4")
    assert "Nothing" not in [row.label for row in table.rows]
    assert any("another recipe" in note for note in table.notes)


def test_how_long_long_training_is_is_said(results: StudyResults) -> None:
    notes = built("tableC6", results).notes
    assert (
        "Here long training is two epochs with AutoAugment, two epochs with AutoAugment + Mixup, where the"
        " main runs have one epoch." in notes
    )
    assert not any(note.startswith("Means over") for note in notes)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whose", ["reference", "synthetic"])
def test_a_study_without_these_arms_says_what_it_has_not_measured(name: str, whose: str) -> None:
    made = exhibit(name, glyphs() if whose == "reference" else without_arms((0, 1)))
    assert [table.source for table in made.tables] == ["published"]
    (gap,) = made.missing
    assert gap.command == "penultimate run full"
    assert str(gap) in made.notes


def test_a_study_of_autoaugment_alone_leaves_mixups_cells_empty(results: StudyResults) -> None:
    table = table_of(built("tableC5", only(results, lambda row: row.arm != "mixup")), "tableC5")
    assert [cell.detail for cell in table.rows[0].cells[4:]] == ["not measured"] * 2
    assert all(cell.value is not None for cell in table.rows[0].cells[:4])
