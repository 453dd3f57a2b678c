"""Table A.1's search: hyperparameters of nine objectives, and the epochs at which they stop, ResNet-50.

    penultimate tune all --study imagenet_search --data imagenet_tuning=FOLDER

Computed, not measured: 3,342 GPU hours of training on H100s at 2,500 images a second, for the 102 trainings
of the grids.

The grids are those of table A.1, with three runs of each of the 34 cells, of which 50,046 training images are
held out. The cell of the highest mean over its runs is chosen, in the epoch in which that mean is highest;
`chosen.py` says both, for a study that trains on all images. Table A.1 prints no grid of squared error, so
that its values are the printed ones, and only its epoch is searched. All epochs of table A.1 are even, so
that the holdout is looked at every second epoch. How long the paper's runs were is not stated, only that none
stopped after epoch 196; here they are 240 epochs long.

Expect (table A.1) alpha = 0.1 and 180 epochs for label smoothing, beta = 6e-4 and 180 epochs for logit
penalty, and 146 epochs for softmax.
"""

from penultimate.paper.studies.grids import grids_of_table_a1, searched, with_epoch
from penultimate.paper.studies.paper import NINE
from penultimate.study.spec import Study

STUDY = Study(
    name="imagenet_search",
    title="The search of table A.1: nine objectives, three runs a cell, ResNet-50 on ImageNet",
    question="Which hyperparameters and which epoch of each objective do best on held-out training images?",
    source="imagenet_tuning",
    targets=(),
    networks=searched(NINE),
    measure=("accuracy",),
    search=with_epoch(grids_of_table_a1() | {"cosine_softmax.scale": (1,)}),
    threads=8,
    gpus=1.0,
)
