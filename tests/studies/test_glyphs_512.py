"""The study of 512 classes: its plan as it is, and the whole of it, shrunk, on few images of all classes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from tests.plugged import plugged
from tests.shrinking import shrink

from penultimate.data.world.atlas import Typefaces
from penultimate.data.world.characters import DEJAVU, pretraining_classes
from penultimate.data.world.tasks import glyph_task
from penultimate.engine.costs import bytes_left
from penultimate.engine.run import run
from penultimate.objectives.presets import resolve
from penultimate.records.reading import study_folder
from penultimate.results import read_run, write_page
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.training.regime import IMAGENET, regime, weight_decay

CLASSES = 512


def test_every_pretraining_character_is_a_class_of_its_own() -> None:
    classes = glyph_task("glyphs_512", Typefaces()).classes
    assert list(classes) == list("".join(pretraining_classes()))
    for name, glyphs in classes.items():
        assert {character for character, _ in glyphs} == {name}
        assert {face for _, face in glyphs} <= set(DEJAVU)


def test_it_is_planned_with_ten_seeds_in_the_papers_regime() -> None:
    graph = unfold(load_study("glyphs_512"))
    trained = [step for step in graph.steps.values() if step.name == "train"]
    assert len(trained) == 9 * 10
    assert {step.columns["seed"] for step in trained} == {step.columns["draw"] for step in trained}
    recipes = {Recipe(**step.config["recipe"]) for step in trained}
    length = graph.study.card("glyphs_512").sizes["train"] // 128 * 44
    for name, ours in vars(regime(recipes.pop(), length)).items():
        assert ours == pytest.approx(getattr(IMAGENET, name), rel=0.001), name
    assert not recipes
    assert bytes_left(graph, ()) == pytest.approx(59.0e9, rel=0.002)


def test_strengths_are_the_papers_translated_to_512_classes() -> None:
    study = load_study("glyphs_512")
    found = {term.name: dict(term.arguments) for text in study.objectives for term in resolve(text).terms}
    length = study.card(study.source).sizes["train"] // 128 * 44
    logits = math.log(1000) / math.log(CLASSES)
    paper = {
        ("label_smoothing", "alpha"): 0.1,
        ("final_layer_l2", "lambda_final"): 10 * weight_decay(study.main.recipe, length),
        ("dropout", "keep"): 0.7,
        ("logit_penalty", "beta"): 6e-4 * 1000 / CLASSES,
        ("logit_norm", "temperature"): 0.04 * logits,
        ("cosine_softmax", "temperature"): 0.05 * logits,
        ("squared_error", "scale"): 10 * CLASSES / 1000,
        ("squared_error", "kappa"): 9,
        ("squared_error", "target"): 60,
    }
    for (name, setting), value in paper.items():
        assert found[name][setting] == pytest.approx(value, rel=0.01), name


@pytest.mark.long
def test_shrunk_it_runs_to_its_end(tmp_path: Path) -> None:
    """Without the corruptions, and with small steps: so short a warm-up may let networks diverge."""
    with plugged("characters"):
        study = restrict(load_study("glyphs_512"), ("softmax", "cosine_softmax", "squared_error"), (0,))
        few = dataclasses.replace(
            study,
            source="characters",
            targets=("syllabics_smoke", "digits_smoke"),
            measure=tuple(name for name in study.measure if name != "robustness"),
        )
        study = override(shrink(few, {}, batch_size=128), ["recipe.learning_rate=0.2"])
        summary = run(study, tmp_path, 1)
        assert (summary.failed, summary.complete) == ({}, True)
        assert {step.split(".")[1] for step in summary.diverged} <= {"squared_error-s0"}
        table = study_folder(tmp_path, study.name).table()
        tested = table.where(metric="top1", split="test", target="characters", epoch=None)
        assert {"softmax", "cosine_softmax"} <= {str(row.objective).partition("(")[0] for row in tested}
        assert {row.metric for row in table} >= {"class_separation", "linear_top1", "knn_top1", "temperature"}
        write_page(read_run(tmp_path, study.name), tmp_path / "page.html")
