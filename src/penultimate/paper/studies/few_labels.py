"""Nine objectives on few labels: does separating the classes of pretraining help from one to twenty images?

    penultimate run few_labels

The networks are those of `glyphs_first`, and so are their steps; a store that has these only measures what is
new. The rules (`penultimate.paper.claims.few_labels`) were laid down on 2026-11-26, before any of these
networks was tried on few labels.
"""

from penultimate.paper.studies.glyphs import RECIPE
from penultimate.paper.studies.nine import CHANGES, NINE, TARGETS
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.spec import Study

STUDY = Study(
    name="few_labels",
    title="Nine objectives on one to twenty images a class",
    question="Do objectives that separate their classes further transfer better from few labels?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(NINE, RECIPE, CHANGES, seeds=(0, 1, 2)),
    measure=(
        "accuracy",
        "class_separation",
        "collapse",
        "linear",
        "few_labels",
        "compactness",
        "source_compactness",
    ),
    tuned_by=("matched_search", "matched_search_scaled"),
)
