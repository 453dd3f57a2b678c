"""Every step once, in seconds, on a tiny world: for tests and for a first look. It is evidence of nothing.

penultimate run smoke
"""

from penultimate.data.augmentation import Augmentation
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

STUDY = Study(
    name="smoke",
    title="Every step once, on a tiny world",
    question="Does every part of the system work on this machine?",
    objectives=(
        "softmax",
        "cosine_softmax(temperature=0.06, scale=0.5)",
        "squared_error(kappa=9, target=10, scale=0.5)",
    ),
    source="glyphs_smoke",
    targets=("syllabics_smoke", "digits_smoke"),
    recipe=Recipe(
        epochs=3, batch_size=32, learning_rate=0.3, augmentation=Augmentation(shift=1), snapshot_every=1
    ),
    backbones=("glyphnet(width=8, features=32)",),
    limited=True,
    instruments=tuple(INSTRUMENTS),
)
