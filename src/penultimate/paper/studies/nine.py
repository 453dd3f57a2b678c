"""Nine objectives, one seed, on the embedded world: the paper's question on a laptop.

    penultimate run nine

It takes five to ten minutes on two CPU cores. The hyperparameters are those of `glyphs`, which trains three
times as long (`penultimate show tableA1 --reference`); none was chosen by a transfer result. Such a short run
would learn little under the paper's weight decay and short warm-up, so it has less weight decay and a longer
warm-up (`docs/world.md`). With one seed it shows a direction, not a certainty.
"""

import dataclasses

from penultimate.paper.studies import chosen_matched, chosen_matched_scaled, matched_search
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.spec import Study

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")

MEASURE = (
    "accuracy",
    "class_separation",
    "collapse",
    "hardness",
    "spectra",
    "distances",
    "calibration",
    "agreement",
    "layers",
    "similarity",
    "dynamics",
    "robustness",
    "linear",
    "knn",
)
"""All measurements that exhibits can show of one seed."""

NINE = (*chosen_matched.NINE, *chosen_matched_scaled.NINE)
CHANGES = chosen_matched_scaled.RECIPE_CHANGES
RECIPE = dataclasses.replace(
    matched_search.RECIPE, epochs=14, warmup=0.2, exposure=5.0, evaluate_every=2, snapshot_every=3
)

STUDY = Study(
    name="nine",
    title="Nine objectives, one seed, on the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(NINE, RECIPE, CHANGES),
    measure=MEASURE,
    tuned_by=("matched_search", "matched_search_scaled"),
    expected_seconds={"train": 57.0, "accuracy": 4.5, "dynamics": 4.0},
)
