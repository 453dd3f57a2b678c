"""Searches for hyperparameters with planted accuracies, in place of trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penultimate.records.choice import choose
from penultimate.records.table import Row
from penultimate.records.tuning import GridCell, Tuning
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.spec import Study

Outcome = float | None | Mapping[int, float]
"""The accuracy of a network at its end or by epoch; None if it diverged."""


def three_seeds(name: str = "nine") -> Study:
    return restrict(load_study(name), (), (0, 1, 2))


def plan_of(search: Study) -> Tuning:
    assert search.tunes is not None
    return search.tunes


def planted(search: Study, outcome: Callable[[GridCell, int], Outcome]) -> Tuning:
    """What is chosen if the networks of a search's cells and seeds have these outcomes."""
    plan, rows, lost = plan_of(search), list[Row](), {}
    for cell in (cell for tuned in plan.objectives for cell in tuned.cells):
        for seed in plan.seeds:
            found = outcome(cell, seed)
            if found is None:
                lost[cell.objective, cell.arm, seed] = "the loss was no number"
                continue
            curve = found if isinstance(found, Mapping) else {1: 0.0, search.main.recipe.epochs: found}
            for epoch, value in curve.items():
                columns = {"objective": cell.objective, "arm": cell.arm or None, "seed": seed}
                told = {"metric": "top1", "split": "holdout", "epoch": epoch, "value": value}
                rows.append(Row(**columns, **told))  # type: ignore[arg-type]
    return choose(plan, rows, lost)
