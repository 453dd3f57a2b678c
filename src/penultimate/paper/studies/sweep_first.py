"""A part of `sweep`: all 34 networks a seed, the first three of its five seeds.

    penultimate run sweep_first

The kept run was made on 2026-11-26 on one H100 (16 processes, each with a sixteenth of the GPU) from main at
f9e919d, after the rules had been filed (d157b3e); `kept.json` names 751dbe0, the last commit that the copy of
the repository on that machine knew of. The part was named after the run, when it was clear for how many seeds
the time on the GPU had sufficed; the grid, the seeds and the rules were those of `sweep`.
"""

import dataclasses

from penultimate.paper import arms
from penultimate.paper.studies.sweep import CHANGES_BY_SPEC, FAMILIES, PAPERS, RECIPE, SEEDS, of_strengths
from penultimate.paper.studies.sweep import STUDY as WHOLE
from penultimate.study.blocks import runs_by_recipe

FIRST = SEEDS[:3]

STUDY = dataclasses.replace(
    WHOLE,
    name="sweep_first",
    title="Eight families of objectives, each at several strengths, the first three of five seeds",
    networks=(
        *of_strengths(FIRST, FAMILIES),
        *runs_by_recipe(PAPERS, RECIPE, CHANGES_BY_SPEC, seeds=FIRST, arm=arms.PAPERS_STRENGTHS),
    ),
)
