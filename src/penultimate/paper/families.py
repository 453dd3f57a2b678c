"""Objectives at several strengths as tables and figures; a strength is named by its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.filed import FAMILIES
from penultimate.paper.claims.numbers import BASELINE, Numbers
from penultimate.paper.claims.strengths import STRENGTH, planned, strengths
from penultimate.results.figure import Axis, Curve, Panel, Point
from penultimate.results.rows import Run
from penultimate.results.table import Column, Table
from penultimate.results.text import fixed

Key: TypeAlias = tuple[str, str]
"""A family and the label of one of its strengths."""
FURTHER = ("projector", "center_loss", "entropy")
"""The families that were added when the others had been judged: no rule judges their prices."""
SHOWN = (*FAMILIES, "dropout", *FURTHER)
"""The families in figures and tables: those that are judged, dropout, and the further ones."""
COLUMNS = {
    "separation": Column("separation", "R²", digits=3, with_error=True),
    "accuracy": Column("accuracy", "Test accuracy, %", digits=2, with_error=True),
    "train": Column("train", "Training accuracy, %", digits=2, with_error=True),
    "linear": Column("linear", "Linear transfer, %", digits=2, with_error=True),
    "knn": Column("knn", "kNN transfer, %", digits=2, with_error=True),
}
AXES = {
    "separation": Axis("Class separation R² on the training images", 3),
    "accuracy": Axis("Test accuracy on the classes trained on, %"),
    "linear": Axis("Mean linear transfer accuracy, %"),
    "knn": Axis("Mean kNN transfer accuracy, %"),
}


def strengths_of(run: Run) -> pd.DataFrame:
    """Return every strength that has class separation and transfer, from a family's weakest on."""
    found = strengths(Numbers(run), SHOWN)
    labels = {spec: resolve(spec).detailed_label for _, spec, _ in found.index}
    return found.rename(index=labels, level="strength") if labels else found


def distinct(found: pd.DataFrame) -> pd.DataFrame:
    """Return every strength once; softmax belongs to several families."""
    return found[~found.index.droplevel("family").duplicated()]


def has_families(run: Run) -> bool:
    """Return whether a study has families of strengths."""
    return len({*FAMILIES} & {*run.arms}) > 1


def left_out(run: Run, shown: pd.DataFrame) -> list[str]:
    """Return the labels of the strengths that the study plans and no curve holds."""
    drawn = {key[:2] for key in shown.index}
    every = [
        (family, resolve(spec).detailed_label) for family in SHOWN for spec in planned(Numbers(run), family)
    ]
    return list(dict.fromkeys(key[1] for key in every if key not in drawn))


def by_strength(found: pd.DataFrame) -> Any:
    """Return the values in groups, one for each strength, in their order."""
    return found.groupby(level=STRENGTH, sort=False)


def pareto_front(found: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the strengths that no other beats in both test accuracy and linear transfer.

    The most accurate comes first.
    """
    means: pd.DataFrame = by_strength(found).mean().dropna(subset=["accuracy"])
    places = means[["accuracy", "linear"]].to_numpy()
    beaten = [bool(((places >= own).all(1) & (places > own).any(1)).any()) for own in places]
    return means[[not each for each in beaten]].sort_values("accuracy", ascending=False, kind="stable")


def slug_of(key: Key) -> str:
    """Return the objective whose mark a strength has: softmax's own, or its family's."""
    return BASELINE if key[1] == resolve(BASELINE).label else key[0]


def table_of_strengths(
    name: str, title: str, columns: Sequence[Column], found: pd.DataFrame, **table: Any
) -> Table:
    """Return the means of strengths, a row each, with standard errors and counts."""
    grouped = by_strength(found)
    counts, values = grouped.count(), grouped.mean()
    frames = {"values": values, "errors": grouped.sem(), "counts": counts.where(counts > 0)}
    labels = [label for _, label in values.index]
    made = {what: of.set_axis(labels) for what, of in frames.items()}
    return Table(name, title, tuple(columns), **made, slugs=tuple(map(slug_of, values.index)), **table)


def panel_of_strengths(
    name: str,
    title: str,
    found: pd.DataFrame,
    x: str,
    y: str,
    shades: Mapping[Key, float] | None = None,
    **panel: Any,
) -> Panel:
    """Return the means of strengths and a curve for each family; shades replace errors and single seeds."""
    known = found.dropna(subset=[x, y])
    grouped, points, curves = by_strength(distinct(known)[[x, y]]), list[Point](), list[Curve]()
    for (key, mean), (_, sem) in zip(grouped.mean().iterrows(), grouped.sem().iterrows(), strict=True):
        detail = f"{key[1]}: {fixed(mean[x], AXES[x].digits)}, {fixed(mean[y], 1)} %"
        x_error, y_error = (None if shades or at != at else float(at) for at in sem)
        slug, shade = slug_of(key), shades.get(key) if shades else None
        place = float(mean[x]), float(mean[y])
        points.append(Point(*place, slug, resolve(slug).label, detail, x_error, y_error, shade=shade))
    for family, of in known[[x, y]].groupby(level="family", sort=False):
        label, lines = resolve(family).label, [("the means", by_strength(of).mean())]
        by_seed = of.groupby(level="seed")
        if not shades and by_seed.ngroups > 1:
            lines = [*((f"seed {seed}", line) for seed, line in by_seed), *lines]
        for words, line in lines:
            if len(line) > 1:
                along = tuple((across, up) for across, up in line.to_numpy().tolist())
                said = f"{label}, from the first strength to the last: {words}"
                curves.append(Curve(along, family, said, faint=words != "the means"))
    return Panel(name, title, AXES[x].label, AXES[y].label, tuple(points), tuple(curves), **panel)
