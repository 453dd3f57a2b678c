"""Five tasks that differ in nothing but how many of their classes are pretraining classes: none to all.

    penultimate run shared_classes

The networks are those of the main arm of the reference run, so that what it has trained is not trained again.
Laid down on 2026-11-23, before any of them was tested on one of these tasks: there are no numbers to expect.
It is there for the claim that separation hurts transfer least where classes are shared, which is judged by
the slope of a task's rank correlation (class separation with linear transfer) over the share of its classes;
table F.1 has the correlations.
"""

import dataclasses

from penultimate.data.catalog import SHARES
from penultimate.studies.glyphs import STUDY as FIRST
from penultimate.study.spec import Study

MAIN = tuple(
    dataclasses.replace(grid, measure=None)
    for grid in FIRST.runs
    if not grid.arm and grid.backbones == FIRST.main.backbones
)

STUDY = Study(
    name="shared_classes",
    title="Nine objectives on tasks that share none to all of their classes with pretraining",
    question="Does class separation hurt transfer less, the more classes a task shares with pretraining?",
    source=FIRST.source,
    targets=tuple(SHARES),
    networks=MAIN,
    measure=("class_separation", "overlap", "linear"),
    tuned_by=FIRST.tuned_by,
    expected_seconds={"train": FIRST.expected_seconds["train"]},
)
