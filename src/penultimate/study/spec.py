"""What a study is: frozen data that names a grid of runs and the measurements on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.errors import RequestError, nearest, unknown
from penultimate.objectives.presets import resolve
from penultimate.study.measures import canonical as canonical_measure
from penultimate.study.measures import check_settings
from penultimate.training.recipe import Recipe

PROBES = ("linear", "knn")
METRICS = ("accuracy", "class_separation")
INSTRUMENTS: dict[str, dict[str, Any]] = {
    "collapse": {"split": "train"},
    "sparsity": {"split": "test"},
    "hardness": {"split": "test"},
    "spectra": {"split": "train"},
    "distances": {"split": "train", "count": 10_000, "seed": 0},
    "calibration": {},
    "agreement": {},
    "layers": {"splits": ["test"]},
    "similarity": {"split": "test", "images": 5120, "batch_size": 256, "passes": 1},
    "dynamics": {"splits": ["train", "test"], "images": 5120},
    "robustness": {
        "per_class": 2,
        "outside": {
            "objective": "softmax",
            "backbone": "glyphnet(width=8, features=128)",
            "recipe": {"epochs": 4, "learning_rate": 0.4, "warmup": 0.1, "augmentation": {"shift": 0}},
            "seed": 0,
        },
    },
}
"""What looks inside each network or at its predictions, on which of the source's splits, and its settings."""


