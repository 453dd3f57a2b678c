"""Families of objectives at several strengths, as exhibits show them: each strength with all its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.aspects import QUANTITIES, Aspect
from penultimate.paper.claims.courses import level_crossing
from penultimate.paper.claims.doses import FAMILIES
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.shapes.numbers import summarise

if TYPE_CHECKING:
    from penultimate.paper.claims.evidence import StudyEvidence
    from penultimate.statistics import MeanWithError, PartialSlope

FURTHER = ("projector", "center_loss", "entropy")
"""The families that were added when the others had been judged: no rule judges their prices."""
SHOWN = (*FAMILIES, "dropout", *FURTHER)
"""The families in figures and tables: those that are judged, dropout, and the further ones."""
ASPECTS: tuple[Aspect, ...] = ("separation", "accuracy", "train", "linear", "knn")


@dataclass(frozen=True)
class Strength:
    """One objective of a family: its words, and its values by seed in every aspect that was measured."""

    spec: str
    family: str
    label: str
    values: Mapping[Aspect, Mapping[Seed, float]]

    @property
    def mark(self) -> str:
        """The slug whose mark it has: softmax's own, or its family's."""
        return "softmax" if self.spec == "softmax" else self.family

    def summary(self, aspect: Aspect) -> MeanWithError:
        """Return the mean over seeds, with its standard error."""
        return summarise(self.values[aspect].values())

    def mean(self, aspect: Aspect) -> float:
        return self.summary(aspect).mean


def families_of(evidence: StudyEvidence) -> dict[str, list[Strength]]:
    """Return the strengths of every family that have class separation and transfer, from the weakest."""
    from penultimate.paper.claims.strengths import in_family, of_family

    found: dict[str, list[Strength]] = {}
    for family in SHOWN:
        of_arm = in_family(evidence, family)
        columns = {aspect: of_arm.values(aspect) for aspect in ASPECTS}
        for spec in of_family(evidence, family):
            if spec in columns["separation"] and spec in columns["linear"]:
                values = {aspect: of[spec] for aspect, of in columns.items() if spec in of}
                one = Strength(spec, family, resolve(spec).detailed_label, values)
                found.setdefault(family, []).append(one)
    return found


def complete(families: Mapping[str, Sequence[Strength]]) -> dict[str, list[Strength]]:
    """Return the strengths that every seed of their family has, as the rules count no others.

    A mean over fewer draws of the images would bend a curve.
    """
    found: dict[str, list[Strength]] = {}
    for family, strengths in families.items():
        seeds = {seed for one in strengths for seed in _seeds(one)}
        whole = [one for one in strengths if _seeds(one) == seeds]
        found |= {family: whole} if whole else {}
    return found


def left_out(evidence: StudyEvidence, shown: Mapping[str, Sequence[Strength]]) -> list[str]:
    """Return the names of the strengths that the study plans and no curve holds."""
    from penultimate.paper.claims.strengths import of_family

    names = [
        resolve(spec).detailed_label
        for family in SHOWN
        for spec in of_family(evidence, family)
        if spec not in {one.spec for one in shown.get(family, ())}
    ]
    return list(dict.fromkeys(names))


def _seeds(strength: Strength) -> set[Seed]:
    return {*strength.values["separation"]} & {*strength.values["linear"]}


def distinct(families: Mapping[str, Sequence[Strength]]) -> list[Strength]:
    """Return every strength once; softmax belongs to several families."""
    return list({one.spec: one for found in families.values() for one in found}.values())


def pareto_front(strengths: Sequence[Strength]) -> list[Strength]:
    """Return the strengths that no other beats in both test accuracy and linear transfer, by their means.

    The most accurate comes first.
    """
    known = [one for one in strengths if "accuracy" in one.values]
    places = [(one.mean("accuracy"), one.mean("linear")) for one in known]

    def is_beaten(x: float, y: float) -> bool:
        return any(a >= x and b >= y and (a, b) != (x, y) for a, b in places)

    front = [one for one, place in zip(known, places, strict=True) if not is_beaten(*place)]
    return sorted(front, key=lambda one: -one.mean("accuracy"))


COVARIATES: tuple[Aspect, ...] = ("separation", "accuracy", "train")


def has_families(measurements: Measurements) -> bool:
    """Return whether a study has families of strengths."""
    return len({*FAMILIES} & {*measurements.arms}) > 1


def with_covariates(
    families: Mapping[str, Sequence[Strength]], covariates: Sequence[Aspect]
) -> list[PartialSlope] | None:
    """Return the slopes of linear transfer on these aspects together, within each family and seed.

    Dropout is left out, as it is of the rules.
    """
    from penultimate.statistics import partial_slopes

    groups, y = list[tuple[str, Seed]](), list[float]()
    columns: list[list[float]] = [[] for _ in covariates]
    for family in FAMILIES:
        for one in families.get(family, ()):
            for seed, value in one.values["linear"].items():
                if all(seed in one.values.get(aspect, {}) for aspect in covariates):
                    groups.append((family, seed))
                    y.append(value)
                    for column, aspect in zip(columns, covariates, strict=True):
                        column.append(one.values[aspect][seed])
    return partial_slopes(groups, columns, y) if groups else None


def below_softmax_in_training(measurements: Measurements, strength: Strength) -> dict[Seed, float]:
    """Return by how much a strength's linear transfer differs from softmax's when that was as accurate.

    Softmax's transfer is interpolated between its snapshots, where its test accuracy first reaches the
    strength's. There is no value for a seed in which softmax never was as accurate, or was from the start.
    """
    main = measurements.in_arm("")
    softmax = next((one for one in main.objectives if one.spec == "softmax"), None)
    if softmax is None:
        return {}
    accuracies, transfers = main.curve(softmax, "top1", "test"), main.course(softmax, QUANTITIES["linear"])
    found = {}
    for seed, value in strength.values["linear"].items():
        across, up = dict(accuracies.get(seed, ())), dict(transfers.get(seed, ()))
        shared = sorted(across.keys() & up.keys())
        level = strength.values.get("accuracy", {}).get(seed)
        if level is None or not shared:
            continue
        height = level_crossing([100 * across[at] for at in shared], [100 * up[at] for at in shared], level)
        if height is not None:
            found[seed] = value - height
    return found
