"""The parts of a study: grids of networks to train, networks that are given, and a search."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penultimate.checks import is_whole
from penultimate.errors import RequestError
from penultimate.networks.checkpoint_table import CheckpointRow
from penultimate.networks.key import NetworkKey, grid
from penultimate.networks.sources import read_source
from penultimate.objectives.presets import resolve
from penultimate.study.fields import (
    canonical_backbone,
    check_measure,
    check_types,
    check_words,
    no_repeats,
)
from penultimate.training.recipe import Recipe

MOST = 2**31 - 1
"""The largest seed and the largest draw."""


@dataclass(frozen=True)
class Runs:
    """A grid of networks to train: objectives x backbones x seeds, under one recipe.

    draws         "seed": every seed sees its own draw of a generated world; an integer: all seeds see that
                  draw
    arm           the name of the grid's condition, if a study has several (another recipe, a sweep); exhibits
                  show the main arm, whose name is empty, unless they say otherwise
    measure       the measurements of these networks; None stands for those of the study
    classes       how many of the source's classes the networks are trained on, evenly spaced, with as many
                  images in all (`data.fewer`); 0: all of them. A grid with another number than the main one
                  has an arm of its own
    swept         the hyperparameter that the objectives vary, "label_smoothing.alpha", if they are a sweep
                  (`study.sweeps.Sweep`)
    checkpoints   the files of networks that exist already (`study.existing.with_networks`): nothing is then
                  trained, and of the recipe only the size of the images counts, and how they are augmented
                  where a measurement trains further
    """

    objectives: tuple[str, ...]
    recipe: Recipe = field(default_factory=Recipe)
    backbones: tuple[str, ...] = ("glyphnet",)
    seeds: tuple[int, ...] = (0,)
    draws: int | str = "seed"
    arm: str = ""
    measure: tuple[str, ...] | None = None
    classes: int = 0
    swept: str = ""
    checkpoints: tuple[CheckpointRow, ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        canonical = tuple(resolve(text).canonical for text in self.objectives)
        object.__setattr__(self, "objectives", canonical)
        object.__setattr__(self, "backbones", tuple(map(canonical_backbone, self.backbones)))
        for what in ("objectives", "backbones", "seeds"):
            values = getattr(self, what)
            if not values:
                raise RequestError(f"{what} is empty; at least one is needed")
            no_repeats(what, values)
        if not all(0 <= seed <= MOST for seed in self.seeds):
            raise RequestError(f"seeds are integers from 0 to 2^31 - 1, not {self.seeds}")
        if self.draws != "seed" and not (is_whole(self.draws, 0) and self.draws <= MOST):
            raise RequestError(f"draws is 'seed' or an integer from 0 to 2^31 - 1, not {self.draws!r}")
        if self.arm:
            check_words("an arm", self.arm)
        if self.classes < 0 or self.classes == 1:
            raise RequestError(
                f"classes is the number of classes to train on, or 0 for all, not {self.classes!r}"
            )
        for text in self.objectives:
            self.recipe.expect_head(resolve(text).has_fixed_head, text)
        check_measure(self)
        for key in self.keys() if self.checkpoints else ():
            self.checkpoint(key)

    def checkpoint(self, key: NetworkKey) -> CheckpointRow:
        """Return the file of a network of the grid; raise RequestError if the table names none."""
        wanted = (key.objective, key.backbone, key.seed)
        for row in self.checkpoints:
            if (row.objective, row.backbone, row.seed) == wanted:
                return row
        raise RequestError(f"the table of networks has no file of '{key}'")

    def keys(self) -> Iterator[NetworkKey]:
        """Return the networks of the grid, one seed after the other."""
        return grid(self.objectives, self.backbones, self.seeds, self.draws, self.arm)

    def described(self) -> dict[str, Any]:
        """Return the grid as JSON; networks that exist already have files in the place of a recipe."""
        names = ("objectives", "backbones", "seeds", "draws", "arm", "measure")
        kept = _as_lists({name: getattr(self, name) for name in names})
        kept |= {name: getattr(self, name) for name in ("classes", "swept") if getattr(self, name)}
        if self.checkpoints:
            return {**kept, "checkpoints": {str(key): self.checkpoint(key).file for key in self.keys()}}
        return {**kept, "recipe": dataclasses.asdict(self.recipe)}


@dataclass(frozen=True)
class Given:
    """Networks that were not trained here: {name: source}, such as {"ours": "timm:resnet18"}.

    `classifies` says that their final layers tell the source's classes apart, in the source's order. Without
    it, no measurement that needs a final layer is made of them.
    """

    networks: Mapping[str, str]
    classifies: bool = False
    measure: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_types(self)
        if not self.networks:
            raise RequestError("given networks are {name: source}, one or more")
        for name, text in self.networks.items():
            check_words("a given network", name)
            read_source(text)
        check_measure(self)

    def keys(self) -> Iterator[NetworkKey]:
        return map(NetworkKey, self.networks)

    def described(self) -> dict[str, Any]:
        """Return the networks as JSON."""
        kept = _as_lists({"classifies": self.classifies, "measure": self.measure})
        return {"given": dict(self.networks), **kept}


@dataclass(frozen=True)
class Search:
    """The search for a study's hyperparameters: the values to try, by name, and how one of them is chosen.

    A `product` tries every combination of the values, instead of varying one at a time. With `stops`, a cell
    is judged in the epoch in which its mean over seeds is highest, and that epoch is chosen with it. With
    `by_mean`, the cell of the highest mean is chosen, and not the middle one of those that the seeds cannot
    tell from it.
    """

    grids: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    product: bool = False
    stops: bool = False
    by_mean: bool = False

    def __post_init__(self) -> None:
        check_types(self)


def runs_by_recipe(
    objectives: Sequence[str], recipe: Recipe, changes: Mapping[str, Mapping[str, Any]], **settings: Any
) -> tuple[Runs, ...]:
    """Return grids of objectives, in their order; `changes` is {objective: {setting of the recipe: value}}.

    >>> changes = {"sigmoid": {"learning_rate": 0.3}}
    >>> [(block.objectives, block.recipe.learning_rate)
    ...  for block in runs_by_recipe(("softmax", "sigmoid"), Recipe(), changes)]
    [(('softmax',), 0.6), (('sigmoid',), 0.3)]
    """
    canonical = {resolve(text).canonical: change for text, change in changes.items()}
    groups = itertools.groupby(
        [resolve(text).canonical for text in objectives],
        lambda text: recipe.changed(canonical.get(text, {})),
    )
    return tuple(Runs(tuple(texts), changed, **settings) for changed, texts in groups)


def _as_lists(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
