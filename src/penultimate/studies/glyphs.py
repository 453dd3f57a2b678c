"""The study with statistics: nine objectives, a sweep of cosine softmax's temperature, five seeds, 28 epochs.

    penultimate run glyphs

Every seed has its own draw of the world. 28 epochs (8,960 steps), because the paper's pattern needs long
training. The hyperparameters were chosen on the holdout (`penultimate show tableA1`). In the sweep the loss
is scaled by the temperature at every temperature, as in the paper's table 4; so scaled it learns slowly, and
has a learning rate of its own, searched in the same way at one temperature (`glyphs_sweep_search`). The sweep
has three of the seeds.

A second architecture, without residual sums, is there for the comparison of layers alone (figure B.1). It has
four of the objectives, chosen before any result, two of the seeds, and the first architecture's
hyperparameters, which were not tuned for it.
"""

from penultimate.studies.chosen_glyphs import NINE
from penultimate.studies.quickstart import SECONDS, TARGETS
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

SWEEP = tuple(f"cosine_softmax(scale={tau}, temperature={tau})" for tau in (0.02, 0.03, 0.04, 0.05, 0.08))
SWEEP_LEARNING_RATE = 1.7

PLAIN = "glyphplain"
OF_PLAIN = ("softmax", "label_smoothing", "sigmoid", "squared_error")

RECIPE = Recipe(epochs=28, evaluate_every=4, snapshot_every=4)

STUDY = Study(
    name="glyphs",
    title="Nine objectives and five temperatures, five seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    objectives=(*NINE, *SWEEP),
    source="glyphs",
    targets=TARGETS,
    recipe=RECIPE,
    backbones=("glyphnet", PLAIN),
    seeds=(0, 1, 2, 3, 4),
    seeds_of={**dict.fromkeys(SWEEP, (0, 1, 2)), PLAIN: (0, 1)},
    objectives_of={PLAIN: OF_PLAIN},
    adjustments={text: {"learning_rate": SWEEP_LEARNING_RATE} for text in SWEEP},
    relearning=(5, 10, 40),
    instruments=tuple(INSTRUMENTS),
    tuned_by="glyphs_search",
    expected_seconds={**SECONDS, "train": 129.0, "dynamics": 4.2, "relearn": 3.0, "similarity": 12.0},
)
