"""Robustness of the paper's main networks: ImageNet-V2, -A, -R, -Sketch and -C.

    penultimate run imagenet_robustness --data imagenet=FOLDER --root FOLDER

Computed, not measured: 1,724 GPU hours of training on H100s at 2,500 images a second, and 1.3 TB of files.
All of the hours are those of imagenet_resnet50. Measuring shows each of the 72 networks 3.85 million images:
32 hours more at 2,400 images a second.

Expect (table C.2) for softmax 65.0 % on -V2, 2.7 % on -A, 36.8 % on -R, 21.8 % on -Sketch and an mCE of 75.9;
for cosine softmax 65.8, 4.6, 38.7, 24.8 and 72.5. The networks are those of imagenet_resnet50. A set that is
not below the root is left out, and named.

Exhibits: tableC2, tableC1, figureC2, figureC3.
"""

from penultimate.paper.studies.paper import EIGHT_SEEDS, NINE, runs
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_robustness",
    title="ResNet-50 of nine objectives on shifted and corrupted images",
    question="Do objectives that do better on ImageNet do better on other images of its classes?",
    source="imagenet",
    targets=(),
    networks=runs(NINE, EIGHT_SEEDS),
    measure=("accuracy", "published_robustness"),
    threads=8,
    gpus=1.0,
)
