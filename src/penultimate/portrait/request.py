"""What a portrait asks for: the search for the objective's strength, and the study of the tuned objective."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penultimate.errors import RequestError, counted
from penultimate.measures.catalogue import measurement, requested
from penultimate.measures.declaration import Made
from penultimate.objectives.presets import resolve
from penultimate.portrait import SEEDS, STRENGTHS
from penultimate.records.archive import KeptStudy, reference
from penultimate.records.tuning import Number, Tuned, Tuning
from penultimate.results.beside import held_of_all
from penultimate.study.blocks import Runs
from penultimate.study.selection import load_study, own_name
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import RECIPE, Axes, axes_of, check_names, recipe_at, settings_of, with_values
from penultimate.tuning.grid import recipe_changes, search_study

PAGE = "portrait"
OF_STRENGTHS = ("accuracy", "class_separation", "linear")
"""What is measured of the networks that show what the strength changes."""
PER = ("network", "target")
"""What is measured of a network by itself; what compares networks needs the files of all of them."""


@dataclass(frozen=True)
class PortraitRequest:
    """The portrait of an objective, as a spec or a sum, beside the networks of a kept run.

    seeds      those of the networks that are measured; the kept run has to have them
    grids      the values to try of a hyperparameter, or of a setting of the recipe
    strengths  whether the other values of the search are trained and measured too, on the first seed, to show
               what the strength changes
    thorough   whether the search has as many values and seeds as that of the kept run's own objectives
    name       the name of its study, by default after the objective
    run, base  the kept run, and the study that it is of; the reference run of the package unless given
    """

    objective: str
    seeds: tuple[int, ...] = SEEDS
    grids: Mapping[str, Sequence[Number]] = field(default_factory=dict)
    strengths: bool = True
    thorough: bool = False
    name: str = ""
    gpus: float = 0.0
    run: KeptStudy | None = None
    base: Study | None = None

    @cached_property
    def kept(self) -> KeptStudy:
        """The kept run."""
        return self.run or reference()

    @cached_property
    def whole(self) -> Study:
        """The study that the kept run is of."""
        return self.base or load_study(str(self.kept.description["name"]))

    @cached_property
    def spec(self) -> str:
        """The objective as a canonical spec; raises RequestError for one that the kept run has."""
        spec = resolve(self.objective).canonical
        self._expect_new(spec)
        return spec

    def _expect_new(self, spec: str) -> None:
        if any(spec in block.objectives for block in self.whole.runs if not block.arm):
            raise RequestError(
                f"'{spec}' is one of the objectives of {self.whole.name}: penultimate show table1 --reference"
            )

    @property
    def study_name(self) -> str:
        """The name of its study, by default after the objective."""
        return self.name or own_name(
            "-".join(("portrait", *(term.name for term in resolve(self.spec).terms)))
        )

    def axes(self, recipe: Recipe) -> Axes:
        """Return the axes: the hyperparameters and settings of the recipe, with the values to try."""
        check_names((self.spec,), self.grids)
        return axes_of(self.spec, recipe, self.grids, self._rungs)

    @cached_property
    def _searched_as(self) -> Study:
        """The study whose search chose the hyperparameters of the kept run's own objectives."""
        return load_study(self.whole.tuned_by[0]) if self.whole.tuned_by else self.whole

    @property
    def _rungs(self) -> int | None:
        """The number of values of a thorough search: of the longest grid of the kept run's."""
        search = self._searched_as.search
        return max(map(len, search.grids.values())) if self.thorough and search else None

    @cached_property
    def search(self) -> Study | None:
        """The search for the objective's strength, or None if no hyperparameter has a second value to try.

        Its data, recipe and, if it is to be thorough, its seeds and the number of its values are those of the
        search of the kept run.
        """
        of_run = self._searched_as
        main = of_run.main
        if all(len(axis.grid) < 2 for axis in self.axes(main.recipe).values()):
            return None
        seeds = main.seeds if self.thorough else main.seeds[:1]
        study = dataclasses.replace(
            of_run,
            name=self.study_name,
            networks=(Runs((self.spec,), main.recipe, main.backbones[:1], seeds, main.draws),),
            search=None,
            gpus=self.gpus,
            expected_seconds=_untimed(of_run),
        )
        return search_study(study, [self.spec], self.grids, rungs=self._rungs)

    def study(self, found: Tuning | None = None) -> Study:
        """Return the study of the objective as a search has tuned it, or with the values it begins with.

        Of an objective that diverged under every value the one that the search began with is trained, so that
        its portrait shows how it diverges.
        """
        main = self.whole.main
        axes = self.axes(main.recipe)
        values = [axis.centre for axis in axes.values()]
        spec = with_values(self.spec, axes, values)
        changes = dict[str, Any](settings_of(main.recipe, recipe_at(main.recipe, axes, values)))
        tuned = next(iter(found.objectives), None) if found else None
        if found is not None and tuned is not None and tuned.best is not None:
            spec = tuned.best.objective
            changes = recipe_changes(found, tuned.best)
        elif not changes:
            self._expect_new(spec)
        label = resolve(spec).detailed_label
        study = dataclasses.replace(
            self.whole,
            name=self.study_name,
            title=f"Portrait of {label}",
            question=f"What does {label} do to a network?",
            networks=(
                Runs((spec,), main.recipe.changed(changes), main.backbones[:1], self.seeds, main.draws),
                *self._at_strengths(spec, main.recipe.changed(changes), tuned),
            ),
            measure=self.measured,
            tuned_by=(),
            search=None,
            gpus=self.gpus,
            page=PAGE,
            beside="" if self.run else self.whole.name,
            expected_seconds=_untimed(self.whole),
        )
        known = {seed for seed, _ in held_of_all(self.kept.description, self.seeds)[1]}
        if missing := {*self.seeds} - known:
            seeds = [", ".join(map(str, sorted(each))) for each in (missing, known)]
            raise RequestError(f"the kept run {self.whole.name} has no seeds {seeds[0]}; it has {seeds[1]}")
        return study

    def _at_strengths(self, spec: str, recipe: Recipe, tuned: Tuned | None) -> tuple[Runs, ...]:
        """Return the networks of the first seed at each value of the first hyperparameter that was searched.

        All else is as in `spec`. Values that diverged in the search are left out. There are none if fewer
        than two values are left, and none of an objective that diverged under every value.
        """
        axes = self.axes(recipe) if self.search is not None else {}
        place = next((place for place in axes if place[0] != RECIPE), None)
        if place is None or not self.strengths or (tuned is not None and tuned.best is None):
            return ()
        lost = {cell.objective for cell in (tuned.cells if tuned else ()) if cell.diverged}
        specs = [with_values(spec, {place: axes[place]}, (value,)) for value in axes[place].grid]
        specs = [text for text in dict.fromkeys((*specs, spec)) if text not in lost]
        measured = tuple(text for text in self.measured if requested(text).measurement.name in OF_STRENGTHS)
        if len(specs) < 2 or not measured:
            return ()
        main = self.whole.main
        return (
            Runs(
                tuple(specs),
                recipe,
                main.backbones[:1],
                self.seeds[:1],
                main.draws,
                arm=STRENGTHS,
                measure=measured,
                swept=".".join(place),
            ),
        )

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """What the kept run holds of every seed asked for, and is measured of one network by itself."""
        held = held_of_all(self.kept.description, self.seeds)[0]
        return tuple(text for text in held if _is_of_one(text))


