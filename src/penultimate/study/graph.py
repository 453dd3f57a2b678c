"""A study unfolded: steps, each with an identity, its parents before it.

data(source) --> train --> extract(source) --> accuracy, class_separation
                   |
data(target) ------+-----> extract(target) --> linear, knn
data(all) ---> sheet
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from penultimate import registry
from penultimate.data.catalog import card, shifted
from penultimate.objectives.presets import resolve
from penultimate.objectives.sweeps import compared
from penultimate.plugins import refuse_unshared
from penultimate.store import canonical_json
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

VERSIONS = {
    "data": 2,
    "sheet": 1,
    "train": 2,
    "extract": 1,
    "accuracy": 1,
    "class_separation": 1,
    "linear": 1,
    "knn": 1,
    "relearn": 1,
    "collapse": 1,
    "sparsity": 1,
    "hardness": 1,
    "spectra": 1,
    "distances": 1,
    "calibration": 1,
    "agreement": 1,
    "layers": 1,
    "similarity": 1,
    "metric": 1,
    "probe": 1,
    "dynamics": 1,
    "corrupted": 1,
    "hard": 1,
    "robustness": 1,
}
"""Raised by hand when a step's results change for the same configuration."""

SOURCE_SPLITS = ("train", "test")
OF_MORE = ("calibration", "agreement", "layers", "similarity", "dynamics", "robustness")
"""Instruments that ask for more than a network and its own bank."""
SEEDS_COMPARED = 2
"""Networks of an objective whose layers are compared: one and its control, as in the paper."""
NOW, NEXT, LATER = 1, 2, 3
"""Priorities: a new network's own numbers at once, then further networks; transfer fills in."""


