"""The study of the number of classes: its grid, and the whole of it, shrunk and run to its end."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
from tests.shrinking import shrink

from penultimate.engine.run import run
from penultimate.records.reading import study_folder
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold

WHOLE = load_study("class_counts")


def test_it_trains_three_objectives_on_four_numbers_of_classes_and_three_draws() -> None:
    steps = Counter(step.name for step in unfold(WHOLE).steps.values())
    assert (steps["train"], steps["linear"], steps["knn"]) == (36, 36 * 3, 36 * 3)
    assert {runs.seeds for runs in WHOLE.runs} == {(210, 211, 212)}
    assert len({runs.recipe for runs in WHOLE.runs}) == 1
    assert {*WHOLE.targets} == {"syllabics", "armenian", "digits"}


@pytest.mark.long
def test_shrunk_it_runs_on_every_number_of_classes(tmp_path: Path) -> None:
    few = restrict(WHOLE, WHOLE.objectives, (210, 211))
    grids = tuple(dataclasses.replace(runs, classes=runs.classes // 8, seeds=(210, 211)) for runs in few.runs)
    tiny = dataclasses.replace(few, source="glyphs_smoke", targets=("digits_smoke",), networks=grids)
    gentle = ["recipe.exposure=None", "recipe.learning_rate=0.1"]  # the regime of a longer run diverges
    small = override(shrink(tiny, {}, epochs=1, batch_size=32), gentle)
    summary = run(small, tmp_path, 1)
    assert (summary.failed, summary.diverged, summary.complete) == ({}, {}, True)
    rows = study_folder(tmp_path, small.name).table().where(metric="linear_top1")
    assert {row.arm for row in rows} == {None, *(f"{count} classes" for count in (16, 32, 64))}
