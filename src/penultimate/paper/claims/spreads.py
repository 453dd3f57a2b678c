"""The rule that objectives are spread far less in one quantity than in another, by resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penultimate.paper.claims.effects import Effect, exact
from penultimate.paper.claims.evidence import ROBUST, Evidence, Quantity
from penultimate.paper.claims.margins import (
    FAR,
    LEAST_OBJECTIVES,
    LEAST_SETS,
    LEAST_TASKS,
    ONE_SIDED,
    SPREAD_RESAMPLES,
    TAIL,
)
from penultimate.paper.claims.trials import (
    Trial,
    Trials,
    Unit,
    alone,
    refused,
    too_few,
    too_few_runs,
)
from penultimate.results.text import counted, fixed

if TYPE_CHECKING:
    import numpy as np

    from penultimate.paper.claims.evidence import Frame
    from penultimate.paper.claims.rules import Rule

RATIO = Unit("a ratio of {}", 2, has_sign=False)


class Spreads(NamedTuple):
    """The spreads in x and in y, and the squared spreads in every resample [b]."""

    of_x: float
    of_y: float
    drawn_x: np.ndarray
    drawn_y: np.ndarray


def spreads(x: np.ndarray, y: np.ndarray, same_tasks: bool) -> Spreads:
    """Return the spread of x [k n t] and of y [k n u]: k objectives, n seeds, t or u tasks.

        v = sum_{s != r} w_s w_r C_sr / sum_{s != r} w_s w_r,    spread = sqrt(max(v, 0))

    C_sr is the covariance, over objectives, of their means over tasks in seed s and in seed r; w_s is how
    often a seed is drawn (once, for the estimate). The noise of a run enters no product of two seeds, and
    what a seed adds to all objectives enters no covariance. Resamples of a single seed are left out. The
    result is deterministic.

    Owen, 2007.
    """
    import numpy as np

    def variance(values: np.ndarray, seeds: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return v [b] of resamples, given how often each draws a seed [b n] and a task [b t]."""
        centred = values - values.mean(0)
        means = np.einsum("bt,knt->bnk", tasks / tasks.sum(1, keepdims=True), centred)
        pairs = seeds[:, :, None] * seeds[:, None, :] * (1 - np.eye(seeds.shape[1]))
        products = np.einsum("bnk,bmk,bnm->b", means, means, pairs, optimize=True)
        found: np.ndarray = products / pairs.sum((1, 2)) / (len(values) - 1)
        found[found < 0] = 0
        return found

    n, t, u = x.shape[1], x.shape[2], y.shape[2]
    once = np.ones((1, n))
    of_x, of_y = (float(np.sqrt(variance(of, once, np.ones((1, of.shape[2]))))[0]) for of in (x, y))
    random = np.random.default_rng(0)
    seeds, in_x, in_y = (
        random.multinomial(size, np.full(size, 1 / size), size=SPREAD_RESAMPLES).astype(float)
        for size in (n, t, u)
    )
    several = (seeds > 0).sum(1) > 1
    seeds, in_x, in_y = seeds[several], in_x[several], (in_x if same_tasks else in_y)[several]
    return Spreads(of_x, of_y, variance(x, seeds, in_x), variance(y, seeds, in_y))


def ratio(x: np.ndarray, y: np.ndarray, same_tasks: bool) -> tuple[Spreads, Effect] | None:
    """Return how far the spread of x over that of y is below FAR, or None if y has none beyond chance."""
    import numpy as np

    found = spreads(x, y, same_tasks)
    if found.of_y <= 1e-9 * float(np.abs(y).max()):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.sqrt(found.drawn_x / found.drawn_y)
    low, high, above, below = of_resamples(np.nan_to_num(drawn, nan=np.inf, posinf=np.inf), FAR, FAR)
    return found, Effect(FAR - found.of_x / found.of_y, FAR - high, FAR - low, 0.0, above, below)


def of_resamples(values: np.ndarray, at_least: float, at_most: float) -> tuple[float, float, float, float]:
    """Return the interval of resampled values [b], and the p of those beyond either limit."""
    import numpy as np

    ends = [ONE_SIDED * TAIL, 1 - ONE_SIDED * TAIL]
    low, high = (float(end) for end in np.quantile(values, ends, method="inverted_cdf"))
    above, below = (
        min(1.0, (1 + int(beyond.sum())) / (1 + len(values)) / TAIL)
        for beyond in (values >= at_least, values <= at_most)
    )
    return low, high, above, below


def by_task(frames: Sequence[Frame], objectives: Sequence[str], seeds: Sequence[int]) -> np.ndarray:
    """Return the values of frames, one a task, as an array [objective, seed, task]."""
    import numpy as np

    stacked: np.ndarray = np.stack([of.loc[[*seeds], [*objectives]].to_numpy().T for of in frames], axis=-1)
    return stacked


def narrower(x: Quantity, y: Quantity) -> Rule:
    """Make the rule that the spread of the objectives' means is far smaller in x than in y."""

    def rule(of: Evidence) -> Trials | None:
        sides = [[of.frame(quantity, task) for task in of.tasks(quantity)] for quantity in (x, y)]
        if not all(sides):
            return None
        noun = "shifted test set" if x is ROBUST else "task"
        if of.is_printed:
            means = [of.frame(quantity).iloc[0] for quantity in (x, y)]
            effect = exact(FAR - float(means[0].std() / means[1].std()), 0.0)
            return alone(Trial(effect, RATIO, sign=-1, offset=FAR))
        frames = [*sides[0], *sides[1]]
        seeds_of = {
            slug: set.intersection(*({*of[slug].dropna().index} if slug in of else set() for of in frames))
            for slug in frames[0]
        }
        seeds_of = {slug: seeds for slug, seeds in seeds_of.items() if seeds}
        usable = [slug for slug, seeds in seeds_of.items() if of.is_enough(len(seeds))]
        extent = f"{counted(len(seeds_of), 'objective')}, {counted(len(sides[0]), noun)}"
        if len(seeds_of) < LEAST_OBJECTIVES:
            return refused(extent, too_few(len(seeds_of), LEAST_OBJECTIVES, "objective"))
        seeds = sorted(set.intersection(*(seeds_of[slug] for slug in usable))) if usable else []
        if len(usable) < LEAST_OBJECTIVES or not of.is_enough(len(seeds)):
            counts = [len(seeds)] if len(usable) >= LEAST_OBJECTIVES else map(len, seeds_of.values())
            return refused(extent, too_few_runs(counts))
        for tasks, enough in zip(
            sides, (LEAST_SETS if x is ROBUST else LEAST_TASKS, LEAST_TASKS), strict=True
        ):
            if len(tasks) < enough:
                return refused(extent, too_few(len(tasks), enough, noun if tasks is sides[0] else "task"))
        same = of.tasks(x) == of.tasks(y)
        found = ratio(by_task(sides[0], usable, seeds), by_task(sides[1], usable, seeds), same)
        if found is None:
            return refused(extent, f"No spread beyond chance in {y.name}, of which to take a share.")
        apart, effect = found
        lead = f"Spread {fixed(apart.of_x, 2)} points in {x.name}, {fixed(apart.of_y, 2)} in {y.name}"
        return alone(Trial(effect, RATIO, sign=-1, offset=FAR, runs=len(seeds)), f"{lead} ({extent})")

    return rule
