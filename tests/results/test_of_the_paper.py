"""Exhibits of the paper on planted runs: what is paired, pooled, chosen and left out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.paper.exhibits.robustness import ALEXNET_ERRORS
from penultimate.registry import entry
from penultimate.results.exhibit import Shown
from penultimate.results.rows import Run, layers
from tests.results.planted import LABELS, row, run

MEASURED = ("table3", "tableC1", "tableC2", "tableC3", "tableE1", "tableE2", "tableF1", "figure3", "figure4")
DRAWN = (
    "figure5",
    "figureC4",
    "figureC5",
    "figureC6",
    "figureC7",
    "figureE1",
    "figureE2",
    "figureE3",
    "depth",
)
TOP1 = [row("softmax", 0, "top1", 0.7)]


def shown(name: str, of: Run) -> Shown:
    made: Shown = entry("exhibit", name).resolve()(of)
    return made


def frame(name: str, table: str, of: Run) -> Any:
    """Return a table of an exhibit by the label of its rows."""
    found = shown(name, of).to_pandas()[table]
    return found.set_index(found.columns[0])


@pytest.mark.parametrize("name", [*MEASURED, *DRAWN, "table4"])
def test_what_was_not_measured_is_said_once_and_never_drawn(name: str) -> None:
    found = shown(name, run(TOP1))
    assert not found.is_measured
    assert [note for note in found.notes if note.startswith("Not measured: `penultimate run ")]
    assert {table.source for table in found.tables} <= {"published"}


@pytest.mark.parametrize(
    ("name", "column", "softmax"),
    [
        ("table3", "class_separation_r2", "0.349 ± 0.0002"),
        ("tableC1", "train_top1_percent", "93.61 ± 0.01"),
        ("tableC3", "temperature_scaled_ece_fraction", "0.027 ± 0.0004"),
        ("tableE2", "trace_sw_pinv_sb_over_c", "21.158 ± 0.1283"),
        ("tableC2", "imagenet_c_mce", "75.9 ± 0.1"),
        ("figure3", "penultimate_percent", "92.8"),
    ],
)
def test_printed_numbers_are_shown_digit_for_digit(name: str, column: str, softmax: str) -> None:
    (table,) = [table for table in shown(name, run(TOP1)).tables if table.source == "published"]
    place = [each.key for each in table.columns].index(column)
    assert table.shown()[table.labels.index("Softmax")][place] == softmax


def test_misprints_of_the_papers_data_sets_are_corrected_and_marked() -> None:
    found = shown("tableA2", run(TOP1))
    ours, printed, _ = found.tables
    assert ours.labels == ["Glyphs", "Handwritten digits", "Mathematical operators"]
    assert [printed.shown()[6][column] for column in (1, 2)] == ["3,680", "3,669 ‡"]
    # A data set without a split is no gap of the study.
    assert not any("easured" in note for note in found.notes)


def errors(of: dict[tuple[str, int], float], **cells: Any) -> list[dict[str, Any]]:
    """Return the rows of the same error on every corruption, by objective and seed."""
    return [
        row(slug, seed, "corruption_error", error, setting=f"corruption={name}, severity={severity}", **cells)
        for (slug, seed), error in of.items()
        for name, severity in itertools.product(BENCHMARK, SEVERITIES)
    ]


def test_corruption_errors_are_shares_of_those_of_softmax_with_the_same_seed() -> None:
    of = {
        ("softmax", 0): 0.2,
        ("softmax", 1): 0.4,
        ("sigmoid", 0): 0.1,
        ("sigmoid", 1): 0.4,
        ("sigmoid", 2): 0.9,
    }
    found = shown("tableC2", run(errors(of)))
    table = frame("tableC2", "tableC2", run(errors(of)))
    assert table.loc["Sigmoid", ["mce", "mce_n"]].tolist() == pytest.approx([75.0, 2])
    assert found.tables[0].shown()[0][-1] == "100"
    torn = errors(of)[:-1]
    assert frame("tableC2", "tableC2_corruptions", run(torn)).at["Sigmoid", "fog_error_percent_n"] == 2


def test_on_the_published_sets_the_reference_is_alexnet() -> None:
    of = run(errors({("sigmoid", 0): 0.5}, step="published_robustness.0"))
    expected = 100 * np.mean([0.5 / ALEXNET_ERRORS[name] for name in BENCHMARK])
    assert frame("tableC2", "tableC2", of).at["Sigmoid", "mce"] == pytest.approx(expected)
    assert "the reference is AlexNet" in shown("tableC2", of).notes[0]


def agreement(leave_out: int = 0) -> list[dict[str, Any]]:
    """Return the pairs of four networks, which agree more if they share an objective, and most if a seed."""
    networks = [*itertools.product(LABELS, (0, 1))]
    pairs = list(itertools.combinations(networks, 2))[leave_out:]
    return [
        row(
            slug,
            seed,
            "agreement_same_when_both_wrong",
            0.9 if seed == other[1] else 0.6 if slug == other[0] else 0.5,
            objective_b=other[0],
            seed_b=other[1],
        )
        for (slug, seed), other in pairs
    ]


def test_networks_of_one_seed_are_no_independent_pair() -> None:
    found = frame("figureC4", "figureC4", run(agreement()))
    columns = ["within_percent", "between_percent", "between_percent_n", "nearest"]
    assert found.loc["Softmax", columns].tolist() == [60.0, 50.0, 2, "Sigmoid"]
    of_same = run([{**of, "metric": "agreement_same"} for of in agreement()])
    assert frame("figureC5", "figureC5-same", of_same).at["Sigmoid", "softmax_percent"] == 50.0


def test_the_tree_has_a_leaf_for_each_network_and_needs_every_pair() -> None:
    (figure,) = shown("figureC4", run(agreement())).figures
    (panel,) = figure.panels
    assert len(panel.points) == 4
    # The first joined are those of one seed: 10 % of their answers differ.
    assert min(x for curve in panel.curves for x, _ in curve.points if x) == pytest.approx(10.0)
    assert not shown("figureC4", run(agreement(leave_out=1))).figures


def test_the_largest_ensembles_are_compared_and_an_ensemble_is_like_itself() -> None:
    rows = [
        row("softmax", 0, "agreement_same", share, objective_b="sigmoid", setting=f"models={models}")
        | {"seed": None, "seed_b": None}
        for models, share in ((2, 0.5), (4, 0.8))
    ]
    found = frame("figureC6", "figureC6-same", run(rows))
    assert found.loc["Softmax", ["softmax_percent", "sigmoid_percent"]].tolist() == ["–", 80.0]


def probed(slug: str, seed: int, layer: str, validation: float, test: float) -> list[dict[str, Any]]:
    return [
        row(slug, seed, metric, value, layer=layer, target="digits", split=split)
        for probe, chosen_by in (("linear", "linear_validation_accuracy"), ("knn", "knn_leave_one_out"))
        for metric, value, split in ((chosen_by, validation, "train"), (f"{probe}_top1", test, "test"))
    ]


def test_a_layer_is_chosen_on_validation_the_later_of_equal_ones() -> None:
    rows = [
        *probed("softmax", 0, "block1", 0.5, 0.9),
        *probed("softmax", 0, "block2", 0.5, 0.8),
        *probed("softmax", 0, "penultimate", 0.4, 0.7),
        *probed("sigmoid", 0, "block1", 0.3, 0.6),
        *probed("sigmoid", 0, "penultimate", 0.6, 0.5),
    ]
    found = frame("depth", "depth_linear", run(rows, targets=["digits"]))
    assert found[["own_percent", "gain"]].round(6).to_numpy().tolist() == [[80.0, 10.0], [50.0, 0.0]]
    assert found.loc["Sigmoid", ["lead", "recovered_percent", "lead_at_best"]].tolist() == pytest.approx(
        [20.0, 0.0, 30.0]
    )
    chosen = frame("depth", "depth_knn_layers", run(rows, targets=["digits"]))
    assert chosen["digits"].tolist() == ["block2", "last"]


def test_layers_stand_in_the_order_of_their_numbers_and_the_penultimate_features_last() -> None:
    rows = [
        row("softmax", 0, "nonzero_share", 0.5, layer=layer) for layer in ("penultimate", "block10", "block2")
    ]
    assert list(layers(run(rows), "nonzero_share")) == ["block2", "block10", "penultimate"]
    listed = run(rows, layers=["block10", "block2", "penultimate"])
    assert list(layers(listed, "nonzero_share")) == ["block10", "block2", "penultimate"]


def test_the_bins_of_all_runs_are_pooled_and_rare_ones_left_out() -> None:
    rows = [
        row("softmax", seed, f"reliability_{name}", value, setting=f"bin={bin_}, bins=15")
        for seed, bin_, *numbers in ((0, 2, 0.2, 0.5, 1.0), (1, 2, 0.6, 0.7, 0.6), (0, 3, 0.001, 0.9, 0.9))
        for name, value in zip(("share", "confidence", "accuracy"), numbers, strict=True)
    ]
    (figure,) = shown("tableC3", run(rows)).figures
    (point,) = figure.panels[0].points
    assert (point.x, point.y) == pytest.approx((65.0, 5.0))
