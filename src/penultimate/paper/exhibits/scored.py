"""The scores that are meant to predict transfer; some promise more where they are lower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.report.measurements import ByRun, Measurements, mean_of
from penultimate.report.quantity import TARGETS, Quantity

MEAN = ""
"""The name that stands for all tasks together, by means over tasks."""
OF_TASKS = "On the task's training images"


@dataclass(frozen=True)
class Score:
    """A score, and whether a higher one promises more transfer; one of several `terms` is joined of them."""

    quantity: Quantity
    promises: bool = True
    terms: tuple[Quantity, ...] = ()

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities that it is made of."""
        return self.terms or (self.quantity,)

    @property
    def label(self) -> str:
        return self.quantity.label

    def of(self, measurements: Measurements, target: str) -> ByRun:
        """Return the values for a task, or means over all; a score of the source is the same for all."""
        if self.terms and target == MEAN:
            return mean_of([self.of(measurements, task) for task in measurements.targets])
        if self.terms:
            return joined([measurements.on_target(term, target) for term in self.terms])
        if target == MEAN or self.quantity.target != TARGETS:
            return measurements.values(self.quantity)
        return measurements.on_target(self.quantity, target)


def _on_task(
    metric: str, label: str, digits: int = 3, promises: bool = True, optional: bool = False
) -> Score:
    return Score(
        Quantity(
            metric,
            "train",
            TARGETS,
            label=label,
            key=metric,
            group=OF_TASKS,
            decimals=digits,
            optional=optional,
        ),
        promises,
    )


NCTI_TERMS = tuple(
    Quantity(f"ncti_{name}", "train", TARGETS, optional=True) for name in ("simplex", "nearest", "within")
)
"""The terms of NCTI; of the last less is nearer to collapse."""


def joined(terms: Sequence[ByRun]) -> ByRun:
    """Return NCTI from its terms, each scaled to 0 .. 1 over all runs: the first two less the third.

    >>> pairs = (1.0, 3.0), (2.0, 2.0), (5.0, 4.0)
    >>> joined([{"a": {0: one}, "b": {0: other}} for one, other in pairs])
    {'a': {0: -1.0}, 'b': {0: 1.0}}
    """
    scaled = []
    for runs in terms:
        values = [value for of_spec in runs.values() for value in of_spec.values()]
        low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        scaled.append(
            {
                spec: {seed: (value - low) / span if span else 0.0 for seed, value in of_spec.items()}
                for spec, of_spec in runs.items()
            }
        )
    simplex, nearest, within = scaled
    return {
        spec: {
            seed: value + nearest[spec][seed] - within[spec][seed]
            for seed, value in of_spec.items()
            if seed in nearest.get(spec, {}) and seed in within.get(spec, {})
        }
        for spec, of_spec in simplex.items()
    }


ON_TASKS = (
    _on_task("logme", "LogME"),
    _on_task("h_score", "H-score", 2),
    _on_task("transrate", "TransRate", 1),
    _on_task("leep", "LEEP"),
    _on_task("nce", "NCE"),
    _on_task("target_nc1", "NC1", 2, promises=False),
    _on_task("target_separation", "R²"),
    _on_task("cdnv", "CDNV", 2, promises=False, optional=True),
    Score(
        Quantity("ncti_nearest", "train", TARGETS, label="NCTI", key="ncti", group=OF_TASKS, optional=True),
        terms=NCTI_TERMS,
    ),
    _on_task("rankme", "RankMe", 1, optional=True),
    _on_task("stable_rank", "Stable rank", 2, optional=True),
    _on_task("alpha_req", "α-ReQ", 2, promises=False, optional=True),
    _on_task("dimension_two_nn", "Intrinsic dimension (two-NN)", 1, promises=False, optional=True),
    _on_task("dimension_mle", "Intrinsic dimension (MLE)", 1, promises=False, optional=True),
)
BEFOREHAND = (
    Score(Quantity("top1", label="Pretraining accuracy", key="top1")),
    Score(Quantity("class_separation", "train", label="Pretraining R²", key="source_r2"), promises=False),
    Score(Quantity("nc_trace_sw_pinv_sb_over_c", "train", label="Pretraining NC1", key="source_nc1")),
    Score(
        Quantity("source_cdnv", "train", label="Pretraining CDNV", key="source_cdnv", optional=True),
        promises=False,
    ),
)
"""Scores that are known before any task is seen; R² and NC1 in the direction that the paper finds."""
SCORES = (*ON_TASKS, *BEFOREHAND)
