"""Three objectives, three draws of the world, and a verdict by a rule that was fixed beforehand.

    penultimate run quickstart

Softmax is compared with a logit penalty, which separates the classes further, and with squared error, which
separates them far. The rule (`penultimate.paper.claims.quick`) came before any of these networks was
transferred. It takes six minutes on two idle cores (205 steps); `docs/world.md` says how its epochs were
chosen.
"""

import dataclasses

from penultimate.paper.claims.quick import COMPARED
from penultimate.paper.studies.world import SHORT_MEASURE, SHORT_RECIPE
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

EPOCHS = 12
TARGETS = ("syllabics", "armenian", "maths", "digits")
RECIPE = dataclasses.replace(SHORT_RECIPE, epochs=EPOCHS, evaluate_every=EPOCHS, snapshot_every=0)

STUDY = Study(
    name="quickstart",
    title="Three objectives, three draws of the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    source="glyphs",
    targets=TARGETS,
    networks=(Runs(COMPARED, RECIPE, seeds=(0, 1, 2)),),
    measure=SHORT_MEASURE,
    tuned_by=("matched_search_scaled",),
    expected_seconds={"train": 49.0, "accuracy": 4.5},
)
