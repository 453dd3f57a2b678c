"""Claims judged on planted studies, and the page of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penultimate.data.catalog import card
from penultimate.paper.claims.judging import judge
from penultimate.paper.claims.stated import Claim
from penultimate.paper.claims.verdicts import Judged
from penultimate.records.table import Row
from penultimate.results.rows import Run
from tests.planted import StudyResults


def run_of(results: StudyResults) -> Run:
    """Return planted results as a run."""
    return Run(results.table.frame(), results.description, results.provenance)


def judged(results: StudyResults, claims: Sequence[Claim] | None = None) -> dict[str, Judged]:
    """Return what the run says of each claim that it has numbers for, by the claim's key."""
    return {one.claim.key: one.ours for one in judge(run_of(results), claims)}


def rows_of(
    spec: str,
    seed: int,
    values: Mapping[str, float],
    targets: Sequence[str],
    arm: str | None = None,
    **facts: Any,
) -> list[Row]:
    """Return one network's rows: R² ("separation"), and accuracy, linear and kNN transfer in per cent."""
    base: dict[str, Any] = {"step": "s", "backbone": "glyphnet", "source": "glyphs", "arm": arm, **facts}
    base |= {"objective": spec, "seed": seed, "draw": seed}
    rows = []
    for kind, value in values.items():
        if kind == "separation":
            where = {"metric": "class_separation", "target": "glyphs", "split": "train", "unit": "ratio"}
            rows.append(Row(value=value, **where, **base))
            continue
        metrics = (
            {"glyphs": "top1"} if kind == "accuracy" else {t: f"{kind}_{card(t).accuracy}" for t in targets}
        )
        for target, metric in metrics.items():
            where = {"metric": metric, "target": target, "split": "test", "unit": "fraction"}
            rows.append(Row(value=value / 100, **where, **base))
    return rows


def means_by_seed(results: StudyResults, metric: str, arm: str | None = None) -> dict[str, dict[int, float]]:
    """Return the mean over targets in per cent of every network of an arm, straight from the rows."""
    values: dict[str, dict[int, list[float]]] = {}
    for row in results.table:
        if row.metric.startswith(metric) and arm in (None, row.arm) and row.status != "diverged":
            values.setdefault(str(row.objective), {}).setdefault(int(row.seed or 0), []).append(row.value)
    scale = 1 if metric == "class_separation" else 100
    return {
        spec: {seed: scale * sum(each) / len(each) for seed, each in sorted(of.items())}
        for spec, of in values.items()
    }
