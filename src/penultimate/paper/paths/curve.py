"""The estimate on every path, by the rule of the main claim, and what the paths come to."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.effects import Effect, common_seeds, contrast, unknown_effect
from penultimate.paper.claims.rankings import ranked
from penultimate.paper.claims.rules import Ranked
from penultimate.paper.claims.strengths import curve_of
from penultimate.paper.claims.verdicts import halves
from penultimate.paper.paths.choices import (
    ALL,
    BEST,
    CHOICES,
    DRAWS,
    FIRST_HALF,
    INDEX,
    INDEXES,
    LAST,
    LAYER,
    LISTED_LEVELS,
    OBJECTIVES,
    ONE_LESS,
    PROBE,
    PROBES,
    SECOND_HALF,
    SUBSETS,
    TRAINED,
    WHOLE,
)
from penultimate.paper.paths.networks import EvidenceOnPath, NetworkSet, label_of, sets_of, short_name
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.text import in_words
from penultimate.statistics import crossed_part, explained_shares, mean, spearman, summarise

CLAIM = Ranked("separation", "linear", -1)
"""The rule of the main claim, by which every path over objectives is judged."""
LEAST_STRENGTHS = 3
"""The fewest strengths of a family whose order says anything."""


@dataclass(frozen=True)
class Specification:
    """A path: the level of every choice, and the effect that transfer falls as separation rises.

    `count` is the number of objectives or of families that are compared.
    """

    levels: Mapping[str, str]
    effect: Effect
    count: int

    @property
    def rho(self) -> float:
        return -self.effect.estimate

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the 95 % interval of rho, within -1 and 1."""
        return max(-1.0, -self.effect.high), min(1.0, -self.effect.low)

    @property
    def p(self) -> float:
        """The two-sided p value; 1 if there is no interval."""
        if not math.isfinite(self.effect.low):
            return 1.0
        return min(1.0, 2 * min(self.effect.p_for, 1 - self.effect.p_for))

    @property
    def is_negative(self) -> bool:
        return self.rho < 0

    @property
    def holds(self) -> bool:
        """Whether rho is negative and its interval excludes 0."""
        return self.rho < 0 and self.span[1] < 0

    @property
    def contradicts(self) -> bool:
        """Whether rho is positive and its interval excludes 0."""
        return self.rho > 0 and self.span[0] > 0

    def shown(self, choice: str) -> str:
        """Return the level of a choice as figures show it, where single objectives left out are one level."""
        level = self.levels[choice]
        return ONE_LESS if choice == OBJECTIVES and level not in SUBSETS else level


@dataclass(frozen=True)
class Deciding:
    """The share of the variance of rho that each choice explains, over paths that cross these choices.

    `levels` counts the levels of each choice, and `words` say what is the same on all of these paths.
    """

    words: str
    paths: int
    levels: Mapping[str, int]
    shares: Mapping[str, float]

    @property
    def left(self) -> float:
        """The share that belongs to choices together."""
        return max(0.0, 1 - math.fsum(self.shares.values()))


@dataclass(frozen=True)
class SpecificationCurve:
    """All paths of a study by rising rho.

    `main` is what its own main networks are called among them. `runs` says which run has which networks, and
    `draws` how many draws of the images a run has.
    """

    paths: tuple[Specification, ...]
    main: str
    runs: Mapping[str, Sequence[str]]
    draws: Mapping[str, int]

    @property
    def claim(self) -> Specification | None:
        """The path of the main claim itself."""
        own = (self.main, INDEXES[0].words, PROBES[0].words, ALL, WHOLE, LAST)
        return next((path for path in self.paths if tuple(path.levels.values()) == own), None)

    def groups(self, choice: str) -> dict[str, list[Specification]]:
        """Return the paths of each level of a choice, in the order in which the levels are listed."""
        found: dict[str, list[Specification]] = {}
        for path in self.paths:
            found.setdefault(path.shown(choice), []).append(path)
        order = [*LISTED_LEVELS[choice], *found]
        return {level: found[level] for level in dict.fromkeys(order) if level in found}

    def deciding(self) -> list[Deciding]:
        """Return what each choice explains: of all sets of networks, of the main one's draws, and its layers.

        Only the crossed part of the paths counts (`crossed_part`).
        """
        main = [path for path in self.paths if path.levels[TRAINED] == self.main]
        of_layers = {path.levels[DRAWS] for path in main if path.levels[LAYER] == BEST}
        parts = (
            (
                "All draws, penultimate features",
                (TRAINED, INDEX, PROBE, OBJECTIVES),
                [path for path in self.paths if (path.levels[DRAWS], path.levels[LAYER]) == (WHOLE, LAST)],
            ),
            (
                "The main networks, penultimate features",
                (INDEX, PROBE, OBJECTIVES, DRAWS),
                [path for path in main if path.levels[LAYER] == LAST],
            ),
            (
                "The main networks whose layers were probed",
                (INDEX, PROBE, OBJECTIVES, LAYER),
                [path for path in main if path.levels[DRAWS] in of_layers],
            ),
        )
        found = [_deciding(words, choices, paths) for words, choices, paths in parts]
        return [one for one in found if one is not None]


