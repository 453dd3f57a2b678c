"""The parts of `glyphs`, `full` and `evidence`: run and kept one by one, so that a lost machine costs one.

    penultimate run glyphs_first
    penultimate keep --study glyphs_first --to FOLDER
    penultimate join glyphs FOLDER ... --to FOLDER

Each takes between half an hour and two and a half hours on two CPU cores, and less than 6 GB of disk
(`penultimate plan glyphs_first`). Networks that are in the store are not trained again: `evidence_measured`
makes more measurements of those of `glyphs_first`; `evidence_backbones` shares eight of the second
architecture with `glyphs_one_draw`, and `full_objectives` shares all its 18 with that part; `full_changed`
shares eight with `glyphs_temperatures`.
"""

import dataclasses

from penultimate.paper.studies import evidence, full, glyphs
from penultimate.paper.studies.nine import CHANGES, NINE
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study


def _part(whole: Study, name: str, title: str, networks: tuple[Runs, ...]) -> Study:
    """Return some networks of a study as a study of their own."""
    return dataclasses.replace(whole, name=f"{whole.name}_{name}", title=title, networks=networks)


def _nine(name: str, title: str, seeds: tuple[int, ...]) -> Study:
    grids = runs_by_recipe(NINE, glyphs.RECIPE, CHANGES, seeds=seeds)
    return _part(glyphs.STUDY, name, title, grids)


GLYPHS_FIRST = _nine("first", "Nine objectives, the first three of nine seeds", glyphs.SEEDS[:3])
GLYPHS_SECOND = _nine("second", "Nine objectives, the second three of nine seeds", glyphs.SEEDS[3:6])
GLYPHS_THIRD = _nine("third", "Nine objectives, the last three of nine seeds", glyphs.SEEDS[6:])
GLYPHS_ONE_DRAW = _part(
    glyphs.STUDY, "one_draw", "Nine objectives, five seeds on one draw of the world", glyphs.ONE_DRAW
)
GLYPHS_TEMPERATURES = _part(
    glyphs.STUDY, "temperatures", "Cosine softmax at eight temperatures, three seeds", glyphs.TEMPERATURES
)
FULL_OBJECTIVES = _part(full.STUDY, "objectives", "Nine objectives, two seeds", full.OBJECTIVES)
FULL_CHANGED = _part(
    full.STUDY, "changed", "Temperatures, augmentation, combinations and architectures", full.CHANGED
)
EVIDENCE_MEASURED = _part(
    evidence.STUDY, "measured", "Fine-tuning, and what foretells transfer", evidence.MEASURED
)
EVIDENCE_OTHERWISE = _part(
    evidence.STUDY, "otherwise", "Augmentation, combinations and long training", evidence.OTHERWISE
)
EVIDENCE_BACKBONES = _part(evidence.STUDY, "backbones", "Three more architectures", evidence.BACKBONES)
