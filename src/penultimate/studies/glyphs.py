"""The study with statistics: nine objectives, a sweep of cosine softmax's temperature, five seeds, 28 epochs.

    penultimate run glyphs

An hour and a half on two CPU cores. Expect softmax at 95.9 % on its training images and 80.7 % on the test
images, R^2 = .297, and Spearman's rho of R^2 with mean linear transfer = -.90.

Every seed has its own draw of the world. 28 epochs (8,960 steps), because the paper's pattern needs long
training. The hyperparameters were chosen on the holdout (`penultimate show tableA1`). In the sweep, which is
an arm of its own, the loss is scaled by the temperature at every temperature, as in the paper's table 4; so
scaled it learns slowly, and has a learning rate of its own, searched in the same way at one temperature
(`glyphs_sweep_search`). The sweep has three of the seeds.

A second architecture, without residual sums, is there for the comparison of layers alone (figure B.1). It has
four of the objectives, chosen before any result, two of the seeds, and the first architecture's
hyperparameters, which were not tuned for it.
"""

import dataclasses

from penultimate.studies.chosen_glyphs import NINE
from penultimate.studies.quickstart import MEASURE, TARGETS
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

SWEEP = tuple(f"cosine_softmax(scale={tau}, temperature={tau})" for tau in (0.02, 0.03, 0.04, 0.05, 0.08))
SWEEP_LEARNING_RATE = 1.7
OF_PLAIN = tuple(
    text for text in NINE if text.startswith(("softmax", "label_smoothing", "sigmoid", "squared_error"))
)

RELEARNING = ("relearning", "relearning_from_training")
RECIPE = Recipe(epochs=28, evaluate_every=4, snapshot_every=4)

STUDY = Study(
    name="glyphs",
    title="Nine objectives and five temperatures, five seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    source="glyphs",
    targets=TARGETS,
    networks=(
        Runs(NINE, RECIPE, seeds=(0, 1, 2, 3, 4)),
        Runs(
            SWEEP,
            dataclasses.replace(RECIPE, learning_rate=SWEEP_LEARNING_RATE),
            seeds=(0, 1, 2),
            arm="temperature",
            measure=("accuracy", "class_separation", *RELEARNING, "linear"),
        ),
        Runs(OF_PLAIN, RECIPE, backbones=("glyphplain",), seeds=(0, 1), measure=("similarity",)),
    ),
    measure=(*MEASURE, *RELEARNING),
    tuned_by="glyphs_search",
    expected_seconds={"train": 129.0, "dynamics": 4.2},
)