def _is_of_one(text: str) -> bool:
    what = requested(text).measurement
    stages = [measurement(need.stage) for need in what.needs if isinstance(need, Made)]
    return what.per in PER and not any(one.trains for one in (what, *stages))


def _untimed(study: Study) -> dict[str, float]:
    """Return a study's costs without that of a training, which this machine is timed for."""
    return {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}


def plan_words(request: PortraitRequest) -> list[str]:
    """Return what a portrait will do, in sentences."""
    sentences = ["There is no strength to search for."]
    if request.search is not None and request.search.tunes is not None:
        axes = "; ".join(map(str, request.search.tunes.objectives[0].axes))
        runs, seeds = len(request.search.keys()), len(request.search.main.seeds)
        sentences = [f"Search on the holdout: {axes}; {_trainings(runs)} ({counted(seeds, 'seed')})."]
        if not request.thorough:
            sentences.append("--thorough searches with as many values and seeds as the others were.")
    elif axes_given := request.axes(request.whole.main.recipe):
        values = ", ".join(f"{axis.key} = {axis.centre!r}" for axis in axes_given.values())
        sentences = [f"Each hyperparameter has one value ({values}), so there is no search."]
    seeds_text = ", ".join(map(str, request.seeds))
    sentences.append(
        f"Then {_trainings(len(request.seeds))} (seeds {seeds_text}) and {len(request.measured)} measurements"
        f" of each network, beside the kept run {request.whole.name}."
    )
    for block in [block for block in request.study().runs if block.arm == STRENGTHS]:
        others = _trainings(len(block.objectives) - 1)
        sentences.append(
            f"On seed {request.seeds[0]}, the other values ({others}) show what the strength changes."
        )
    return sentences


def _trainings(count: int) -> str:
    return counted(count, "training")
