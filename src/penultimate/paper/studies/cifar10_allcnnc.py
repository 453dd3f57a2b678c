"""All-CNN-C on CIFAR-10: nine objectives, 25 seeds, as in the paper's ICLR version.

    penultimate run cifar10_allcnnc --data cifar10=FOLDER

Computed, not measured: 52 GPU hours of training on H100s at 12,000 images a second, and 13.3 GB of files.

Expect (table 1 of the ICLR version) from 93.31 % (squared error) to 93.84 % (logit penalty), and 93.49 % for
softmax. Learning rates, decays and hyperparameters are those of that version's table A.2, in which the
learning rate of sigmoid, 1, is hard to read. Epochs and augmentation are not stated; here they are 200
epochs, shifts of four pixels and mirror images.

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
