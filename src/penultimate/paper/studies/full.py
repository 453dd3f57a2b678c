"""All tables and figures of the paper on the embedded world: `full` in three hours, `evidence` with more.

    penultimate run full
    penultimate run evidence

`full` has one seed or two, all on one draw of the world, which show a direction and no certainty. `evidence`
has the networks of `glyphs`, and three seeds, each with its own draw, of most of the rest. Fine-tuning takes
400 steps of 64 images on grids as large as three hours allow; the paper's own grids are in the studies of
ImageNet. The parts are run and kept one by one, so that a lost machine costs one of them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from penultimate.paper import arms
from penultimate.paper.studies.world import (
    CHANGES,
    COMPARED,
    EACH,
    GLYPHS,
    OBJECTIVES,
    RECIPE,
    SWEEP,
    THE_DRAW,
    part,
)
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

FOUR = tuple(
    text for text in OBJECTIVES if text.startswith(("softmax", "sigmoid", "logit_penalty", "cosine_softmax"))
)
SOFTMAX, SIGMOID, LOGIT_PENALTY, COSINE = FOUR
SMOOTHING, DROPOUT = (text for text in OBJECTIVES if text.startswith(("label_smoothing", "dropout")))
COMBINED = (
    *(f"{DROPOUT} + {base}" for base in (SMOOTHING, SIGMOID, COSINE)),
    *(f"{LOGIT_PENALTY} + {base}" for base in (SMOOTHING, SIGMOID, COSINE)),
    f"{COSINE} + {SIGMOID}",
)
CHANGES_OF_COMBINED = {text: CHANGES[COSINE] for text in COMBINED if COSINE in text}
ACCURACY = ("accuracy", "class_separation")
FURTHER = (
    *("overlap", "transferability", "nce", "leep"),
    "multilabel(uncertain=('zeros', 'ignore', 'ones'))",
)
GRID = "learning_rate=(0.01, 0.03, 0.1), decay=(0.0, 0.001), seeds=1"
FROM_FRESH_HEADS, FROM_BOTH_HEADS = f"fine_tuning({GRID}, head=('fresh',))", f"fine_tuning({GRID})"
LONG = dataclasses.replace(RECIPE, epochs=2 * RECIPE.epochs)
UNAVERAGED = dataclasses.replace(
    RECIPE, epochs=RECIPE.epochs // 2, schedule="cosine", final_fraction=0.0, averaging_window=0.0
)
"""The recipe of the ICLR version's networks for CIFAR: half as long, with a cosine decay and no averaging."""


def augmented(recipe: Recipe, **augmentation: bool | float) -> Recipe:
    """Return a recipe with other settings of its augmentation."""
    changed = dataclasses.replace(recipe.augmentation, **augmentation)  # type: ignore[arg-type]
    return dataclasses.replace(recipe, augmentation=changed)


def _runs(objectives: tuple[str, ...], recipe: Recipe = RECIPE, **settings: Any) -> tuple[Runs, ...]:
    return runs_by_recipe(objectives, recipe, CHANGES, **settings)


def other_arms(seeds: tuple[int, ...], draws: int | str) -> tuple[Runs, ...]:
    """Return grids of augmentation, of long training (with the first seed) and of combinations."""
    both = {"autoaugment": True, "mixup": 0.2}
    grids = (
        (FOUR, augmented(RECIPE, autoaugment=True), CHANGES, seeds, arms.AUTOAUGMENT),
        (FOUR, augmented(RECIPE, mixup=0.2), CHANGES, seeds, arms.MIXUP),
        (FOUR, augmented(LONG, autoaugment=True), CHANGES, seeds[:1], arms.LONG),
        ((SIGMOID, COSINE), augmented(LONG, **both), CHANGES, seeds[:1], arms.LONG_MIXUP),
        (COMBINED, RECIPE, CHANGES_OF_COMBINED, seeds, arms.COMBINATIONS),
    )
    return tuple(
        block
        for objectives, recipe, changes, trained, arm in grids
        for block in runs_by_recipe(
            objectives, recipe, changes, seeds=trained, draws=draws, arm=arm, measure=ACCURACY
        )
    )


