"""Claims judged on planted studies, and the page of a study."""

from __future__ import annotations

from collections.abc import Sequence

from penultimate.paper.claims.stated import EVERY_CLAIM, Claim
from penultimate.paper.claims.trials import Judged
from penultimate.paper.claims.verdicts import judge
from penultimate.results.rows import Run
from tests.planted import StudyResults


def run_of(results: StudyResults) -> Run:
    """Return planted results as a run."""
    return Run(results.table.frame(), results.description, results.provenance)


def judged(results: StudyResults, claims: Sequence[Claim] = EVERY_CLAIM) -> dict[str, Judged]:
    """Return what the run says of each claim that it has numbers for, by the claim's key."""
    return {one.claim.key: one.ours for one in judge(run_of(results), claims)}
