"""The paper's tables are whole, typed, and give the numbers that were recomputed from them by other means."""

from __future__ import annotations

import math
import re

import pytest

from penultimate import RequestError
from penultimate.paper import published
from penultimate.paper.claims.evidence import ACCURACY, Evidence
from penultimate.statistics import spearman

ROWS = {
    "iclr_table1_accuracy": 9,
    "iclr_table2_class_separation": 9,
    "iclr_table3_linear": 9,
    "iclr_table4_temperature": 8,
    "iclr_tableA2_cifar_hyperparameters": 18,
    "iclr_tableB1_inception_v3": 9,
    "iclr_tableC1_combinations": 53,
    "neurips_table1_knn": 9,
    "neurips_table1_linear": 9,
    "neurips_table2_finetune": 9,
    "neurips_table3_class_separation": 9,
    "neurips_table4_temperature": 8,
    "neurips_tableA1_hyperparameters": 11,
    "neurips_tableA2_datasets": 8,
    "neurips_tableB1_inception_v3": 9,
    "neurips_tableC1_train_accuracy": 9,
    "neurips_tableC2_robustness": 9,
    "neurips_tableC3_calibration": 8,
    "neurips_tableC4_combinations": 58,
    "neurips_tableC5_augmentation": 12,
    "neurips_tableC6_sota": 8,
    "neurips_tableD1_chexpert_iid": 9,
    "neurips_tableD1_chexpert_official": 9,
    "neurips_tableE1_separation_indexes": 9,
    "neurips_tableE2_simplex_etf": 9,
    "neurips_tableE3_autoaugment_separation": 8,
    "neurips_tableF1_class_overlap": 8,
}
SLUGS = [
    "softmax",
    "label_smoothing",
    "sigmoid",
    "final_layer_l2",
    "dropout",
    "logit_penalty",
    "logit_norm",
    "cosine_softmax",
    "squared_error",
]
DATASETS = [str(row["dataset"]) for row in published.table("tableA2_datasets")]


def transfer(row: dict) -> float:
    return math.fsum(row[f"{name}_percent"] for name in DATASETS) / len(DATASETS)


def column(name: str, key: str) -> list[float]:
    return [row[key] for row in published.table(name)]


def means(name: str) -> list[float]:
    return [transfer(row) for row in published.table(name)]


def test_every_table_is_there_with_its_rows_and_notes() -> None:
    assert {name: len(published.table(name)) for name in published.tables()} == ROWS
    for name in ROWS:
        assert published.notes(name).startswith(
            ("NeurIPS" if name.startswith("neurips") else "ICLR") + " table"
        )
        objectives = [row["objective"] for row in published.table(name) if "objective" in row]
        if len(objectives) == 9:
            assert objectives == SLUGS
    assert "as printed" in published.notes()


def test_the_note_on_fine_tuning_says_what_is_printed() -> None:
    averages = {row["objective"]: float(row["avg_percent"]) for row in published.printed("table2")}
    gains = {name: round(value - averages["softmax"], 1) for name, value in averages.items()}
    lower = {name: gain for name, gain in gains.items() if gain < -0.2}
    assert max(gains.values()) == 0.2
    assert lower == {"logit_norm": -1.0, "cosine_softmax": -1.1, "squared_error": -0.6}
    note = re.sub(r"\s+", " ", published.notes("table2"))
    assert "logit normalization prints -1.0 points, cosine softmax -1.1, squared error -0.6" in note


@pytest.mark.parametrize("name", ROWS)
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
    for mine, other in [
        ("iclr_table3_linear", "table1_linear"),
        ("iclr_table4_temperature", "neurips_table4_temperature"),
    ]:
        assert means(mine) == means(other)
    assert column("iclr_table2_class_separation", "class_separation_r2") == column("tableE1", "cosine_r2")
    assert column("table1_linear", "imagenet_top1_percent") == column("table3", "imagenet_top1_percent")
    rounded = [round(r2, 3) for r2 in column("tableE1", "cosine_r2")]
    assert rounded == pytest.approx(column("table3", "class_separation_r2"), abs=1.1e-3)


