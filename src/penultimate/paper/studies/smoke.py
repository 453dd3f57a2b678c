"""Every step once, in seconds, on a tiny world, for tests and for a first look; it is evidence of nothing.

    penultimate run smoke

It takes at most fifteen seconds on two CPU cores. Expect accuracies near chance.
"""

import dataclasses

from penultimate.data.augmentation.settings import Augmentation
from penultimate.paper import arms
from penultimate.paper.studies.world import MEASURE
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

RECIPE = Recipe(
    epochs=3, batch_size=32, learning_rate=0.3, augmentation=Augmentation(shift=1), snapshot_every=1
)
UNAVERAGED = dataclasses.replace(RECIPE, schedule="cosine", averaging_window=0.0, snapshot_every=0)
BRIEFLY = "learning_rate=(0.01, 0.1), decay=(0.0, 0.001), steps=4, batch_size=16, seeds=1"
STUDY = Study(
    name="smoke",
    title="Every step once, on a tiny world",
    question="Does every part of the system work on this machine?",
    source="glyphs_smoke",
    targets=("syllabics_smoke", "digits_smoke", "findings_smoke"),
    networks=(
        Runs(
            (
                "softmax",
                "cosine_softmax(temperature=0.06, scale=0.5)",
                "squared_error(kappa=9, target=10, scale=0.5)",
            ),
            RECIPE,
            backbones=("glyphnet(width=8, features=32)",),
        ),
        Runs(
            ("sigmoid",),
            UNAVERAGED,
            backbones=("glyphmobile(width=4, features=16)", "glyphwide(width=4, features=16)"),
            arm=arms.COSINE_DECAY,
            measure=("accuracy",),
        ),
    ),
    measure=(
        *MEASURE,
        *("overlap", "transferability", "nce", "leep", "transfer_dynamics", "depth", "multilabel"),
        f"fine_tuning({BRIEFLY}, head=('fresh',))",
        f"from_scratch({BRIEFLY})",
    ),
    limited=True,
    expected_seconds={
        **dict.fromkeys(("train", "hard", "linear", "depth", "transfer_dynamics", "similarity"), 1.0),
        **dict.fromkeys(("multilabel", "robustness"), 0.7),
        **dict.fromkeys(("dynamics", "distances", "fine_tune_cell", "scratch_cell"), 0.2),
        **dict.fromkeys(("fine_tuning", "from_scratch"), 0.3),
    },
)
