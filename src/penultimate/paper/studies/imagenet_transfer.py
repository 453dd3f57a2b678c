"""Transfer of the paper's main networks: eight data sets and CheXpert, probed and fine-tuned.

    penultimate run imagenet_transfer --data imagenet=FOLDER --root FOLDER

Computed, not measured: 1,724 GPU hours of training on H100s at 2,500 images a second, and 1.7 TB of files.
The networks and their features of ImageNet are those of imagenet_resnet50, if that was run; fine-tuning takes
8,970 hours more, 15,552 cells of 20,000 batches of 256.

Expect (tables 1, 2, D.1, F.1) for softmax and squared error: linear 74.6 and 39.8 % on Food-101, 60.3 and
15.3 % on Cars; fine-tuned 88.2 and 87.8 %, 91.3 and 91.4 %. Three networks of an objective are fine-tuned, as
in the paper. Its batch size and loss are not stated; here they are 256 and softmax. Which classes of a task
are ImageNet's (table F.1) is told by `penultimate.data.readers.counterparts`: 7, 9, 72, 16, 53, 0, 25 and 1
in the order of that table, where the paper has 7, 9, 61, 11, 39, 0, 25 and 1.

Exhibits: table1, table2, tableD1, tableF1, figure1, figureD1, figureD3.
And the left half of figure5, whose right half is measured by imagenet_temperature.
"""

from penultimate.data.readers.counterparts import imagenet_counterparts
from penultimate.paper.studies.paper import (
    EIGHT_SEEDS,
    FINE_TUNING_DECAYS,
    FINE_TUNING_RATES,
    NINE,
    TARGETS,
    THREE_SEEDS,
    runs,
)
from penultimate.study.spec import Study

OF_FEATURES = ("accuracy", "class_separation", "linear", "knn", "multilabel", "overlap")
FINE_TUNING = (
    f"fine_tuning(head='fresh', learning_rate={FINE_TUNING_RATES}, decay={FINE_TUNING_DECAYS}, steps=20000,"
    " batch_size=256, seeds=3, images=50000, compared=1500, passes=10)"
)

STUDY = Study(
    name="imagenet_transfer",
    title="ResNet-50 of nine objectives on eight tasks and CheXpert",
    question="Do objectives that separate classes further give features that transfer worse?",
    source="imagenet",
    targets=(*TARGETS, "chexpert"),
    networks=(
        *runs(NINE, THREE_SEEDS, measure=(*OF_FEATURES, FINE_TUNING)),
        *runs(NINE, EIGHT_SEEDS[3:], measure=OF_FEATURES),
    ),
    measure=OF_FEATURES,
    counterparts={target: told for target in TARGETS if (told := imagenet_counterparts(target))},
    threads=8,
    gpus=1.0,
)
