"""The studies of the embedded world: their grids, what they share, and three of them shrunk."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path

import pytest
from tests.shrinking import shrink

from penultimate.data.catalog import SHARES
from penultimate.data.world.atlas import Typefaces
from penultimate.data.world.characters import DEJAVU, pretraining_classes
from penultimate.data.world.tasks import glyph_task
from penultimate.engine.plan import bytes_left
from penultimate.engine.run import run
from penultimate.objectives.presets import resolve
from penultimate.results import read_run, show
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.training.regime import IMAGENET, regime, weight_decay

HEAD_DECAY, CLASS_COUNTS = load_study("head_decay"), load_study("class_counts")


@pytest.mark.parametrize(
    ("name", "part", "new"),
    [
        ("few_labels", "glyphs_first", {"few_labels", "compactness", "source_compactness"}),
        ("alike", "glyphs_one_draw", {"pair_likeness", "extract", "collapse"}),
        ("shared_classes", "glyphs_first", {"data", "sheet", "extract", "overlap", "linear"}),
    ],
)
def test_studies_of_the_networks_of_glyphs_train_none(name: str, part: str, new: set[str]) -> None:
    ours, theirs = (
        unfold(restrict(load_study(one), ("softmax", "sigmoid"), (0, 1))).steps for one in (name, part)
    )
    further = Counter(step.name for step_id, step in ours.items() if step_id not in theirs)
    assert {step.name for step in ours.values()} >= {"train", "extract"}
    assert {*further} <= new
    if name == "shared_classes":
        assert further["overlap"] == further["linear"] == 4 * len(SHARES)
    if name == "alike":
        assert further["pair_likeness"] == 6  # of four networks, all pairs


def test_three_objectives_are_trained_on_four_numbers_of_classes_and_three_draws() -> None:
    steps = Counter(step.name for step in unfold(CLASS_COUNTS).steps.values())
    assert (steps["train"], steps["linear"], steps["knn"]) == (36, 36 * 3, 36 * 3)
    assert len({runs.recipe for runs in CLASS_COUNTS.runs}) == 1


def test_every_pretraining_character_is_a_class_of_512() -> None:
    classes = glyph_task("glyphs_512", Typefaces()).classes
    assert list(classes) == list("".join(pretraining_classes()))
    for name, glyphs in classes.items():
        assert {character for character, _ in glyphs} == {name}
        assert {face for _, face in glyphs} <= set(DEJAVU)


def test_512_classes_are_planned_in_the_papers_regime_at_its_strengths_translated() -> None:
    study = load_study("glyphs_512")
    graph = unfold(study)
    trained = [step for step in graph.steps.values() if step.name == "train"]
    assert len(trained) == 9 * 10
    (recipe,) = {Recipe(**step.config["recipe"]) for step in trained}
    length = graph.study.card("glyphs_512").sizes["train"] // 128 * 44
    for name, ours in vars(regime(recipe, length)).items():
        assert ours == pytest.approx(getattr(IMAGENET, name), rel=0.001), name
    assert bytes_left(graph, ()) == pytest.approx(59.0e9, rel=0.002)
    found = {term.name: dict(term.arguments) for text in study.objectives for term in resolve(text).terms}
    logits = math.log(1000) / math.log(512)
    for name, setting, value in (
        ("label_smoothing", "alpha", 0.1),
        ("final_layer_l2", "lambda_final", 10 * weight_decay(recipe, length)),
        ("dropout", "keep", 0.7),
        ("logit_penalty", "beta", 6e-4 * 1000 / 512),
        ("logit_norm", "temperature", 0.04 * logits),
        ("cosine_softmax", "temperature", 0.05 * logits),
        ("squared_error", "scale", 10 * 512 / 1000),
    ):
        assert found[name][setting] == pytest.approx(value, rel=0.01), name


def of_few_classes() -> Study:
    few = restrict(CLASS_COUNTS, CLASS_COUNTS.objectives, (210, 211))
    grids = (dataclasses.replace(runs, classes=runs.classes // 8, seeds=(210, 211)) for runs in few.runs)
    return dataclasses.replace(few, networks=tuple(grids))


@pytest.mark.long
@pytest.mark.parametrize(
    ("study", "arms"),
    [
        (of_few_classes(), ["", *(f"{count} classes" for count in (64, 32, 16))]),
        (restrict(HEAD_DECAY, ("softmax", "label_smoothing(alpha=0.1)"), (200, 201)), [""]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_shrunk_it_runs_to_its_end(study: Study, arms: list[str], tmp_path: Path) -> None:
    tiny = dataclasses.replace(study, source="glyphs_smoke", targets=("digits_smoke",))
    gentle = ["recipe.exposure=None", "recipe.learning_rate=0.1"]  # the regime of a longer run diverges
    small = override(shrink(tiny, {}, epochs=1, batch_size=32), gentle)
    assert {block.recipe.head_decay for block in small.runs} == {
        block.recipe.head_decay for block in study.runs
    }
    summary = run(small, tmp_path, 1)
    assert (summary.failed, summary.diverged, summary.complete) == ({}, {}, True)
    results = read_run(tmp_path, small.name)
    assert results.arms == arms
    assert show("table1", results, allow_limited=True).is_measured
