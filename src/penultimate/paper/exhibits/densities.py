"""The spread of features: angular hardness, singular values, cosine distances (figures E.1 to E.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.printed import figure
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Panel, Point
from penultimate.results.means import table_of_means
from penultimate.results.rows import Run, arrays_of, seeds
from penultimate.results.table import Column
from penultimate.results.text import percent

VISIBLE = 2e-3
"""The share of the highest density below which a curve lies on the axis."""
NEGLIGIBLE = 1e-12
"""The share of the largest singular value below which a singular value is a rounding error and not drawn."""
LOWEST = -4.0
"""The lower end of drawn spectra: features do not use directions of a ten-thousandth of the largest."""
MOST = 0.9
"""The share of the squared length that the counted directions of a spectrum hold."""
SPECTRA = {
    "activations": "Penultimate activations",
    "weights": "Weights of the final layer",
    "centroids": "Class centroids",
}


@exhibit("figureE1", "How far from their own class's weights do images lie?", section="E.2")
def figureE1(run: Run) -> Iterator[Part]:
    """The angle between an image's features and the weights of its own class, as a share of the angles to all
    classes, times the number of classes. 1: the own class is no nearer than the others; to the left: an image
    easier to tell. The paper draws its Figure E.1 (50,000 ImageNet validation images) without printing a
    number. It says that the other objectives generally lower hardness against softmax, and that sigmoid does
    not."""
    curves = densities(run, "hardness_density", "test", density="")
    if curves:
        x_label = "Angular visual hardness, times the number of classes"
        panel = density_panel("figureE1-ours", f"{run.title}, test images", x_label, curves)
        yield figure("figureE1", "Angular visual hardness", panel, legend=True)
        mean = Column("hardness_times_classes", "Mean hardness × classes", digits=3, with_error=True)
        columns = {
            mean: seeds(run, "angular_visual_hardness", scale=card(run.source).classes),
            Column("top1_percent", "Top-1, %"): seeds(run, "top1", scale=100),
        }
        title = f"Mean hardness on the test images of {run.title}"
        yield table_of_means(run, "figureE1", title, columns, needs=[mean])


@exhibit("figureE2", "In how many directions do the features spread?", section="E.2")
def figureE2(run: Run) -> Iterator[Part]:
    """Singular values over the largest, which is at 0, on a scale of powers of ten (training images of
    {source}; nothing is centred). A line that falls early: most directions are hardly used. Weights that the
    head scales to length 1 (cosine softmax) are taken so. The paper draws its Figure E.2 without printing a
    number. It says that activations and weights fail to tell sigmoid from softmax, and that the class
    centroids tell them apart."""
    held = list(arrays_of(run, "singular_values", SPECTRA, "train"))
    panels, columns = [], {}
    for name, title in SPECTRA.items():
        spectra = [(slug, seed, arrays[name].astype(float)) for slug, seed, arrays in held]
        spectra = [one for one in spectra if one[2].any()]
        panels.append(spectra_panel(run, f"figureE2-{name}", title, spectra))
        counts = pd.Series({(seed, slug): directions(values) for slug, seed, values in spectra}, dtype=float)
        column = Column(f"directions_{name}", title, "Directions", 1, with_error=True)
        columns[column] = counts.unstack() if len(counts) else pd.DataFrame()
    title = f"How many directions hold {percent(MOST, 0)} % of the squared length"
    yield table_of_means(run, "figureE2", title, columns)
    yield figure("figureE2", "Singular value spectra", *panels, legend=True)


@exhibit("figureE3", "Are images of one class closer than images of two?", section="E.2")
def figureE3(run: Run) -> Iterator[Part]:
    """How the cosine distances between the features of two images are distributed: solid, of one class;
    dashed, of different ones. The less the two overlap, the further the classes lie apart. Every pair of
    images counts once; in class separation R² every class counts the same, and an image with itself counts as
    well. The paper draws its Figure E.3 (10,000 ImageNet training images) without printing a number."""
    words = {"within": ", within a class", "between": ", between classes"}
    curves = densities(run, "cosine_distance_density", "train", **words)
    if curves:
        whole = density_panel("figureE3-whole", f"{run.title}, training images", "Cosine distance", curves)
        peaks = sorted(max(y for _, y in curve.points) for curve in curves)
        limits = (0.0, 1.1 * peaks[(len(peaks) - 1) // 2])
        lower = replace(whole, name="figureE3-closer", title="The same, its lower part", y_limits=limits)
        yield figure("figureE3", "Cosine distances", whole, lower, legend=True)
    columns = {
        Column(metric, label, "Mean cosine distance", 3, with_error=True): seeds(run, metric, "train")
        for metric, label in (
            ("cosine_distance_within", "Within a class"),
            ("cosine_distance_between", "Between classes"),
        )
    }
    yield table_of_means(run, "figureE3", f"Mean distances on {run.title}", columns)


def densities(run: Run, metric: str, split: str, **words: str) -> list[Curve]:
    """Return a line for each objective and named array, its mean density over runs; later ones are dashed."""
    held, curves = list(arrays_of(run, metric, ["points", *words], split)), []
    for place, (name, word) in enumerate(words.items()):
        for slug in dict.fromkeys(slug for slug, *_ in held):
            of_slug = [arrays for found, _, arrays in held if found == slug]
            x, y = (mean_of_runs(arrays[key] for arrays in of_slug) for key in ("points", name))
            curves.append(curve(run, slug, zip(x, y, strict=True), word, dashed=place > 0))
    return curves


def curve(
    run: Run, slug: str, points: Iterable[tuple[float, float]], word: str = "", dashed: bool = False
) -> Curve:
    """Return a line through points, to six digits, named by the objective and its mean test accuracy."""
    top1 = seeds(run, "top1")
    accuracy = f" ({percent(top1[slug].mean())} %)" if slug in top1 else ""
    rounded = tuple((float(f"{x:.6g}"), float(f"{y:.6g}")) for x, y in points)
    return Curve(rounded, slug, f"{run.labels()[slug]}{accuracy}{word}", dashed)


def mean_of_runs(runs: Iterable[np.ndarray]) -> list[float]:
    """Return the mean over runs, with the length of the shortest run."""
    mean: list[float] = np.mean([*zip(*(values.astype(float) for values in runs), strict=False)], 1).tolist()
    return mean


def density_panel(name: str, title: str, x_label: str, curves: list[Curve]) -> Panel:
    """Return a panel of densities within the range where any of them is visibly above zero."""
    points = [point for of in curves for point in of.points]
    highest = max(y for _, y in points)
    visible = [x for x, y in points if y > VISIBLE * highest] or [x for x, _ in points]
    low, high = min(visible), max(visible)
    trimmed = tuple(
        of._replace(points=tuple(point for point in of.points if low <= point[0] <= high)) for of in curves
    )
    limits = (0.0, 1.05 * highest)
    return Panel(name, title, x_label, "Density", curves=trimmed, labelled=False, y_limits=limits)


def spectra_panel(
    run: Run, name: str, title: str, spectra: list[tuple[str, int, np.ndarray]]
) -> Panel | None:
    """Return a panel of the logarithms of singular values over the largest, means over runs."""
    curves = []
    for slug in dict.fromkeys(slug for slug, *_ in spectra):
        shares = [values / values[0] for found, _, values in spectra if found == slug]
        heights = mean_of_runs(np.log10(share[share > NEGLIGIBLE]) for share in shares)
        curves.append(curve(run, slug, enumerate(heights, 1)))
    if not curves:
        return None
    ends = tuple(Point(*of.points[-1], of.slug, of.label) for of in curves)
    limits = (max(LOWEST, 1.05 * min(y for of in curves for _, y in of.points)), 0.05)
    axes = "Index of the singular value", "log₁₀ of the singular value over the largest"
    return Panel(name, title, *axes, ends, tuple(curves), labelled=False, y_limits=limits)


def directions(values: np.ndarray) -> float:
    """Return the least number of singular values whose squares sum to `MOST` of the sum of all."""
    totals = np.cumsum(values**2)
    return float((totals < MOST * totals[-1]).sum() + 1)