def _deciding(words: str, choices: Sequence[str], paths: Sequence[Specification]) -> Deciding | None:
    rows = [tuple(path.levels[choice] for choice in choices) for path in paths]
    kept = crossed_part(rows)
    columns = {
        choice: [rows[at][place] for at in kept]
        for place, choice in enumerate(choices)
        if len({rows[at][place] for at in kept}) > 1
    }
    if not columns:
        return None
    shares = explained_shares([paths[at].rho for at in kept], columns)
    counts = {choice: len({*of}) for choice, of in columns.items()}
    return Deciding(words, len(kept), counts, shares) if shares else None


def specification_curve(measurements: Measurements) -> SpecificationCurve:
    """Return every path of a study, and of kept runs beside the main kept one.

    A path over objectives is judged by the rule of the main claim: Spearman's rho over the means of
    objectives, an exact p, and the wider of its intervals over objectives and over seeds. Within families it
    is the mean of rho over the strengths of each, with a t interval over families. A path is left out if its
    rho does not exist, or fewer objectives (or families) than the rules ask for have both numbers.

    Simonsohn, Simmons and Nelson, 2020.
    """
    sets = sets_of(measurements)
    found = [path for networks in sets for path in _paths(networks)]
    in_order = sorted(found, key=lambda path: (path.rho, path.span))
    runs: dict[str, list[str]] = {}
    for one in sets:
        runs.setdefault(one.measurements.results.name, []).append(one.words)
    draws = {one.measurements.results.name: len(one.measurements.seeds) for one in sets}
    return SpecificationCurve(tuple(in_order), sets[0].words, runs, draws)


def _paths(networks: NetworkSet) -> Iterator[Specification]:
    judge = _over_families if networks.families else _over_objectives
    for draws, seeds, layer in _draws(networks):
        for index, probe in itertools.product(INDEXES, PROBES):
            if not networks.has(index) or not networks.has(probe):
                continue
            evidence = EvidenceOnPath(
                measurements=networks.measurements,
                networks=networks,
                index=index,
                probe=probe,
                best=layer == BEST,
                seeds=seeds,
            )
            is_claim = (index, probe, draws, layer) == (INDEXES[0], PROBES[0], WHOLE, LAST)
            for words, without in _subsets(evidence, networks.is_main and is_claim):
                found = judge(evidence, without)
                if found is not None:
                    levels = (networks.words, index.words, probe.words, words, draws, layer)
                    yield Specification(dict(zip(CHOICES, levels, strict=True)), *found)


def _draws(networks: NetworkSet) -> Iterator[tuple[str, frozenset[Seed] | None, str]]:
    """Yield the draws that are chosen among, as words and seeds (None for all), each with a layer."""
    yield networks.draws, None, LAST
    if not networks.is_main:
        return
    seeds: tuple[Seed, ...] = networks.measurements.seeds
    if len(seeds) >= 2 * CRITERIA.least_runs.value:
        for words, half in zip((FIRST_HALF, SECOND_HALF), halves(seeds), strict=True):
            yield words, frozenset(half), LAST
    layers = networks.gathered(PROBES[0], best=True)
    probed = frozenset(common_seeds(layers.values())) if layers else frozenset[Seed]()
    if probed >= {*seeds}:
        yield WHOLE, None, BEST
    elif probed:
        words = f"{in_words(len(probed))} of them".capitalize()
        yield words, probed, LAST
        yield words, probed, BEST


def _subsets(evidence: EvidenceOnPath, each: bool) -> list[tuple[str, frozenset[str]]]:
    """Return what is left out: nothing, kinds of objectives, and if `each` every single one.

    Of two that leave the same objectives the later one is listed, since it says what the set lacks.
    """
    families = evidence.networks.families
    runs = evidence.values("separation")
    labels = {name: name for name in families} or {short_name(spec): label_of(spec) for spec in runs}
    found: dict[frozenset[str], tuple[str, frozenset[str]]] = {}
    for words, names in SUBSETS.items():
        found[frozenset(labels) - {*names}] = (words, frozenset(names))
    for name, label in labels.items() if each else ():
        words = f"No {label[0].lower()}{label[1:]}"
        alike = [*labels.values()].count(label) > 1 or words in SUBSETS
        # Objectives of one label, such as projectors of two depths, are told apart by their specs.
        found.setdefault(frozenset(labels) - {name}, (f"No {name}" if alike else words, frozenset([name])))
    return list(found.values())


def _over_objectives(evidence: EvidenceOnPath, without: frozenset[str]) -> tuple[Effect, int] | None:
    trials = ranked(dataclasses.replace(evidence, without=without), CLAIM).every
    if not trials or trials[0].runs < CRITERIA.least_objectives.value:
        return None
    return trials[0].effect, trials[0].runs


def _over_families(evidence: EvidenceOnPath, without: frozenset[str]) -> tuple[Effect, int] | None:
    families = [name for name in evidence.networks.families if name not in without]
    found = [curve_of(evidence, name, "linear") for name in families]
    curves = [curve for curve in found if curve is not None and len(curve.separation) >= LEAST_STRENGTHS]
    rhos = [spearman(_means(one.separation), _means(one.transfer), exact=False) for one in curves]
    falls = [-one.rho for one in rhos if not math.isnan(one.rho)]
    if len(falls) < CRITERIA.least_runs.value:
        return None
    margin = CRITERIA.least_correlation.value
    effect = contrast([summarise(falls)], [1], margin)
    return effect or unknown_effect(mean(falls), margin), len(falls)


def _means(runs: ByRun) -> list[float]:
    return [mean(of.values()) for of in runs.values()]
