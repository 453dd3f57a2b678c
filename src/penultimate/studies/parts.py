"""The parts of `glyphs`, which are run and kept one by one, so that a machine lost costs one of them.

    penultimate run glyphs_first
    penultimate keep --study glyphs_first --to FOLDER
    penultimate join glyphs FOLDER ... --to FOLDER

Each takes half an hour to an hour and a half on two CPU cores (`penultimate plan glyphs_first`) and less than
6 GB of disk. What compares networks with each other is measured in one part only.
"""

import dataclasses

from penultimate.studies import glyphs
from penultimate.study.blocks import Given, Runs, runs_by_recipe
from penultimate.study.spec import Study


def _part(name: str, title: str, networks: tuple[Runs | Given, ...]) -> Study:
    """Some networks of `glyphs` as a study of their own."""
    return dataclasses.replace(glyphs.STUDY, name=f"glyphs_{name}", title=title, networks=networks)


def _nine(seeds: tuple[int, ...]) -> tuple[Runs, ...]:
    return runs_by_recipe(glyphs.NINE, glyphs.RECIPE, glyphs.CHANGES, seeds=seeds)


FIRST = _part("first", "Nine objectives, the first five of nine seeds", _nine(glyphs.FIRST))
SECOND = _part("second", "Nine objectives, the other four of nine seeds", _nine(glyphs.SECOND))
ONE_DRAW = _part("one_draw", "Nine objectives, five seeds on one draw of the world", glyphs.ONE_DRAW)
TEMPERATURES = _part("temperatures", "Cosine softmax at eight temperatures, three seeds", glyphs.TEMPERATURES)
