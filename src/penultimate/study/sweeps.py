"""One objective at several strengths: an arm of a study, whose networks are trained like any others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penultimate.errors import unknown
from penultimate.objectives.presets import resolve
from penultimate.specs import Spec, parse_sum
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.fields import check_types, no_repeats
from penultimate.training.recipe import Recipe


@dataclass(frozen=True)
class Sweep:
    """An objective whose strength is varied; `runs` are the grids of its networks, as an arm of their own.

    family          the name of the arm, by which exhibits and rules find the networks
    objective       the spec of the objective without the varied hyperparameter: "sigmoid + logit_penalty"
    hyperparameter  the name of what is varied; where several terms have one of that name,
                    "cosine_softmax.temperature" says of which
    values          the strengths; a curve joins them in their order
    seeds           the seeds of every strength
    zero            the objective at strength zero, where the curve begins: what is left without the varied
                    term ("softmax"), or that term at another value; "" if there is none
    changes         {objective: {setting of the recipe: value}}, as for `runs_by_recipe`

    >>> sweep = Sweep("label smoothing", "label_smoothing", "alpha", (0.1, 0.4), zero="softmax")
    >>> sweep.specs
    ('softmax', 'label_smoothing(alpha=0.1)', 'label_smoothing(alpha=0.4)')
    >>> [(runs.arm, runs.objectives[1], runs.seeds) for runs in sweep.runs]
    [('label smoothing', 'label_smoothing(alpha=0.1)', (0,))]
    """

    family: str
    objective: str
    hyperparameter: str
    values: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    zero: str = ""
    recipe: Recipe = field(default_factory=Recipe)
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draws: int | str = "seed"
    measure: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_types(self)
        no_repeats("the sweep", self.specs)

    @property
    def specs(self) -> tuple[str, ...]:
        """The objectives as canonical specs: that at strength zero, if any, then one for each value."""
        zero = (resolve(self.zero).canonical,) if self.zero else ()
        return (*zero, *map(self.at, self.values))

    def at(self, value: float) -> str:
        """Return the canonical spec of the objective at one strength."""
        owner, name = self._place()
        terms = [
            Spec(term.name, {**term.arguments, **({name: value} if term.name == owner else {})})
            for term in parse_sum(self.objective)
        ]
        return resolve(" + ".join(map(str, terms))).canonical

    def _place(self) -> tuple[str, str]:
        """Return the term that has the hyperparameter, and the hyperparameter's name within it."""
        owner, _, name = self.hyperparameter.rpartition(".")
        bound = {term.name: term.arguments for term in resolve(self.objective).terms}
        owners = [term for term in bound if name in bound[term] and owner in ("", term)]
        if len(owners) != 1:
            known = [f"{term}.{each}" for term in bound for each in bound[term]]
            raise unknown(f"hyperparameter of '{self.objective}'", self.hyperparameter, known)
        return owners[0], name

    @property
    def runs(self) -> tuple[Runs, ...]:
        """The grids of the sweep, all of one arm: one for each recipe that `changes` makes."""
        shared = {"seeds": self.seeds, "draws": self.draws, "arm": self.family, "measure": self.measure}
        return runs_by_recipe(self.specs, self.recipe, self.changes, swept=".".join(self._place()), **shared)
