"""The choice among the cells of a search, from what their networks reached on the holdout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tuning.planted import Outcome, plan_of, planted, three_seeds

from penultimate.records.choice import choose, margin
from penultimate.records.table import Row
from penultimate.records.tuning import GridCell, Tuned, Tuning
from penultimate.study.blocks import Search
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.tuning.grid import search_study

BETAS = (1.5e-4, 3e-4, 6e-4, 1.2e-3, 2.4e-3)


def of_beta(**how: bool) -> Study:
    """A search along one axis, from 6e-4."""
    study = replace(three_seeds(), search=Search(**how))
    return search_study(study, ["logit_penalty(beta=6e-4)"], {"beta": BETAS})


def one(search: Tuning) -> Tuned:
    (tuned,) = search.objectives
    return tuned


def chosen_value(search: Tuning) -> float:
    best = one(search).best
    assert best is not None
    return best.values[0]


def test_a_cell_has_the_mean_and_standard_error_of_its_seeds_at_their_ends() -> None:
    values = {0: 0.5, 1: 0.625, 2: 0.7}
    found = one(planted(of_beta(), lambda cell, seed: {1: 0.9, 12: values[seed]}))
    for cell in found.cells:
        assert cell.mean == pytest.approx(np.mean([*values.values()]))
        assert cell.standard_error == pytest.approx(np.std([*values.values()], ddof=1) / math.sqrt(3))
        assert cell.peak_epoch == 1


def test_only_the_holdout_is_read() -> None:
    plan = plan_of(search_study(three_seeds(), ["softmax"]))
    columns = {"objective": "softmax", "metric": "top1", "split": "holdout", "epoch": 2, "value": 0.5}
    rows = [Row(**{**columns, "seed": seed}) for seed in plan.seeds]  # type: ignore[arg-type]
    others = [{"split": "train"}, {"split": "test"}, {"metric": "mean_loss"}, {"epoch": None}]
    more = [{**columns, **other, "seed": 0, "value": 0.9} for other in others]
    found = choose(plan, [*rows, *(Row(**each) for each in more)])  # type: ignore[arg-type]
    assert one(found).cells[0].accuracies == (0.5, 0.5, 0.5)


@given(st.floats(-4, 4).filter(lambda peak: abs(peak * 2 - round(peak * 2)) > 1e-3))
def test_the_best_of_a_clear_peak_is_chosen(peak: float) -> None:
    def score(cell: GridCell, seed: int) -> float:
        return 0.5 - 0.1 * abs(math.log2(cell.values[0] / 6e-4) - peak)

    expected = min(BETAS, key=lambda beta: abs(math.log2(beta / 6e-4) - peak))
    found = planted(of_beta(), score)
    assert chosen_value(found) == expected
    assert (expected in (BETAS[0], BETAS[-1])) == any(
        "at the edge of what was tried" in note for note in one(found).remarks
    )


def test_of_equals_the_middle_one_is_taken() -> None:
    assert chosen_value(planted(of_beta(), lambda cell, seed: 0.5)) == 6e-4
    plateau = planted(of_beta(), lambda cell, seed: float(cell.values[0] < 1e-3))
    assert chosen_value(plateau) == 3e-4
    top = one(plateau).top
    assert top is not None
    assert top.values == (6e-4,)


def test_means_that_differ_by_rounding_only_are_equal() -> None:
    rows = {6e-4: (0.3, 0.0, 0.0), 1.2e-3: (0.1, 0.2, 0.0)}
    assert math.fsum(rows[6e-4]) < math.fsum(rows[1.2e-3])
    found = planted(of_beta(), lambda cell, seed: rows.get(cell.values[0], (0.0, 0.0, 0.0))[seed])
    assert chosen_value(found) == 6e-4


def seeds_of(score: float, noise: Sequence[float]) -> tuple[float, ...]:
    """Three seeds whose mean is the score; the noise is the cell's own, a draw is shared by all cells."""
    own = [value - math.fsum(noise) / 3 for value in noise]
    return tuple(score + draw + mine for draw, mine in zip((0.03, -0.01, -0.02), own, strict=True))


TIED = {
    1.5e-4: seeds_of(0.8000, (0.004, 0, 0)),
    3e-4: seeds_of(0.8010, (0, 0.004, 0)),
    6e-4: seeds_of(0.8011, (0, 0, 0.004)),
    1.2e-3: seeds_of(0.8012, (0, 0, 0)),
    2.4e-3: seeds_of(0.7000, (0.2, 0, 0)),
}
"""Four cells that the seeds cannot tell apart, and one that is 10 points below: not near the best."""


