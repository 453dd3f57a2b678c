"""Families of objectives at several strengths, as exhibits show them: each strength with all its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.paper.claims.doses import FAMILIES, in_family
from penultimate.paper.claims.evidence import (
    ACCURACY,
    BASELINE,
    KNN,
    LINEAR,
    SEPARATION,
    TRAIN,
    Evidence,
    level_crossing,
    snapshots,
)
from penultimate.results.rows import Run, epochs

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.statistics import PartialSlope

FURTHER = ("projector", "center_loss", "entropy")
"""The families that were added when the others had been judged: no rule judges their prices."""
SHOWN = (*FAMILIES, "dropout", *FURTHER)
"""The families in figures and tables: those that are judged, dropout, and the further ones."""
QUANTITIES = {"separation": SEPARATION, "accuracy": ACCURACY, "train": TRAIN, "linear": LINEAR, "knn": KNN}


@dataclass(frozen=True, eq=False)
class Strength:
    """One objective of a family: its words, and its runs [seed] of every quantity that was measured."""

    spec: str
    family: str
    label: str
    values: Mapping[str, pd.Series]

    @property
    def mark(self) -> str:
        """The slug whose mark it has: softmax's own, or its family's."""
        return BASELINE if self.spec == BASELINE else self.family

    def mean(self, quantity: str) -> float:
        """Return the mean over seeds."""
        return float(self.values[quantity].mean())

    @property
    def seeds(self) -> set[int]:
        """The seeds that have both class separation and linear transfer."""
        return {*self.values["separation"].index} & {*self.values["linear"].index}


def families_of(run: Run) -> dict[str, list[Strength]]:
    """Return the strengths of every family that have class separation and transfer, from the weakest."""
    from penultimate.objectives.presets import resolve

    of, found = Evidence(run), dict[str, list[Strength]]()
    for family in SHOWN:
        frames = {name: in_family(of, family, quantity) for name, quantity in QUANTITIES.items()}
        for spec in frames["separation"]:
            if spec in frames["linear"]:
                values = {name: frame[spec].dropna() for name, frame in frames.items() if spec in frame}
                strength = Strength(spec, family, resolve(spec).detailed_label, values)
                found.setdefault(family, []).append(strength)
    return found


def complete(families: Mapping[str, Sequence[Strength]]) -> dict[str, list[Strength]]:
    """Return the strengths that every seed of their family has, as the rules count no others.

    A mean over fewer draws of the images would bend a curve.
    """
    found: dict[str, list[Strength]] = {}
    for family, strengths in families.items():
        seeds = set[int]().union(*(one.seeds for one in strengths))
        whole = [one for one in strengths if one.seeds == seeds]
        found |= {family: whole} if whole else {}
    return found


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


def has_families(run: Run) -> bool:
    """Return whether a study has families of strengths."""
    return len({*FAMILIES} & {*run.arms}) > 1


def with_covariates(
    families: Mapping[str, Sequence[Strength]], covariates: Sequence[str]
) -> list[PartialSlope] | None:
    """Return the slopes of linear transfer on these quantities together, within each family and seed.

    Dropout is left out, as it is of the rules.
    """
    import pandas as pd

    from penultimate.statistics import partial_slopes

    groups, rows = list[tuple[str, int]](), []
    for family in FAMILIES:
        for one in families.get(family, ()):
            columns = [one.values[name] for name in (*covariates, "linear") if name in one.values]
            if len(columns) == len(covariates) + 1:
                table = pd.concat(columns, axis=1, join="inner")
                groups += [(family, seed) for seed in table.index]
                rows += table.to_numpy().tolist()
    return partial_slopes(groups, *_columns(rows)) if groups else None


def _columns(rows: Sequence[Sequence[float]]) -> tuple[list[list[float]], list[float]]:
    *columns, last = map(list, zip(*rows, strict=True))
    return columns, last


def below_softmax_in_training(run: Run, strength: Strength) -> dict[int, float]:
    """Return by how much a strength's linear transfer differs from softmax's when that was as accurate.

    Softmax's transfer is interpolated between its snapshots, where its test accuracy first reaches the
    strength's. There is no value for a seed in which softmax never was as accurate, or was from the start.
    """
    accuracy = epochs(run, "top1", scale=100.0)
    of_epochs = snapshots(Evidence(run))
    found = {}
    for seed, value in strength.values["linear"].items():
        level = strength.values.get("accuracy", strength.values["linear"].iloc[:0]).get(seed)
        if level is None or (BASELINE, seed) not in accuracy:
            continue
        shared = [
            epoch
            for epoch in accuracy[BASELINE, seed].dropna().index
            if f"{epoch:g}" in of_epochs and _has(of_epochs[f"{epoch:g}"], seed)
        ]
        across = [float(accuracy.loc[epoch, (BASELINE, seed)]) for epoch in shared]
        up = [float(of_epochs[f"{epoch:g}"].loc[seed, BASELINE]) for epoch in shared]
        height = level_crossing(across, up, level)
        if height is not None:
            found[int(seed)] = float(value - height)
    return found


def _has(frame: pd.DataFrame, seed: int) -> bool:
    return (
        BASELINE in frame and seed in frame.index and frame.loc[seed, BASELINE] == frame.loc[seed, BASELINE]
    )
