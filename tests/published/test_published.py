"""The paper's tables are whole, typed, and give the numbers that were recomputed from them by other means."""

from __future__ import annotations

import math
import re
from importlib import resources

import pytest

from penultimate import RequestError
from penultimate.paper import published
from penultimate.statistics import spearman

NOTES = re.sub(r"\s+", " ", (resources.files(published) / "NOTES.md").read_text(encoding="utf-8"))
DATASETS = [str(row["dataset"]) for row in published.table("neurips_tableA2_datasets")]


def transfer(row: dict) -> float:
    return math.fsum(row[f"{name}_percent"] for name in DATASETS) / len(DATASETS)


def column(name: str, key: str) -> list[float]:
    return [row[key] for row in published.table(f"neurips_{name}")]


def means(name: str) -> list[float]:
    return [transfer(row) for row in published.table(f"neurips_{name}")]


def test_every_table_has_rows_notes_and_the_papers_objectives() -> None:
    assert len(published.tables()) == 27
    for name in published.tables():
        assert f"## {name}" in NOTES
        found = [row["objective"] for row in published.table(name) if "objective" in row]
        if len(found) == 9:
            assert tuple(found) == published.objectives()


def test_the_note_on_fine_tuning_says_what_is_printed() -> None:
    averages = dict(zip(published.objectives(), column("table2_finetune", "avg_percent"), strict=True))
    gains = {name: round(value - averages["softmax"], 1) for name, value in averages.items()}
    assert max(gains.values()) == 0.2
    lower = {name: gain for name, gain in gains.items() if gain < -0.2}
    assert lower == {"logit_norm": -1.0, "cosine_softmax": -1.1, "squared_error": -0.6}
    assert "logit normalization prints -1.0 points, cosine softmax -1.1, squared error -0.6" in NOTES


@pytest.mark.parametrize("name", published.tables())
def test_values_are_the_printed_text_typed_by_column(name: str) -> None:
    typed, printed = published.table(name), published.printed(name)
    for column_name in typed[0]:
        kinds = {type(row[column_name]) for row in typed} - {type(None)}
        assert len(kinds) <= 1
        if column_name.endswith(("_percent", "_se", "_r2")):
            assert kinds == {float}
        for row, text in zip(typed, printed, strict=True):
            held = row[column_name]
            assert text[column_name] == "" if held is None else type(held)(text[column_name]) == held


def test_tables_that_repeat_each_other_agree() -> None:
    for name, other in (("table1_linear", "table3_linear"), ("table4_temperature", "table4_temperature")):
        assert means(name) == [transfer(row) for row in published.table(f"iclr_{other}")]
    earlier = published.table("iclr_table2_class_separation")
    assert [row["class_separation_r2"] for row in earlier] == column(
        "tableE1_separation_indexes", "cosine_r2"
    )
    assert column("table1_linear", "imagenet_top1_percent") == column(
        "table3_class_separation", "imagenet_top1_percent"
    )
    rounded = [round(r2, 3) for r2 in column("tableE1_separation_indexes", "cosine_r2")]
    assert rounded == pytest.approx(column("table3_class_separation", "class_separation_r2"), abs=1.1e-3)


def test_the_averages_of_table_2_are_those_printed() -> None:
    for row in published.table("neurips_table2_finetune"):
        assert row["avg_percent"] == pytest.approx(transfer(row), abs=0.0501)


def test_rank_correlations_recomputed_from_the_tables() -> None:
    r2 = column("table3_class_separation", "class_separation_r2")
    linear = spearman(r2, means("table1_linear"))
    assert (round(linear.rho, 3), round(linear.p_t, 5), round(linear.p_exact, 5)) == (
        -0.933,
        0.00024,
        0.00075,
    )
    eight = spearman(r2[:-1], means("table1_linear")[:-1])
    assert (round(eight.rho, 3), round(eight.p_t, 4), round(eight.p_exact, 4)) == (-0.905, 0.0020, 0.0046)
    assert round(spearman(r2, means("table1_knn")).rho, 3) == -0.933
    tuned = spearman(r2, means("table2_finetune"))
    assert (round(tuned.rho, 2), round(tuned.p_t, 2)) == (-0.47, 0.21)
    sweep = spearman(column("table4_temperature", "class_separation_r2"), means("table4_temperature"))
    assert sweep.rho == -1
    assert sweep.p_exact == pytest.approx(5.0e-5, abs=0.05e-5)
    inception = spearman(column("tableB1_inception_v3", "class_separation_r2"), means("tableB1_inception_v3"))
    assert (round(inception.rho, 3), round(inception.p_t, 6), round(inception.p_exact, 5)) == (
        -0.95,
        0.000088,
        0.00035,
    )
    top1 = spearman(column("table1_linear", "imagenet_top1_percent"), means("table1_linear"))
    assert (round(top1.rho, 2), round(top1.p_t, 2)) == (-0.21, 0.59)


def test_an_unknown_table_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError, match="Did you mean 'neurips_table3_class_separation'"):
        published.table("neurips_table3_class_seperation")
