"""The verdicts on claims from several studies: from what they have in common, else from one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penultimate.paper.claims.both import BOTH_CLAIMS, both_spoken
from penultimate.paper.claims.certainty import CERTAINTY_CLAIMS, certainty_spoken
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.few_labels import FEW_LABELS_CLAIMS, few_labels_spoken
from penultimate.paper.claims.head_decay import HEAD_DECAY_CLAIMS, head_decay_spoken
from penultimate.paper.claims.projectors import PROJECTOR_CLAIMS, projector_spoken
from penultimate.paper.claims.rules import Claim
from penultimate.paper.claims.verdicts import Judged, judge
from penultimate.report.measurements import Measurements, admit


@dataclass(frozen=True)
class ClaimSet:
    """Claims that only studies of one kind can be asked, and their rules in sentences."""

    claims: tuple[Claim, ...]
    spoken: Callable[[], tuple[str, ...]]


SETS = (
    ClaimSet(BOTH_CLAIMS, both_spoken),
    ClaimSet(HEAD_DECAY_CLAIMS, head_decay_spoken),
    ClaimSet(CERTAINTY_CLAIMS, certainty_spoken),
    ClaimSet(FEW_LABELS_CLAIMS, few_labels_spoken),
    ClaimSet(PROJECTOR_CLAIMS, projector_spoken),
)
"""The sets of claims that stand before those that every study is asked, in the order of the page."""


def judge_jointly(measurements: Measurements) -> tuple[Judged, ...]:
    """Return the verdict on every claim; those that joined studies lack the numbers for are judged by one.

    That is the first of the studies that has them, and its name stands behind its evidence.
    """
    every = judge(gather(measurements))
    for part in measurements.results.parts:
        if all(one.ours.missing is None for one in every):
            break
        of_part = judge(gather(admit(part, allow_limited=True)))
        every = tuple(
            one if one.ours.missing is None or other.ours.missing is not None else _named(other, part.name)
            for one, other in zip(every, of_part, strict=True)
        )
    return every


def judge_set(measurements: Measurements, claims: Sequence[Claim]) -> tuple[Judged, ...]:
    """Return the verdicts on the claims of a set, or nothing for a study that lacks what they are about."""
    judged = judge(gather(measurements), claims)
    return tuple(one for one in judged if one.ours.missing is None)


def _named(judged: Judged, study: str) -> Judged:
    ours = dataclasses.replace(judged.ours, ours=f"{judged.ours.ours} (of {study})")
    return dataclasses.replace(judged, ours=ours)
