"""Everything that was measured of one objective and of the others, trait by trait, in comparable steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from penultimate.data.catalog import card
from penultimate.measures.catalogue import declared_yield
from penultimate.results.beside import OWN
from penultimate.results.rows import Objective, Run, mean_of, seeds
from penultimate.results.text import fixed, p_value, signed
from penultimate.statistics.comparison import LEAST_RUNS, LEVEL

if TYPE_CHECKING:
    import pandas as pd

UNITS = ("fraction", "ratio", "nats", "distance", "length")
PASSING = ("validation", "certified", "leave_one_out", "lambda")
"""Words in the names of metrics that belong to a method, and say nothing of a network."""
LEAST_OTHERS = 4
SPLITS = {"train": "training images", "holdout": "holdout images", "test": "test images"}


def subject_of(run: Run) -> Objective | None:
    """Return the objective that a portrait is of, or None for another study."""
    own = run.description.get(OWN) or [one.spec for one in run.objectives()]
    return next((one for one in run.objectives() if one.spec in own and run.page == "portrait"), None)


def values(run: Run, metric: str, split: str = "test", scale: float = 1.0, **where: Any) -> pd.DataFrame:
    """Return a metric [seed, objective]; the mean over the tasks `over_tasks`, or with "{accuracy}"."""
    if not where.pop("over_tasks", "{accuracy}" in metric):
        return seeds(run, metric, split, scale=scale, **where)
    names = {task: metric.format(accuracy=card(task).accuracy) for task in run.targets}
    return mean_of(
        [seeds(run, name, split, target=task, scale=scale, **where) for task, name in names.items()]
    )


class Gap(NamedTuple):
    """A mean difference within seeds with its 95 % interval, and its two-sided p."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def beyond_chance(self) -> str:
        """Whether it is beyond chance, and its p."""
        return f"{'yes' if self.p <= LEVEL else 'no'}, {p_value(self.p)}"


def within_seeds(one: pd.Series, other: pd.Series) -> Gap | None:
    """Return one minus other over the seeds that both have, by a paired t test.

    None with fewer than three common seeds, or if all differences are equal.
    """
    from scipy.stats import ttest_rel

    there = one.notna() & other.notna()
    one, other = one[there], other[there]
    least = 1e-12 * max(one.abs().max(), other.abs().max())
    if len(one) < LEAST_RUNS or (one - other).sem() <= least:
        return None
    found = ttest_rel(one, other)
    interval = found.confidence_interval(1 - LEVEL)
    numbers = float((one - other).mean()), float(interval.low), float(interval.high)
    return Gap(*numbers, float(found.pvalue))


@dataclass(frozen=True, eq=False)
class Trait:
    """One quantity: its name, its runs [seed, objective] as shown, the portrait's objective, its digits."""

    name: str
    runs: pd.DataFrame
    own: str
    digits: int = 1

    @cached_property
    def others(self) -> pd.Series:
        """The mean of each other objective."""
        return self.runs.mean().drop(self.own)

    @cached_property
    def steps(self) -> pd.Series:
        """How many of the others' standard deviations each objective lies above their mean."""
        steps: pd.Series = (self.runs.mean() - self.others.mean()) / self.others.std()
        return steps

    @property
    def value(self) -> float:
        """The mean of the objective."""
        return float(self.runs[self.own].mean())

    @property
    def is_outside(self) -> bool:
        """Whether the objective lies beyond all others."""
        return not self.others.min() <= self.value <= self.others.max()

    def minus(self, other: str) -> Gap | None:
        """Return the difference from another objective within seeds; None if it cannot be tested."""
        return within_seeds(self.runs[self.own], self.runs[other]) if other in self.others else None

    def text(self) -> str:
        """Return the value as shown."""
        return fixed(self.value, self.digits)

    def span(self) -> str:
        """Return the lowest and the highest of the others in words."""
        return f"{fixed(self.others.min(), self.digits)} to {fixed(self.others.max(), self.digits)}"

    def change(self, gap: Gap) -> str:
        """Return a difference with its interval in words."""
        change, low, high = (signed(value, self.digits) for value in gap[:3])
        return f"{change} ({low} to {high})"


def trait(name: str, runs: pd.DataFrame, own: str, digits: int = 1) -> Trait | None:
    """Return a quantity as a trait; None if too few objectives have it, or all others are equal."""
    if own not in runs or len(runs.columns) <= LEAST_OTHERS:
        return None
    found = Trait(name, runs, own, digits)
    return found if found.others.std() > 1e-9 * found.others.abs().max() else None


def traits(run: Run, own: Objective) -> list[Trait]:
    """Return every trait of the penultimate features and the predictions, in the order of the rows."""
    found = list(_every(run, own))
    names = [made.name for _, made in found]
    return [
        made if names.count(made.name) == 1 else replace(made, name=f"{made.name} ({metric})")
        for metric, made in found
    ]


def _every(run: Run, own: Objective) -> Iterator[tuple[str, Trait]]:
    rows = run.frame[run.frame["objective"] == own.spec]
    rows = rows[rows[["epoch", "layer", "setting", "arm"]].isna().all(axis=1) & rows["unit"].isin(UNITS)]
    kinds = rows[["metric", "split", "target"]].astype(object)
    known = set()
    for metric, split, target in kinds.where(kinds.notna(), None).itertuples(index=False):
        of_source, split, name = (target or run.source) == run.source, split or "test", metric
        if not of_source and metric.endswith(("_top1", "_mean_per_class")):
            name = metric.removesuffix("_mean_per_class").removesuffix("_top1") + "_{accuracy}"
        is_wanted = (of_source or target in run.targets) and not any(word in metric for word in PASSING)
        if not is_wanted or (name, split, of_source) in known:
            continue
        known.add((name, split, of_source))
        declared = declared_yield(name.format(accuracy="top1"))
        runs = values(run, name, split, declared.scale, over_tasks=not of_source)
        where = SPLITS.get(split, split) if of_source else "mean of the tasks"
        title = f"{declared.called or name.replace('_', ' ')}, {where}"
        if made := trait(title, runs, own.slug, declared.digits):
            yield name, made


def likeness(found: list[Trait]) -> dict[str, float]:
    """Return how far the objective lies from each other one, the nearest first.

    D_o^2 = mean_t ((x_t - x_ot) / s_t)^2,    s_t the standard deviation of the others' means

    An objective that lacks half of the traits or more is left out.
    """
    import pandas as pd

    steps = pd.DataFrame([one.steps for one in found]).reset_index(drop=True)
    squares = steps.rsub(steps[found[0].own], axis=0).drop(columns=found[0].own) ** 2
    enough = squares.columns[2 * squares.count() > len(found)]
    distances: dict[str, float] = (squares[enough].mean() ** 0.5).sort_values(kind="stable").to_dict()
    return distances
