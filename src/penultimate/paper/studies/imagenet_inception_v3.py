"""The second architecture: nine objectives, three seeds, Inception v3 on ImageNet, and linear transfer.

    penultimate run imagenet_inception_v3 --data imagenet=FOLDER --root FOLDER

Computed, not measured: 647 GPU hours of training on H100s at 2,500 images a second, and 580.2 GB of files.

Expect (table B.1) top-1 accuracy from 77.7 % (squared error) to 79.1 % (sigmoid), and R^2 from 0.356
(softmax) to 0.838 (squared error). The paper chose the epochs separately and does not print them; here they
are those of ResNet-50, and imagenet_inception_v3_search finds its own. The images have 224 pixels, which
appendix A.1 of the ICLR version states for both architectures; with `--set recipe.resize=342`
and `--set recipe.size=299` they have the size for which Inception v3 was made.

Exhibits: tableB1, figureB1, table3, tableC1, tableE1, figureC2, figureC3.
"""

from penultimate.paper.studies.paper import NINE, TARGETS, THREE_SEEDS, runs
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_inception_v3",
    title="Nine objectives, three seeds, Inception v3 on ImageNet",
    question="Does a second architecture show what the first does?",
    source="imagenet",
    targets=TARGETS,
    networks=runs(NINE, THREE_SEEDS, "inception_v3"),
    measure=(
        "accuracy",
        "class_separation",
        "similarity(images=50000, batch_size=1500, passes=10)",
        "linear",
    ),
    threads=8,
    gpus=1.0,
)
