"""Nine objectives, two seeds, on one draw of the world: how alike are their features by five measures?

    penultimate run alike

The networks are the first two seeds of those of `glyphs` that see one draw, and so are their steps; a store
that has these only compares them.
"""

from penultimate.paper.studies.glyphs import RECIPE, THE_DRAW
from penultimate.paper.studies.nine import CHANGES, NINE, TARGETS
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.spec import Study

STUDY = Study(
    name="alike",
    title="Nine objectives compared by five measures of likeness",
    question="Do other measures find the same networks alike as CKA does?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(NINE, RECIPE, CHANGES, seeds=(0, 1), draws=THE_DRAW),
    measure=("accuracy", "class_separation", "pair_likeness"),
    tuned_by=("matched_search", "matched_search_scaled"),
)