def test_the_averages_of_table_2_are_those_printed() -> None:
    for row in published.table("table2"):
        assert row["avg_percent"] == pytest.approx(transfer(row), abs=0.0501)


def test_rank_correlations_recomputed_from_the_tables() -> None:
    r2 = column("table3", "class_separation_r2")
    linear = spearman(r2, means("table1_linear"))
    assert (round(linear.rho, 3), round(linear.p_t, 5), round(linear.p_exact, 5)) == (
        -0.933,
        0.00024,
        0.00075,
    )
    eight = spearman(r2[:-1], means("table1_linear")[:-1])
    assert (round(eight.rho, 3), round(eight.p_t, 4), round(eight.p_exact, 4)) == (-0.905, 0.0020, 0.0046)
    assert round(spearman(r2, means("table1_knn")).rho, 3) == -0.933
    tuned = spearman(r2, means("table2"))
    assert (round(tuned.rho, 2), round(tuned.p_t, 2)) == (-0.47, 0.21)
    sweep = spearman(column("table4", "class_separation_r2"), means("table4"))
    assert sweep.rho == -1
    assert sweep.p_exact == pytest.approx(5.0e-5, abs=0.05e-5)
    inception = spearman(column("tableB1", "class_separation_r2"), means("neurips_tableB1_inception_v3"))
    assert (round(inception.rho, 3), round(inception.p_t, 6), round(inception.p_exact, 5)) == (
        -0.95,
        0.000088,
        0.00035,
    )
    top1 = spearman(column("table1_linear", "imagenet_top1_percent"), means("table1_linear"))
    assert (round(top1.rho, 2), round(top1.p_t, 2)) == (-0.21, 0.59)


def test_squared_error_against_softmax_from_the_printed_errors() -> None:
    softmax, others = Evidence().beside_softmax(ACCURACY)
    assert softmax is not None
    effect, runs = Evidence().effect([others["squared_error"], softmax], [1, -1])
    assert (round(effect.p, 3), runs) == (0.017, 8)


def test_names_and_values() -> None:
    assert published.value("neurips_table1_linear", "softmax", "cars_percent") == 60.3
    assert published.value("table4", None, "class_separation_r2", temperature=0.01) == 0.236
    assert published.value("tableC5", "softmax", "top1_percent", augmentation="mixup") == 78.0
    assert repr(published.value("tableA2", None, "classes_corrected", dataset="cifar100")) == "100"
    assert published.value("tableC6", "softmax", "top1_se", epochs=270) is None
    published.table("table3")[0]["class_separation_r2"] = 0.0
    assert published.value("table3", "softmax", "class_separation_r2") == 0.349, "a caller changed the table"
    published.printed("table3")[0]["class_separation_r2"] = "0"
    assert published.printed("table3")[0]["class_separation_r2"] == "0.349"


def test_bad_requests_are_named() -> None:
    for call, message in [
        (lambda: published.table("table1"), "could be any of neurips_table1_knn, neurips_table1_linear"),
        (
            lambda: published.table("neurips_table3_class_seperation"),
            "Did you mean 'neurips_table3_class_separation'",
        ),
        (lambda: published.notes("table9"), "unknown published table 'table9'"),
        (
            lambda: published.value("table3", "softmax", "class_separation"),
            "Did you mean 'class_separation_r2'",
        ),
        (lambda: published.value("table3", "soft", "class_separation_r2"), "no row with objective='soft'"),
        (
            lambda: published.value("tableC5", "softmax", "top1_percent"),
            "3 rows with .*differ in augmentation",
        ),
        (
            lambda: published.value("table4", "softmax", "class_separation_r2"),
            "unknown column .* 'objective'",
        ),
    ]:
        with pytest.raises(RequestError, match=message):
            call()
