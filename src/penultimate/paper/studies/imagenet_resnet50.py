"""The paper's main networks: nine objectives, eight seeds, ResNet-50 on all of ImageNet.

    penultimate run imagenet_resnet50 --data imagenet=FOLDER

Computed, not measured: 1,724 GPU hours of training on H100s at 2,500 images a second, and 1.2 TB of files.

Expect (tables 1, 3, C.1) top-1 accuracy from 77.0 % (softmax) to 77.9 % (sigmoid, cosine softmax), and R^2 of
the training images from 0.349 (softmax) to 0.845 (squared error). Other studies of these networks find them
trained already.

Exhibits: table3, tableC1, tableE1, tableE2, figure2, figure3, figure4, figureC2, figureC3, figureC4,
figureC5, figureC6, figureC7, figureE1, figureE2, figureE3.
"""

from penultimate.paper.studies.paper import EIGHT_SEEDS, NINE, runs
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_resnet50",
    title="Nine objectives, eight seeds, ResNet-50 on ImageNet",
    question="Do better objectives separate classes further?",
    source="imagenet",
    targets=(),
    networks=runs(NINE, EIGHT_SEEDS),
    measure=(
        "accuracy",
        "class_separation",
        "collapse",
        "hardness",
        "spectra",
        "distances(count=10000)",
        "agreement",
        "layers",
        "layers_on_training",
        "similarity(images=50000, batch_size=1500, passes=10)",
    ),
    threads=8,
    gpus=1.0,
)
