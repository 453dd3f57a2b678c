"""The training curves: a panel an objective, its own curves before those of all others."""

from __future__ import annotations

from penultimate.report.exhibits.base import Curve, Figure, Panel
from penultimate.report.exhibits.measurements import Measurements, Objective
from penultimate.report.text import fixed

SIZE = (210.0, 160.0)
SPLITS = {"train": "training images", "holdout": "holdout images"}


def training_curves(measurements: Measurements) -> Figure | None:
    """Accuracy over epochs on training (dashed) and holdout images; nothing where no curve was recorded.

    The first run of each objective is drawn, since lines of several would hide each other.
    """
    own = {one: curves for one in measurements.objectives if (curves := _curves(measurements, one))}
    if not own:
        return None
    everything = [point for curves in own.values() for curve in curves for point in curve.points]
    xs, ys = [x for x, _ in everything], [y for _, y in everything]
    shown = tuple(
        Panel(
            f"curves-{index}",
            objective.label,
            "",
            "",
            curves=(*_behind(own, objective), *curves),
            labelled=False,
            size=SIZE,
            x_limits=(min(0.0, *xs), max(xs)),
            y_limits=(min(ys), max(100.0, *ys)) if max(ys) > 90 else (min(ys), max(ys)),
        )
        for index, (objective, curves) in enumerate(own.items())
    )
    description = "Small multiples of accuracy over epochs, a panel an objective, the others in grey behind."
    return Figure("curves", "Accuracy over training", description, shown)


def _curves(measurements: Measurements, objective: Objective) -> tuple[Curve, ...]:
    found = []
    for split, words in SPLITS.items():
        by_seed = measurements.curve(objective, "top1", split)
        if by_seed:
            seed, points = next(iter(by_seed.items()))
            scaled = tuple((epoch, 100 * value) for epoch, value in points)
            label = f"{objective.label}, {words}, seed {seed}: {fixed(scaled[-1][1], 1)} % at the end"
            found.append(Curve(scaled, objective.slug, label, dashed=split == "train"))
    return tuple(found)


def _behind(own: dict[Objective, tuple[Curve, ...]], objective: Objective) -> tuple[Curve, ...]:
    return tuple(
        Curve(curve.points, curve.objective, curve.label, faint=True)
        for other, curves in own.items()
        if other != objective
        for curve in curves
        if not curve.dashed
    )
