"""The search for the epochs at which four objectives stop under AutoAugment, ResNet-50 on ImageNet.

    penultimate tune all --study imagenet_autoaugment_search --data imagenet_tuning=FOLDER

Computed, not measured: 393 GPU hours of training on H100s at 2,500 images a second, for 12 trainings.

The hyperparameters are those chosen without AutoAugment, and the epoch is chosen again, on the 50,046
training images that are held out (table C.5); the paper prints none. `chosen.py` says the epochs, for a study
that trains on all images.
"""

from penultimate.paper.studies.grids import fixed, searched, with_epoch
from penultimate.paper.studies.imagenet_augmentation import FOUR
from penultimate.paper.studies.paper import augmented
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_autoaugment_search",
    title="The search for the epochs of four objectives under AutoAugment, ResNet-50 on ImageNet",
    question="At which epoch does each objective do best under AutoAugment on held-out training images?",
    source="imagenet_tuning",
    targets=(),
    networks=searched(FOUR, recipe=augmented(autoaugment=True)),
    measure=("accuracy",),
    search=with_epoch(fixed(FOUR)),
    threads=8,
    gpus=1.0,
)
