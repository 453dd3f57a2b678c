"""Features through training: linear transfer every six epochs, class separation every eight, one run each.

    penultimate run imagenet_dynamics --data imagenet=FOLDER --root FOLDER

Computed, not measured: 216 GPU hours of training on H100s at 2,500 images a second, and 250.0 GB of files.

Expect (figures D.2, E.4) softmax to transfer best on most tasks from the first epochs to the last, and the
order of class separation to be set early. Squared error is left out of transfer, as in the paper. Separation
is measured on 50,000 training images and on all validation images; `unbiased` does not depend on their
number.

Exhibits: figureD2, figureE4.
"""

import dataclasses

from penultimate.paper.studies.paper import BY_SLUG, NINE, RECIPE, TARGETS, runs
from penultimate.study.spec import Study

SEPARATION = "dynamics(images=50000, unbiased=True, every=8)"
WITH_TRANSFER = {text: epochs for text, epochs in NINE.items() if text != BY_SLUG["squared_error"]}
OTHER = {BY_SLUG["squared_error"]: NINE[BY_SLUG["squared_error"]]}
KEEPING = dataclasses.replace(RECIPE, snapshot_every=2)

STUDY = Study(
    name="imagenet_dynamics",
    title="ResNet-50 of nine objectives through training on ImageNet",
    question="When do objectives come to differ?",
    source="imagenet",
    targets=TARGETS,
    networks=(
        *runs(WITH_TRANSFER, (0,), recipe=KEEPING, measure=(SEPARATION, "transfer_dynamics(every=6)")),
        *runs(OTHER, (0,), recipe=KEEPING, measure=(SEPARATION,)),
    ),
    measure=(SEPARATION,),
    threads=8,
    gpus=1.0,
)