def backbones(seeds: tuple[int, ...], draws: int | str) -> tuple[Runs, ...]:
    """Return grids of a second architecture, and of two more under the recipe of the ICLR version."""
    of: dict[str, Any] = {"seeds": seeds, "draws": draws}
    two = ("glyphmobile", "glyphwide")
    return (
        *_runs(OBJECTIVES, backbones=("glyphplain",), measure=(*ACCURACY, "linear"), **of),
        *_runs(OBJECTIVES, UNAVERAGED, backbones=two, arm=arms.COSINE_DECAY, measure=("accuracy",), **of),
    )


def _full(
    objectives: tuple[str, ...], *measure: str, seeds: tuple[int, ...] = (0,), backbone: str = "glyphnet"
) -> tuple[Runs, ...]:
    """Return networks of the one draw; without `measure`, they have all measurements of `glyphs`."""
    return _runs(objectives, backbones=(backbone,), seeds=seeds, draws=THE_DRAW, measure=measure or None)


FROM_SCRATCH = "from_scratch(learning_rate=(0.03, 0.1, 0.3), decay=(0.0, 0.001, 0.01), seeds=1)"
OF_OBJECTIVES = (
    *_full(OBJECTIVES, seeds=(0, 1)),
    *_full(OBJECTIVES, *FURTHER, seeds=(0, 1)),
    *_full((SOFTMAX,), FROM_BOTH_HEADS, FROM_SCRATCH),
    *_full(OBJECTIVES[1:], FROM_FRESH_HEADS),
    *_full(OBJECTIVES, "depth"),
    *_full(FOUR, "transfer_dynamics"),
)
CHANGED = (
    *(dataclasses.replace(block, seeds=(0,)) for block in SWEEP),
    *other_arms((0,), THE_DRAW),
    *backbones((0,), THE_DRAW),
    *_full(OBJECTIVES, "similarity", backbone="glyphplain"),
    *_full((SOFTMAX,), "similarity", seeds=(0, 1), backbone="glyphplain"),
)
STUDY = Study(
    name="full",
    title="All tables and figures of the paper, of one seed or two, on the embedded image world",
    question="Which training objective gives features that transfer, and what changes that?",
    source=GLYPHS.source,
    targets=(*GLYPHS.targets, "findings"),
    networks=(*OF_OBJECTIVES, *CHANGED),
    measure=(*EACH, *COMPARED),
    tuned_by=GLYPHS.tuned_by,
    expected_seconds={
        **GLYPHS.expected_seconds,
        **dict.fromkeys(("fine_tune_cell", "scratch_cell"), 10.0),
        **dict.fromkeys(("fine_tuning", "from_scratch"), 12.0),
    },
)
FULL_OBJECTIVES = part(STUDY, "objectives", "Nine objectives, two seeds", OF_OBJECTIVES)
FULL_CHANGED = part(STUDY, "changed", "Temperatures, augmentation, combinations and architectures", CHANGED)


SEEDS = (0, 1, 2)
ENDS = tuple(text for text in OBJECTIVES if text.startswith(("softmax", "cosine_softmax", "squared_error")))
"""The objectives that transfer best and worst in the paper, whose final layer is also trained first."""
ON_MORE_RATES = (
    "from_scratch(learning_rate=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0), decay=(0.0, 0.001, 0.01), seeds=1)"
)
MEASURED = (
    *_runs(
        tuple(text for text in OBJECTIVES if text not in ENDS),
        seeds=SEEDS,
        measure=(*FURTHER, FROM_FRESH_HEADS),
    ),
    *_runs(ENDS, seeds=SEEDS, measure=(*FURTHER, FROM_BOTH_HEADS, ON_MORE_RATES)),
    *_runs(OBJECTIVES, measure=("depth",)),
    *_runs(FOUR, measure=("transfer_dynamics",)),
)
OTHERWISE = other_arms(SEEDS, "seed")
BACKBONES = backbones(SEEDS, "seed")
EVIDENCE = dataclasses.replace(
    STUDY,
    name="evidence",
    title="All tables and figures of the paper, on the embedded image world",
    networks=(*GLYPHS.networks, *MEASURED, *OTHERWISE, *BACKBONES),
    measure=GLYPHS.measure,
)
EVIDENCE_MEASURED = part(EVIDENCE, "measured", "Fine-tuning, and what foretells transfer", MEASURED)
EVIDENCE_OTHERWISE = part(EVIDENCE, "otherwise", "Augmentation, combinations and long training", OTHERWISE)
EVIDENCE_BACKBONES = part(EVIDENCE, "backbones", "Three more architectures", BACKBONES)
