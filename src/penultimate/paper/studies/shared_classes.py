"""Five tasks that differ in nothing but how many of their classes are pretraining classes: none to all.

    penultimate run shared_classes

The networks are those of `glyphs_first`, and are not trained again in its store, where this takes minutes.
The study was laid down on 2026-11-23, before any of them was tested on one of these tasks. It serves the
claim that separation hurts transfer least where classes are shared, which is judged by the slope of a task's
rank correlation (class separation with linear transfer) over the share of its classes; table F.1 has the
correlations.
"""

import dataclasses

from penultimate.data.catalog import SHARES
from penultimate.paper.studies.parts import GLYPHS_FIRST as FIRST

STUDY = dataclasses.replace(
    FIRST,
    name="shared_classes",
    title="Nine objectives on tasks that share none to all of their classes with pretraining",
    question="Does class separation hurt transfer less, the more classes a task shares with pretraining?",
    targets=tuple(SHARES),
    measure=("class_separation", "overlap", "linear"),
)
