"""Families of objectives at several strengths: their curves within seeds, and their prices."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.criteria import DOSES, Criteria
from penultimate.paper.claims.doses import FAMILIES
from penultimate.paper.claims.effects import BySeed, Effect, difference
from penultimate.paper.claims.evidence import StudyEvidence
from penultimate.paper.claims.trials import range_text
from penultimate.report.measurements import ByRun, Seed
from penultimate.report.text import signed
from penultimate.statistics import least_squares, mean

PER = 0.1
"""The class separation for which a price is stated."""


@dataclass(frozen=True)
class DoseCurve:
    """A family's class separation and transfer at every strength that each of its seeds has.

    `left_out` are the strengths that some seed lacks, because they diverged or were not measured.
    """

    family: str
    separation: ByRun
    transfer: ByRun
    seeds: tuple[Seed, ...]
    left_out: tuple[str, ...]

    @property
    def label(self) -> str:
        return resolve(self.family).label

    @property
    def span(self) -> float:
        """The distance in R² between the strengths that separate least and most, by their means."""
        means = [mean(runs.values()) for runs in self.separation.values()]
        return max(means, default=0.0) - min(means, default=0.0)

    def reaches(self, separation: float) -> bool:
        """Return whether strengths lie on both sides of a class separation, by their means."""
        means = [mean(runs.values()) for runs in self.separation.values()]
        return bool(means) and min(means) <= separation <= max(means)

    def among(self, specs: Collection[str]) -> DoseCurve:
        """Return the curve with some of its strengths only."""
        x, y = (
            {spec: runs for spec, runs in of.items() if spec in specs}
            for of in (self.separation, self.transfer)
        )
        left_out = tuple(spec for spec in self.left_out if spec in specs)
        return dataclasses.replace(self, separation=x, transfer=y, left_out=left_out)

    def prices(self) -> BySeed:
        """Return the slope of transfer within each seed, in points for each .1 of R²."""
        lines = {seed: least_squares(*self._of_seed(seed)) for seed in self.seeds}
        return {seed: PER * line.slope for seed, line in lines.items() if line is not None}

    def heights(self, separation: float) -> BySeed:
        """Return the transfer on the line of each seed at one class separation."""
        lines = {seed: least_squares(*self._of_seed(seed)) for seed in self.seeds}
        return {seed: line.height(separation) for seed, line in lines.items() if line is not None}

    def _of_seed(self, seed: Seed) -> tuple[list[float], list[float]]:
        return (
            [runs[seed] for runs in self.separation.values()],
            [self.transfer[spec][seed] for spec in self.separation],
        )


def curve_of(evidence: StudyEvidence, family: str, aspect: Aspect) -> DoseCurve | None:
    """Return the curve of a family, or None if the study has no networks of it."""
    of_arm = in_family(evidence, family)
    planned = of_family(evidence, family)
    x, y = of_arm.values("separation"), of_arm.values(aspect)
    both = {spec: [seed for seed in x.get(spec, {}) if seed in y.get(spec, {})] for spec in planned}
    seeds = tuple(dict.fromkeys(seed for of_spec in both.values() for seed in of_spec))
    if not seeds:
        return None
    whole = [spec for spec in planned if {*both[spec]} == {*seeds}]
    return DoseCurve(
        family,
        {spec: {seed: x[spec][seed] for seed in seeds} for spec in whole},
        {spec: {seed: y[spec][seed] for seed in seeds} for spec in whole},
        seeds,
        tuple(spec for spec in planned if spec not in whole),
    )


def in_family(evidence: StudyEvidence, family: str) -> StudyEvidence:
    """Return the evidence of the networks of a family alone."""
    return dataclasses.replace(evidence, measurements=evidence.measurements.in_arm(family))


def of_family(evidence: StudyEvidence, family: str) -> tuple[str, ...]:
    """Return the objectives of a family as the study lists them, from the weakest to the strongest."""
    grids = evidence.measurements.networks.grids(family)
    return tuple(dict.fromkeys(str(spec) for grid in grids for spec in grid.get("objectives", ())))


def dose_curves(
    evidence: StudyEvidence, aspect: Aspect, families: Iterable[str] = FAMILIES
) -> list[DoseCurve]:
    """Return the curves of those families that the study has."""
    found = [curve_of(evidence, family, aspect) for family in families]
    return [curve for curve in found if curve is not None]


def price_effect(prices: BySeed, criteria: Criteria) -> Effect | None:
    """Return the effect that transfer falls by the prices of seeds, or None if it has no interval."""
    enough = len(prices) >= criteria.least_runs.value
    return difference([prices], [-1], DOSES.least_price.value, criteria) if enough else None


def price_text(effect: Effect) -> str:
    """Return a price with its interval, where a fall is negative.

    >>> price_text(Effect(1.2, 0.8, 1.6, 0.5, p_for=0.001, p_against=0.99))
    '−1.20 (−1.60 to −0.80)'
    """
    return f"{signed(-effect.estimate, 2)} ({range_text(-effect.high, -effect.low, 2)})"


def left_out_text(found: Iterable[DoseCurve]) -> str:
    """Return a sentence that names the strengths that no curve holds, or an empty string."""
    names = dict.fromkeys(resolve(spec).detailed_label for curve in found for spec in curve.left_out)
    return f" Left out, since not every seed has them: {', '.join(names)}." if names else ""
