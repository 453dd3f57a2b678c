"""The study of the final layer's decay, shrunk: it runs to its end, and its claim finds its networks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.shrinking import shrink

from penultimate.engine.run import run
from penultimate.paper.claims.stated import HEAD_DECAY_CLAIMS
from penultimate.paper.claims.verdicts import LIMITED, judge
from penultimate.results.exhibit import show
from penultimate.results.rows import read_run
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override


@pytest.mark.long
def test_shrunk_it_runs_and_its_claim_is_asked_of_its_networks(tmp_path: Path) -> None:
    study = restrict(load_study("head_decay"), ("softmax", "label_smoothing(alpha=0.1)"), (200, 201))
    few = dataclasses.replace(study, source="glyphs_smoke", targets=("digits_smoke",))
    gentle = [
        "recipe.exposure=None",
        "recipe.learning_rate=0.2",
    ]  # so short, the regime would leave no weights
    small = override(shrink(few, {}, epochs=2, batch_size=32), gentle)
    assert {block.recipe.head_decay for block in small.runs} == {8e-5}
    summary = run(small, tmp_path, 1)
    assert (summary.failed, summary.diverged, summary.complete) == ({}, {}, True)
    results = read_run(tmp_path, small.name)
    (judged,) = judge(results, HEAD_DECAY_CLAIMS)
    assert judged.ours.reason == LIMITED
    assert "Mean of one alternative" in judged.ours.numbers
    assert show("table1", results, allow_limited=True).is_measured
