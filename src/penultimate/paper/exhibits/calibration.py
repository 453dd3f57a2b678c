"""Calibration before and after the temperature that suits held-out images best (section C.2 of the paper)."""

from __future__ import annotations

from penultimate.report.base import Curve, Figure, Panel, Point
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.findings import beside_baseline
from penultimate.report.shapes.table import PrintedTable, TableOfRuns, as_printed
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import fixed

PANELS = {"": "As trained", "_scaled": "With temperature scaling"}
"""The suffix of a metric, and the words for before or after scaling."""
COLUMNS = {"": "uncalibrated", "_scaled": "temperature_scaled"}
LEAST_SHARE = 0.005
"""The smallest share of the examples in a bin that is drawn; smaller bins are too noisy."""


OURS = tuple(
    Quantity(
        f"{metric}{suffix}",
        label=metric.upper(),
        group=group,
        key=f"{COLUMNS[suffix]}_{metric}_{kind}",
        sign=sign,
        factor=1,
        decimals=3,
        bold=True,
        with_error=True,
    )
    for suffix, group in PANELS.items()
    for metric, kind, sign in (("nll", "nats", "nats"), ("ece", "fraction", ""))
)
"""The columns of our table, as the paper prints them: calibration errors as fractions."""
TEMPERATURE = Quantity(
    "temperature", label="Temperature", group=PANELS["_scaled"], key="temperature", with_error=True
)
RELIABILITY = {
    suffix: {
        name: Quantity(f"reliability_{name}{suffix}", setting="bin, bins")
        for name in ("share", "confidence", "accuracy")
    }
    for suffix in PANELS
}


def _diagrams(measurements: Measurements) -> Piece:
    """Return diagrams of accuracy less confidence, bin by bin, before and after scaling."""
    panels = tuple(panel for suffix in PANELS if (panel := _panel(measurements, suffix)))
    figure = Figure(
        "tableC3-reliability",
        "Reliability",
        "Lines of accuracy less confidence against confidence, an objective each; the nearer to zero, the"
        " better calibrated.",
        panels,
        legend=True,
    )
    left_out = (
        "Squared error is left out, as in the paper: its scores aim at fixed values and are not the"
        " logarithms of probabilities."
    )
    has_squared_error = any(objective.slug == "squared_error" for objective in measurements.objectives)
    return Piece(figures=(figure,) if panels else (), notes=(left_out,) if has_squared_error else ())


def _panel(measurements: Measurements, suffix: str) -> Panel | None:
    """Return the lines of all objectives, or None if no bin was measured."""
    columns = {name: measurements.by_setting(quantity) for name, quantity in RELIABILITY[suffix].items()}
    curves, points = [], []
    for objective in measurements.objectives:
        bins = _bins(columns, objective)
        if not bins:
            continue
        line = tuple((100 * confidence, 100 * (accuracy - confidence)) for _, confidence, accuracy in bins)
        curves.append(Curve(line, objective.slug, objective.label))
        for (share, _, accuracy), (x, y) in zip(bins, line, strict=True):
            detail = f"{fixed(x, 1)} % sure, {fixed(100 * accuracy, 1)} % right, {fixed(100 * share, 1)} % of"
            points.append(Point(x, y, objective.slug, objective.label, f"{detail} the images"))
    if not curves:
        return None
    level = Curve(((0.0, 0.0), (100.0, 0.0)), "", "As sure as right", faint=True)
    return Panel(
        f"tableC3-reliability{suffix.replace('_', '-')}",
        PANELS[suffix],
        "Confidence, % (mean of a bin)",
        "Accuracy less confidence, points",
        tuple(points),
        (level, *curves),
        labelled=False,
    )


def _bins(
    columns: dict[str, dict[tuple[str, ...], ByRun]], objective: StudyObjective
) -> list[tuple[float, float, float]]:
    """Return (share, confidence, accuracy) of each bin, with all runs of an objective pooled."""
    by_bin = [
        tuple(
            columns[name].get(place, {}).get(objective.spec, {})
            for name in ("share", "confidence", "accuracy")
        )
        for place in columns["share"]
    ]
    runs = len({seed for shares, _, _ in by_bin for seed in shares})
    pooled = []
    for shares, confidences, accuracies in by_bin:
        seeds = [seed for seed in shares if seed in confidences and seed in accuracies]
        total = sum(shares[seed] for seed in seeds)
        if seeds and total >= LEAST_SHARE * runs:
            confidence, accuracy = (
                sum(shares[seed] * values[seed] for seed in seeds) / total
                for values in (confidences, accuracies)
            )
            pooled.append((total / runs, confidence, accuracy))
    return pooled


TABLE_C3 = Exhibit(
    name="tableC3",
    title="Can the probabilities be believed?",
    caption="Negative log-likelihood (NLL) and expected calibration error (ECE, 15 bins) on the test images;"
    " lower is better. Before, and after dividing the scores by the one temperature that makes the labels"
    " of the holdout images most likely; no network was trained on those. A temperature above 1 makes"
    " predictions less sure. For the sigmoid, probabilities are renormalised, and the temperature acts on"
    " their logarithms.",
    parts=(
        TableOfRuns(
            "tableC3",
            "Calibration on {source}",
            (*OURS, TEMPERATURE),
            missing="Calibration",
        ),
        PrintedTable(
            "tableC3",
            "neurips_tableC3_calibration",
            "The paper's Table C.3: ResNet-50, ImageNet, three runs",
            as_printed(OURS),
        ),
        Bespoke(
            _diagrams, tuple(quantity for columns in RELIABILITY.values() for quantity in columns.values())
        ),
    ),
    findings=(
        beside_baseline(
            *(
                Asked(
                    f"calibration error (ECE) {when}",
                    shown,
                    ("neurips_tableC3_calibration", shown.key),
                )
                for when, shown in (("before scaling", OURS[1]), ("after scaling", OURS[3]))
            )
        ),
    ),
    section="C.2",
    summary="Calibration before and after temperature scaling",
    short="Calibration",
)
