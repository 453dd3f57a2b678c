"""Long training under AutoAugment, with and without Mixup: the learning rate decays by 0.985 an epoch.

    penultimate run imagenet_long --data imagenet=FOLDER

Computed, not measured: 859 GPU hours of training on H100s at 2,500 images a second, and 315.1 GB of files.

Expect (table C.6) from 77.9 % (softmax) to 78.9 % (sigmoid), and 79.1 % for sigmoid and for cosine softmax
with Mixup. Neither the number of runs nor Mixup's alpha is stated; here they are three and 0.2.

Exhibits: tableC6.
"""

from penultimate.paper import arms
from penultimate.paper.published import table
from penultimate.paper.studies.paper import BY_SLUG, THREE_SEEDS, augmented, runs
from penultimate.study.spec import Study

DECAY = 0.985
ROWS = [row for row in table("neurips_tableC6_sota") if row["source"] == "this_paper"]
LONG, MIXED = (
    {BY_SLUG[str(row["objective"])]: int(row["epochs"] or 0) for row in ROWS if row["augmentation"] == name}
    for name in ("autoaugment", "autoaugment+mixup")
)

STUDY = Study(
    name="imagenet_long",
    title="Long training under AutoAugment and Mixup, ResNet-50 on ImageNet",
    question="How far do objectives get with long training?",
    source="imagenet",
    targets=(),
    networks=(
        *runs(LONG, THREE_SEEDS, decay=DECAY, recipe=augmented(autoaugment=True), arm=arms.LONG),
        *runs(
            MIXED,
            THREE_SEEDS,
            decay=DECAY,
            recipe=augmented(autoaugment=True, mixup=0.2),
            arm=arms.LONG_MIXUP,
        ),
    ),
    measure=("accuracy", "class_separation"),
    threads=8,
    gpus=1.0,
)
