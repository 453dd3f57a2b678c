"""Claims about the spread of objectives in one quantity, as a share of their spread in another."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING

from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.criteria import CRITERIA, FURTHER, Criteria, FurtherCriteria
from penultimate.paper.claims.effects import Effect, common_seeds, exact_effect
from penultimate.paper.claims.evidence import Evidence
from penultimate.paper.claims.rules import Narrower
from penultimate.paper.claims.trials import (
    EffectUnit,
    Trial,
    Trials,
    not_enough_runs,
    one,
    refused,
    runs_each,
    too_few,
)
from penultimate.report.measurements import ByRun
from penultimate.report.text import counted, fixed

if TYPE_CHECKING:
    import numpy as np

PLACES: dict[Aspect, tuple[str, str]] = {
    "fine_tuned": ("fine-tuned", "task"),
    "robust": ("on shifted test sets", "shifted test set"),
    "linear": ("with linear classifiers", "task"),
}
"""Words for where the objectives are spread, and for what the means are taken over."""


@dataclass(frozen=True)
class Ratio:
    """The spreads in x and in y, and their ratio as an effect.

    The effect is how far the ratio is below `far`.
    """

    of_x: float
    of_y: float
    effect: Effect

    @property
    def value(self) -> float:
        return self.of_x / self.of_y


@dataclass(frozen=True)
class Spreads:
    """The spreads in x and in y, and the squared spreads in every resample [b]."""

    of_x: float
    of_y: float
    drawn_x: np.ndarray
    drawn_y: np.ndarray


def spreads(x: np.ndarray, y: np.ndarray, same_tasks: bool, further: FurtherCriteria = FURTHER) -> Spreads:
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
        return found

    n, t, u = x.shape[1], x.shape[2], y.shape[2]
    once = [np.ones((1, size)) for size in (n, t, u)]
    of_x, of_y = (
        float(np.sqrt(np.maximum(variance(values, once[0], tasks), 0))[0])
        for values, tasks in ((x, once[1]), (y, once[2]))
    )
    random, count = np.random.default_rng(0), int(further.resamples.value)
    seeds, in_x, in_y = (
        random.multinomial(size, np.full(size, 1 / size), size=count).astype(float) for size in (n, t, u)
    )
    several = (seeds > 0).sum(1) > 1
    seeds, in_x, in_y = seeds[several], in_x[several], (in_x if same_tasks else in_y)[several]
    drawn_x, drawn_y = (np.maximum(variance(*drawn), 0) for drawn in ((x, seeds, in_x), (y, seeds, in_y)))
    return Spreads(of_x, of_y, drawn_x, drawn_y)


def spread_ratio(
    x: np.ndarray,
    y: np.ndarray,
    same_tasks: bool,
    criteria: Criteria = CRITERIA,
    further: FurtherCriteria = FURTHER,
) -> Ratio | None:
    """Return the spread of x [k n t] over that of y [k n u], or None if y has no spread beyond chance."""
    import numpy as np

    found = spreads(x, y, same_tasks, further)
    if found.of_y <= 1e-9 * float(np.abs(y).max()):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sqrt(found.drawn_x / found.drawn_y)
    ratios = np.nan_to_num(ratios, nan=np.inf, posinf=np.inf)
    least, ratio = further.far.value, found.of_x / found.of_y
    low, high, above, below = _of_resamples(ratios, least, least, criteria, further)
    effect = Effect(least - ratio, least - high, least - low, 0.0, above, below)
    return Ratio(found.of_x, found.of_y, effect)


def spread_fall(
    found: Spreads, margin: float, criteria: Criteria = CRITERIA, further: FurtherCriteria = FURTHER
) -> Effect:
    """Return by how much the spread in x is below that in y, which are on the same tasks."""
    import numpy as np

    falls = np.sqrt(found.drawn_y) - np.sqrt(found.drawn_x)
    low, high, counts, none = _of_resamples(falls, margin, 0.0, criteria, further)
    return Effect(found.of_y - found.of_x, low, high, margin, p_for=none, p_against=counts)


def _of_resamples(
    values: np.ndarray, at_least: float, at_most: float, criteria: Criteria, further: FurtherCriteria
) -> tuple[float, float, float, float]:
    """Return the interval of resampled values [b], and the p of those beyond either limit."""
    import numpy as np

    tail = criteria.one_sided * further.tail.value
    low, high = (float(end) for end in np.quantile(values, [tail, 1 - tail], method="inverted_cdf"))
    above, below = (
        min(1.0, (1 + int(beyond.sum())) / (1 + len(values)) / further.tail.value)
        for beyond in (values >= at_least, values <= at_most)
    )
    return low, high, above, below


def narrower(evidence: Evidence, rule: Narrower) -> Trials:
    """Return how far the ratio of the objectives' spread in x to that in y is below `far`."""
    of_x, of_y = evidence.by_task(rule.x), evidence.by_task(rule.y)
    for aspect, tasks in ((rule.x, of_x), (rule.y, of_y)):
        if not tasks:
            return evidence.lacking(aspect if aspect == rule.x or not of_x else rule.y)
    far = evidence.further.far.value
    words = EffectUnit("a ratio of {}", 2, has_sign=False)
    if evidence.is_exact:
        spreads = [
            stdev(mean(runs.values()) for runs in evidence.values(one).values()) for one in (rule.x, rule.y)
        ]
        effect = exact_effect(far - spreads[0] / spreads[1], 0.0)
        extent = counted(len(evidence.values(rule.x)), "objective")
        return one(Trial(effect, words, sign=-1, offset=far), extent, lead=_spreads_text(rule, *spreads))
    return _measured(evidence, rule, of_x, of_y, words)


