"""A part of `head_decay`: nine objectives, the first three of its five seeds.

    penultimate run head_decay_first

The kept run was made on 2026-11-26 on one H100 (16 processes, each with a sixteenth of the GPU) from main at
f9e919d, the commit that filed the rule; `kept.json` names 751dbe0, the last commit that the copy of the
repository on that machine knew of. The part was named after the run, as `sweep_first` was.
"""

import dataclasses

from penultimate.paper.studies.head_decay import STUDY as WHOLE

STUDY = dataclasses.replace(
    WHOLE,
    name="head_decay_first",
    title="Nine objectives, the final layer with the paper's weight decay, the first three of five seeds",
    networks=tuple(dataclasses.replace(runs, seeds=runs.seeds[:3]) for runs in WHOLE.runs),
)
