"""Table C.3: calibration before and after the temperature that suits held-out images best.

Rows have the metrics `nll`, `ece` (before), `nll_scaled`, `ece_scaled` (after) and `temperature`, split
"test". Those of the reliability diagram have `reliability_share`, `reliability_confidence` and
`reliability_accuracy`, with `_scaled` after scaling, and in the column `layer` the bin: "bin 14 of 15".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import (
    Cell,
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    Point,
    StudyResults,
)
from penultimate.report.exhibits.cells import (
    bold_note,
    not_measured,
    printed,
    published_table,
    run_cell,
    run_rows,
)
from penultimate.report.exhibits.measurements import Measurements, Objective, Runs, admit_compared
from penultimate.report.text import fixed
from penultimate.statistics.comparison import bold

BEFORE, AFTER = "As trained", "With temperature scaling"
COLUMNS = (
    ("nll", "uncalibrated_nll_nats", "uncalibrated_nll_se", "NLL", BEFORE, "nats"),
    ("ece", "uncalibrated_ece_fraction", "uncalibrated_ece_se", "ECE", BEFORE, ""),
    ("nll_scaled", "temperature_scaled_nll_nats", "temperature_scaled_nll_se", "NLL", AFTER, "nats"),
    ("ece_scaled", "temperature_scaled_ece_fraction", "temperature_scaled_ece_se", "ECE", AFTER, ""),
)
"""Metric of our rows, column of the paper's table, its error, heading, group, unit."""
BIN = re.compile(r"bin (\d+) of (\d+)")
LEAST_SHARE = 0.005
"""Bins with fewer of the examples are too noisy to be drawn."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    measured = bool(measurements.runs("nll"))
    figure = _reliability(measurements) if measured else None
    notes = [bold_note(measurements)] if measured else [not_measured("Calibration")]
    if any(one.slug == "squared_error" for one in measurements.objectives):
        notes.append(
            "Squared error is left out, as in the paper: its scores aim at fixed values and are not the"
            " logarithms of probabilities."
        )
    return Exhibit(
        "tableC3",
        "Can the probabilities be believed?",
        "Negative log-likelihood (NLL) and expected calibration error (ECE, 15 bins) on the test images;"
        " lower is better. Before, and after dividing the scores by the one temperature that makes the labels"
        " of the holdout images most likely; no network was trained on those. A temperature above 1 makes"
        " predictions less sure. For the sigmoid, probabilities are renormalised, and the temperature acts on"
        " their logarithms.",
        (_ours(measurements), _published()) if measured else (_published(),),
        (figure,) if figure else (),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _ours(measurements: Measurements) -> ExhibitTable:
    source = card(measurements.source).title
    columns, shown = [], []
    cells: list[Callable[[str], Cell]] = []
    for metric, key, _, heading, group, unit in COLUMNS:
        runs = measurements.runs(metric)
        columns.append(Column(key, heading, group, unit))
        cells.append(partial(_error, runs, _lowest(runs)))
        shown.append(runs)
    temperature = measurements.runs("temperature")
    columns.append(Column("temperature", "Temperature", AFTER))
    cells.append(lambda spec: run_cell(temperature.get(spec), 2, shows_error=True))
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable("tableC3", f"Calibration on {source}", "Objective", tuple(columns), rows)


def _error(runs: Runs, best: frozenset[str], spec: str) -> Cell:
    return run_cell(runs.get(spec), 3, best=spec in best, shows_error=True)


def _lowest(runs: Runs) -> frozenset[str]:
    found = {spec: values.values() for spec, values in runs.items()}
    return bold(found, higher_is_better=False).bold if found else frozenset()


def _published() -> ExhibitTable:
    columns = [
        (Column(key, heading, group, unit), printed(key, error))
        for _, key, error, heading, group, unit in COLUMNS
    ]
    title = "The paper's Table C.3: ResNet-50, ImageNet, three runs"
    return published_table("tableC3", "tableC3_calibration", title, columns)


def _reliability(measurements: Measurements) -> Figure | None:
    """How far accuracy and confidence lie apart, bin by bin, before and after scaling."""
    panels = [
        panel
        for panel in (_panel(measurements, "", BEFORE), _panel(measurements, "_scaled", AFTER))
        if panel is not None
    ]
    if not panels:
        return None
    return Figure(
        "tableC3-reliability",
        "Reliability",
        "Lines of accuracy less confidence against confidence, an objective each; the nearer to zero, the"
        " better calibrated.",
        tuple(panels),
        legend=True,
    )


def _panel(measurements: Measurements, suffix: str, title: str) -> Panel | None:
    curves, points = [], []
    for objective in measurements.objectives:
        bins = _bins(measurements, objective, suffix)
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
        title,
        "Confidence, % (mean of a bin)",
        "Accuracy less confidence, points",
        tuple(points),
        (level, *curves),
        labelled=False,
    )


def _bins(measurements: Measurements, objective: Objective, suffix: str) -> list[tuple[float, float, float]]:
    """(share, confidence, accuracy) of each bin, all runs of an objective pooled."""
    read: Callable[[str], dict[tuple[int | None, int], float]] = partial(_column, measurements, objective)
    shares = read(f"reliability_share{suffix}")
    confidences = read(f"reliability_confidence{suffix}")
    accuracies = read(f"reliability_accuracy{suffix}")
    runs = len({seed for seed, _ in shares})
    found = []
    for place in sorted({place for _, place in shares}):
        own = [key for key in shares if key[1] == place and key in confidences and key in accuracies]
        total = sum(shares[key] for key in own)
        if total >= LEAST_SHARE * runs:
            confidence = sum(shares[key] * confidences[key] for key in own) / total
            accuracy = sum(shares[key] * accuracies[key] for key in own) / total
            found.append((total / runs, confidence, accuracy))
    return found


def _column(
    measurements: Measurements, objective: Objective, metric: str
) -> dict[tuple[int | None, int], float]:
    """The rows of a metric by (seed, bin)."""
    found = {}
    for row in measurements.results.table:
        place = BIN.fullmatch(row.layer or "")
        if place is None or (row.metric, row.objective, row.split) != (metric, objective.spec, "test"):
            continue
        if row.status != "diverged" and measurements.shows(row):
            found[row.seed, int(place[1])] = row.value
    return found
