"""Cosine softmax at temperatures from 0.05 on, with a loss that is not scaled, and linear transfer.

    penultimate run imagenet_temperature_unscaled --data imagenet=FOLDER --root FOLDER

Computed, not measured: 90 GPU hours of training on H100s at 2,500 images a second, and 108.2 GB of files.
The network at 0.05 is the first of imagenet_resnet50's cosine softmax.

Expect (a footnote to section 3.4) the relations of table 4 "for temperatures >= 0.05" without scaling as
well, of which no number is printed but those at 0.05 in tables 1 and 3: R^2 of 0.641 and 77.9 %. Neither the
number of runs nor the epochs are stated; here they are one and those of cosine softmax.

Exhibits: table4.
"""

from penultimate.paper import arms
from penultimate.paper.published import table
from penultimate.paper.studies.imagenet_temperature import STUDY as SCALED
from penultimate.paper.studies.paper import BY_SLUG, NINE, TARGETS, runs, spec
from penultimate.study.spec import Study

STABLE = 0.05
"""The lowest temperature at which the paper trains without scaling the loss."""
SWEEP = {
    spec("cosine_softmax", [("temperature", row["temperature"]), ("scale", 1)]): NINE[
        BY_SLUG["cosine_softmax"]
    ]
    for row in table("neurips_table4_temperature")
    if float(row["temperature"] or 0) >= STABLE
}

STUDY = Study(
    name="imagenet_temperature_unscaled",
    title="Cosine softmax at four temperatures, its loss not scaled, ResNet-50 on ImageNet",
    question="Does temperature trade class separation for transfer where the loss is not scaled?",
    source="imagenet",
    targets=TARGETS,
    networks=runs(SWEEP, (0,), arm=arms.SWEEP),
    measure=SCALED.measure,
    threads=8,
    gpus=1.0,
)
