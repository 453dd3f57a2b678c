"""WRN-16-8 on CIFAR-100: nine objectives, 25 seeds, as in the paper's ICLR version.

    penultimate run cifar100_wrn16_8 --data cifar100=FOLDER

Computed, not measured: 312 GPU hours of training on H100s at 2,000 images a second, and 44.1 GB of files.

Expect (table 1 of the ICLR version) from 78.9 % (logit normalisation) to 80.2 % (logit penalty, final layer
L2), and 79.7 % for softmax. Weight decay acts on batch normalisation too. Epochs and augmentation are not
stated; here they are 200 epochs, shifts of four pixels and mirror images.

Exhibits: iclr_table1, table3, tableC1, tableE1, figureC2, figureC3.
"""

import dataclasses

from penultimate.paper.studies.paper import CIFAR, cifar
from penultimate.study.spec import Study

STUDY = Study(
    name="cifar100_wrn16_8",
    title="Nine objectives, 25 seeds, WRN-16-8 on CIFAR-100",
    question="Do objectives other than softmax do better on CIFAR-100?",
    source="cifar100",
    targets=(),
    networks=cifar("cifar100", "wrn16_8", dataclasses.replace(CIFAR, batch_size=256, decay_batch_norm=True)),
    measure=("accuracy", "class_separation"),
    threads=4,
    gpus=0.5,
)
