"""Remarks on a study's runs beside exhibits: which diverged, and which classes lack validation images."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.measurements import Measurements
from penultimate.report.text import plain


def of_diverged(measurements: Measurements) -> list[str]:
    """Return a sentence for each run that diverged."""
    return [f"Diverged, and left out of every mean: {run}." for run in measurements.diverged]


def not_validated(measurements: Measurements) -> list[str]:
    """Return a sentence for each task that has classes without a validation image."""
    from penultimate.measures.further_training import had_no_say

    lacking = measurements.results.provenance.get("classes_not_validated", {})
    every = [plain(had_no_say(card(target).title, classes)) for target, classes in sorted(lacking.items())]
    return [f"{told[0].upper()}{told[1:]}." for told in every]
