"""The dose-response study: its grid, its smallest part, and that part shrunk and run to its end."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

from penultimate.objectives.presets import resolve
from penultimate.paper import arms
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.filed import DEPTHS, DISCARDING, FAMILIES, PAIRS, WINDOW
from penultimate.paper.exhibits.strengths import SHOWN
from penultimate.paper.studies.sweep import RECIPE, SMALLEST
from penultimate.paper.studies.world import CHANGES
from penultimate.paper.studies.world import OBJECTIVES as NINE
from penultimate.paper.studies.world import PAPERS_STRENGTHS as PAPERS
from penultimate.records.reading import reference_tuning
from penultimate.study import Study, load_study
from penultimate.study.unfold import unfold

WHOLE, PART = load_study("sweep"), load_study("sweep_smallest")


def specs_of(study: Study, arm: str) -> tuple[str, ...]:
    return tuple(spec for grid in study.runs if grid.arm == arm for spec in grid.objectives)


def test_every_network_has_the_searchs_recipe_but_for_cosine_softmax_and_snapshots() -> None:
    for grid in WHOLE.runs:
        for spec in grid.objectives:
            recipe = RECIPE
            if spec == "softmax":
                recipe = dataclasses.replace(recipe, evaluate_every=4, snapshot_every=4)
            if "cosine_softmax" in spec:
                recipe = dataclasses.replace(recipe, learning_rate=0.6)
            assert grid.recipe == recipe, spec
    assert [change["learning_rate"] for change in CHANGES.values()] == [0.6]


def test_its_main_arm_is_the_holdouts_nine_and_another_the_papers_strengths() -> None:
    assert tuple(dict.fromkeys(specs_of(WHOLE, ""))) == NINE
    assert specs_of(WHOLE, arms.PAPERS_STRENGTHS) == PAPERS
    in_families = {spec for family in SHOWN for spec in specs_of(WHOLE, family)}
    assert {*NINE, *PAPERS} < in_families
    assert len(in_families) == 43
    assert {grid.arm for grid in PART.runs} == {"", *SMALLEST}


def test_an_arm_has_four_of_the_nine_behind_a_projector_of_one_layer_and_of_two() -> None:
    compared = ("label_smoothing", "logit_norm", "cosine_softmax", "squared_error")
    chosen = [next(spec for spec in NINE if spec.startswith(name)) for name in compared]
    assert ("softmax", *chosen) == DISCARDING
    wanted = [resolve(f"{spec} + projector(depth={depth})").canonical for spec in chosen for depth in (1, 2)]
    assert sorted(specs_of(WHOLE, BEHIND_A_PROJECTOR)) == sorted(wanted)
    assert {*DEPTHS[1:]} == {1, 2}
    for depth in (1, 2):
        assert f"projector(depth={depth}, width=512)" in specs_of(WHOLE, "projector")


def test_the_rules_name_strengths_that_the_study_has_and_those_that_the_holdout_chose_so() -> None:
    highest = {}
    for name in ("matched_search", "matched_search_scaled"):
        tuning = reference_tuning(name)
        assert tuning is not None
        for one in tuning.objectives:
            for cell in one.cells:
                spec = resolve(cell.objective).canonical
                highest[spec] = max(highest.get(spec, 0.0), 100 * cell.mean)
    for pair in PAIRS:
        assert {pair.weak, pair.strong} <= {*specs_of(WHOLE, pair.family)}
        for spec, told in zip((pair.weak, pair.strong), pair.holdout, strict=True):
            assert abs(highest[spec] - told) < 0.051, spec
    softmax = highest["softmax"]
    for family in FAMILIES:
        inside = [spec for spec in specs_of(WHOLE, family) if highest.get(spec, 0.0) >= softmax - 1]
        searched = [spec for spec in WINDOW.get(family, ()) if spec in highest]
        assert inside == searched, family
        assert {*WINDOW.get(family, ())} <= {*specs_of(WHOLE, family)}


def test_translated_strengths_follow_from_what_docs_world_says() -> None:
    logits = math.log(1000) / math.log(128)
    assert round(0.04 * logits, 3) == 0.057
    assert round(0.05 * logits, 3) == 0.071

    def smoothing_gap(classes: int, alpha: float) -> float:
        return math.log(1 + classes * (1 - alpha) / alpha) / math.log(classes)

    assert math.isclose(smoothing_gap(1000, 0.1), smoothing_gap(128, 0.176), rel_tol=2e-3)

    def penalty_gap(classes: int, beta: float) -> float:
        return min(
            (gap / 1000 for gap in range(1, 30_000)),
            key=lambda gap: math.log1p((classes - 1) * math.exp(-gap)) + beta * gap * gap,
        ) / math.log(classes)

    assert math.isclose(penalty_gap(1000, 6e-4), penalty_gap(128, 3.0e-3), rel_tol=0.01)
    keep = 1 / (1 + 0.3 / 0.7 / 2048 * 256)
    assert round(keep, 3) == 0.949
    assert round(8e-4 * (1000 / 2048) / (128 / 256), 6) == 0.000781


def test_it_trains_51_networks_a_seed_and_its_smallest_part_19_of_them() -> None:
    whole, part = unfold(WHOLE).steps, unfold(PART).steps
    for steps, networks in ((whole, 51 * 5), (part, 19 * 3)):
        counts = Counter(step.name for step in steps.values())
        assert (counts["train"], counts["linear"], counts["knn"]) == (networks, networks * 8, networks * 8)
    assert part.keys() < whole.keys()
