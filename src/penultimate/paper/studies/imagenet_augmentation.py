"""Augmentation: four objectives under AutoAugment and under Mixup, beside the standard networks.

    penultimate run imagenet_augmentation --data imagenet=FOLDER

Computed, not measured: 1,292 GPU hours of training on H100s at 2,500 images a second, and 936.5 GB of files.
The standard networks are those of imagenet_resnet50.

Expect (tables C.5, E.3) 77.0, 77.7 and 78.0 % for softmax, and 77.9, 78.5 and 78.5 % for sigmoid; R^2 changes
by 0.009 at most. The paper chose epochs and Mixup's alpha (0.1 to 0.4) separately and prints neither; here
the epochs are those of the standard networks, and alpha is 0.2, until imagenet_autoaugment_search and
imagenet_mixup_search have chosen others. The number of Mixup runs is not stated; here
it is three.

Exhibits: tableC5, tableE3, table3, tableC1, tableE1.
"""

from penultimate.paper import arms
from penultimate.paper.published import table
from penultimate.paper.studies.paper import BY_SLUG, NINE, augmented, runs
from penultimate.study.spec import Study

RUNS = {row["augmentation"]: range(int(row["n_runs"] or 3)) for row in table("neurips_tableC5_augmentation")}
FOUR = {
    BY_SLUG[str(row["objective"])]: NINE[BY_SLUG[str(row["objective"])]]
    for row in table("neurips_tableC5_augmentation")
}

STUDY = Study(
    name="imagenet_augmentation",
    title="Four objectives under three augmentations, ResNet-50 on ImageNet",
    question="Do objectives differ under stronger augmentation?",
    source="imagenet",
    targets=(),
    networks=(
        *runs(FOUR, RUNS["standard"]),
        *runs(FOUR, RUNS["autoaugment"], recipe=augmented(autoaugment=True), arm=arms.AUTOAUGMENT),
        *runs(FOUR, RUNS["mixup"], recipe=augmented(mixup=0.2), arm=arms.MIXUP),
    ),
    measure=("accuracy", "class_separation"),
    threads=8,
    gpus=1.0,
)
