"""How close together a study's objectives lie in class separation, beside the paper's nine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penultimate.paper.claims.effects import BySeed
from penultimate.paper.claims.evidence import StudyEvidence
from penultimate.paper.claims.quoted import QuotedEvidence
from penultimate.report.text import fixed, in_words
from penultimate.statistics import mean


@dataclass(frozen=True)
class SeparationRange:
    """The narrowest ranges of R² that hold all objectives but one, in a study and in the paper."""

    objectives: int
    here: float
    in_paper: float

    @property
    def is_narrow(self) -> bool:
        """Whether all objectives but one lie in less than half of the paper's range."""
        return self.here < self.in_paper / 2

    @property
    def sentence(self) -> str:
        """Return the two ranges in a sentence."""
        most, every = in_words(self.objectives - 1).capitalize(), in_words(self.objectives)
        return (
            f"{most} of {every} objectives lie within {fixed(self.here, 2)} of R² of each other (in the paper"
            f" within {fixed(self.in_paper, 2)})."
        )


def separation_range(evidence: StudyEvidence) -> SeparationRange | None:
    """Return the ranges of R², or None for a limited study or fewer than four objectives."""
    runs = evidence.values("separation")
    if evidence.measurements.limited or len(runs) < 4:
        return None
    paper = QuotedEvidence().values("separation")
    return SeparationRange(len(runs), _range(_means(runs.values())), _range(_means(paper.values())))


def _means(runs: Iterable[BySeed]) -> list[float]:
    return [mean(of.values()) for of in runs]


def _range(values: Sequence[float]) -> float:
    ascending = sorted(values)
    return min(ascending[-2] - ascending[0], ascending[-1] - ascending[1])
