"""Where the hyperparameters of the embedded studies are chosen: the nine objectives, two seeds, ten epochs.

    penultimate tune all --study rehearsal --budget 4

A short schedule, because a search takes many runs. Nothing is measured on a test set or a transfer task; what
was tried and chosen is kept in the repository, under reference/.
"""

from penultimate.studies.quickstart import START, TARGETS
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

STUDY = Study(
    name="rehearsal",
    title="The search for hyperparameters, on the embedded image world",
    question="Which hyperparameters of each objective do best on held-out pretraining images?",
    objectives=START,
    source="glyphs",
    targets=TARGETS,
    recipe=Recipe(epochs=10, evaluate_every=2),
    seeds=(0, 1),
)
