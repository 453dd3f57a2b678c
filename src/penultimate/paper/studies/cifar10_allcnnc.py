"""All-CNN-C on CIFAR-10: nine objectives, 25 seeds, as in the paper's ICLR version.

    penultimate run cifar10_allcnnc --data cifar10=FOLDER

Computed, not measured: 52 GPU hours of training on H100s at 12,000 images a second, and 13.3 GB of files.

Expect (I's table 1) from 93.31 % (squared error) to 93.84 % (logit penalty), softmax 93.49 %. Learning rates,
decays and hyperparameters are I's table A.2; that of sigmoid, 1, is hard to read there. Epochs and
augmentation are not stated: 200, shifts of four pixels and mirror images.

Exhibits: iclr_table1, table3, tableC1, tableE1, figureC2, figureC3.
"""

import dataclasses

from penultimate.paper.studies.paper import CIFAR, cifar
from penultimate.study.spec import Study

STUDY = Study(
    name="cifar10_allcnnc",
    title="Nine objectives, 25 seeds, All-CNN-C on CIFAR-10",
    question="Do objectives other than softmax do better on CIFAR-10?",
    source="cifar10",
    targets=(),
    networks=cifar("cifar10", "allcnnc", dataclasses.replace(CIFAR, batch_size=128)),
    measure=("accuracy", "class_separation"),
    threads=4,
    gpus=0.5,
)
