"""The search for the epochs at which nine objectives stop, for Inception v3 at 299 pixels.

    penultimate tune all --study imagenet_inception_v3_search --data imagenet_tuning=FOLDER

Computed, not measured: 1,769 GPU hours of training on H100s at 1,250 images a second, for 27 trainings.

The hyperparameters are those of ResNet-50, and only the epoch is chosen, by the mean of three runs on the
50,046 training images that are held out (appendix B); the paper prints none. `chosen.py` says the epochs, for
a study that trains on all images. The images have 299 pixels, for which Inception v3 was made. Appendix A.1
of the ICLR version names crops of 224 pixels for both architectures in one sentence, which is why
imagenet_inception_v3 has these; `--set recipe.size=224 --set recipe.resize=256` searches with them.
"""

import dataclasses

from penultimate.paper.studies.grids import fixed, searched, with_epoch
from penultimate.paper.studies.paper import NINE, RECIPE
from penultimate.study.spec import Study

SIDE, SHORTER_SIDE = 299, 342
"""Pixels of a crop and of an image's shorter side before it, which are in the proportion of 224 to 256."""

STUDY = Study(
    name="imagenet_inception_v3_search",
    title="The search for the epochs of nine objectives, Inception v3 on ImageNet at 299 pixels",
    question="At which epoch of each objective does Inception v3 do best on held-out training images?",
    source="imagenet_tuning",
    targets=(),
    networks=searched(NINE, "inception_v3", dataclasses.replace(RECIPE, size=SIDE, resize=SHORTER_SIDE)),
    measure=("accuracy",),
    search=with_epoch(fixed(NINE)),
    threads=8,
    gpus=1.0,
)
