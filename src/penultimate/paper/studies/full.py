"""All 42 tables and figures of the paper, on the embedded world, in three hours.

    penultimate run full

It took two hours and 46 minutes on two CPU cores with AVX-512, from an empty store, in two sittings and with
tests beside the first 40 minutes; the plan, at 2,800 images a second and core, says just under three hours.
The run is kept with the package. It can be made in two parts (`penultimate.paper.studies.parts`). In a store
that holds `glyphs` less is left to do, because the networks of its one draw and of its temperatures are the
same. `evidence` has more seeds, which the claims need. The paper's own grids are in the studies of ImageNet;
here they are as large as three hours allow:

- Nine objectives, two seeds, both on one draw of the world, as in the paper. Everything that `glyphs`
  measures, class overlap, scores of transferability, images of several labels with uncertain ones counted in
  three ways (tables F.1 and D.1); of the first seed fine-tuning and transfer from every block, and of four
  objectives transfer through training (figure D.2).
- Fine-tuning (table 2, figure D.3): eight tasks, 400 steps of 64 images. Three learning rates x two decays
  for each objective and task. With a final layer trained first (`head="probe"`) for softmax. From scratch on
  a grid of its own: on that of fine-tuning the best cell of every task lay on the edge.
- Cosine softmax at the paper's eight temperatures, combinations, AutoAugment and Mixup (alpha = 0.2)
  (tables 4, C.4, C.5 and E.3), and twice as long (table C.6): one seed. Hyperparameters stay as they are, as
  in the paper's tables C.5 and C.6.
- A second architecture (tables 1 and 3 as table B.1, figure B.1): nine objectives, one seed, and softmax
  with a second.
- Two more architectures, trained as the paper's ICLR version trains on CIFAR (its table 1): half as long,
  with a cosine decay of the learning rate to zero and no averaging of the weights; nine objectives, one seed.
  Learning rate, decay and the objectives' hyperparameters are the first architecture's, not tuned for them.

One or two seeds show a direction, not a certainty.
"""

from __future__ import annotations

import dataclasses

from penultimate.paper import arms
from penultimate.paper.studies import glyphs
from penultimate.paper.studies.glyphs import COMPARED, EACH, RECIPE, THE_DRAW
from penultimate.paper.studies.nine import CHANGES, NINE
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

FOUR = tuple(
    text for text in NINE if text.startswith(("softmax", "sigmoid", "logit_penalty", "cosine_softmax"))
)
SMOOTHING, DROPOUT = (text for text in NINE if text.startswith(("label_smoothing", "dropout")))
SOFTMAX, SIGMOID, LOGIT_PENALTY, COSINE = FOUR
COMBINED = (
    *(f"{DROPOUT} + {base}" for base in (SMOOTHING, SIGMOID, COSINE)),
    *(f"{LOGIT_PENALTY} + {base}" for base in (SMOOTHING, SIGMOID, COSINE)),
    f"{COSINE} + {SIGMOID}",
)
OF_COMBINED = {text: CHANGES[COSINE] for text in COMBINED if COSINE in text}
"""Combinations with cosine softmax have the learning rate of cosine softmax."""


def augmented(recipe: Recipe, **augmentation: bool | float) -> Recipe:
    """Return a recipe with other settings of its augmentation."""
    changed = dataclasses.replace(recipe.augmentation, **augmentation)  # type: ignore[arg-type]
    return dataclasses.replace(recipe, augmentation=changed)


LONG = dataclasses.replace(RECIPE, epochs=2 * RECIPE.epochs)
UNAVERAGED = dataclasses.replace(
    RECIPE, epochs=RECIPE.epochs // 2, schedule="cosine", final_fraction=0.0, averaging_window=0.0
)
GRID = "learning_rate=(0.01, 0.03, 0.1), decay=(0.0, 0.001), seeds=1"
FROM_SCRATCH = "learning_rate=(0.03, 0.1, 0.3), decay=(0.0, 0.001, 0.01), seeds=1"
ACCURACY = ("accuracy", "class_separation")
FURTHER = (
    "overlap",
    "transferability",
    "nce",
    "leep",
    "multilabel(uncertain=('zeros', 'ignore', 'ones'))",
)


