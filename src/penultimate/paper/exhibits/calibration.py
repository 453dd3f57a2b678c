"""Calibration before and after the temperature that suits held-out images best (section C.2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, by_setting, seeds
from penultimate.results.table import Column
from penultimate.results.text import fixed

SCALINGS = {"": "As trained", "_scaled": "With temperature scaling"}
"""The suffix of a metric, and the words for before or after scaling."""
KEYS = {"": "uncalibrated", "_scaled": "temperature_scaled"}
LEAST_SHARE = 0.005
"""The smallest share of the examples in a bin that is drawn; smaller bins are too noisy."""


@exhibit("tableC3", "Can the probabilities be believed?", section="C.2")
def tableC3(run: Run) -> Iterator[Part]:
    """Negative log-likelihood (NLL) and expected calibration error (ECE, 15 bins) on the test images; lower
    is better. They are shown as trained, and after dividing the scores by the one temperature that makes the
    labels of the holdout images most likely; a temperature above 1 makes predictions less sure. The lines are
    accuracy less confidence by confidence, and the nearer to zero, the better calibrated. For the sigmoid,
    probabilities are renormalised. In the paper, label smoothing is calibrated best before scaling, and
    the sigmoid after it."""
    columns = {
        Column(f"{KEYS[suffix]}_{metric}_{unit}", metric.upper(), group, 3, "low", with_error=True): seeds(
            run, f"{metric}{suffix}"
        )
        for suffix, group in SCALINGS.items()
        for metric, unit in (("nll", "nats"), ("ece", "fraction"))
    }
    temperature = Column("temperature", "Temperature", SCALINGS["_scaled"], 2, with_error=True)
    ours = columns | {temperature: seeds(run, "temperature")}
    yield table_of_means(run, "tableC3", f"Calibration on {run.title}", ours)
    yield table_of_printed(
        "tableC3",
        "The paper's Table C.3: ResNet-50, ImageNet, three runs",
        "neurips_tableC3_calibration",
        {replace(column, better=""): column.key for column in columns},
    )
    panels = tuple(filter(None, (reliability(run, suffix) for suffix in SCALINGS)))
    yield Figure("tableC3-reliability", "Reliability", panels, legend=True) if panels else None
    if "squared_error" in run.labels():
        yield (
            "Squared error is left out, as in the paper: its scores aim at fixed values and are not the"
            " logarithms of probabilities."
        )


def reliability(run: Run, suffix: str) -> Panel | None:
    """Return a line of accuracy less confidence for each objective, or None if no bin was measured."""
    curves, points = [], []
    for slug, label in run.labels().items():
        bins = 100 * bins_of(run, suffix, slug)
        line = list(zip(bins["confidence"], bins["accuracy"] - bins["confidence"], strict=True))
        curves += [Curve(tuple(line), slug, label)] if line else []
        for (x, y), bin_ in zip(line, bins.itertuples(), strict=True):
            said = f"{fixed(x, 1)} % sure, {fixed(bin_.accuracy, 1)} % right, {fixed(bin_.share, 1)} % of"
            points.append(Point(x, y, slug, label, f"{said} the images"))
    if not curves:
        return None
    level = Curve(((0.0, 0.0), (100.0, 0.0)), "", "As sure as right", faint=True)
    return Panel(
        f"tableC3-reliability{suffix.replace('_', '-')}",
        SCALINGS[suffix],
        "Confidence, % (mean of a bin)",
        "Accuracy less confidence, points",
        tuple(points),
        (level, *curves),
        labelled=False,
    )


def bins_of(run: Run, suffix: str, slug: str) -> pd.DataFrame:
    """Return the share, confidence and accuracy of each bin, with all runs of an objective pooled."""
    share, confidence, accuracy = (
        pd.DataFrame(
            {
                bin_: frame[slug]
                for bin_, frame in by_setting(run, f"reliability_{name}{suffix}", ("bin", "bins")).items()
                if slug in frame
            }
        )
        for name in ("share", "confidence", "accuracy")
    )
    share = share.where(confidence.notna() & accuracy.notna())
    total = share.sum()
    pooled = {
        "share": total / len(share),
        "confidence": (share * confidence).sum() / total,
        "accuracy": (share * accuracy).sum() / total,
    }
    return pd.DataFrame(pooled)[total >= LEAST_SHARE * len(share)]
