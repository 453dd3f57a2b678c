"""The verdicts on claims from several studies: from what they have in common, else from one of them."""

from __future__ import annotations

import dataclasses

from penultimate.paper.claims.certainty import CERTAINTY_CLAIMS
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.few_labels import FEW_LABELS_CLAIMS
from penultimate.paper.claims.head_decay import HEAD_DECAY_CLAIMS
from penultimate.paper.claims.label_spaces import CLASS_CLAIMS
from penultimate.paper.claims.verdicts import Judged, judge
from penultimate.report.measurements import Measurements, admit


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


def judge_head_decay(measurements: Measurements) -> tuple[Judged, ...]:
    """Return the verdict on that rule, or nothing for a study in which no final layer has its own decay."""
    judged = judge(gather(measurements), HEAD_DECAY_CLAIMS)
    return tuple(one for one in judged if one.ours.missing is None)


def judge_classes(measurements: Measurements) -> tuple[Judged, ...]:
    """Return the verdicts on the number of classes, or nothing for a study with one number of them."""
    judged = judge(gather(measurements), CLASS_CLAIMS)
    return tuple(one for one in judged if one.ours.missing is None)


def judge_certainty(measurements: Measurements) -> tuple[Judged, ...]:
    """Return the verdicts on selective classification, or nothing for a study that does not measure it."""
    judged = judge(gather(measurements), CERTAINTY_CLAIMS)
    return tuple(one for one in judged if one.ours.missing is None)


def judge_few_labels(measurements: Measurements) -> tuple[Judged, ...]:
    """Return the verdicts on those rules, or nothing for a study that measured nothing of few labels."""
    judged = judge(gather(measurements), FEW_LABELS_CLAIMS)
    return tuple(one for one in judged if one.ours.missing is None)


def _named(judged: Judged, study: str) -> Judged:
    ours = dataclasses.replace(judged.ours, ours=f"{judged.ours.ours} (of {study})")
    return dataclasses.replace(judged, ours=ours)
