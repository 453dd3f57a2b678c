"""A study unfolded into its graph.

    data --> train (or given) --> extract --> measurements, stage by stage where they have stages

What the graph holds beyond the first three follows from the declarations of the measurements alone: for whom
each is called (`per`), what it needs, and which of its settings hold several values (`each`).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penultimate import registry
from penultimate.data.catalog import card, shifted
from penultimate.errors import RequestError
from penultimate.measures import declaration as needs
from penultimate.measures.catalogue import Requested, measurement, several
from penultimate.measures.declaration import Measurement, Scope
from penultimate.networks.key import NetworkKey
from penultimate.networks.sources import fingerprint
from penultimate.objectives.presets import Composition, resolve
from penultimate.plugins import refuse_unshared
from penultimate.study.graph import LATER, NEXT, NOW, Graph, Resources, Step, Supply
from penultimate.study.spec import Given, Runs, Study
from penultimate.training.recipe import Recipe

VERSIONS = {"data": 2, "sheet": 1, "train": 2, "given": 1, "extract": 2}
"""Of the steps that are no measurements; raised by hand when their results change."""
SECONDS = {"data": 0.88, "sheet": 0.4, "train": 65.0, "given": 2.0, "extract": 0.25}
"""What they cost on one core, where neither the store nor the study knows."""


def unfold(study: Study) -> Graph:
    """The graph of a study.

    >>> from penultimate.study import load_study
    >>> graph = unfold(load_study("smoke"))
    >>> [step.name for step in graph.steps.values()][:5]
    ['data', 'data', 'data', 'sheet', 'train']
    """
    unfolding = _Unfolding(study)
    unfolding.pictures()
    for key, requests in unfolding.measured.items():
        unfolding.network(key)
        for request in requests:
            if request.measurement.scope == "network":
                unfolding.measure(request, (key,))
    unfolding.together()
    return Graph(study, unfolding.steps)


@dataclass(frozen=True)
class _Place:
    """What one step of a measurement or stage is for: some networks that belong together, and a target."""

    networks: tuple[NetworkKey, ...]
    target: str
    cell: tuple[tuple[str, Any], ...] = ()


class _Unfolding:
    """The steps made so far, and how each kind of them is made."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.steps: dict[str, Step] = {}
        self.measured = study.measured()
        self.blocks: dict[NetworkKey, Runs | Given] = {}
        for block in study.networks:
            for key in block.keys():
                self.blocks.setdefault(key, block)
        self.asking: dict[str, list[NetworkKey]] = {}
        for key, requests in self.measured.items():
            for request in requests:
                self.asking.setdefault(request.text, []).append(key)
        self.compositions = {text: resolve(text) for text in study.objectives}
        self.stages: dict[str, Measurement] = {}
        self.resources = Resources(study.threads)
        self.memory: dict[NetworkKey | tuple[str, int], str] = {}
        self.plugins: dict[tuple[str, str], dict[str, str]] = {}

    def add(self, step: Step) -> str:
        known = self.steps.get(step.id)
        if known is None or step.priority < known.priority:
            self.steps[step.id] = step
        return step.id

    def plugin_digest(self, kind: str, name: str) -> dict[str, str]:
        """sha256 of the source that a plug-in comes from, by "kind:name"; nothing for a built-in."""
        if (kind, name) not in self.plugins:
            entry = registry.entry(kind, name)
            refuse_unshared(entry)
            digest = entry.source_digest()
            self.plugins[kind, name] = {f"{kind}:{name}": digest} if digest else {}
        return self.plugins[kind, name]

    # Data, networks, banks

    def draw_of(self, key: NetworkKey | None) -> int:
        """The draw of data that a network sees; one that was not trained here sees the study's first."""
        return self.study.first_draw if key is None or key.draw is None else key.draw

    def data(self, name: str, draw: int) -> str:
        if (name, draw) not in self.memory:
            plugins = self.plugin_digest("dataset", name)
            config = {"name": name, "draw": draw, **_filled(plugins=plugins)}
            if plugins:  # what is built in is not imported here: it needs a tensor library
                made_by = registry.entry("dataset", name).resolve()
                fingerprint_of = getattr(made_by, "fingerprint", None)
                config |= _filled(content=fingerprint_of() if fingerprint_of else None)
            priority = {self.study.source: 0}.get(name, NOW if name in self.study.targets else LATER)
            columns = {"draw": draw, "target": name}
            step = self._core("data", config, columns, f"d{draw}-{_word(name)}", priority)
            self.memory[name, draw] = self.add(step)
        return self.memory[name, draw]

    def pictures(self) -> None:
        """Every draw's data, and one picture of the first draw's."""
        names = (self.study.source, *self.study.targets)
        for draw in dict.fromkeys(self.draw_of(key) for key in self.measured):
            for name in names:
                self.data(name, draw)
        draw = self.study.first_draw
        supplies = [Supply("images", self.data(name, draw), "train", name) for name in names]
        columns = {"draw": draw, "target": self.study.source}
        self.add(self._core("sheet", {}, columns, f"d{draw}", LATER, supplies))

    def network(self, key: NetworkKey) -> str:
        if key not in self.memory:
            block = self.blocks[key]
            self.memory[key] = self.add(
                self._given(key, block) if isinstance(block, Given) else self._trained(key, block)
            )
        return self.memory[key]

    def _given(self, key: NetworkKey, block: Given) -> Step:
        source = block.networks[key.objective]
        content = {"content": fingerprint(source), "classifies": block.classifies}
        config = {"name": key.objective, "source": source, **content}
        columns = self._columns((key,), "network", self.study.source)
        return self._core("given", config, columns, _word(key.objective), 0)

    def _trained(self, key: NetworkKey, block: Runs) -> Step:
        composition = self.compositions[key.objective]
        for component in composition.components:
            refuse_unshared(registry.entry(component.kind, component.name))
        backbone = registry.parse(key.backbone).name
        plugins = composition.plugin_digests() | self.plugin_digest("backbone", backbone)
        names = {"objective": key.objective, "backbone": key.backbone, "seed": key.seed}
        recipe, threads = dataclasses.asdict(block.recipe), self.study.threads
        config = {**names, "recipe": recipe, "threads": threads, **_filled(plugins=plugins)}
        identity = {**config, "recipe": _differing(recipe, dataclasses.asdict(Recipe()))}
        if threads == 1:  # more of them change the bits of a training
            del identity["threads"]
        data = self.data(self.study.source, self.draw_of(key))
        supplies = [Supply("images", data, "train", self.study.source)]
        columns = self._columns((key,), "network", self.study.source)
        label = self._label((key,), "network")
        return self._core("train", config, columns, label, NEXT, supplies, identity)

    def bank(self, key: NetworkKey, of: str, split: str, draw: int, priority: int) -> str:
        network, data = self.network(key), self.data(of, draw)
        supplies = [Supply("network", network, network=key), Supply("images", data, split, of)]
        columns = self._columns((key,), "network", of)
        label = f"{self._label((key,), 'network', of)}-{split}"
        config, identity = {"split": split, "dtype": "float32"}, {"split": split}
        return self.add(self._core("extract", config, columns, label, priority, supplies, identity))

    # Measurements

    def measure(self, request: Requested, networks: tuple[NetworkKey, ...]) -> None:
        """The steps of a measurement on networks that it is called for together."""
        asking = self.asking[request.text]
        for target in self.study.targets if request.measurement.of_targets else (self.study.source,):
            for cell in _cells(request.measurement, request.settings):
                self.step(request.measurement, request.settings, _Place(networks, target, cell), asking)

    def together(self) -> None:
        """The steps of measurements that take several networks each."""
        for text, asking in self.asking.items():
            request = next(request for request in self.measured[asking[0]] if request.text == text)
            if request.measurement.scope != "network":
                for networks in self.groups(asking, request.measurement.scope):
                    self.measure(request, networks)

    def groups(self, keys: Iterable[NetworkKey], scope: Scope) -> list[tuple[NetworkKey, ...]]:
        """Networks that a step of this scope takes together."""
        groups: dict[Any, list[NetworkKey]] = {}
        for key in keys:
            groups.setdefault(self._group(key, scope), []).append(key)
        return list(map(tuple, groups.values()))

    def _group(self, key: NetworkKey, scope: Scope) -> Any:
        if scope == "network":
            return key
        if scope == "objective":
            return key.objective, key.backbone, key.arm
        if scope == "draw":
            return self.draw_of(key)
        return key.arm, self._architecture(key)

    def _architecture(self, key: NetworkKey) -> str:
        """A network that was not trained here stands beside those of the main architecture."""
        return key.backbone or next(iter(self.study.backbones), "")

    def step(
        self, what: Measurement, settings: Mapping[str, Any], place: _Place, asking: Sequence[NetworkKey]
    ) -> str | None:
        """A step of a measurement or stage; None where it cannot be done: what it needs is not to be had."""
        if any(self._lacks(place.networks, need, what) for need in what.needs):
            return None
        supplies: dict[tuple[str, str, str], Supply] = {}
        for need in what.needs:
            met = self._supplies(need, what, settings, place, asking)
            if met is None:
                return None
            supplies.update({(supply.kind, supply.name, supply.parent): supply for supply in met})
        own_settings = {setting.name for setting in what.settings}
        asked = {name: value for name, value in settings.items() if name in own_settings}
        values = {**what.bound(asked), **dict(place.cell)}
        extra = _filled(plugins=self.plugin_digest(what.kind, what.name))
        if what.of_targets:
            extra["accuracy"] = card(place.target).accuracy
        if what.scope == "study":  # of all networks of the group, though the step may be given fewer
            extra["seeds"] = sorted({key.seed for key in place.networks if key.seed is not None})
        step = Step(
            what.name,
            what.version,
            {**values, **extra},
            {**what.changed(values), **extra},
            tuple(dict.fromkeys(supply.parent for supply in supplies.values())),
            tuple(supplies.values()),
            self._columns(place.networks, what.scope, place.target),
            self._label(place.networks, what.scope, place.target, place.cell),
            NOW if what.first else LATER,
            gathers=what.scope in ("study", "objective"),
            resources=self.resources,
        )
        return self.add(step)

    def _supplies(
        self,
        need: Any,
        what: Measurement,
        settings: Mapping[str, Any],
        place: _Place,
        asking: Sequence[NetworkKey],
    ) -> list[Supply] | None:
        match need:
            case needs.Features():
                return self._banks(need, what, place)
            case needs.Pixels():
                draw = self.draw_of(place.networks[0])
                self._expect_split(place.target, need.split, what)
                return [Supply("images", self.data(place.target, draw), need.split, place.target)]
            case needs.Shifted():
                name = shifted(self.study.source).get(need.shift)
                draw = self.draw_of(place.networks[0])
                return [Supply("images", self.data(name, draw), "test", name)] if name else []
            case needs.Layers() | needs.Head() | needs.Snapshots():
                keys = _first_seeds(place.networks, need.seeds if isinstance(need, needs.Layers) else 0)
                return [Supply("network", self.network(key), network=key) for key in keys]
            case needs.Made():
                return self._made(need, settings, place, asking)
        raise RequestError(f"the measurement '{what.name}' needs {need!r}, which no study can give it")

    def _banks(self, need: needs.Features, what: Measurement, place: _Place) -> list[Supply] | None:
        self._expect_split(place.target, need.split, what)
        supplies = []
        priority = NOW if what.first else LATER
        for key in place.networks:
            if not self._gives(key, need):
                continue
            draw = self.study.first_draw if need.common else self.draw_of(key)
            bank = self.bank(key, place.target, need.split, draw, priority)
            supplies.append(Supply("features", bank, need.split, place.target, key))
        return supplies or None

    def _made(
        self, need: needs.Made, settings: Mapping[str, Any], place: _Place, asking: Sequence[NetworkKey]
    ) -> list[Supply] | None:
        """The steps of a stage that touch this place: of its networks, or of a group that holds them."""
        if need.stage not in self.stages:
            self.stages[need.stage] = measurement(need.stage)
        stage = self.stages[need.stage]
        wanted = {self._group(key, stage.scope) for key in place.networks}
        supplies = []
        for networks in self.groups(place.networks if stage.scope == "network" else asking, stage.scope):
            if self._group(networks[0], stage.scope) not in wanted:
                continue
            target = place.target if stage.of_targets else self.study.source
            for cell in _cells(stage, settings):
                step = self.step(stage, settings, _Place(networks, target, cell), asking)
                if step is not None:
                    key = networks[0] if stage.scope == "network" else None
                    supplies.append(Supply("made", step, need.stage, target, key, dict(cell)))
        return supplies if supplies or need.optional else None

    def _lacks(self, networks: tuple[NetworkKey, ...], need: Any, what: Measurement) -> bool:
        """Whether these networks cannot give what is needed of them: where they are several, of any."""
        given = [self._gives(key, need) for key in networks]
        several = isinstance(need, needs.Features) and what.scope != "network"
        return not (any(given) if several else all(given))

    def _gives(self, key: NetworkKey, need: Any) -> bool:
        """Whether a network can give what is needed of it."""
        block = self.blocks[key]
        match need:
            case needs.Head():
                return not isinstance(block, Given) or block.classifies
            case needs.Logits() if isinstance(block, Given):
                return block.classifies
            case needs.LogProbabilities():
                return self.compositions[key.objective].gives_log_probabilities
            case needs.Snapshots():
                return isinstance(block, Runs) and block.recipe.snapshot_every > 0
        return True

    def _expect_split(self, name: str, split: str, what: Measurement) -> None:
        if split not in card(name).sizes:
            raise RequestError(
                f"study '{self.study.name}' measures {what.name}, which needs the split '{split}' of"
                f" '{name}'; it has {', '.join(card(name).sizes)}"
            )

    # What steps have in common

    def _core(
        self,
        name: str,
        config: dict[str, Any],
        columns: dict[str, Any],
        label: str,
        priority: int,
        supplies: Sequence[Supply] = (),
        identity: dict[str, Any] | None = None,
    ) -> Step:
        """A step that is no measurement; unless told otherwise, all its settings are its identity."""
        identity = config if identity is None else identity
        parents = tuple(supply.parent for supply in supplies)
        fixed = (VERSIONS[name], config, identity, parents, tuple(supplies), columns, label, priority)
        return Step(name, *fixed, resources=self.resources)

    def _columns(self, networks: tuple[NetworkKey, ...], scope: Scope, target: str) -> dict[str, Any]:
        common = {"source": self.study.source, "target": target}
        first = networks[0]
        if scope == "network":
            return {**first.columns(), **common}
        if scope == "draw":
            return {"draw": self.draw_of(first), **common}
        shared = {"backbone": self._architecture(first) or None, "arm": first.arm or None}
        return {**({"objective": first.objective} if scope == "objective" else {}), **shared, **common}

    def _label(
        self,
        networks: tuple[NetworkKey, ...],
        scope: Scope,
        target: str = "",
        cell: tuple[tuple[str, Any], ...] = (),
    ) -> str:
        first = networks[0]
        parts: list[Any] = []
        if scope in ("network", "objective"):
            composition = self.compositions.get(first.objective)
            parts += [_short(composition) if composition else first.objective]
        if scope == "draw":
            parts.append(f"d{self.draw_of(first)}")
        if scope == "network" and first.seed is not None:
            parts.append(f"s{first.seed}")
        parts.append(target)
        parts += [f"{name}{value}" for name, value in cell]
        return "-".join(_word(str(part)) for part in parts if part)


