"""One objective at several strengths: an arm of a study, whose networks are trained like any others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penultimate.errors import RequestError, nearest
from penultimate.objectives.parts import PARTS
from penultimate.objectives.presets import PRESETS, SOFTMAX, resolve
from penultimate.specs import Spec, parse_sum
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.fields import as_tuple, no_repeats
from penultimate.training.recipe import Recipe

NEUTRAL = {"keep": 1}
"""The values at which hyperparameters change nothing; of all others it is 0."""


@dataclass(frozen=True)
class Sweep:
    """An objective whose strength is varied; `runs` are the grids of its networks, as an arm of their own.

    family          the name of the arm, by which exhibits and rules find the networks
    objective       the spec of the objective without the varied hyperparameter: "sigmoid + logit_penalty"
    hyperparameter  the name of what is varied; where several terms have one of that name,
                    "cosine_softmax.temperature" says of which
    values          two strengths or more, rising or falling: a curve joins them in their order
    seeds           the seeds of every strength
    zero            the objective at strength zero, where the curve begins: what is left without the varied
                    term ("softmax"), or that term at another value; "" if there is none
    changes         {objective: {setting of the recipe: value}}, as for `runs_by_recipe`

    A step of a sweep is that of the same network in any other study. Raise RequestError for a hyperparameter
    that the objective lacks, for fewer than two values, for values that neither rise nor fall or are out of
    range, and for a zero that is another objective.

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
        try:
            self._check()
        except RequestError as error:
            raise RequestError(f"the sweep of '{self.family}': {error}") from None

    def _check(self) -> None:
        if not isinstance(self.family, str) or not self.family.strip():
            raise RequestError("family is the name of an arm, such as 'label smoothing'")
        if not isinstance(self.hyperparameter, str):
            raise RequestError(
                f"a sweep varies one hyperparameter, such as 'temperature', not {self.hyperparameter!r}; give"
                " each a sweep of its own, or list the objectives in Runs(...)"
            )
        if not isinstance(self.zero, str):
            raise RequestError(f"zero is an objective such as 'softmax', or '', not {self.zero!r}")
        values = as_tuple(self, "values", (int, float), "numbers")
        if len(values) < 2:
            raise RequestError(
                f"{len(values)} of the two values that a curve needs at least; give another value of"
                f" {self.hyperparameter}, or train one network with Runs(('{self.objective}',), ...)"
            )
        no_repeats("values", values)
        if list(values) not in (sorted(values), sorted(values, reverse=True)):
            raise RequestError(
                "a curve joins the values in their order, so they rise or fall, and"
                f" {', '.join(map(str, values))} do neither; give {', '.join(map(str, sorted(values)))}"
            )
        no_repeats("the sweep", self.specs)
        self._check_zero()

    def _check_zero(self) -> None:
        """Raise RequestError for a zero that is no strength of the family, or that is there twice.

        What a plug-in becomes without strength is not known.
        """
        if not self.zero:
            return
        owner, name = self._place()
        terms = resolve(self.objective).terms
        others = " + ".join(str(term) for term in terms if term.name != owner) or SOFTMAX.name
        without, zero = resolve(others), resolve(self.zero)
        neutral = NEUTRAL.get(name, 0)
        if zero == without and neutral in self.values:
            raise RequestError(
                f"'{self.at(neutral)}' is '{self.zero}' once more; leave {neutral} out of the values, or zero"
            )
        changed = [{**term.arguments, name: None} if term.name == owner else term for term in zero.terms]
        ours = [{**term.arguments, name: None} if term.name == owner else term for term in terms]
        if owner in (*PRESETS, *PARTS) and zero != without and changed != ours:
            raise RequestError(
                f"the curve of '{self.objective}' cannot begin at '{self.zero}', another objective; without"
                f" {owner} it is '{without.canonical}': give that as zero, or none"
            )

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
        if not owners:
            known = [f"{term}.{each}" for term in bound for each in bound[term]]
            has = f"it has {', '.join(known)}" if known else "it has none"
            names = known if owner else [each.partition(".")[2] for each in known]
            raise RequestError(
                f"'{self.objective}' has no hyperparameter '{self.hyperparameter}': {has}."
                f"{nearest(self.hyperparameter, names)}"
            )
        if len(owners) > 1:
            either = " or ".join(f"'{term}.{name}'" for term in owners)
            raise RequestError(f"several terms of '{self.objective}' have '{name}'; say {either}")
        for term in parse_sum(self.objective):
            if term.name == owners[0] and name in term.arguments:
                raise RequestError(
                    f"'{self.objective}' gives {name} a value already, and the sweep varies it; leave it out"
                )
        return owners[0], name

    @property
    def runs(self) -> tuple[Runs, ...]:
        """The grids of the sweep, all of one arm: one for each recipe that `changes` makes."""
        return runs_by_recipe(
            self.specs,
            self.recipe,
            self.changes,
            seeds=self.seeds,
            draws=self.draws,
            arm=self.family,
            measure=self.measure,
            swept=".".join(self._place()),
        )
