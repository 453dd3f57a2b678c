"""Combinations of objectives: a regulariser added to each of four, three runs, 50,046 images held out.

    penultimate run imagenet_combinations --data imagenet_tuning=FOLDER

Computed, not measured: 4,576 GPU hours of training on H100s at 2,500 images a second, and 38.2 GB of files.

Expect (table C.4) on the holdout 79.9 % for softmax, 80.6 % for the best single objectives and 80.7 % for the
best combination (cosine softmax with dropout). Each cell is a maximum over training, whose length the paper
does not state; here all networks train as long as squared error, the longest of table A.1.

Exhibits: tableC4, figureC1, figureC2.
"""

from penultimate.paper import arms
from penultimate.paper.published import table
from penultimate.paper.studies.paper import NINE, THREE_SEEDS, runs, spec
from penultimate.study.spec import Study

EPOCHS = max(NINE.values())


def _combined(row: dict[str, str | int | float | None]) -> str:
    """Return the objective of a row of table C.4; softmax with a regulariser is that regulariser."""
    base = spec(row["objective"], [(row["objective_hyperparameter"], row["objective_hyperparameter_value"])])
    if row["added_regularizer"] == "none":
        return base
    added = spec(row["added_regularizer"], [(row["regularizer_hyperparameter"], row["regularizer_value"])])
    return added if base == "softmax" else f"{base} + {added}"


CELLS = tuple(map(_combined, table("neurips_tableC4_combinations")))
SINGLE = {text: EPOCHS for text in CELLS if " + " not in text}
COMBINED = {text: EPOCHS for text in CELLS if " + " in text}

STUDY = Study(
    name="imagenet_combinations",
    title="Pairs of objectives, three seeds, ResNet-50 on ImageNet",
    question="Do objectives that help alone help more together?",
    source="imagenet_tuning",
    targets=(),
    networks=(*runs(SINGLE, THREE_SEEDS), *runs(COMBINED, THREE_SEEDS, arm=arms.COMBINATIONS)),
    measure=(),
    threads=8,
    gpus=1.0,
)