def _short(composition: Composition) -> str:
    return composition.preset or composition.canonical


def _word(text: str) -> str:
    """A text as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", text)[:40]


def _filled(**entries: Any) -> dict[str, Any]:
    """The entries that are not empty."""
    return {name: value for name, value in entries.items() if value}


def _cells(what: Measurement, settings: Mapping[str, Any]) -> list[tuple[tuple[str, Any], ...]]:
    """The combinations of values for which a measurement is repeated; the empty one where it is not."""
    usual = {setting.name: setting.default for setting in what.settings}
    held = {name: several(what.name, name, settings.get(name, usual[name])) for name in what.each}
    axes = [[(name, value) for value in values] for name, values in held.items()]
    return list(itertools.product(*axes))


def _first_seeds(keys: tuple[NetworkKey, ...], most: int) -> tuple[NetworkKey, ...]:
    """The first few networks of each objective; all of them for 0."""
    if not most:
        return keys
    counts: dict[tuple[str, str], int] = {}
    kept = []
    for key in keys:
        counts[key.objective, key.backbone] = counts.get((key.objective, key.backbone), 0) + 1
        if counts[key.objective, key.backbone] <= most:
            kept.append(key)
    return tuple(kept)


def _differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of nested settings that differ from the usual ones."""
    differing = {}
    for name, value in values.items():
        if name in usual and value == usual[name]:
            continue
        nested = isinstance(value, Mapping) and isinstance(usual.get(name), Mapping)
        differing[name] = _differing(value, usual[name]) if nested else value
    return differing
