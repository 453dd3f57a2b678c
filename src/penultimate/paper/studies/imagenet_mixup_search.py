"""The search for Mixup's alpha and the epochs at which four objectives stop, ResNet-50 on ImageNet.

    penultimate tune all --study imagenet_mixup_search --data imagenet_tuning=FOLDER

Computed, not measured: 1,573 GPU hours of training on H100s at 2,500 images a second, for the 48 trainings of
the grids.

Alpha is 0.1, 0.2, 0.3 or 0.4, and is chosen with its epoch on the 50,046 training images that are held out
(table C.5); the paper prints neither. The other hyperparameters are those chosen without Mixup. `chosen.py`
says both, for a study that trains on all images.
"""

from penultimate.paper.studies.grids import fixed, searched, with_epoch
from penultimate.paper.studies.imagenet_augmentation import FOUR
from penultimate.paper.studies.paper import augmented
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_mixup_search",
    title="The search for Mixup's alpha for four objectives, ResNet-50 on ImageNet",
    question="Which alpha of Mixup does best with each objective on held-out training images?",
    source="imagenet_tuning",
    targets=(),
    networks=searched(FOUR, recipe=augmented(mixup=0.2)),
    measure=("accuracy",),
    search=with_epoch(fixed(FOUR) | {"recipe.mixup": (0.1, 0.2, 0.3, 0.4)}),
    threads=8,
    gpus=1.0,
)
