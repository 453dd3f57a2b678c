"""The temperature of cosine softmax: eight values, with the loss scaled by each, and linear transfer.

    penultimate run imagenet_temperature --data imagenet=FOLDER --root FOLDER

Computed, not measured: 179 GPU hours of training on H100s at 2,500 images a second, and 190.3 GB of files.

Expect (table 4) R^2 from 0.236 at temperature 0.01 to 0.770 at 0.08, accuracy on Cars from 62.9 to 25.7 %,
and top-1 accuracy of 77.5 or 77.6 % from 0.03 on. Neither the number of runs nor the epochs are stated; here
they are one and those of cosine softmax.

Exhibits: table4.
"""

from penultimate.paper import arms
from penultimate.paper.published import table
from penultimate.paper.studies.paper import BY_SLUG, NINE, TARGETS, runs, spec
from penultimate.study.spec import Study

SWEEP = {
    spec("cosine_softmax", [("temperature", row["temperature"]), ("scale", row["temperature"])]): NINE[
        BY_SLUG["cosine_softmax"]
    ]
    for row in table("neurips_table4_temperature")
}

STUDY = Study(
    name="imagenet_temperature",
    title="Cosine softmax at eight temperatures, ResNet-50 on ImageNet",
    question="Does one parameter trade class separation for transfer?",
    source="imagenet",
    targets=TARGETS,
    networks=runs(SWEEP, (0,), arm=arms.SWEEP),
    measure=("accuracy", "class_separation", "relearning_from_training(shots=50)", "linear"),
    threads=8,
    gpus=1.0,
)