def _measured(
    evidence: Evidence, rule: Narrower, of_x: dict[str, ByRun], of_y: dict[str, ByRun], words: EffectUnit
) -> Trials:
    import numpy as np

    criteria, further = evidence.criteria, evidence.further
    parts = [*of_x.values(), *of_y.values()]
    shared = {
        spec: [seed for seed in runs if all(seed in part.get(spec, {}) for part in parts)]
        for spec, runs in parts[0].items()
    }
    shared = {spec: seeds for spec, seeds in shared.items() if seeds}
    usable = [spec for spec, seeds in shared.items() if evidence.is_enough(len(seeds))]
    enough = int(criteria.least_objectives.value)
    extent = f"{counted(len(shared), 'objective')}, {counted(len(of_x), PLACES[rule.x][1])}"
    if len(shared) < enough:
        return refused(extent, too_few(len(shared), enough, "objective"))
    seeds = common_seeds(dict.fromkeys(shared[spec], 0.0) for spec in usable) if usable else []
    if len(usable) < enough or not evidence.is_enough(len(seeds)):
        counts = [len(seeds)] if len(usable) >= enough else [len(of) for of in shared.values()]
        return refused(extent, not_enough_runs(counts, criteria))
    for aspect, tasks in ((rule.x, of_x), (rule.y, of_y)):
        needed = int((further.least_sets if aspect == "robust" else further.least_tasks).value)
        if len(tasks) < needed:
            return refused(extent, too_few(len(tasks), needed, PLACES[aspect][1]))
    x, y = (
        np.array([[[runs[spec][seed] for runs in tasks.values()] for seed in seeds] for spec in usable])
        for tasks in (of_x, of_y)
    )
    found = spread_ratio(x, y, same_tasks=[*of_x] == [*of_y], criteria=criteria, further=further)
    if found is None:
        return refused(extent, f"No spread beyond chance {PLACES[rule.y][0]}, of which to take a share.")
    extent = (
        f"{counted(len(usable), 'objective')}, {counted(len(of_x), PLACES[rule.x][1])},"
        f" {runs_each([len(seeds)])}"
    )
    trial = Trial(
        found.effect, words, sign=-1, offset=further.far.value, runs=len(seeds), over="", level=", 99 %"
    )
    return one(trial, extent, lead=_spreads_text(rule, found.of_x, found.of_y))


def _spreads_text(rule: Narrower, of_x: float, of_y: float) -> str:
    return f"Spread {fixed(of_x, 2)} points {PLACES[rule.x][0]}, {fixed(of_y, 2)} {PLACES[rule.y][0]}"
