"""The whole study `full` in small: each of its grids, on a tiny world, in a minute of one core."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import penultimate as pu
from penultimate.paper.studies import full, smoke, world
from penultimate.specs import Spec, parse
from penultimate.study import Runs, Study
from penultimate.training.recipe import Recipe
from tests.inprocess import InProcess
from tests.shrinking import shrink

MAIN = (*full.FOUR, full.SMOOTHING, full.DROPOUT)
MEASURED = (full.SOFTMAX, full.SIGMOID, full.COSINE)
"""Of these everything is measured that `glyphs` measures; of the main grid's others, accuracy and class
separation."""
KEPT = {
    "temperature": world.TEMPERATURES[3:6],
    "autoaugment": full.FOUR,
    "mixup": full.FOUR,
    "long mixup": full.FOUR,
    "combinations": full.COMBINED[1::3][:2],
}
"""The objectives that are left of an arm; of all others, the first two of four."""
DEAR = {full.FURTHER[0], "depth", "transfer_dynamics"}
"""What is measured of one seed alone, and all that its grid measures."""
GRIDS = {"learning_rate": 2, "decay": 1}
"""How many values are tried in fine-tuning."""


def miniature() -> Study:
    """The study `full` with few objectives and small networks; an epoch stands for its 44."""
    blocks = tuple(block for whole in full.STUDY.runs for block in _fewer(whole))
    brief = shrink(
        dataclasses.replace(
            full.STUDY, source=smoke.STUDY.source, targets=smoke.STUDY.targets, networks=blocks
        ),
        {},
        epochs=1,
        batch_size=32,
        images=32,
    )
    networks = tuple(
        dataclasses.replace(small, recipe=_gentle(small.recipe, block.recipe.epochs))
        for block, small in zip(blocks, brief.runs, strict=True)
    )
    return dataclasses.replace(brief, name="miniature", networks=networks)


def run(out: str = "runs") -> None:
    """Run it, one step after the other."""
    assert pu.run(miniature(), out, engine=InProcess()).complete


def _gentle(recipe: Recipe, epochs: int) -> Recipe:
    """An epoch for each 44, in which the regime's decay would leave nothing of the weights."""
    return dataclasses.replace(
        recipe,
        epochs=max(1, epochs // world.RECIPE.epochs),
        learning_rate=recipe.learning_rate / 4,
        exposure=None,
    )


def _fewer(block: Runs) -> Iterator[Runs]:
    """Some networks of a grid; the main one's in two parts, if not everything is measured of all."""
    is_main = not block.arm and block.measure is None
    kept = KEPT.get(block.arm, MAIN if is_main else full.FOUR[:2])
    objectives = tuple(text for text in block.objectives if text in kept)
    small = dataclasses.replace(
        block,
        backbones=tuple(f"{name}(width=4, features=16)" for name in block.backbones),
        seeds=block.seeds[: 1 if DEAR.intersection(block.measure or ()) else None],
        measure=block.measure and tuple(map(_coarse, block.measure)),
    )
    of_all = tuple(text for text in objectives if not is_main or text in MEASURED)
    rest = tuple(text for text in objectives if text not in of_all)
    if of_all:
        yield dataclasses.replace(small, objectives=of_all)
    if rest:
        yield dataclasses.replace(small, objectives=rest, measure=full.ACCURACY)


def _coarse(text: str) -> str:
    """A measurement with few cells of its grid."""
    asked = parse(text)
    few = {name: value[: GRIDS[name]] if name in GRIDS else value for name, value in asked.arguments.items()}
    return str(Spec(asked.name, few))
