"""Runs whose loss turned NaN. Exhibits name them where their numbers would stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.report.base import StudyResults
from penultimate.report.text import plain

_RunKey: TypeAlias = tuple[str, int | None, str, str]
"""A run's objective, seed, architecture (empty for the one shown) and arm."""


@dataclass(frozen=True)
class DivergedRun:
    """A run that is left out of every mean.

    `backbone` is empty for the architecture that exhibits show, and `arm` for the main arm.
    """

    objective: str
    seed: int | None
    epoch: int | None
    reason: str
    backbone: str = ""
    arm: str = ""

    def __str__(self) -> str:
        run = self.objective if self.seed is None else f"{self.objective}, seed {self.seed}"
        run += f" with {self.backbone}" if self.backbone else ""
        run += f" in the arm '{self.arm}'" if self.arm else ""
        when = "" if self.epoch is None else f" after epoch {self.epoch}"
        return f"{run}{when}" + (f" ({self.reason})" if self.reason else "")


def diverged_runs(results: StudyResults, labels: Mapping[str, str], backbone: str) -> tuple[DivergedRun, ...]:
    """Return the diverged runs of all arms and architectures.

    Those that left rows come first, then those that only the provenance names.

    `labels` name the objectives by their specs; `backbone` is the architecture that is shown.
    """

    def key(spec: object, seed: int | None, of_backbone: object, arm: object) -> _RunKey:
        other = "" if of_backbone in (None, "", backbone) else str(of_backbone)
        return str(spec), seed, other, str(arm or "")

    told = results.provenance.get("diverged", {})
    reasons = {
        key(network["objective"], network["seed"], network["backbone"], network["arm"]): plain(told[step])
        for step, networks in results.provenance.get("diverged_networks", {}).items()
        if step in told
        for network in networks
    }
    last: dict[_RunKey, int | None] = {}
    for row in results.table.where(status="diverged"):
        run = key(row.objective, row.seed, row.backbone, row.arm)
        last[run] = max((epoch for epoch in (last.get(run), row.epoch) if epoch is not None), default=None)
    last |= dict.fromkeys(run for run in reasons if run not in last)
    return tuple(
        DivergedRun(
            labels.get(run[0], plain(run[0])),
            run[1],
            epoch,
            reasons.get(run, ""),
            plain(run[2]),
            plain(run[3]),
        )
        for run, epoch in last.items()
    )
