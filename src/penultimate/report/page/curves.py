"""The training curves: one panel per objective, with its curves in front of those of its arm's others."""

from __future__ import annotations

from penultimate.report.base import Curve, Figure, Panel
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.networks import StudyObjective
from penultimate.report.text import fixed, plain

SIZE = (210.0, 160.0)
SPLITS = {"train": "training images", "holdout": "holdout images"}


def training_curves(measurements: Measurements) -> Figure | None:
    """Return accuracy over epochs on training (dashed) and holdout images, or None without any curve.

    Only the first run of each objective is drawn, because the lines of several would hide each other. An
    objective that was trained in several arms has a panel for each.
    """
    drawn: dict[str, dict[str, tuple[Curve, ...]]] = {}
    for arm in measurements.arms:
        of_arm = measurements.in_arm(arm)
        above = {title for others in drawn.values() for title in others}
        for objective in of_arm.objectives:
            curves = _curves(of_arm, objective)
            title = f"{objective.label}, {plain(arm)}" if objective.label in above else objective.label
            if curves:
                drawn.setdefault(arm, {})[title] = curves
    if not drawn:
        return None
    ys = [y for of_arm in drawn.values() for _, y in _points(of_arm)]
    y_limits = (min(ys), max(100.0, *ys)) if max(ys) > 90 else (min(ys), max(ys))
    panels: list[Panel] = []
    for by_title in drawn.values():
        xs = [x for x, _ in _points(by_title)]
        for title, curves in by_title.items():
            panels.append(
                Panel(
                    f"curves-{len(panels)}",
                    title,
                    "",
                    "",
                    curves=(*_in_background(by_title, title), *curves),
                    labelled=False,
                    size=SIZE,
                    x_limits=(min(0.0, *xs), max(xs)),
                    y_limits=y_limits,
                )
            )
    description = "Small multiples of accuracy over epochs, a panel an objective, the others in grey behind."
    return Figure("curves", "Accuracy over training", description, tuple(panels))


def _points(drawn: dict[str, tuple[Curve, ...]]) -> list[tuple[float, float]]:
    return [point for curves in drawn.values() for curve in curves for point in curve.points]


def _curves(measurements: Measurements, objective: StudyObjective) -> tuple[Curve, ...]:
    curves = []
    for split, words in SPLITS.items():
        by_seed = measurements.curve(objective, "top1", split)
        if by_seed:
            seed, points = next(iter(by_seed.items()))
            scaled = tuple((epoch, 100 * value) for epoch, value in points)
            label = f"{objective.label}, {words}, {run_name(seed)}: {fixed(scaled[-1][1], 1)} % at the end"
            curves.append(Curve(scaled, objective.slug, label, dashed=split == "train"))
    return tuple(curves)


def _in_background(drawn: dict[str, tuple[Curve, ...]], title: str) -> tuple[Curve, ...]:
    return tuple(
        Curve(curve.points, curve.objective, curve.label, faint=True)
        for other, curves in drawn.items()
        if other != title
        for curve in curves
        if not curve.dashed
    )
