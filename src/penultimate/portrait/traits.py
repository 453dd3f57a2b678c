"""Everything that was measured of one objective and of the others, trait by trait, in comparable steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penultimate.measures.catalogue import declared_yield
from penultimate.report.beside import OWN
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.text import fixed, signed
from penultimate.statistics.comparison import LEAST_RUNS, LEVEL
from penultimate.statistics.summary import mean, summarise

UNITS = ("fraction", "ratio", "nats", "distance", "length")
PASSING = ("validation", "certified", "leave_one_out", "lambda")
"""Words in the names of metrics that belong to a method, and say nothing of a network."""
LEAST_OTHERS = 4
SPLITS = {"train": "training images", "holdout": "holdout images", "test": "test images"}

BySeed = Mapping[Seed, float]


@dataclass(frozen=True)
class PairedDifference:
    """A mean difference within seeds with its 95 % interval, and twice its one-sided p."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def is_beyond_chance(self) -> bool:
        return self.p <= LEVEL


def within_seeds(one: BySeed, other: BySeed) -> PairedDifference | None:
    """Return the mean of one minus other over the seeds that both have, by a paired t test.

    d_s = one_s - other_s,    mean d +- t_{.975, n-1} s_d / sqrt(n)

    None with fewer than three common seeds, or if all differences are equal.

    >>> found = within_seeds({0: 71.1, 1: 75.9, 2: 81.0}, {0: 70.0, 1: 75.0, 2: 80.0})
    >>> round(found.low, 2), round(found.high, 2), round(found.p, 4)
    (0.75, 1.25, 0.0033)

    Student, 1908.
    """
    seeds = [seed for seed in one if seed in other]
    if len(seeds) < LEAST_RUNS:
        return None
    summary = summarise([one[seed] - other[seed] for seed in seeds])
    if summary.standard_error <= 1e-12 * max(abs(of[seed]) for of in (one, other) for seed in seeds):
        return None
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(summary.n - 1, 1 - LEVEL / 2)) * summary.standard_error
    p = 2 * float(stdtr(summary.n - 1, -abs(summary.mean) / summary.standard_error))
    return PairedDifference(summary.mean, summary.mean - half, summary.mean + half, p)


@dataclass(frozen=True)
class Trait:
    """One quantity: its name, the runs of the objective and of each other one, and how it is shown."""

    name: str
    quantity: Quantity
    own: BySeed
    others: Mapping[str, BySeed]

    @cached_property
    def value(self) -> float:
        return mean(self.own.values())

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of each other objective."""
        return {spec: mean(runs.values()) for spec, runs in self.others.items()}

    @property
    def spread(self) -> float:
        """The standard deviation of the others' means."""
        values = [*self.means.values()]
        middle = mean(values)
        return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))

    def steps(self, value: float) -> float:
        """Return how many of the others' standard deviations a value lies above their mean."""
        return (value - mean(self.means.values())) / self.spread

    @property
    def place(self) -> int:
        """The place from the highest value."""
        return 1 + sum(value > self.value for value in self.means.values())

    @property
    def beyond(self) -> PairedDifference | None:
        """The difference from the nearest other objective, if the objective lies beyond all of them."""
        nearest = min(self.means, key=lambda spec: abs(self.means[spec] - self.value))
        inside = min(self.means.values()) <= self.value <= max(self.means.values())
        return None if inside else within_seeds(self.own, self.others[nearest])

    @property
    def is_outside(self) -> bool:
        return not min(self.means.values()) <= self.value <= max(self.means.values())

    def text(self, value: float) -> str:
        return fixed(self.quantity.scale * value, self.quantity.digits)

    def change(self, value: float) -> str:
        return signed(self.quantity.scale * value, self.quantity.digits)


def within_sentence(label: str) -> str:
    """Return a label as it stands within a sentence.

    >>> within_sentence("More final layer L²")
    'more final layer L²'
    """
    return label[:1].lower() + label[1:]


def subject_of(measurements: Measurements) -> StudyObjective | None:
    """Return the objective that a portrait is of, or None for another study."""
    if measurements.networks.page != "portrait":
        return None
    own = measurements.results.description.get(OWN) or [one.spec for one in measurements.objectives]
    return next((one for one in measurements.objectives if one.spec in own), None)


def trait(measurements: Measurements, spec: str, quantity: Quantity, name: str) -> Trait | None:
    """Return one quantity of the objective and of the others; None if too few have it, or all are equal."""
    runs = measurements.values(quantity)
    others = {other: of for other, of in runs.items() if other != spec and of}
    if not runs.get(spec) or len(others) < LEAST_OTHERS:
        return None
    found = Trait(name, quantity, runs[spec], others)
    return found if found.spread > 1e-9 * max(map(abs, found.means.values())) else None


def traits(measurements: Measurements, spec: str) -> list[Trait]:
    """Return every trait of the penultimate features and the predictions, in the order of the rows."""
    wanted: dict[Quantity, str] = {}
    for row in measurements.results.table.where(objective=spec):
        is_final = row.epoch is None and row.layer is None and row.setting is None and not row.arm
        if not is_final or row.unit not in UNITS or any(word in row.metric for word in PASSING):
            continue
        split = row.split or "test"
        if (row.target or measurements.source) == measurements.source:
            declared = declared_yield(row.metric)
            wanted.setdefault(
                Quantity(row.metric, split),
                f"{declared.called or row.metric.replace('_', ' ')}, {SPLITS.get(split, split)}",
            )
        elif row.target in measurements.targets:
            metric = _of_targets(row.metric)
            called = declared_yield(metric.replace("{accuracy}", "top1")).called
            wanted.setdefault(
                Quantity(metric, split, target="targets"),
                f"{called or metric.replace('_', ' ')}, mean of the tasks",
            )
    found = (trait(measurements, spec, quantity, name) for quantity, name in wanted.items())
    return _apart([one for one in found if one is not None])


def _apart(found: Sequence[Trait]) -> list[Trait]:
    """Return traits of which those that share a name are named by their metrics too."""
    names = [one.name for one in found]
    return [
        Trait(f"{one.name} ({one.quantity.metric})", one.quantity, one.own, one.others)
        if names.count(one.name) > 1
        else one
        for one in found
    ]


def _of_targets(metric: str) -> str:
    for official in ("_top1", "_mean_per_class"):
        if metric.endswith(official):
            return metric.removesuffix(official) + "_{accuracy}"
    return metric


def likeness(found: Sequence[Trait]) -> dict[str, float]:
    """Return how far the objective lies from each other one: the root mean square over the traits, in steps.

    D_o^2 = mean_t ((x_t - x_ot) / s_t)^2,    s_t the standard deviation of the others' means

    An objective that lacks half of the traits or more is left out.
    """
    distances = {}
    for spec in dict.fromkeys(spec for one in found for spec in one.means):
        shared = [one for one in found if spec in one.means]
        if 2 * len(shared) > len(found):
            squares = [((one.value - one.means[spec]) / one.spread) ** 2 for one in shared]
            distances[spec] = math.sqrt(mean(squares))
    return distances
