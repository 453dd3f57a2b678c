"""Calibration: eight objectives, three seeds, trained without the images that temperatures are fitted on.

    penultimate run imagenet_calibration --data imagenet_tuning=FOLDER

Computed, not measured: 541 GPU hours of training on H100s at 2,500 images a second, and 52.5 GB of files.

Expect (table C.3) an NLL of 0.981 and an ECE of 0.073 for softmax, and 0.917 and 0.027 after scaling. Squared
error has no probabilities.

Exhibits: tableC3.
"""

from penultimate.paper.studies.paper import BY_SLUG, NINE, THREE_SEEDS, runs
from penultimate.study.spec import Study

EIGHT = {text: epochs for text, epochs in NINE.items() if text != BY_SLUG["squared_error"]}

STUDY = Study(
    name="imagenet_calibration",
    title="Eight objectives trained with a holdout, three seeds, ResNet-50 on ImageNet",
    question="Which objectives give probabilities that can be believed?",
    source="imagenet_tuning",
    targets=(),
    networks=runs(EIGHT, THREE_SEEDS),
    measure=("calibration",),
    threads=8,
    gpus=1.0,
)
