"""The sets of networks on which the main claim is tested: what a study trained, and its kept companions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.objectives.presets import preset_of, resolve
from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims import doses
from penultimate.paper.claims.aspects import Among, Aspect
from penultimate.paper.claims.evidence import StudyEvidence
from penultimate.paper.families import SHOWN, has_families
from penultimate.paper.layers import PROBES as OF_LAYERS
from penultimate.paper.layers import served
from penultimate.paper.paths.choices import (
    FAMILIES,
    HOLDOUT,
    MAIN,
    OWN_DECAY,
    PRINTED,
    TRANSLATED,
    WHOLE,
    PathReading,
)
from penultimate.report import read_reference
from penultimate.report.measurements import ByRun, Measurements, Seed, admit
from penultimate.report.text import counted

COMPANIONS = ("sweep", "head_decay")
"""The kept runs whose networks stand beside those of the main one."""


@dataclass(frozen=True)
class NetworkSet:
    """Networks that are compared with each other.

    words     what is trained
    arms      {objective: its arm} of those that are gathered from several arms; none for one arm
    families  the arms within which objectives are compared, if they are compared so
    draws     words for all draws of the images that the networks saw
    is_main   whether draws, layers and single objectives are chosen among, too
    """

    words: str
    measurements: Measurements
    arms: Mapping[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    draws: str = WHOLE
    is_main: bool = False
    _known: dict[tuple[str, str, bool], ByRun] = field(default_factory=dict, compare=False, repr=False)

    def read(self, reading: PathReading, arm: str, best: bool = False) -> ByRun:
        """Return a number of the networks of an arm, in the order of its sign.

        If `best`, it is transfer from the layer that validation images choose for each task.
        """
        key = reading.words, arm, best
        if key not in self._known:
            self._known[key] = self._best(reading, arm) if best else self._values(reading, arm)
        return self._known[key]

    def gathered(self, reading: PathReading, best: bool = False) -> ByRun:
        """Return the same number of all objectives of the set, which is not one of families."""
        if not self.arms:
            return self.read(reading, self.measurements.arm, best)
        found = {spec: self.read(reading, arm, best).get(spec) for spec, arm in self.arms.items()}
        return {spec: runs for spec, runs in found.items() if runs}

    def has(self, reading: PathReading) -> bool:
        """Return whether the number was measured of any of the networks."""
        arms = self.families or (*dict.fromkeys(self.arms.values()),) or (self.measurements.arm,)
        return any(self.read(reading, arm) for arm in arms)

    def _values(self, reading: PathReading, arm: str) -> ByRun:
        runs = self.measurements.values(reading.quantity.of_arm(arm))
        factor = reading.sign * reading.quantity.scale
        return {spec: {seed: factor * value for seed, value in of.items()} for spec, of in runs.items()}

    def _best(self, reading: PathReading, arm: str) -> ByRun:
        probes = [probe for probe in OF_LAYERS if probe.tested.metric == reading.quantity.metric]
        found = served(self.measurements.in_arm(arm), probes[0]) if probes else {}
        return {spec: dict(one.own) for spec, one in found.items()}


@dataclass(frozen=True)
class EvidenceOnPath(StudyEvidence):
    """The evidence for a claim about class separation and linear transfer, by another index and probe.

    without    the objectives that are left out, by their short names
    seeds      the seeds that count; None for all
    """

    networks: NetworkSet = dataclasses.field(kw_only=True)
    index: PathReading = dataclasses.field(kw_only=True)
    probe: PathReading = dataclasses.field(kw_only=True)
    best: bool = False
    without: frozenset[str] = frozenset()
    seeds: frozenset[Seed] | None = None

    def values(self, aspect: Aspect, over: Among = "objectives") -> ByRun:
        readings = {"separation": (self.index, False), "linear": (self.probe, self.best)}
        if aspect not in readings or over != "objectives":
            return super().values(aspect, over)
        arm, main = self.measurements.arm, self.networks.measurements.arm
        reading, best = readings[aspect]
        runs = (
            self.networks.gathered(reading, best) if arm == main else self.networks.read(reading, arm, best)
        )
        kept = {
            spec: {seed: value for seed, value in of.items() if self.seeds is None or seed in self.seeds}
            for spec, of in runs.items()
            if short_name(spec) not in self.without
        }
        return {spec: of for spec, of in kept.items() if of}

    def label(self, spec: str, over: Among = "objectives") -> str:
        return label_of(spec)


@functools.lru_cache(maxsize=1024)
def short_name(spec: str) -> str:
    """Return the name of the preset that an objective is, or its spec.

    >>> short_name("logit_norm(temperature=0.057)"), short_name("mine(a=1)")
    ('logit_norm', 'mine(a=1)')
    """
    return preset_of(spec) or spec


@functools.lru_cache(maxsize=1024)
def label_of(spec: str) -> str:
    """Return the label of an objective without its strength, or its spec."""
    try:
        return resolve(spec).label
    except RequestError:
        return spec


def sets_of(measurements: Measurements) -> list[NetworkSet]:
    """Return the sets of networks that a study has, and those of kept runs beside the main kept one."""
    main, *others = _of_study(measurements)
    found = [dataclasses.replace(main, is_main=True), *others]
    for companion in map(admit, map(read_reference, _companions(measurements))):
        for one in _of_study(companion):
            again = one.words == main.words
            draws = f"{counted(len(companion.seeds), 'other')}".capitalize()
            found.append(dataclasses.replace(one, draws=draws) if again else one)
    return found


def _companions(measurements: Measurements) -> tuple[str, ...]:
    """Return the kept runs that stand beside a study: none unless it is the main kept run itself."""
    is_kept = "rows_sha256" in measurements.results.provenance
    main = str(registry.entry("reference", registry.names("reference")[0]).facts["main"])
    return COMPANIONS if is_kept and measurements.results.name == main else ()


def _of_study(measurements: Measurements) -> list[NetworkSet]:
    """Return the sets of one study: its main arm, and what it has of the sweep's arms."""
    from penultimate.paper.studies import sweep

    has_own_decay = measurements.recipe.get("head_decay") is not None
    tuned = bool(measurements.results.description.get("tuned_by"))
    words = OWN_DECAY if has_own_decay else HOLDOUT if tuned else MAIN
    found = [NetworkSet(words, measurements)]
    if not has_families(measurements):
        return found
    arms = {
        spec: arm for spec in sweep.TRANSLATED for arm in SHOWN if spec in measurements.networks.specs(arm)
    }
    if len(arms) == len(sweep.TRANSLATED):
        found.append(NetworkSet(TRANSLATED, measurements, arms))
    if PAPERS_STRENGTHS in measurements.arms:
        found.append(NetworkSet(PRINTED, measurements.in_arm(PAPERS_STRENGTHS)))
    return [*found, NetworkSet(FAMILIES, measurements, families=doses.FAMILIES)]
