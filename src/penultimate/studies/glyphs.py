"""The study with statistics: nine objectives, a sweep of cosine softmax's temperature, five seeds, 28 epochs.

    penultimate run glyphs

Every seed has its own draw of the world. 28 epochs (8,960 steps), because the paper's pattern needs long
training. The hyperparameters were chosen on the holdout (`penultimate show tableA1`). In the sweep the loss
is scaled by the temperature at every temperature, as in the paper's table 4; so scaled it learns slowly, and
has a learning rate of its own, the best of three scratch runs at one temperature (docs/world.md). The sweep
has three of the seeds.
"""

from penultimate.studies.chosen import NINE
from penultimate.studies.quickstart import SECONDS, TARGETS
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

SWEEP = tuple(f"cosine_softmax(scale={tau}, temperature={tau})" for tau in (0.03, 0.05, 0.07, 0.1))
SWEEP_LEARNING_RATE = 4.0

RECIPE = Recipe(epochs=28, evaluate_every=4, snapshot_every=4)

STUDY = Study(
    name="glyphs",
    title="Nine objectives and four temperatures, five seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    objectives=(*NINE, *SWEEP),
    source="glyphs",
    targets=TARGETS,
    recipe=RECIPE,
    seeds=(0, 1, 2, 3, 4),
    seeds_of=dict.fromkeys(SWEEP, (0, 1, 2)),
    adjustments={text: {"learning_rate": SWEEP_LEARNING_RATE} for text in SWEEP},
    relearning=(5, 10, 40),
    instruments=tuple(INSTRUMENTS),
    tuned_by="rehearsal",
    expected_seconds={**SECONDS, "train": 151.0, "dynamics": 5.9, "relearn": 4.5, "similarity": 22.0},
)
