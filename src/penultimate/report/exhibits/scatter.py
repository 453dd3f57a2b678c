"""Points for the figures that set accuracy or class separation against transfer, ours and the paper's."""

from __future__ import annotations

from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import Point
from penultimate.report.exhibits.measurements import Measurements, Runs
from penultimate.report.exhibits.numbers import (
    Correlation,
    error_of,
    mean_of_printed,
    published_rows,
    rank_correlation,
    summarise,
)
from penultimate.report.text import counted, fixed, p_value


def run_points(
    measurements: Measurements, x: Runs, y: Runs, x_digits: int, x_scale: float, faint: bool = False
) -> tuple[Point, ...]:
    """A point for every run that has both values; y in per cent."""
    return tuple(
        Point(
            x_scale * x[spec][seed],
            100 * y[spec][seed],
            measurements.objective(spec).slug,
            measurements.objective(spec).label,
            f"seed {seed}: {fixed(x_scale * x[spec][seed], x_digits)}, {fixed(100 * y[spec][seed], 1)} %",
            faint=faint,
        )
        for spec in x
        if spec in y
        for seed in x[spec]
        if seed in y[spec]
    )


def mean_points(
    measurements: Measurements, x: Runs, y: Runs, x_digits: int, x_scale: float
) -> tuple[Point, ...]:
    """A point for every objective: the means over the runs that have both values, with standard errors."""
    points = []
    for spec in x:
        seeds = [seed for seed in x[spec] if seed in y.get(spec, {})]
        if not seeds:
            continue
        across = summarise([x_scale * x[spec][seed] for seed in seeds])
        up = summarise([100 * y[spec][seed] for seed in seeds])
        objective = measurements.objective(spec)
        detail = (
            f"{fixed(across.mean, x_digits)}, {fixed(up.mean, 1)} % (mean of {counted(len(seeds), 'run')})"
        )
        points.append(
            Point(
                across.mean, up.mean, objective.slug, objective.label, detail, error_of(across), error_of(up)
            )
        )
    return tuple(points)


def published_points(
    x_table: str, x_key: str, y_table: str, x_digits: int, y_key: str = ""
) -> tuple[Point, ...]:
    """The paper's means: a column against the mean of the eight printed accuracies, or one of them."""
    across = {row["objective"]: float(row[x_key]) for row in published_rows(x_table)}
    points = []
    for row in published_rows(y_table):
        slug = row["objective"]
        up = float(row[y_key]) if y_key else mean_of_printed(row)
        detail = f"{fixed(across[slug], x_digits)}, {fixed(up, 1)} %"
        points.append(Point(across[slug], up, slug, PRESETS[slug].label, detail))
    return tuple(points)


def correlation_of(points: tuple[Point, ...]) -> Correlation | None:
    """Spearman's rank correlation of a panel's means; nothing for fewer than three, or a constant axis."""
    return rank_correlation([point.x for point in points], [point.y for point in points])


def finding(correlation: Correlation | None, noun: str = "objective") -> str:
    """The correlation in words.

    >>> finding(rank_correlation([1, 2, 3, 4], [9, 7, 8, 5]))
    'Spearman ρ = −0.80, p = 0.33, four objectives'
    >>> finding(None)
    'Too few different values for a rank correlation'
    """
    if correlation is None:
        return "Too few different values for a rank correlation"
    rho = fixed(correlation.rho, 2)
    return f"Spearman ρ = {rho}, {p_value(correlation.p)}, {counted(correlation.n, noun)}"
