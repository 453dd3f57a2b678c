"""The steps below every measurement (data, networks, feature banks), and the labels of all steps."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from penultimate import registry, specs
from penultimate.data.catalog import DatasetCard
from penultimate.data.fewer import of_fewer
from penultimate.graph import LATER, NEXT, NOW, TO_CROP, Resources, Step, Supply
from penultimate.measures import declaration as needs
from penultimate.measures.declaration import Scope
from penultimate.networks.key import NetworkKey
from penultimate.networks.sources import fingerprint, has_projector, read_source
from penultimate.objectives.presets import Composition, resolve
from penultimate.plugins import Accepted, identity
from penultimate.study.blocks import Given, Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

VERSIONS = {"data": 3, "sheet": 1, "train": 4, "given": 2, "extract": 2}
"""Versions of the steps that are not measurements; raised by hand when the results of a step change."""
USUAL = Recipe(precision="bfloat16")
"""The recipe to which identities of steps name the differences; it stays the same if defaults change."""
SECONDS = {"data": 0.88, "sheet": 0.4, "given": 2.0, "extract": 0.25}
"""Seconds on one core, for a cost that neither the store nor the study knows; a training is timed."""


Group: TypeAlias = tuple[Any, ...]


class Foundation:
    """The steps that a study has asked for; those that measure nothing are made here on the first request."""

    def __init__(self, study: Study, accepted: Accepted = MappingProxyType({})) -> None:
        self.study, self.accepted = study, accepted
        self.steps: dict[str, Step] = {}
        self.arms: dict[str, dict[str, None]] = {}
        self.blocks: dict[NetworkKey, Runs | Given] = {}
        for block in study.networks:
            for key in block.keys():
                self.blocks.setdefault(key, block)
        self.first_draw, self.main_backbone = study.first_draw, next(iter(study.backbones), "")
        self.on_cpu = Resources(study.threads)
        self.with_network = Resources(study.threads, min(1.0, study.gpus))
        self.with_training = Resources(study.threads, study.gpus)
        self._compositions = {text: resolve(text) for text in study.objectives}
        self._known: dict[NetworkKey | tuple[str, int, int], str] = {}
        self._banks: dict[tuple[NetworkKey, str, str, int], str] = {}
        self._plugins: dict[tuple[str, str], dict[str, str]] = {}

    def add(self, step: Step) -> str:
        """Add a step, at the most urgent priority at which it was asked for, and return its id."""
        known = self.steps.get(step.id)
        if known is None or step.priority < known.priority:
            self.steps[step.id] = step
        self.arms.setdefault(step.id, {})[step.columns.get("arm") or ""] = None
        return step.id

    def plugin(self, kind: str, name: str) -> dict[str, str]:
        """Return {"kind:name": sha256} of a plug-in; {} for a built-in."""
        if (kind, name) not in self._plugins:
            self._plugins[kind, name] = identity(kind, name)
        return self._plugins[kind, name]

    def counted(self, plugins: Mapping[str, str]) -> dict[str, str]:
        """Return digests as they count in an identity: in place of an accepted one, the earlier."""
        return {name: self.accepted.get(name, {}).get(of, of) for name, of in plugins.items()}

    def draw_of(self, key: NetworkKey | None) -> int:
        """Return the draw of data that a network sees; a network not trained here sees the study's first."""
        return self.first_draw if key is None or key.draw is None else key.draw

    def data(self, name: str, draw: int, classes: int = 0) -> str:
        """Return the id of the step that renders or reads a data set, or some `classes` of it.

        Data on disk stay where they are; if they are only planned, nothing tells one copy from another.
        """
        place = (name, draw, classes)
        if place in self._known:
            return self._known[place]
        config: dict[str, Any] = {"name": name, "draw": draw, **filled(classes=classes)}
        priority, label, plugins = 0, f"d{draw}-{word(name)}", dict[str, str]()
        if classes:
            label += f"-{classes}"
        elif name in self.study.data:
            found = self.study.located[name]
            where = str(Path(self.study.data[name]).expanduser().absolute())
            config |= {"where": where, "splits": list(found.asked), "content": found.fingerprint}
            config |= filled(reading=self.study.reading_of(name))
        elif name not in self.study.nowhere:
            plugins = self.plugin("dataset", name)
            if plugins:  # built-in data sets are not imported here, because they need a tensor library
                fingerprint_of = getattr(registry.entry("dataset", name).resolve(), "fingerprint", None)
                config |= filled(content=fingerprint_of() if fingerprint_of else self.study.made(name, draw))
            if name != self.study.source:
                priority = NOW if name in self.study.targets else LATER
        columns = {"draw": draw, "target": name}
        step = self._core("data", config, columns, label, priority, plugins=plugins)
        self._known[place] = self.add(step)
        return self._known[place]

    def card_of(self, key: NetworkKey, name: str) -> DatasetCard:
        """Return the card of a data set as a network sees it: of the source it may have fewer classes."""
        return of_fewer(self.study.card(name), self._classes(key, name))

    def data_of(self, key: NetworkKey, name: str, draw: int) -> str:
        """Return the id of the step that renders or reads a data set as a network sees it."""
        return self.data(name, draw, self._classes(key, name))

    def _classes(self, key: NetworkKey, name: str) -> int:
        """Return how many of the classes of a data set a network sees, 0 for all."""
        return getattr(self.blocks[key], "classes", 0) if name == self.study.source else 0

    def pictures(self) -> None:
        """Add the data of each draw and, if the package draws all of them, a picture of the first draw."""
        names = (self.study.source, *self.study.targets)
        for key in self.blocks:
            for name in names:
                self.data_of(key, name, self.draw_of(key))
        if self.study.data or self.study.nowhere:
            return
        draw = self.first_draw
        first = next(key for key in self.blocks if self.draw_of(key) == draw)
        supplies = [Supply("images", self.data_of(first, name, draw), "train", name) for name in names]
        columns = {"draw": draw, "target": self.study.source}
        self.add(self._core("sheet", {}, columns, f"d{draw}", LATER, supplies))

    def network(self, key: NetworkKey) -> str:
        """Return the id of the step that trains or fetches a network."""
        if key not in self._known:
            block = self.blocks[key]
            if isinstance(block, Given):
                step = self._given(key, block)
            else:
                step = self._existing(key, block) if block.checkpoints else self._trained(key, block)
            self._known[key] = self.add(step)
        return self._known[key]

    def _given(self, key: NetworkKey, block: Given) -> Step:
        source = block.networks[key.objective]
        classes = self.study.card(self.study.source).classes
        content = {"content": fingerprint(source), "classifies": block.classifies}
        identity = {"name": key.objective, "source": source, **content}
        known = self.study.built[source] if read_source(source).kind == "file" else {}
        if known:
            identity["built"] = {name: value for name, value in known.items() if name != "sketch"}
        if block.classifies:  # otherwise its final layer is not used
            identity["classes"] = classes
        config = {**identity, "classes": classes, **({"built": known} if known else {})}
        columns = self.columns((key,), "network", self.study.source)
        return self._core("given", config, columns, word(key.objective), 0, (), identity)

    def _existing(self, key: NetworkKey, block: Runs) -> Step:
        """Return the step that reads a run's network from a file, whose content is part of the identity."""
        row = block.checkpoint(key)
        names = {"objective": key.objective, "backbone": key.backbone, "seed": key.seed}
        identity = {**names, "content": row.digest, **row.reading()}
        geometry = {"resize": block.recipe.resize, "size": block.recipe.size}
        if self.study.is_on_disk(self.study.source):
            identity["geometry"] = geometry  # the embedded world's images have one size
        config = {**identity, "geometry": geometry, "file": row.file, "threads": self.study.threads}
        return self._made("given", key, config, identity, 0)

    def _trained(self, key: NetworkKey, block: Runs) -> Step:
        names = {"objective": key.objective, "backbone": key.backbone, "seed": key.seed}
        threads = self.study.threads
        block.recipe.expect_shared_by(round(self.study.gpus))
        recipe, changed = _settings(block.recipe)
        config = {**names, "recipe": recipe, "threads": threads}
        identity = {**names, "recipe": changed}
        if threads > 1:  # which changes the bits of a training
            identity["threads"] = threads
        return self._made("train", key, config, identity, NEXT)

    def _made(
        self, name: str, key: NetworkKey, config: dict[str, Any], identity: dict[str, Any], priority: int
    ) -> Step:
        """Return the step that makes a run's network from the images that it sees, or from a file."""
        plugins = self.plugin("backbone", specs.parse(key.backbone).name)
        for part in self._compositions[key.objective].components:
            plugins = plugins | self.plugin(part.kind, part.name)
        data = self.data_of(key, self.study.source, self.draw_of(key))
        supplies = [Supply("images", data, "train", self.study.source)]
        columns, label = self.columns((key,), "network", self.study.source), self.label((key,), "network")
        return self._core(name, config, columns, label, priority, supplies, identity, plugins)

    def bank(self, key: NetworkKey, of: str, split: str, draw: int, priority: int) -> str:
        """Return the id of the step that extracts a network's features of a split."""
        known = self._banks.get((key, of, split, draw))
        if known is not None and self.steps[known].priority <= priority:
            return known
        network, data = self.network(key), self.data_of(key, of, draw)
        supplies = [Supply("network", network, network=key), Supply("images", data, split, of)]
        columns = self.columns((key,), "network", of)
        label = f"{self.label((key,), 'network', of)}-{split}"
        identity = {"split": split, **self.of_transfer(key, of)}
        config = {**identity, "dtype": "float32"}
        bank = self.add(self._core("extract", config, columns, label, priority, supplies, identity))
        self._banks[key, of, split, draw] = bank
        return bank

    def of_transfer(self, key: NetworkKey, of: str) -> dict[str, str]:
        """Return how a target's images on disk are resized for the features of a network trained here.

        The shorter side has as many pixels as the crop (appendix A.2 of the paper), where the tests of
        pretraining cut the middle out of a larger image (A.1).
        """
        moved = self.study.is_on_disk(of) and of in self.study.targets and of != self.study.source
        return {"resize": TO_CROP} if moved and isinstance(self.blocks[key], Runs) else {}

    def gives(self, key: NetworkKey, need: Any) -> bool:
        """Return whether a network can provide what a measurement needs."""
        block = self.blocks[key]
        match need:
            case needs.Head(on_features):
                if isinstance(block, Given):
                    projected = on_features and has_projector(block.networks[key.objective])
                    return block.classifies and not projected
                return not (on_features and self._compositions[key.objective].projector)
            case needs.Logits() if isinstance(block, Given):
                return block.classifies
            case needs.LogProbabilities():
                return self._compositions[key.objective].gives_log_probabilities
            case needs.Weights() if isinstance(block, Given):
                return read_source(block.networks[key.objective]).kind != "onnx"
            case needs.Trained():
                return isinstance(block, Runs)
            case needs.Snapshots():
                return isinstance(block, Runs) and not block.checkpoints and block.recipe.snapshot_every > 0
        return True

    def training(self, key: NetworkKey) -> dict[str, Any]:
        """Return the architecture, precision, augmentation and threads with which a network was trained."""
        block = self.blocks[key]
        assert isinstance(block, Runs)
        augmentation = _settings(block.recipe)[1].get("augmentation")
        threads = self.study.threads if self.study.threads > 1 else None
        precision = block.recipe.precision
        return filled(backbone=key.backbone, precision=precision, augmentation=augmentation, threads=threads)

    def _core(
        self,
        name: str,
        config: dict[str, Any],
        columns: dict[str, Any],
        label: str,
        priority: int,
        supplies: Sequence[Supply] = (),
        identity: dict[str, Any] | None = None,
        plugins: Mapping[str, str] = MappingProxyType({}),
    ) -> Step:
        """Return a step that is not a measurement; by default, all its settings are part of its identity."""
        identity = {**(config if identity is None else identity), **filled(plugins=self.counted(plugins))}
        config = {**config, **filled(plugins=dict(plugins))}
        parents = tuple(supply.parent for supply in supplies)
        fixed = (VERSIONS[name], config, identity, parents, tuple(supplies), columns, label, priority)
        of_name = {"train": self.with_training, "extract": self.with_network}
        resources = of_name.get(name, self.on_cpu)
        return Step(name, *fixed, resources=resources)

    def group(self, key: NetworkKey, scope: Scope) -> Group:
        """Return a key that is the same for all networks that a step of this scope takes together."""
        if scope == "network":
            return (key,)
        if scope == "objective":
            return key.objective, key.backbone, key.arm
        if scope == "start":
            return key.arm, key.backbone, key.seed, key.draw
        if scope == "draw":
            return (self.draw_of(key),)
        return key.arm, self.architecture(key)

    def architecture(self, key: NetworkKey) -> str:
        """Return the architecture of a network; a network not trained here counts as one of the main ones."""
        return key.backbone or self.main_backbone

    def columns(self, networks: tuple[NetworkKey, ...], scope: Scope, target: str) -> dict[str, Any]:
        """Return the columns that all rows of a step share."""
        common = {"source": self.study.source, "target": target}
        first = networks[0]
        if scope == "network":
            return {**first.columns(), **common}
        if scope == "start":
            return {**dataclasses.replace(first, objective="").columns(), **common}
        if scope == "draw":
            return {"draw": self.draw_of(first), **common}
        if scope == "pair":
            return common
        shared = {"backbone": self.architecture(first) or None, "arm": first.arm or None}
        return {**({"objective": first.objective} if scope == "objective" else {}), **shared, **common}

    def label(
        self,
        networks: tuple[NetworkKey, ...],
        scope: Scope,
        target: str = "",
        cell: tuple[tuple[str, Any], ...] = (),
    ) -> str:
        """Return the part of a step's id that says which networks, target and settings it is for."""
        first = networks[0]
        parts: list[Any] = []
        if scope in ("network", "objective"):
            composition = self._compositions.get(first.objective)
            parts += [_short(composition) if composition else first.objective]
        if scope == "draw":
            parts.append(f"d{self.draw_of(first)}")
        if scope == "pair":
            parts += [f"{key.objective}-{key.seed}" if key.seed else key.objective for key in networks]
        if scope in ("network", "start") and first.seed is not None:
            parts.append(f"s{first.seed}")
        parts.append(target)
        parts += [f"{name}{value}" for name, value in cell]
        return "-".join(word(str(part)) for part in parts if part)


def _short(composition: Composition) -> str:
    return composition.preset or composition.canonical


@functools.cache
def word(text: str) -> str:
    """Return a text in a form that can be part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", text)[:40]


@functools.cache
def _settings(recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all settings of a recipe, and those of them that differ from the usual recipe."""
    settings = dataclasses.asdict(recipe)
    return settings, _differing(settings, dataclasses.asdict(USUAL))


def filled(**entries: Any) -> dict[str, Any]:
    """Return the entries that are not empty."""
    return {name: value for name, value in entries.items() if value}


def _differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of nested settings that differ from the usual ones."""
    differing = {}
    for name, value in values.items():
        if name in usual and value == usual[name]:
            continue
        nested = isinstance(value, Mapping) and isinstance(usual.get(name), Mapping)
        differing[name] = _differing(value, usual[name]) if nested else value
    return differing
