"""Remarks on a study's runs beside exhibits: which diverged."""

from __future__ import annotations

from penultimate.report.measurements import Measurements


def of_diverged(measurements: Measurements) -> list[str]:
    """Return a sentence for each run that diverged."""
    return [f"Diverged, and left out of every mean: {run}." for run in measurements.diverged]
