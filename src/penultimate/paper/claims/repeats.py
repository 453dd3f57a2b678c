"""Kept runs that trained the same networks on other draws of the images, so that claims pool them."""

from __future__ import annotations

import dataclasses
from functools import cache

from penultimate.paper.claims.evidence import StudyEvidence
from penultimate.records.archive import reference
from penultimate.records.table import Table

REPEATED_IN = {"evidence": "sweep", "glyphs": "sweep"}
"""The kept run that trained the nine objectives of another one again, on draws of its own."""
POOLED = ("separation_linear", "separation_knn")
"""The claims that are judged on all draws of both runs."""


def with_repeats(evidence: StudyEvidence) -> StudyEvidence:
    """Return a kept run's evidence with the draws on which another kept run repeats its networks.

    Any other evidence is returned as it is.
    """
    results = evidence.measurements.results
    if results.name not in REPEATED_IN or "rows_sha256" not in results.provenance:
        return evidence
    repeats = _main_rows(REPEATED_IN[results.name])
    if {*repeats.column("objective")} != {one.spec for one in evidence.measurements.objectives}:
        return evidence
    both = dataclasses.replace(results, table=results.table + repeats)
    return dataclasses.replace(
        evidence, measurements=dataclasses.replace(evidence.measurements, results=both)
    )


def pooled_words(evidence: StudyEvidence, pooled: StudyEvidence) -> str:
    """Return the sentence that says what was pooled, or nothing if nothing was."""
    if pooled.measurements is evidence.measurements:
        return ""
    own, every = (len(each.measurements.seeds) for each in (evidence, pooled))
    repeating = REPEATED_IN[evidence.measurements.results.name]
    return (
        f" Runs that repeat the same networks are pooled: {own} draws of this run and {every - own} of"
        f" `{repeating}`."
    )


@cache
def _main_rows(study: str) -> Table:
    return reference(study).table.where(arm=None, epoch=None, layer=None, objective_b=None)