@dataclass(frozen=True)
class Study:
    """A grid of runs (objectives x backbones x seeds) on one source, and what is measured on each network.

    `draw` chooses the draw of a generated world: "seed" gives every seed its own, an integer gives all
    seeds the same. `relearning` lists the numbers of fresh images a class from which the source's own classes
    are learnt anew on the fixed features. `metrics` and `probes` may name plug-ins too.
    `adjustments` change the recipe for single objectives, named by spec or by preset: {"cosine_softmax":
    {"learning_rate": 4.0}}; `seeds_of` names, in the same way, those that have only some of the seeds, and
    backbones too, by spec; `objectives_of` names, by the spec of a backbone, the only objectives that are
    trained with it. The first backbone is the one that exhibits speak of.
    `tuned_by` is the study in whose tuning the hyperparameters were chosen. `limited` marks a study too
    small to be read as evidence: its rows say so, and exhibits refuse them unasked. `expected_seconds` are
    the costs of a step of each kind, measured on two CPU cores, which `plan` uses where the store knows none.
    """

    name: str
    title: str
    question: str
    objectives: tuple[str, ...]
    source: str
    targets: tuple[str, ...]
    recipe: Recipe
    backbones: tuple[str, ...] = ("glyphnet",)
    seeds: tuple[int, ...] = (0,)
    draw: int | str = "seed"
    probes: tuple[str, ...] = PROBES
    metrics: tuple[str, ...] = METRICS
    instruments: tuple[str, ...] = ()
    relearning: tuple[int, ...] = ()
    threads: int = 1
    limited: bool = False
    adjustments: dict[str, dict[str, Any]] = field(default_factory=dict)
    seeds_of: dict[str, tuple[int, ...]] = field(default_factory=dict)
    objectives_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tuned_by: str = ""
    expected_seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what in ("objectives", "targets", "backbones", "seeds", "probes", "metrics", "instruments"):
            values = getattr(self, what)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise RequestError(f"study '{self.name}': {what} must be a tuple, not {values!r}")
            object.__setattr__(self, what, tuple(values))
            if what in ("objectives", "backbones", "seeds") and not values:
                raise RequestError(f"study '{self.name}': {what} is empty; at least one is needed")
        if not self.name.replace("-", "_").isidentifier():
            raise RequestError(f"a study is named by letters, digits, '_' and '-', not '{self.name}'")
        canonical = tuple(resolve(text).canonical for text in self.objectives)
        _no_repeats(self.name, "objectives", canonical)
        object.__setattr__(self, "objectives", canonical)
        backbones = tuple(str(registry.parse(text)) for text in self.backbones)
        for text in backbones:
            check_settings("backbone", registry.parse(text))
        object.__setattr__(self, "backbones", backbones)
        for what in ("seeds_of", "objectives_of"):
            named = {_as_listed(key, backbones): value for key, value in getattr(self, what).items()}
            object.__setattr__(self, what, named)
        for what in ("targets", "backbones", "seeds", "relearning"):
            _no_repeats(self.name, what, getattr(self, what))
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
                raise RequestError(
                    f"study '{self.name}': a seed is an integer from 0 to 2^31 - 1, not {seed!r}"
                )
        if self.draw != "seed" and (
            isinstance(self.draw, bool) or not isinstance(self.draw, int) or self.draw < 0
        ):
            raise RequestError(f"study '{self.name}': draw is 'seed' or an integer >= 0, not {self.draw!r}")
        if card(self.source).role != "pretraining":
            raise RequestError(f"study '{self.name}': '{self.source}' is no pretraining data set")
        for target in self.targets:
            if card(target).role != "transfer":
                raise RequestError(f"study '{self.name}': '{target}' is no transfer data set")
        for shots in self.relearning:
            if isinstance(shots, bool) or not isinstance(shots, int) or shots < 2:
                raise RequestError(
                    f"study '{self.name}': relearning counts images a class, 2 or more, not {shots!r}"
                )
        if self.relearning and "relearn" not in card(self.source).sizes:
            raise RequestError(f"study '{self.name}': '{self.source}' has no images for relearning")
        for what, known in (("probes", PROBES), ("metrics", METRICS)):
            measures = tuple(canonical_measure(what[:-1], text, known) for text in getattr(self, what))
            _no_repeats(self.name, what, measures)
            object.__setattr__(self, what, measures)
        for name in self.instruments:
            if name not in INSTRUMENTS:
                raise unknown("instrument", name, INSTRUMENTS)
        if isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 1:
            raise RequestError(f"study '{self.name}': threads is an integer >= 1, not {self.threads!r}")
        self._check_adjustments()
        self._check_seeds_of()
        self._check_objectives_of()
        self._check_grid()

    def _check_adjustments(self) -> None:
        known = [item.name for item in dataclasses.fields(self.recipe)]
        names = {name for text in self.objectives for name in _names(text)}
        for key, changes in self.adjustments.items():
            resolve(key)
            if key not in names:
                raise RequestError(
                    f"study '{self.name}': adjustments name '{key}', and no objective of the study is"
                    f" called so.{nearest(key, names)}"
                )
            for setting in changes:
                if setting not in known:
                    raise unknown("recipe setting", setting, known)
        for text in self.objectives:
            self.recipe_of(text)

    def _check_seeds_of(self) -> None:
        names = {*self.backbones, *(name for text in self.objectives for name in _names(text))}
        for key, seeds in self.seeds_of.items():
            if key not in names:
                raise RequestError(
                    f"study '{self.name}': seeds_of names '{key}', and no objective or backbone of the study"
                    f" is called so.{nearest(key, names)}"
                )
            if not seeds or set(seeds) - set(self.seeds):
                raise RequestError(
                    f"study '{self.name}': seeds_of gives '{key}' the seeds {tuple(seeds)!r}; they have to be"
                    f" some of the study's, {self.seeds!r}"
                )

    def _check_objectives_of(self) -> None:
        names = {name for text in self.objectives for name in _names(text)}
        for backbone, objectives in self.objectives_of.items():
            if backbone not in self.backbones:
                raise RequestError(
                    f"study '{self.name}': objectives_of names '{backbone}', and no backbone of the study is"
                    f" called so.{nearest(backbone, self.backbones)} It has: {', '.join(self.backbones)}."
                )
            if isinstance(objectives, str) or not isinstance(objectives, Sequence) or not objectives:
                raise RequestError(
                    f"study '{self.name}': objectives_of gives '{backbone}' a tuple of one objective or more,"
                    f" not {objectives!r}"
                )
            for name in objectives:
                if name not in names:
                    raise RequestError(
                        f"study '{self.name}': objectives_of gives '{backbone}' the objective '{name}', and"
                        f" none of the study is called so.{nearest(name, names)}"
                    )
            _no_repeats(self.name, f"objectives_of['{backbone}']", objectives)

    def _check_grid(self) -> None:
        """Every backbone and every objective has a network."""
        for backbone in self.backbones:
            if not any(self.seeds_for(objective, backbone) for objective in self.objectives):
                raise RequestError(
                    f"study '{self.name}': nothing is trained with the backbone '{backbone}': its seeds,"
                    f" {self._own_seeds((backbone,))!r}, are none of its objectives'; see seeds_of"
                )
        for objective in self.objectives:
            if not any(self.seeds_for(objective, backbone) for backbone in self.backbones):
                raise RequestError(
                    f"study '{self.name}': '{objective}' is trained with no backbone: objectives_of and"
                    " seeds_of leave it none; name it there, or take it out of objectives"
                )

    def objectives_for(self, backbone: str) -> tuple[str, ...]:
        """The objectives of the study that are trained with one of its backbones, in the study's order.

        >>> from penultimate.study import load_study
        >>> study = load_study("smoke")
        >>> study = study.with_backbones(("glyphnet", "glyphplain"))
        >>> study = dataclasses.replace(study, objectives_of={"glyphplain": ("softmax",)})
        >>> [len(study.objectives_for(backbone)) for backbone in study.backbones]
        [3, 1]
        """
        named = self.objectives_of.get(backbone)
        return tuple(text for text in self.objectives if named is None or {*named} & {*_names(text)})

    def seeds_for(self, objective: str, backbone: str) -> tuple[int, ...]:
        """The seeds with which an objective is trained with a backbone: those that both have, if any.

        >>> from penultimate.study import load_study
        >>> study = load_study("smoke")
        >>> study = dataclasses.replace(study, seeds=(0, 1), seeds_of={"softmax": (1,)})
        >>> [study.seeds_for(text, study.backbones[0]) for text in study.objectives]
        [(1,), (0, 1), (0, 1)]
        """
        if objective not in self.objectives_for(backbone):
            return ()
        also = self._own_seeds((backbone,))
        return tuple(seed for seed in self._own_seeds(_names(objective)) if seed in also)

    def _own_seeds(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(next((self.seeds_of[name] for name in names if name in self.seeds_of), self.seeds))

    def recipe_of(self, objective: str) -> Recipe:
        """The recipe with which an objective of the study is trained: its adjustments by spec, or by preset.

        >>> from penultimate.study import load_study
        >>> study = load_study("smoke")
        >>> study = dataclasses.replace(study, adjustments={"softmax": {"learning_rate": 0.1}})
        >>> [study.recipe_of(text).learning_rate for text in study.objectives]
        [0.1, 0.3, 0.3]
        """
        changes = next((self.adjustments[name] for name in _names(objective) if name in self.adjustments), {})
        return dataclasses.replace(self.recipe, **changes)

    def with_objectives(self, objectives: Sequence[str]) -> Study:
        """The study of other objectives; what it says of none of them is left out.

        So is a backbone with which only others are trained.
        """
        names = {name for text in objectives for name in _names(text)}
        left = {
            backbone: tuple(name for name in own if name in names)
            for backbone, own in self.objectives_of.items()
        }
        backbones = tuple(one for one in self.backbones if left.get(one, True))
        return dataclasses.replace(
            self,
            objectives=tuple(objectives),
            backbones=backbones,
            adjustments={key: changes for key, changes in self.adjustments.items() if key in names},
            seeds_of={key: seeds for key, seeds in self.seeds_of.items() if key in {*names, *backbones}},
            objectives_of={backbone: own for backbone, own in left.items() if own},
        )

    def with_backbones(self, backbones: Sequence[str]) -> Study:
        """The study of other backbones; what it says of none of them is left out.

        So is an objective that is trained only with others: the study of glyphs' second backbone alone has
        that one's objectives.

        >>> from penultimate.study import load_study
        >>> glyphs = load_study("glyphs")
        >>> alone = glyphs.with_backbones(("glyphplain",))
        >>> len(glyphs.objectives), len(alone.objectives)
        (14, 4)
        """
        backbones = tuple(str(registry.parse(text)) for text in backbones)
        gone = set(self.backbones) - set(backbones)
        limits = [self.objectives_of.get(backbone) for backbone in backbones]
        named = {name for own in limits for name in own or self.objectives}
        fewer = self.with_objectives([text for text in self.objectives if named & {*_names(text)}])
        return dataclasses.replace(
            fewer,
            backbones=backbones,
            seeds_of={key: seeds for key, seeds in fewer.seeds_of.items() if key not in gone},
            objectives_of={key: own for key, own in fewer.objectives_of.items() if key not in gone},
        )

    def slugs(self) -> dict[str, str]:
        """A short name for each objective: its preset's, or, where taken or none, its spec."""
        slugs: dict[str, str] = {}
        for text in self.objectives:
            preset = resolve(text).preset
            slugs[text] = preset if preset and preset not in slugs.values() else text
        return slugs

    def describe(self) -> dict[str, Any]:
        """The study as JSON: what its report and its results are read with."""
        slugs = self.slugs()
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "objectives": [
                {"slug": slugs[text], "label": _label(text, slugs[text]), "spec": text}
                for text in self.objectives
            ],
            "backbones": list(self.backbones),
            "seeds": list(self.seeds),
            "source": self.source,
            "targets": list(self.targets),
            "probes": list(self.probes),
            "metrics": list(self.metrics),
            "instruments": list(self.instruments),
            "relearning": list(self.relearning),
            "draw": self.draw,
            "threads": self.threads,
            "recipe": dataclasses.asdict(self.recipe),
            "adjustments": self.adjustments,
            "seeds_of": {key: list(seeds) for key, seeds in self.seeds_of.items()},
            "objectives_of": {key: list(names) for key, names in self.objectives_of.items()},
            "tuned_by": self.tuned_by,
            "limited": self.limited,
            "cards": [
                card(name).described()
                for name in (self.source, *self.targets)
                if registry.entry("dataset", name).is_plugin
            ],
        }


def _label(text: str, slug: str) -> str:
    composition = resolve(text)
    return composition.label if composition.preset == slug else composition.detailed_label


def _names(objective: str) -> tuple[str, ...]:
    """What an adjustment can call an objective: its canonical spec, then its preset."""
    composition = resolve(objective)
    return (composition.canonical, *([composition.preset] if composition.preset else []))


def _as_listed(text: str, backbones: Sequence[str]) -> str:
    """A backbone's spec as the study lists it; whatever else is named, as it is."""
    try:
        canonical = str(registry.parse(text))
    except RequestError:
        return text
    return canonical if canonical in backbones else text


def _no_repeats(study: str, what: str, values: Sequence[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise RequestError(f"study '{study}': {what} names {value!r} twice; name it once")
        seen.add(value)
