"""The second reference: nine objectives, ten seeds, 512 classes of the embedded world, four times the width.

    penultimate run glyphs_512 --gpus 0.1

Planned, not run: nothing is measured, and there are no numbers to expect. `penultimate plan` computes 90
trainings of 1,393,920 batches and 60.4 GB of files; at 5 ms a batch of 128 that is 2 GPU hours. On two CPU
cores it would be days.

Each of the 512 pretraining characters is a class of its own, and K / M is 1 / 2 as it is on ImageNet. Images
per class, epochs, batch, learning rate and regime are those of `matched_search`; they were chosen with 128
classes, and not again with 512. Hyperparameters are not searched either: they are the paper's, translated by
the rules of that search. Beta scales with 1000 / K, 1 / tau with log K, and squared error's scale with K; the
final layer's decay is ten times the weight decay. Each class of `newfaces` joins four of these characters.
There are no shifted test sets, and no heads are relearned.
"""

import dataclasses

from penultimate.paper.studies.matched_search import RECIPE
from penultimate.paper.studies.nine import MEASURE, TARGETS
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

NINE = (
    "softmax",
    "label_smoothing(alpha=0.1)",
    "sigmoid",
    "final_layer_l2(lambda_final=3.14e-3)",
    "dropout(keep=0.7)",
    "logit_penalty(beta=1.17e-3)",
    "logit_norm(temperature=0.0443)",
    "cosine_softmax(temperature=0.0554)",
    "squared_error(kappa=9, target=60, scale=5.12)",
)

STUDY = Study(
    name="glyphs_512",
    title="Nine objectives, ten seeds, 512 classes of the embedded image world",
    question="Do objectives that separate classes further give features that transfer worse?",
    source="glyphs_512",
    targets=TARGETS,
    networks=(
        Runs(
            NINE,
            dataclasses.replace(RECIPE, evaluate_every=11, snapshot_every=11),
            backbones=("glyphnet(width=32, features=1024)",),
            seeds=tuple(range(10)),
        ),
    ),
    measure=MEASURE,
)
