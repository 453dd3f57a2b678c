"""How sure networks of nine objectives are, and of what: three seeds of the networks of `nine`.

    penultimate run certainty

It takes half an hour on two CPU cores; the first seed's networks are those of `nine`, and are not trained
again in its store. It measures calibration (also of linear probes), selective classification, and how well
scores tell images of other data from the classes'. The transfer tasks are the outside data: near ones show
letters, as pretraining does (`newfaces` its very classes, in other faces), far ones digits or a typeface. It
serves the claims on label smoothing and selective classification (`penultimate.paper.claims.certainty`),
which were filed before any network of it was judged.
"""

import dataclasses

from penultimate.paper.studies import nine
from penultimate.study.blocks import runs_by_recipe

STUDY = dataclasses.replace(
    nine.STUDY,
    name="certainty",
    title="Nine objectives, three seeds: calibration, selective classification, images of other data",
    question="Which objectives give networks that know what they do not know?",
    networks=runs_by_recipe(nine.NINE, nine.RECIPE, nine.CHANGES, seeds=(0, 1, 2)),
    measure=(
        "accuracy",
        "class_separation",
        "calibration",
        "brier",
        "selective",
        "outside",
        "probe_calibration",
    ),
)
