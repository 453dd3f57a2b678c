"""Accuracy through training: nine objectives, eight seeds, on training and on validation images.

    penultimate run imagenet_curves --data imagenet=FOLDER

Computed, not measured: 1,724 GPU hours of training on H100s at 2,500 images a second, and 1.8 TB of files.
These networks are trained as those of imagenet_resnet50, but keep a snapshot every second epoch, which makes
them steps of their own. Those of the first seed are shared with imagenet_dynamics.

Expect (figures C.1 to C.3, of which no number is printed) curves that end at the accuracies of tables 1 and
C.1, and regularised objectives above softmax at equal training accuracy. Accuracies are of 50,000 training
images, which are not augmented, and of all validation images.

Exhibits: figureC1, figureC2, figureC3.
"""

from penultimate.paper.studies.imagenet_dynamics import KEEPING
from penultimate.paper.studies.paper import EIGHT_SEEDS, NINE, runs
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_curves",
    title="ResNet-50 of nine objectives, eight seeds, through training on ImageNet",
    question="Which objectives are ahead, and when?",
    source="imagenet",
    targets=(),
    networks=runs(NINE, EIGHT_SEEDS, recipe=KEEPING),
    measure=("accuracy", "dynamics(images=50000, every=2)"),
    threads=8,
    gpus=1.0,
)
