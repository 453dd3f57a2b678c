"""Relearn the heads of the paper's main networks from 40,000 validation images, and from 50,000 trained on.

    penultimate run imagenet_relearning --data imagenet=FOLDER

Computed, not measured: 1,724 GPU hours of training on H100s at 2,500 images a second, and 1.2 TB of files.
All of the hours are those of imagenet_resnet50.

Expect (table 3 of the ICLR version) from training images 71.1 % for softmax, 76.7 % for squared error and
76.9 % for cosine softmax. That version drew 50,046 training images; here they are the first 50 of each class,
50,000. The networks are those of imagenet_resnet50.

Exhibits: figure6, table3, tableC1, tableE1.
"""

from penultimate.paper.studies.paper import EIGHT_SEEDS, NINE, runs
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_relearning",
    title="ResNet-50 of nine objectives, their heads learned again",
    question="Do features that separate classes less still tell them apart?",
    source="imagenet",
    targets=(),
    networks=runs(NINE, EIGHT_SEEDS),
    measure=(
        "accuracy",
        "class_separation",
        "relearning_from_test(shots=40)",
        "relearning_from_training(shots=50)",
    ),
    threads=8,
    gpus=1.0,
)