def other_arms(seeds: tuple[int, ...], draws: int | str) -> tuple[Runs, ...]:
    """Return grids of augmentation, of long training (with the first seed) and of combinations."""
    return tuple(
        block
        for objectives, recipe, changes, trained, arm in (
            (FOUR, augmented(RECIPE, autoaugment=True), CHANGES, seeds, arms.AUTOAUGMENT),
            (FOUR, augmented(RECIPE, mixup=0.2), CHANGES, seeds, arms.MIXUP),
            (FOUR, augmented(LONG, autoaugment=True), CHANGES, seeds[:1], arms.LONG),
            (
                (SIGMOID, COSINE),
                augmented(LONG, autoaugment=True, mixup=0.2),
                CHANGES,
                seeds[:1],
                arms.LONG_MIXUP,
            ),
            (COMBINED, RECIPE, OF_COMBINED, seeds, arms.COMBINATIONS),
        )
        for block in runs_by_recipe(
            objectives, recipe, changes, seeds=trained, draws=draws, arm=arm, measure=ACCURACY
        )
    )


def backbones(seeds: tuple[int, ...], draws: int | str) -> tuple[Runs, ...]:
    """Return grids of a second architecture, and of two more under the recipe of the ICLR version."""
    return (
        *runs_by_recipe(
            NINE,
            RECIPE,
            CHANGES,
            backbones=("glyphplain",),
            seeds=seeds,
            draws=draws,
            measure=(*ACCURACY, "linear"),
        ),
        *runs_by_recipe(
            NINE,
            UNAVERAGED,
            CHANGES,
            backbones=("glyphmobile", "glyphwide"),
            seeds=seeds,
            draws=draws,
            arm=arms.COSINE_DECAY,
            measure=("accuracy",),
        ),
    )


SEEDS = (0, 1)
FIRST = SEEDS[:1]


def _main(
    objectives: tuple[str, ...], *measure: str, seeds: tuple[int, ...] = SEEDS, backbone: str = "glyphnet"
) -> tuple[Runs, ...]:
    """Return networks of the main arm; without `measure`, they have all measurements of `glyphs`."""
    return runs_by_recipe(
        objectives,
        RECIPE,
        CHANGES,
        backbones=(backbone,),
        seeds=seeds,
        draws=THE_DRAW,
        measure=measure or None,
    )


OBJECTIVES = (
    *_main(NINE),
    *_main(NINE, *FURTHER),
    *_main((SOFTMAX,), f"fine_tuning({GRID})", f"from_scratch({FROM_SCRATCH})", seeds=FIRST),
    *_main(NINE[1:], f"fine_tuning({GRID}, head=('fresh',))", seeds=FIRST),
    *_main(NINE, "depth", seeds=FIRST),
    *_main(FOUR, "transfer_dynamics", seeds=FIRST),
)
CHANGED = (
    *(dataclasses.replace(block, seeds=FIRST) for block in glyphs.TEMPERATURES),
    *other_arms(FIRST, THE_DRAW),
    *backbones(FIRST, THE_DRAW),
    *_main(NINE, "similarity", seeds=FIRST, backbone="glyphplain"),
    *_main((SOFTMAX,), "similarity", seeds=SEEDS, backbone="glyphplain"),
)

STUDY = Study(
    name="full",
    title="All tables and figures of the paper, of one seed or two, on the embedded image world",
    question="Which training objective gives features that transfer, and what changes that?",
    source=glyphs.STUDY.source,
    targets=(*glyphs.STUDY.targets, "findings"),
    networks=(*OBJECTIVES, *CHANGED),
    measure=(*EACH, *COMPARED),
    tuned_by=glyphs.STUDY.tuned_by,
    expected_seconds={
        **glyphs.STUDY.expected_seconds,
        **dict.fromkeys(("fine_tune_cell", "scratch_cell"), 10.0),
        **dict.fromkeys(("fine_tuning", "from_scratch"), 12.0),
    },
)
