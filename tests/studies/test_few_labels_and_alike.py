"""The studies of few labels and of likeness train no network that glyphs does not, and measure it alike."""

from __future__ import annotations

import pytest

from penultimate.study.selection import load_study, restrict
from penultimate.study.unfold import unfold


@pytest.mark.parametrize(("name", "part"), [("few_labels", "glyphs_first"), ("alike", "glyphs_one_draw")])
def test_its_networks_and_features_are_those_of_glyphs(name: str, part: str) -> None:
    ours, theirs = (
        unfold(restrict(load_study(one), ("softmax", "sigmoid"), (0, 1))).steps for one in (name, part)
    )
    new = {step.name for step_id, step in ours.items() if step_id not in theirs}
    assert {step.name for step in ours.values()} >= {"train", "extract"}
    assert "train" not in new
    assert new <= {"few_labels", "compactness", "source_compactness", "pair_likeness", "extract", "collapse"}


def test_pairs_are_of_all_networks_of_the_draw() -> None:
    graph = unfold(restrict(load_study("alike"), ("softmax", "sigmoid"), (0, 1)))
    assert sum(step.name == "pair_likeness" for step in graph.steps.values()) == 6
