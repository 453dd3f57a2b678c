"""All 42 tables and figures of the paper, on the embedded world: `glyphs`, and what it lacks.

    penultimate run full

In a store that holds `glyphs`, whose networks and measurements it does not do again, three hours on two CPU
cores that train at 4,500 images a second each, for which it is sized. Two with AVX-512 take four and a
quarter by plan, at 2,800 in float32 (4,000 with `--set recipe.precision=bfloat16`); the run that comes with
the package took about seven on two without. Or in three parts (`penultimate.studies.parts`). The paper's own
grids are those of the studies of ImageNet. Here they are as large as that allows, and larger where a claim
rests on them:

- Fine-tuning (table 2, figure D.3): nine objectives, three seeds, eight tasks; 400 steps of 64 images.
  Three learning rates x two decays for each objective and task, the best by the first seed alone. With a
  final layer trained first (`head="probe"`) for three objectives, those that transfer best and worst in the
  paper: softmax, cosine softmax and squared error. From scratch on a wider grid, six learning rates x three
  decays: on that of fine-tuning the best cell of every task lay on the edge.
- AutoAugment, Mixup (alpha = 0.2) and combinations (tables C.4, C.5 and E.3): three seeds, which their
  claims need. Hyperparameters stay as they are, as in the paper's tables C.5 and C.6.
- Long training (table C.6): twice as long, one seed: it shows a direction.
- A second architecture (tables 1 and 3 as table B.1): nine objectives, three seeds.
- Two more architectures, trained as the paper's ICLR version trains on CIFAR (its table 1): half as long,
  with a cosine decay of the learning rate to zero and no averaging of the weights; nine objectives, three
  seeds. Learning rate, decay and the objectives' hyperparameters are the first architecture's, not tuned for
  them.
- Class overlap, scores of transferability, and images of several labels, uncertain ones counted in three
  ways (tables F.1 and D.1): three seeds. Transfer through training (figure D.2) of four objectives, and
  from every block of nine: one seed.
"""

from __future__ import annotations

import dataclasses

from penultimate.studies import glyphs
from penultimate.studies.glyphs import RECIPE
from penultimate.studies.quickstart import CHANGES, NINE
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
"""What is combined with cosine softmax has its learning rate."""
ENDS = tuple(text for text in NINE if text.startswith(("softmax", "cosine_softmax", "squared_error")))


def under(recipe: Recipe, **augmentation: bool | float) -> Recipe:
    """A recipe with other settings of its augmentation."""
    changed = dataclasses.replace(recipe.augmentation, **augmentation)  # type: ignore[arg-type]
    return dataclasses.replace(recipe, augmentation=changed)


LONG = dataclasses.replace(RECIPE, epochs=2 * RECIPE.epochs)
UNAVERAGED = dataclasses.replace(
    RECIPE, epochs=RECIPE.epochs // 2, schedule="cosine", final_fraction=0.0, averaging_window=0.0
)
SEEDS = (0, 1, 2)
GRID = "learning_rate=(0.01, 0.03, 0.1), decay=(0.0, 0.001), seeds=1"
FROM_SCRATCH = "learning_rate=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0), decay=(0.0, 0.001, 0.01), seeds=1"
ACCURACY = ("accuracy", "class_separation")
FURTHER = (
    "overlap",
    "transferability",
    "nce",
    "leep",
    "multilabel(uncertain=('zeros', 'ignore', 'ones'))",
)


def _of(objectives: tuple[str, ...], seeds: tuple[int, ...], *measure: str) -> tuple[Runs, ...]:
    """Networks of `glyphs`, of which more is measured."""
    return runs_by_recipe(objectives, RECIPE, CHANGES, seeds=seeds, measure=measure)


MEASURED = (
    *_of(
        tuple(text for text in NINE if text not in ENDS),
        SEEDS,
        *FURTHER,
        f"fine_tuning({GRID}, head=('fresh',))",
    ),
    *_of(ENDS, SEEDS, *FURTHER, f"fine_tuning({GRID})", f"from_scratch({FROM_SCRATCH})"),
    *_of(NINE, SEEDS[:1], "depth"),
    *_of(FOUR, SEEDS[:1], "transfer_dynamics"),
)
OTHERWISE = tuple(
    block
    for objectives, recipe, changes, seeds, arm in (
        (FOUR, under(RECIPE, autoaugment=True), CHANGES, SEEDS, "autoaugment"),
        (FOUR, under(RECIPE, mixup=0.2), CHANGES, SEEDS, "mixup"),
        (FOUR, under(LONG, autoaugment=True), CHANGES, SEEDS[:1], "long"),
        ((SIGMOID, COSINE), under(LONG, autoaugment=True, mixup=0.2), CHANGES, SEEDS[:1], "long mixup"),
        (COMBINED, RECIPE, OF_COMBINED, SEEDS, "combinations"),
    )
    for block in runs_by_recipe(objectives, recipe, changes, seeds=seeds, arm=arm, measure=ACCURACY)
)
BACKBONES = (
    *runs_by_recipe(
        NINE, RECIPE, CHANGES, backbones=("glyphplain",), seeds=SEEDS, measure=(*ACCURACY, "linear")
    ),
    *runs_by_recipe(
        NINE,
        UNAVERAGED,
        CHANGES,
        backbones=("glyphmobile", "glyphwide"),
        seeds=SEEDS,
        arm="cosine decay",
        measure=("accuracy",),
    ),
)

STUDY = Study(
    name="full",
    title="All tables and figures of the paper, on the embedded image world",
    question="Which training objective gives features that transfer, and what changes that?",
    source=glyphs.STUDY.source,
    targets=(*glyphs.STUDY.targets, "findings"),
    networks=(*glyphs.STUDY.networks, *MEASURED, *OTHERWISE, *BACKBONES),
    measure=glyphs.STUDY.measure,
    tuned_by=glyphs.STUDY.tuned_by,
    expected_seconds={
        **glyphs.STUDY.expected_seconds,
        **dict.fromkeys(("fine_tune_cell", "scratch_cell"), 10.0),
        **dict.fromkeys(("fine_tuning", "from_scratch"), 12.0),
    },
)