@dataclass(frozen=True)
class Step:
    """One unit of work. `config` and `parents` make its identity; `about` fills the columns of its rows.

    A step that `gathers` goes ahead without the parents that a diverged run left out; the engine lists these
    as `absent`.
    """

    name: str
    config: dict[str, Any]
    parents: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    priority: int = LATER
    gathers: bool = False
    absent: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        identity = {
            "step": self.name,
            "version": VERSIONS[self.name],
            "config": self.config,
            "parents": sorted(self.parents),
        }
        return hashlib.sha256(canonical_json(identity).encode()).hexdigest()

    @property
    def id(self) -> str:
        """A readable name and the first 16 digits of the digest: the step's folder."""
        return f"{self.name}.{self.label}.{self.digest[:16]}"

    @property
    def label(self) -> str:
        slug = self.about.get("slug")
        parts = [slug, f"s{self.about['seed']}"] if slug else [f"d{self.config['draw']}"]
        parts.append(self.about.get("target") if self.name != "train" else None)
        parts.append(self.config.get("measure"))
        return "-".join(re.sub(r"[^A-Za-z0-9_]+", "_", str(part))[:40] for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Step:
        tuples = {name: tuple(content[name]) for name in ("parents", "absent")}
        return Step(**{**content, **tuples})


@dataclass(frozen=True)
class Graph:
    """The steps of a study in an order in which parents come first."""

    study: Study
    steps: dict[str, Step]

    def children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {step_id: [] for step_id in self.steps}
        for step_id, step in self.steps.items():
            for parent in step.parents:
                children[parent].append(step_id)
        return children


def unfold(study: Study) -> Graph:
    """The graph of a study.

    >>> from penultimate.study import load_study
    >>> graph = unfold(load_study("smoke"))
    >>> [step.name for step in graph.steps.values()][:5]
    ['data', 'data', 'data', 'sheet', 'train']
    """
    steps: dict[str, Step] = {}

    def add(
        name: str, config: dict[str, Any], parents: tuple[str, ...], about: dict[str, Any], priority: int
    ) -> str:
        step = Step(name, config, parents, about, priority)
        return steps.setdefault(step.id, step).id

    def data(name: str, seed: int) -> str:
        draw = seed if study.draw == "seed" else study.draw
        plugins = _plugin_digest("dataset", name)
        config = {"name": name, "draw": draw, **({"plugins": plugins} if plugins else {})}
        priority = {study.source: 0}.get(name, NOW if name in study.targets else LATER)
        return add("data", config, (), {"target": name}, priority)

    for seed in study.seeds:
        for name in (study.source, *study.targets):
            data(name, seed)
    first = study.seeds[0]
    pictured = tuple(data(name, first) for name in (study.source, *study.targets))
    add("sheet", {"draw": first}, pictured, {"target": study.source}, LATER)
    banks: dict[str, dict[tuple[str, int], str]] = {}
    for seed in study.seeds:
        for backbone in study.backbones:
            for objective in study.objectives:
                if seed not in study.seeds_for(objective, backbone):
                    continue
                bank = _network(study, seed, backbone, objective, data, add)
                banks.setdefault(backbone, {})[objective, seed] = bank
    if "agreement" in study.instruments:
        for backbone, of_networks in banks.items():
            _agreement(study, backbone, of_networks, steps)
    if "similarity" in study.instruments:
        common = data(study.source, first)
        for backbone, of_networks in banks.items():
            _similarity(study, backbone, common, of_networks, steps)
    return Graph(study, steps)


def _plugin_digest(kind: str, name: str) -> dict[str, str]:
    """sha256 of the source that a plug-in comes from, by "kind:name"; nothing for a built-in."""
    entry = registry.entry(kind, name)
    refuse_unshared(entry)
    digest = entry.source_digest()
    return {f"{kind}:{name}": digest} if digest else {}


def _measure(kind: str, text: str) -> tuple[str, dict[str, Any]]:
    """The step of a metric or probe; a plug-in's is that of its kind, told apart by its spec and source."""
    plugins = _plugin_digest(kind, registry.parse(text).name)
    return (kind, {"measure": text, "plugins": plugins}) if plugins else (text, {})


def _agreement(
    study: Study, backbone: str, banks: dict[tuple[str, int], str], steps: dict[str, Step]
) -> None:
    """All compared networks' predictions of the same test images, those of the first seed's draw."""
    alike = compared(study.objectives)
    banks = {model: bank for model, bank in banks.items() if model[0] in alike}
    draw = study.seeds[0] if study.draw == "seed" else study.draw
    if not banks:
        return
    config = {"models": [list(model) for model in banks], "draw": draw, "threads": study.threads}
    about = {"backbone": backbone, "source": study.source, "target": study.source}
    step = Step("agreement", config, tuple(banks.values()), about, LATER, gathers=True)
    steps.setdefault(step.id, step)


def _similarity(
    study: Study, backbone: str, common: str, banks: dict[tuple[str, int], str], steps: dict[str, Step]
) -> None:
    """The layers of the first networks of each compared objective, on the images of the first seed's draw.

    The control at initialisation is drawn from a seed that none of the networks started from.
    """
    models = [
        (spec, seed)
        for spec in compared(study.objectives)
        for seed in study.seeds_for(spec, backbone)[:SEEDS_COMPARED]
    ]
    if not models:
        return
    config = {
        **INSTRUMENTS["similarity"],
        "models": [list(model) for model in models],
        "initial_seed": next(seed for seed in itertools.count() if seed not in study.seeds),
        "draw": steps[common].config["draw"],
        "threads": study.threads,
    }
    about = {"backbone": backbone, "source": study.source, "target": study.source}
    networks = tuple(steps[banks[model]].parents[0] for model in models)  # a bank's first parent
    step = Step("similarity", config, (common, *networks), about, LATER, gathers=True)
    steps.setdefault(step.id, step)


def _robustness(study: Study, seed: int, data: Any, add: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The steps that all networks of a seed are shown, corrupted images first; the shifted sets' names."""
    config = INSTRUMENTS["robustness"]
    draw = seed if study.draw == "seed" else study.draw
    source, sets = data(study.source, seed), shifted(study.source)
    about = {"target": study.source}
    machine = {"draw": draw, "threads": study.threads}
    corrupted = add("corrupted", {"per_class": config["per_class"], **machine}, (source,), about, LATER)
    shown = []
    for shift, name in sets.items():
        images = data(name, seed)
        if shift == "a":
            recipe = dataclasses.asdict(Recipe(**config["outside"]["recipe"]))
            outside = {**config["outside"], "recipe": recipe, **machine}
            images = add("hard", outside, (source, images), {"target": name}, LATER)
        shown.append(images)
    return (corrupted, *shown), tuple(sets.values())


def _network(study: Study, seed: int, backbone: str, objective: str, data: Any, add: Any) -> str:
    """The steps of one network; the bank of its predictions that is compared with others comes back."""
    composition = resolve(objective)
    for component in composition.components:
        refuse_unshared(registry.entry(component.kind, component.name))
    plugins = composition.plugin_digests() | _plugin_digest("backbone", registry.parse(backbone).name)
    about = {
        "slug": composition.preset or composition.canonical,
        "objective": composition.canonical,
        "backbone": backbone,
        "source": study.source,
        "seed": seed,
        "target": study.source,
    }
    machine = {"threads": study.threads}
    network = add(
        "train",
        {
            "objective": composition.canonical,
            "backbone": backbone,
            "recipe": dataclasses.asdict(study.recipe_of(objective)),
            "seed": seed,
            **({"plugins": plugins} if plugins else {}),
            **machine,
        },
        (data(study.source, seed),),
        about,
        NEXT,
    )
    own = add(
        "extract",
        {"splits": list(SOURCE_SPLITS), "dtype": "float32", **machine},
        (network, data(study.source, seed)),
        about,
        NOW,
    )
    for text in study.metrics:
        step, plugin = _measure("metric", text)
        add(step, {**plugin, "splits": list(SOURCE_SPLITS), **machine}, (own,), about, NOW)
    for name in study.instruments:
        if name not in OF_MORE:
            add(name, {**INSTRUMENTS[name], **machine}, (network, own), about, LATER)
    # The paper leaves squared error out: its scores are not the logarithms of probabilities.
    if "calibration" in study.instruments and composition.loss.name != "weighted_squared_error":
        held = add(
            "extract",
            {"splits": ["holdout"], "dtype": "float32", **machine},
            (network, data(study.source, seed)),
            about,
            LATER,
        )
        add("calibration", {"objective": composition.canonical, **machine}, (own, held), about, LATER)
    if "layers" in study.instruments:
        config = {**INSTRUMENTS["layers"], **machine}
        add("layers", config, (network, data(study.source, seed), own), about, LATER)
    if "robustness" in study.instruments:
        shown, names = _robustness(study, seed, data, add)
        add("robustness", {"shifted": list(names), **machine}, (network, *shown), about, LATER)
    if "dynamics" in study.instruments and study.recipe_of(objective).snapshot_every:
        config = {**INSTRUMENTS["dynamics"], **machine}
        add("dynamics", config, (network, data(study.source, seed), own), about, LATER)
    if study.relearning:
        fresh = add(
            "extract",
            {"splits": ["relearn"], "dtype": "float32", **machine},
            (network, data(study.source, seed)),
            about,
            LATER,
        )
        for shots in study.relearning:
            add("relearn", {"shots": shots, "seed": seed, **machine}, (own, fresh), about, LATER)
    for target in study.targets:
        there = {**about, "target": target}
        splits = [split for split in card(target).sizes if split in ("train", "test")]
        bank = add(
            "extract",
            {"splits": splits, "dtype": "float32", **machine},
            (network, data(target, seed)),
            there,
            LATER,
        )
        for text in study.probes:
            step, plugin = _measure("probe", text)
            config = {**plugin, "accuracy": card(target).accuracy, "seed": seed, **machine}
            add(step, config, (bank,), there, LATER)
    common = data(study.source, study.seeds[0])
    compared: str = own
    if "agreement" in study.instruments and common != data(study.source, seed):
        config = {"splits": ["test"], "dtype": "float32", **machine}
        compared = add("extract", config, (network, common), about, LATER)
    return compared