def test_cells_that_the_seeds_cannot_tell_apart_are_tied_and_the_middle_one_is_chosen() -> None:
    found = one(planted(of_beta(), lambda cell, seed: TIED[cell.values[0]][seed]))
    table = np.array([row for beta, row in TIED.items() if beta != 2.4e-3])
    residuals = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    assert found.margin == pytest.approx(math.sqrt(2 * (residuals**2).sum() / (3 * 2) / 3))
    assert found.top is not None
    assert found.top.values == (1.2e-3,)
    assert found.best is not None
    assert found.best.values == (6e-4,)  # of the two in the middle, 3e-4 and 6e-4, the better
    (remark,) = found.remarks
    assert remark.endswith("logit_penalty(beta=0.0012) has the highest mean, 0.01 points above it")
    by_mean = planted(of_beta(by_mean=True), lambda cell, seed: TIED[cell.values[0]][seed])
    assert chosen_value(by_mean) == 1.2e-3


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=6))
def test_the_margin_does_not_see_what_all_cells_share(rows: list[list[float]]) -> None:
    shifted = [[value + draw for value, draw in zip(row, (0.25, -0.5, 0.125), strict=True)] for row in rows]
    assert margin(shifted) == pytest.approx(margin(rows), abs=1e-7)


def test_a_diverged_seed_takes_a_cell_out_and_is_named() -> None:
    def outcome(cell: GridCell, seed: int) -> Outcome:
        return (None if seed == 1 else 0.9) if cell.values[0] > 1e-3 else 0.1

    found = one(planted(of_beta(), outcome))
    assert found.best is not None
    assert found.best.values[0] < 1e-3
    said = " ".join(found.remarks)
    assert "diverged: logit_penalty(beta=0.0024), seed 1 (the loss was no number)" in said
    assert "seed 0" not in said


def test_where_every_cell_diverged_nothing_is_chosen() -> None:
    search = search_study(three_seeds(), ["dropout", "sigmoid"])
    dropout, sigmoid = planted(
        search, lambda cell, seed: None if "dropout" in cell.objective else 0.5
    ).objectives
    assert (dropout.chosen, sigmoid.chosen, len(dropout.cells)) == (None, 0, 5)
    assert "Dropout: every cell diverged, so nothing is chosen" in dropout.remarks
    assert sigmoid.remarks == ("Sigmoid: one cell, so there was nothing to choose",)


def test_an_objective_with_an_unfinished_network_is_left_out() -> None:
    plan = plan_of(search_study(three_seeds(), ["label_smoothing", "sigmoid"]))
    columns = {"metric": "top1", "split": "holdout", "epoch": 12, "value": 0.5}
    trained = [(cell, 0) for cell in plan.objectives[0].cells] + [
        (plan.objectives[1].cells[0], seed) for seed in plan.seeds
    ]
    rows = [Row(objective=cell.objective, seed=seed, **columns) for cell, seed in trained]  # type: ignore[arg-type]
    assert [found.slug for found in choose(plan, rows).objectives] == ["sigmoid"]


CURVES = {
    3e-4: {2: 0.60, 6: 0.70, 12: 0.50},
    6e-4: {2: 0.90, 6: 0.60, 12: 0.61},
    1.2e-3: {2: 0.10, 6: 0.20, 12: 0.65},
}
"""Accuracy by epoch, of which the first lies within the warm-up and the window of the average."""


def test_if_it_stops_a_cell_is_judged_in_the_epoch_of_its_highest_mean() -> None:
    grids = {"beta": tuple(CURVES)}

    def outcome(cell: GridCell, seed: int) -> Outcome:
        return {epoch: value + 0.001 * seed for epoch, value in CURVES[cell.values[0]].items()}

    study = override(three_seeds(), ["recipe.epochs=12", "recipe.evaluate_every=1"])
    assert 2 < study.main.recipe.first_stop() < 6
    ended, stopped = (
        one(
            planted(
                search_study(replace(study, search=Search(stops=stops)), ["logit_penalty"], grids), outcome
            )
        )
        for stops in (False, True)
    )
    assert ended.best is not None
    assert ended.best.values == (1.2e-3,)
    assert stopped.best is not None
    assert (stopped.best.values, stopped.best.peak_epoch) == ((3e-4,), 6)
    assert stopped.best.accuracies == pytest.approx((0.70, 0.701, 0.702))
    late = {cell.values[0]: cell.peak_epoch for cell in stopped.cells}
    assert late == {3e-4: 6, 6e-4: 12, 1.2e-3: 12}


def test_of_a_recipe_that_keeps_its_best_weights_the_best_epoch_counts() -> None:
    study = override(three_seeds(), ["recipe.stopping=best"])
    found = one(planted(search_study(study, ["softmax"]), lambda cell, seed: {1: 0.7, 2: 0.5}))
    assert found.cells[0].accuracies == (0.7, 0.7, 0.7)
