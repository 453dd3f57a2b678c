"""The definition of a study: frozen data that names grids of networks and the measurements on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penultimate import registry
from penultimate.data.catalog import DatasetCard, card, shifted
from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.data.fewer import of_fewer
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError, expect_apart
from penultimate.measures.catalogue import Requested, requested, splits_of_source
from penultimate.measures.declaration import Shifted
from penultimate.networks.key import NetworkKey
from penultimate.networks.sources import read_source
from penultimate.objectives.presets import resolve
from penultimate.records.references import references
from penultimate.records.tuning import Tuning
from penultimate.study.blocks import Given, Runs, Search
from penultimate.study.fields import (
    check_known,
    check_measure,
    check_study_name,
    check_types,
    check_words,
    expect_splits,
    no_repeats,
)

if TYPE_CHECKING:
    from penultimate.data.readers.located import Located

MEASURE = ("accuracy", "class_separation", "linear", "knn")
"""Measurements of a network unless a study says otherwise."""
SOURCE_SPLITS = ("train", "holdout", "test")
"""Splits that a data set needs if networks are trained on it; a data set on disk may lack the holdout."""
CORRUPTED = tuple(f"{name}/{severity}" for name in BENCHMARK for severity in SEVERITIES)
"""The splits of ImageNet-C from which the mean corruption error is computed."""


@dataclass(frozen=True)
class Study:
    """Networks, the data they are trained on (`source`) and transferred to (`targets`), and the measurements.

    networks        grids of runs, and networks that are given; the same seeds serve all objectives
    measure         the measurements of each network as specs ("similarity(passes=10)"), plug-ins included
    threads         the threads of a step
    gpus            the share of a GPU of a step that trains or runs a network, or the number of GPUs that
                    share a training; at 0 the CPU does it
    limited         too small to be evidence: its rows say so, and exhibits refuse them unless asked
    tuned_by        the studies whose searches chose the hyperparameters
    search          how this study's own hyperparameters are searched
    tunes           the cells, of a study that is such a search (`penultimate.tuning.grid`)
    expected_seconds  costs of steps by kind, on one core, where measurements declare others; `plan` uses them
                    until the store knows better
    counterparts    {target: {class: (source class, ...)}}: to which classes of the source a target's class
                    corresponds beyond those of equal names; to none with an empty tuple
    changed_from    the study from which this one was changed
    data            the folder of each data set on disk, published or your own. With a published one whose
                    folder is not given, a study can be planned, but not run
    page, beside    the page of the report, if not the usual one; a kept run that is shown beside this study
    reading         {name: {"class_order": names, "copies": "drop"}}: how data on disk are read; "text"
                    and "natural" stand for an order too
    outside         the data that the measurement `outside` tells from the source, instead of the targets
    """

    name: str
    title: str
    question: str
    source: str
    targets: tuple[str, ...]
    networks: tuple[Runs | Given, ...]
    measure: tuple[str, ...] = MEASURE
    threads: int = 1
    gpus: float = 0.0
    limited: bool = False
    tuned_by: tuple[str, ...] = ()
    search: Search | None = None
    tunes: Tuning | None = None
    expected_seconds: Mapping[str, float] = field(default_factory=dict)
    counterparts: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    changed_from: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    beside: str = ""

    def __post_init__(self) -> None:
        try:
            self._check()
        except RequestError as error:
            raise RequestError(f"study '{self.name}': {error}") from None

    def _check(self) -> None:
        check_types(self)
        for name in (self.name, *self.tuned_by):
            check_study_name(name)
        if not self.networks:
            raise RequestError("networks is empty; at least one Runs(...) or Given(...) is needed")
        for what in ("targets", "outside", "tuned_by"):
            no_repeats(what, getattr(self, what))
        check_measure(self)
        if self.threads < 1:
            raise RequestError(f"threads is an integer of 1 or more, not {self.threads!r}")
        if self.gpus < 0 or not (self.gpus <= 1 or float(self.gpus).is_integer()):
            raise RequestError(
                f"gpus is a share of one GPU, from 0 to 1, or how many share a training, not {self.gpus!r}"
            )
        if self.beside:
            check_known("reference run", [self.beside], [*references()])
        self._check_data()
        self._check_networks()

    def _check_data(self) -> None:
        for name in self.data:
            check_words("a data set of your own", name)
            if name in registry.names("dataset"):
                raise RequestError(
                    f"'{name}' is a data set that penultimate knows already; give yours another name"
                )
            if name not in self.sets:
                raise RequestError(f"data '{name}' is neither the source nor a target")
        check_known("target in counterparts", [*self.counterparts], self.targets)
        if self.runs:
            self._check_source()
        for target in self.targets:
            expect_splits(self.card(target), ("train", "test"), "be a target")
        for name in self.outside:
            expect_splits(self.card(name), ("test",), "be told from the source")
        expect_apart("data sets", self.sets)

    def _check_source(self) -> None:
        source = self.card(self.source)
        if source.has_several_labels:
            raise RequestError(
                f"'{self.source}' cannot be trained on: its images have several labels each; it can be a"
                " target"
            )
        trained = [block for block in self.runs if not block.checkpoints]
        held_out = bool(trained) and (
            not (self.source in self.data or self.source in ENTRIES)
            or any(block.recipe.needs_holdout for block in trained)
        )
        expect_splits(source, SOURCE_SPLITS if held_out else ("train", "test"), "be trained on")
        for block in self.runs:
            of_fewer(source, block.classes)

    def _check_networks(self) -> None:
        """Raise RequestError for a network with two recipes or draws, and for a name of two networks."""
        made: dict[NetworkKey, dict[str, Any]] = {}
        names = {*self.objectives, *self.slugs().values()}
        for block in self.networks:
            for key in block.keys():
                if isinstance(block, Given):
                    here: dict[str, Any] = {"sources": (block.networks[key.objective], block.classifies)}
                    if key.objective in names:
                        raise RequestError(
                            f"the given network '{key}' is called like an objective; rename it"
                        )
                else:
                    here = {"recipes": block.recipe, "numbers of classes": block.classes, "draws": key.draw}
                run = dataclasses.replace(key, draw=None)
                before = made.setdefault(run, here)
                if before != here:
                    what = next(name for name in here if before[name] != here[name])
                    raise RequestError(f"'{run}' has two {what}; give one of them another name or arm")

    @cached_property
    def located(self) -> dict[str, Located]:
        """The data sets on disk with their lists of images; raises RequestError if one is not there."""
        from penultimate.data.readers.located import located

        return {
            name: located(name, where, self._splits_of(name), self.reading_of(name))
            for name, where in self.data.items()
        }

    @cached_property
    def source_classes(self) -> list[str]:
        """The classes of a source on disk, in the order assumed for the outputs of given networks."""
        if self.source not in self.data or not any(
            isinstance(block, Given) and block.classifies for block in self.networks
        ):
            return []
        return list(next(iter(self.located[self.source].splits.values())).class_names)

    @cached_property
    def built(self) -> dict[str, dict[str, Any]]:
        """What is built by the Python files of given networks, by source; each is built once per start."""
        from penultimate.networks.building import what_is_built
        from penultimate.plugins import in_child

        given = [block for block in self.networks if isinstance(block, Given)]
        sources = dict.fromkeys(text for block in given for text in block.networks.values())
        files = [text for text in sources if read_source(text).kind == "file"]
        return {text: in_child(what_is_built, text) for text in files}

    def made(self, name: str, draw: int) -> dict[str, str]:
        """Return the digest of each split that a plug-in's data set makes, or {} if the plug-in fails."""
        if (name, draw) not in self._made:
            from penultimate.data.world.generation import digests_of

            self._made[name, draw] = digests_of(name, draw)
        return self._made[name, draw]

    @cached_property
    def _made(self) -> dict[tuple[str, int], dict[str, str]]:
        return {}

    @cached_property
    def shifts(self) -> dict[str, str]:
        """The shifted test sets of the source, by kind of shift; ImageNet's include the corrupted one."""
        requests = {one.text: one for asked in self.measured().values() for one in asked}
        needs = (need for one in requests.values() for need in one.measurement.needs)
        if not any(isinstance(need, Shifted) for need in needs):
            return {}
        return {**shifted(self.source), **({"c": "imagenet_c"} if self.source == "imagenet" else {})}

    @cached_property
    def sets(self) -> tuple[str, ...]:
        """The names of all data sets of the study, each once."""
        return tuple(dict.fromkeys((self.source, *self.targets, *self.shifts.values(), *self.outside)))

    def reading_of(self, name: str) -> dict[str, Any]:
        """Return how data on disk are read; of data that are outside alone, without regard to classes."""
        return {**self.reading.get(name, {}), **({"whole": True} if self._is_outside_alone(name) else {})}

    def _is_outside_alone(self, name: str) -> bool:
        return name in self.outside and name not in (self.source, *self.targets)

    def _splits_of(self, name: str) -> tuple[str, ...]:
        """Return the splits of a data set on disk that the study reads.

        Training on a published source uses all of it, except for the holdout that its name stands for.
        """
        published = ENTRIES[name].card.sizes if name in ENTRIES else {}
        if name == self.source and self.runs:
            return tuple(split for split in SOURCE_SPLITS if split in (published or SOURCE_SPLITS))
        if self._is_outside_alone(name):
            return ("test",)
        if name in self.shifts.values():
            return CORRUPTED if name == self.shifts.get("c") else ("test",)
        if name in self.targets:
            return ("train", "test", *(["validation"] if "validation" in published else []))
        requests = {one.text: one for asked in self.measured().values() for one in asked}
        asked = set().union(*(splits_of_source(one.measurement) for one in requests.values()))
        return tuple(split for split in ("train", "test") if split in asked) or ("test",)

    @cached_property
    def nowhere(self) -> tuple[str, ...]:
        """The published data sets whose folders are not given; with any, the study can only be planned."""
        known = (*self.data, *registry.names("dataset"))
        return tuple(name for name in self.sets if name in ENTRIES and name not in known)

    def is_on_disk(self, name: str) -> bool:
        """Return whether a data set consists of images on disk, wherever they are."""
        return name in self.data or name in self.nowhere

    def card(self, name: str) -> DatasetCard:
        """Return the card of a data set of the study, as published until its folder is given."""
        if name in self.data:
            return self.located[name].card
        return ENTRIES[name].card if name in self.nowhere else card(name)

    def keys(self) -> tuple[NetworkKey, ...]:
        """Return all networks, each once, in the order of their seeds."""
        listed = dict.fromkeys(key for block in self.networks for key in block.keys())
        places: dict[int | None, int] = {}
        for key in listed:
            places.setdefault(key.seed, len(places))
        return tuple(sorted(listed, key=lambda key: places[key.seed]))

    def measured(self) -> dict[NetworkKey, tuple[Requested, ...]]:
        """Return the measurements of each network, in the order of the study.

        Raises RequestError if two grids ask for one measurement of a network under different settings.
        """
        known = {text: requested(text) for block in (self, *self.networks) for text in block.measure or ()}
        wanted: dict[NetworkKey, dict[str, Requested]] = {key: {} for key in self.keys()}
        for block in self.networks:
            texts = self.measure if block.measure is None else block.measure
            for key in block.keys():
                wanted[key].update({text: known[text] for text in texts})
        for key, requests in wanted.items():
            no_repeats(f"measure of '{key}'", [one.measurement.name for one in requests.values()])
        return {key: tuple(requests.values()) for key, requests in wanted.items()}

    @property
    def runs(self) -> tuple[Runs, ...]:
        """The grids of networks that are runs of objectives: trained here, or existing already."""
        return tuple(block for block in self.networks if isinstance(block, Runs))

    @property
    def main(self) -> Runs:
        """The first grid that is trained, which exhibits show; raises RequestError if there is none."""
        if not self.runs:
            raise RequestError(f"study '{self.name}' trains no network")
        return self.runs[0]

    @property
    def objectives(self) -> tuple[str, ...]:
        """All objectives that are trained, as canonical specs."""
        return tuple(dict.fromkeys(text for block in self.runs for text in block.objectives))

    @property
    def backbones(self) -> tuple[str, ...]:
        """All architectures that are trained; those of the main grid come first."""
        return tuple(dict.fromkeys(text for block in self.runs for text in block.backbones))

    @property
    def first_draw(self) -> int:
        """The draw of data that all networks see when they are compared: that of the first network."""
        return next((key.draw for key in self.keys() if key.draw is not None), 0)

    def with_runs(self, change: Callable[[Runs], Runs | None]) -> Study:
        """Return the study with every grid of runs changed; a grid that becomes None is left out."""
        changed = [change(block) if isinstance(block, Runs) else block for block in self.networks]
        return dataclasses.replace(self, networks=tuple(block for block in changed if block is not None))

    def slugs(self) -> dict[str, str]:
        """Return a short name for each objective: its terms without settings or, where taken, its spec."""
        slugs: dict[str, str] = {}
        for text in self.objectives:
            short = " + ".join(term.name for term in resolve(text).terms)
            slugs[text] = text if short in slugs.values() else short
        return slugs

    def describe(self) -> dict[str, Any]:
        """Return the study as JSON, from which its report and its results are read."""
        slugs = self.slugs()
        given = [key.objective for key in self.keys() if key.is_given]
        described = {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "source": self.source,
            "targets": list(self.targets),
            "networks": [block.described() for block in self.networks],
            "measure": list(self.measure),
            "objectives": [
                *({"slug": slug, "label": _label(text, slug), "spec": text} for text, slug in slugs.items()),
                *({"slug": name, "label": name, "spec": name} for name in given),
            ],
            "threads": self.threads,
            "tuned_by": list(self.tuned_by),
            "limited": self.limited,
            "cards": [
                self.card(name).described()
                for name in self.sets
                if name in self.data or name in ENTRIES or registry.entry("dataset", name).is_plugin
            ],
        }
        optional = {
            **{name: getattr(self, name) for name in ("gpus", "changed_from", "page", "beside")},
            "data": dict(self.data),
            "outside": list(self.outside),
            "reading": {name: dict(how) for name, how in self.reading.items()},
            "source_classes": self.source_classes,
        }
        if self.tunes:
            optional |= {"tunes": self.tunes.study, "search": dataclasses.asdict(self.tunes)}
        return described | {name: value for name, value in optional.items() if value}


def _label(text: str, slug: str) -> str:
    return of.label if (of := resolve(text)).preset == slug else of.detailed_label
