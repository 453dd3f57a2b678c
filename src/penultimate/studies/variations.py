"""Objectives under AutoAugment, under Mixup, trained for long, combined, and in a second architecture.

    penultimate run variations

The networks of the main arm are those of `glyphs`, which a store that has it does not train again. The other
arms differ from it in what their names say; long training is twice as long. Hyperparameters stay as they are,
as in the paper's tables C.5 and C.6; Mixup has alpha = 0.2. Of one seed linear transfer is followed through
training (figure D.2), and measured from every block of all nine objectives' networks (depth). A second
architecture is measured as the first is in tables 1 and 3 (table B.1). Those of the main arm are tried on
images of several labels (table D.1), uncertain ones counted in three ways.

Two more architectures are trained as the paper's ICLR version trains on CIFAR (its table 1): a cosine decay
of the learning rate to zero and no averaging of the weights; here in float32, which suits them on a CPU.
Learning rate, decay and the objectives' hyperparameters are the first architecture's, not tuned for them.
"""

from __future__ import annotations

import dataclasses

from penultimate.studies.chosen_glyphs import NINE
from penultimate.studies.glyphs import RECIPE
from penultimate.studies.quickstart import TARGETS
from penultimate.study.blocks import Runs
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


def under(recipe: Recipe, **augmentation: bool | float) -> Recipe:
    """A recipe with other settings of its augmentation."""
    changed = dataclasses.replace(recipe.augmentation, **augmentation)  # type: ignore[arg-type]
    return dataclasses.replace(recipe, augmentation=changed)


UNAVERAGED = dataclasses.replace(
    RECIPE, schedule="cosine", final_fraction=0.0, averaging_window=0.0, precision="float32"
)
LONG = dataclasses.replace(RECIPE, epochs=2 * RECIPE.epochs)
SEEDS = (0, 1, 2)
STUDY = Study(
    name="variations",
    title="Augmentation, long training and combinations, on the embedded image world",
    question="Do augmentation, long training and combinations change how objectives differ?",
    source="glyphs",
    targets=(*TARGETS, "findings"),
    networks=(
        Runs(
            (*FOUR, SMOOTHING, DROPOUT),
            RECIPE,
            seeds=SEEDS,
            measure=("accuracy", "class_separation", "multilabel(uncertain=('zeros', 'ignore', 'ones'))"),
        ),
        Runs(FOUR, under(RECIPE, autoaugment=True), seeds=SEEDS, arm="autoaugment"),
        Runs(FOUR, under(RECIPE, mixup=0.2), seeds=SEEDS, arm="mixup"),
        Runs(FOUR, under(LONG, autoaugment=True), seeds=SEEDS, arm="long"),
        Runs((SIGMOID, COSINE), under(LONG, autoaugment=True, mixup=0.2), seeds=SEEDS, arm="long mixup"),
        Runs(COMBINED, RECIPE, seeds=SEEDS, arm="combinations"),
        Runs(FOUR, RECIPE, seeds=SEEDS[:1], measure=("transfer_dynamics",)),
        Runs(NINE, RECIPE, seeds=SEEDS[:1], measure=("depth",)),
        Runs(FOUR, RECIPE, ("glyphplain",), SEEDS, measure=("accuracy", "class_separation", "linear")),
        Runs(
            NINE, UNAVERAGED, ("glyphmobile", "glyphwide"), SEEDS, arm="cosine decay", measure=("accuracy",)
        ),
    ),
    measure=("accuracy", "class_separation"),
    tuned_by="glyphs_search",
    expected_seconds={"train": 160.0},
)
